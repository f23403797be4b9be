#ifndef LIB_CALLBACK_CALLBACK_INTERNAL_H
#define LIB_CALLBACK_CALLBACK_INTERNAL_H

/*
 * A pusher, from inside. A *delivery* is a lease and what is done with it; it is in one of three lists:
 *
 *     reserved                  room at its host              result known
 *     --------> WAITING ----------------------> UNDER WAY ----------------------> UNTOLD --> told, and freed
 *                 ^                                  |                              ^
 *                 |        redirected                |         never sent           |
 *                 +----------------------------------+                              |
 *                 +-----------------------------------------------------------------+
 *
 * Everything is done by one thread, in turns (callback_run.c): look at what libcurl has finished, tell results, start
 * what may start, reserve as much as there is room for, and sleep until something happens. So nothing here is locked
 * but what other threads read: counters.
 *
 * Two clocks: leases are in the store's elapsed time, which a test may stand still; all else is in ns of
 * CLOCK_BOOTTIME.
 */

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/callback/address.h"
#include "lib/callback/text.h"
#include "weekwheel/callback.h"

struct host;

enum callback_state { CALLBACK_WAITING, CALLBACK_UNDER_WAY, CALLBACK_UNTOLD, CALLBACK_STATES };

/* What the store is to be told. */
enum callback_outcome {
	CALLBACK_FINISH,
	CALLBACK_RETRY,
	CALLBACK_BURY,
	CALLBACK_GIVE_BACK /* it was not tried */
};

struct delivery {
	struct ww_callback *callback;
	struct delivery *next; /* in the list of its state */
	struct delivery *before;
	enum callback_state state;

	struct ww_lease lease;
	uint64_t run;     /* ns that the lease lasts from a touch on */
	uint64_t touched; /* when it was renewed last, or taken; of the store's time */

	/* Where the request goes now: the job's URL, or that of the last redirection. */
	char *url;
	size_t url_size; /* of the block, NUL included */
	struct host *host;
	uint32_t redirects;
	int is_elsewhere; /* it was redirected to another host */
	uint64_t began;   /* the first of its requests */

	/* Of the transfer under way. */
	CURL *easy;
	struct curl_slist *headers;
	size_t head_bytes;
	size_t body_bytes;
	int is_cut; /* it was longer than is read: the body, or the head if that is too long */
	unsigned refused_count;
	unsigned allowed_count;
	char refused[64]; /* the last address that may not be called */
	uint32_t lacks;   /* the networks that it would have to have for it, or 0 */
	char failure[CURL_ERROR_SIZE];
	char beginning[128]; /* of the answer's body */
	size_t beginning_size;

	enum callback_outcome outcome;
	uint64_t delay; /* of a retry, or WW_JOB_BACKOFF */
	char error[WW_JOB_ERROR_MAX + 1];
};

struct list {
	struct delivery *first;
	struct delivery *last;
	_Atomic size_t count;
};

/* A host and port with deliveries, in callback_host.c's table; freed with the last one. */
struct host {
	struct host *next;
	size_t deliveries; /* that name it */
	size_t under_way;
	unsigned port;
	size_t size;
	char name[];
};

/* Counters of struct ww_callback_stats, by the same names. */
struct counters {
	_Atomic uint64_t reserved, requests, redirects, connections, finished, retried, buried, given_back, refused,
	    stale, lost, store_errors;
};

struct ww_callback {
	const struct ww_allocator *allocator;
	struct ww_callback_config config; /* its strings are copies */
	struct callback_ranges ranges;
	pid_t process;

	CURLM *multi;
	pthread_t thread;
	_Atomic int woken;
	_Atomic int closing;
	_Atomic uint64_t grace_ends;

	struct list lists[CALLBACK_STATES];
	struct delivery *spare; /* forgotten ones, to be used again */
	size_t spares;
	struct host **hosts;
	size_t host_buckets; /* a power of two */
	struct counters counters;

	/* The store: whether it answers, and when to ask it again if it did not. */
	int is_lost;
	uint64_t ask_again;
	uint64_t pause;
	uint64_t look; /* when to look for ready jobs, unless woken */
	uint64_t tend; /* when leases of waiting deliveries are to be looked at */
	int more;      /* the last look did not find the end */
	/* While as many wait as may (callback_take.c). */
	uint64_t *rests; /* of each tube: until when it is not asked */
	size_t turn;     /* which tube is asked first */
	int left;        /* jobs were returned for want of room */
	uint64_t random;
	size_t untold_at_end;
};

/* ---- callback.c: memory, time, lists */

void *ww_callback_allocate(const struct ww_callback *callback, size_t size);
void ww_callback_free(const struct ww_callback *callback, void *block, size_t size);
uint64_t ww_callback_time(void);
/* Add a delivery to the end of the list of that state; remove it from the one that it is in. */
void ww_callback_add(struct delivery *delivery, enum callback_state state);
void ww_callback_remove(struct delivery *delivery);
void ww_callback_say(const struct ww_callback *callback, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- callback_config.c */

/* Copy *config, with what it points to, into a pusher that is all 0 but for its allocator. */
int ww_callback_config_copy(struct ww_callback *callback, const struct ww_callback_config *config);
void ww_callback_config_free(struct ww_callback *callback);

/* ---- callback_host.c */

int ww_callback_host_take(struct ww_callback *callback, const struct callback_url *url, struct host **host);
void ww_callback_host_leave(struct ww_callback *callback, struct host *host);

/* ---- callback_run.c */

void *ww_callback_run(void *argument);

/* ---- callback_store.c: what the store is asked and told */

/* Whether the store may be asked now, after it was lost. */
int ww_callback_store_may(const struct ww_callback *callback, uint64_t now);
/* It failed: leave it alone for a while. */
void ww_callback_store_lost(struct ww_callback *callback, int error, uint64_t now);
/* Take the answer of a call into account. Returns 1 if it says that the store is lost for now. */
int ww_callback_store_failed(struct ww_callback *callback, int error, uint64_t now);
/*
 * Renew a lease that has waited. Returns 0 if that cannot be done now, or if the lease has ended: then the delivery is
 * gone.
 */
int ww_callback_freshen(struct delivery *delivery, uint64_t now);
/* Renew leases that wait, as soon as half of one is over. */
void ww_callback_tend(struct ww_callback *callback, uint64_t now);
/* Tell what is untold, until the store is lost. */
void ww_callback_tell(struct ww_callback *callback, uint64_t now);
/* ns that a request may take now; 0: the lease is over. */
uint64_t ww_callback_time_left(const struct delivery *delivery, uint64_t now);

/* ---- callback_take.c */

/* Whether there is room for another request. */
int ww_callback_may_start(const struct ww_callback *callback);
/* Take as many leases as there is room for, if it is time to look. */
void ww_callback_take(struct ww_callback *callback, uint64_t now);

/* ---- callback_delivery.c */

/* The result of a delivery is known: it is to be told. error NULL: none. */
void ww_callback_result(struct delivery *delivery, enum callback_outcome outcome, uint64_t delay, const char *format,
    ...) __attribute__((format(printf, 4, 5)));
/* A lease was taken: send its request if its host has room, or else let it wait. */
void ww_callback_accept(struct delivery *delivery, uint64_t now);
/* Let it go to that URL next, which is allowed. Errors: WW_ENOMEM: it stays where it is. */
int ww_callback_direct(struct delivery *delivery, struct span url, const struct callback_url *parts);
/* It becomes a spare one. */
void ww_callback_forget(struct delivery *delivery);
/* See to it that there are so many spare ones. Returns how many of them there are. */
size_t ww_callback_prepare(struct ww_callback *callback, size_t wanted);
/* Take a spare one: all 0, and in no list. */
struct delivery *ww_callback_fresh(struct ww_callback *callback);
void ww_callback_free_spares(struct ww_callback *callback);

/* ---- callback_send.c */

/* Start the request of a delivery that waits. */
void ww_callback_send(struct delivery *delivery, uint64_t now);
/* Take the transfer out of libcurl's hands. What it knows of it is still there. */
void ww_callback_stop(struct delivery *delivery);
/* Free what the transfer had. */
void ww_callback_clean(struct delivery *delivery);

/* ---- callback_answer.c */

/* A transfer has ended: decide what comes of it. */
void ww_callback_answer(struct delivery *delivery, CURLcode code);

#endif
