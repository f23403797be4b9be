#ifndef LIB_CALLBACK_CALLBACK_INTERNAL_H
#define LIB_CALLBACK_CALLBACK_INTERNAL_H

/*
 * The inside of a pusher. A *delivery* is a lease and its request; it is in one of three lists:
 *
 *     reserved                  room at its host              result known
 *     --------> WAITING ----------------------> UNDER WAY ----------------------> UNREPORTED --> reported, and freed
 *                 ^                                  |                              ^
 *                 |        redirected                |         never sent           |
 *                 +----------------------------------+                              |
 *                 +-----------------------------------------------------------------+
 *
 * One thread does everything (run.c describes its turns). Therefore nothing is locked; the counters that other
 * threads read are atomic.
 *
 * A delivery that waits, or was reserved just now, may be put off (breaker.c): it is reported as never sent, with a delay.
 *
 * A result is kept until the store has taken it. While the store does not answer, unreported deliveries count against
 * in_flight: no new request starts once that many results wait.
 *
 * Two clocks: leases use the store's elapsed time, which a test may stop; all else is ns of CLOCK_BOOTTIME.
 */

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/fork.h"
#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/callback/address.h"
#include "lib/callback/text.h"
#include "weekwheel/callback.h"

struct host;
struct place;
struct peer;

/* Bytes of an answer's head. */
enum { CALLBACK_HEAD_MAX = 65536 };

enum callback_state { CALLBACK_WAITING, CALLBACK_UNDER_WAY, CALLBACK_UNREPORTED, CALLBACK_STATES };

/* The call of the store that reports a result. GIVE_BACK: the request was never sent. */
enum callback_outcome { CALLBACK_FINISH, CALLBACK_RETRY, CALLBACK_BURY, CALLBACK_GIVE_BACK };

struct delivery {
	struct ww_callback *callback;
	struct delivery *next; /* in the list of its state */
	struct delivery *prev;
	enum callback_state state;

	struct ww_lease lease;
	uint64_t run;     /* ns that the lease lasts from a touch on */
	uint64_t touched; /* when it was taken or last renewed, by the store's time */

	/* Where the request goes: the job's URL, or that of the last redirection. */
	char *url;
	size_t url_size; /* of the block, NUL included */
	struct host *host;
	struct pushed *tube;
	uint32_t redirects;
	int is_elsewhere; /* it was redirected to another host */
	uint64_t began;   /* the first of its requests */

	/* The transfer under way. */
	struct place *place; /* where it counts */
	int is_probe;        /* of a host that rests */
	int is_crowded;      /* its address was found to have no room */
	CURL *easy;
	struct curl_slist *headers;
	size_t head_bytes;
	size_t body_bytes;
	uint64_t checked;        /* when the bytes of its connection were last counted */
	uint64_t received;       /* bytes of its connection before this request */
	struct peer *connection; /* NULL: not known yet */
	int is_over;             /* more bytes were received than an answer may take */
	int is_cut;              /* we stopped reading: the body is longer than response_max */
	unsigned refused_count;  /* addresses that may not be called, and that may */
	unsigned allowed_count;
	char refused[64]; /* the last refused address */
	uint32_t lacks;   /* the networks that would permit it, or 0 */
	char failure[CURL_ERROR_SIZE];
	char beginning[128]; /* of the answer's body */
	size_t beginning_size;

	enum callback_outcome outcome;
	uint64_t delay; /* of a retry, or WW_JOB_BACKOFF; of a job that is given back */
	char error[WW_JOB_ERROR_MAX + 1];
};

struct delivery_list {
	struct delivery *first;
	struct delivery *last;
	_Atomic size_t count;
};

/* A pushed tube. */
struct pushed {
	size_t under_way;
	uint64_t rests;   /* until when it is not asked, as its jobs could not start (take.c) */
	int has_returned; /* the last time, jobs were returned to their old place */
};

/* Counters of struct ww_callback_stats, by the same names. */
struct counters {
	_Atomic uint64_t reserved, requests, redirects, connections, finished, retried, buried, given_back, refused,
	    timed_out, over, rests, rested, crowded, stale, lost, store_errors;
};

struct ww_callback {
	const struct ww_allocator *allocator;
	struct ww_callback_config config; /* its strings are copies */
	struct callback_ranges ranges;
	uint32_t forks; /* when it was opened; children may not use it */

	CURLM *multi;
	pthread_t thread;
	_Atomic int woken;
	_Atomic int closing;
	_Atomic uint64_t grace_ends;

	struct delivery_list lists[CALLBACK_STATES];
	struct peer *connections; /* all open ones; socket.c */
	struct delivery *spare;   /* forgotten deliveries, for reuse */
	size_t spares;
	size_t given_back; /* of those unreported, the ones that were not sent; they take no room */
	/* host.c, place.c */
	struct host **hosts;
	struct place **places;
	size_t host_buckets; /* of either, a power of two */
	uint64_t seed;       /* of their hashes */
	struct host *idle_newest;
	struct host *idle_oldest;
	size_t idle;
	size_t probes; /* requests under way to hosts that rest */
	_Atomic size_t resting;
	size_t unanswered; /* hosts that have never answered */
	struct counters counters;

	/* The store: whether it fails, and when to ask it again. */
	int is_lost;
	uint64_t ask_again;
	uint64_t pause;
	uint64_t look;        /* when to look for ready jobs, unless woken */
	uint64_t tend;        /* when to look at the leases of waiting deliveries */
	int more;             /* the last look left ready jobs behind */
	struct pushed *tubes; /* those of the configuration, in its order */
	size_t turn;          /* the tube that is asked first */
	int is_short;         /* a tube was not asked for want of room */
	int left;             /* jobs were returned for want of a place to wait */
	size_t returned;      /* how many, ever */
	uint64_t random;
	size_t unreported_at_end;
};

/* ---- config.c */

/* Copy *config, and all that it points to, into a pusher that is all 0 but for its allocator. */
int ww_callback_config_copy(struct ww_callback *callback, const struct ww_callback_config *config);
void ww_callback_config_free(struct ww_callback *callback);
/* Report a sentence. */
void ww_callback_log(const struct ww_callback *callback, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- run.c */

void *ww_callback_run(void *argument);

/* ---- store.c */

/* Whether the store may be asked now: it works, or the pause after its failure is over. */
int ww_callback_store_may(const struct ww_callback *callback, uint64_t now);
/* The store failed: leave it alone for a while. */
void ww_callback_store_lost(struct ww_callback *callback, int error, uint64_t now);
/* Judge the result of a call. Returns 1 if the store failed. */
int ww_callback_store_failed(struct ww_callback *callback, int error, uint64_t now);
/*
 * Renew a lease before its request is sent, if an eighth of it is over. Returns 0 if the store fails now, or if the
 * lease has ended: then the delivery is gone.
 */
int ww_callback_freshen(struct delivery *delivery, uint64_t now);
/* Renew leases of waiting deliveries, each when half of it is over. */
void ww_callback_tend(struct ww_callback *callback, uint64_t now);
/* Tell the store all results, until it fails. */
void ww_callback_report(struct ww_callback *callback, uint64_t now);
/* ns that a request may take now; 0: the lease is over. */
uint64_t ww_callback_time_left(const struct delivery *delivery, uint64_t now);

/* ---- room.c */

/* How many more requests may start. */
size_t ww_callback_room_to_start(const struct ww_callback *callback);
/* How many more requests of a tube may start, urgent ones included or not. */
size_t ww_callback_room_of(const struct ww_callback *callback, const struct pushed *tube, int urgent);

/* ---- take.c */

/* Take as many leases as there is room for, if it is time for that. */
void ww_callback_take(struct ww_callback *callback, uint64_t now);

/* ---- delivery.c */

/* Move a delivery to the end of the list of that state. */
void ww_callback_move(struct delivery *delivery, enum callback_state state);
/* The result of a delivery is known, and it becomes unreported. format NULL: no error. */
void ww_callback_result(struct delivery *delivery, enum callback_outcome outcome, uint64_t delay, const char *format,
    ...) __attribute__((format(printf, 4, 5)));
/* A lease was taken: send its request if that may start; otherwise it waits, or is put off. */
void ww_callback_accept(struct delivery *delivery, uint64_t now);
/* The same for a delivery that waits. It keeps its place among those that wait. */
void ww_callback_try(struct delivery *delivery, uint64_t now);
/* Send it to that URL next, which is valid. Errors: WW_ENOMEM: nothing changes. */
int ww_callback_direct(struct delivery *delivery, struct text_span url, const struct callback_url *parts);
/* The delivery becomes a spare one. */
void ww_callback_forget(struct delivery *delivery);
/* Make that many spare ones. Returns how many there are, `wanted` at most. */
size_t ww_callback_prepare(struct ww_callback *callback, size_t wanted);
/* Take a spare one: all 0, in no list. */
struct delivery *ww_callback_fresh(struct ww_callback *callback);
void ww_callback_free_spares(struct ww_callback *callback);

/* ---- place.c */

/* What a request may not start in excess of. */
struct place {
	struct place *next;
	size_t users; /* hosts, and requests under way */
	size_t under_way;
	size_t size;
	char key[];
};

/* Where a host or a place is in its table. A place has port 0. */
size_t ww_callback_place_bucket(const struct ww_callback *callback, const char *data, size_t size, unsigned port);
/* Find or make the place of an address, or of a name that has not been called yet, for a user. NULL: no memory. */
struct place *ww_callback_place_of(struct ww_callback *callback, const struct sockaddr *address);
struct place *ww_callback_place_of_name(struct ww_callback *callback, const char *name);
/* A user less; NULL is harmless. */
void ww_callback_place_leave(struct ww_callback *callback, struct place *place);
/* Read an address. Returns 0 if it is a name. */
int ww_callback_place_read(const char *text, struct sockaddr_storage *address);
/* Whether a request may start there. */
int ww_callback_place_may(const struct ww_callback *callback, const struct place *place);
/* A request counts there, and no longer counts where it did. */
void ww_callback_place_enter(struct delivery *delivery, struct place *place);
void ww_callback_place_exit(struct delivery *delivery);

/* ---- host.c */

struct host {
	struct host *next;
	struct host *newer; /* in the list of those without deliveries */
	struct host *older;
	struct place *place;
	size_t deliveries;
	unsigned failures; /* in a row */
	int is_resting;
	int is_probed;
	uint64_t rests_from;
	uint64_t probe_at;
	uint64_t pause;
	uint64_t put_off; /* jobs since it rests */
	uint64_t turn;    /* when the next job that is put off comes back */
	int has_answered;
	uint64_t answered; /* at last, or when it was made */
	unsigned port;
	size_t size;
	char name[];
};

/* Find or make the host of a URL, for a delivery. NULL: no memory. */
struct host *ww_callback_host_take(struct ww_callback *callback, const struct callback_url *url);
void ww_callback_host_leave(struct ww_callback *callback, struct host *host);
void ww_callback_host_free_all(struct ww_callback *callback);
/* Whether a request may start now, as far as its host and place are concerned. */
int ww_callback_host_may(const struct delivery *delivery, uint64_t now);
/* A request starts, and has ended. */
void ww_callback_host_start(struct delivery *delivery);
void ww_callback_host_stop(struct delivery *delivery);
/* A request goes to that address. Returns 0 if there must be room there and is none. */
int ww_callback_host_found(struct delivery *delivery, const struct sockaddr *address, int must_be_free);
void ww_callback_host_found_text(struct delivery *delivery, const char *text);

/* ---- breaker.c */

/* Whether its host rests, and no request may try it now. */
int ww_callback_breaker_rests(const struct delivery *delivery, uint64_t now);
/* A request to its host starts, and has ended: to a host that rests it is a probe. */
void ww_callback_breaker_start(struct delivery *delivery);
void ww_callback_breaker_stop(struct delivery *delivery);
/* How a request to its host has ended. */
void ww_callback_breaker_failed(struct delivery *delivery, const char *why, int was_probe, uint64_t now);
void ww_callback_breaker_answered(struct delivery *delivery, uint64_t now);
/* Whether it has not answered lately. */
int ww_callback_breaker_is_silent(const struct delivery *delivery, uint64_t now);
/* A job is put off: ns until it comes back. */
uint64_t ww_callback_breaker_turn(struct delivery *delivery, uint64_t now);

/* ---- send.c */

/* Start the request of a waiting delivery. */
void ww_callback_send(struct delivery *delivery, uint64_t now);
/* Stop the transfer. What libcurl knows about it remains. */
void ww_callback_stop(struct delivery *delivery);
/* Free the transfer. */
void ww_callback_clean(struct delivery *delivery);

/* ---- socket.c */

/* Forget all sockets, which are closed. */
void ww_callback_socket_free_all(struct ww_callback *callback);
/* The most bytes that may be received for an answer, of whatever kind. */
size_t ww_callback_socket_bytes_max(const struct ww_callback_config *config);
/* Set the options of a transfer for its connection. */
CURLcode ww_callback_socket_options(struct delivery *delivery);

/* ---- answer.c */

/* A transfer has ended: decide the result. */
void ww_callback_answer(struct delivery *delivery, CURLcode code);

#endif
