#ifndef WEEKWHEEL_CALLBACK_H
#define WEEKWHEEL_CALLBACK_H

/*
 * Push delivery of jobs: the body of a job is an HTTP request, and a pusher sends it when the job is ready.
 *
 * A *pusher* takes the ready jobs of some tubes of a store of either kind (jobs.h), sends the request in each, and
 * reports the result to the store. It has one thread, which sends hundreds of requests at a time. A receiver that
 * answers slowly does not hold up the others.
 *
 *     store                    pusher                           receiver
 *     ready job -- reserve --> waits for its host --> under way --> POST /path
 *       ^  finished or buried                          |  <------- 204
 *       +---- again later ---- result, kept until <----+
 *                              the store takes it
 *
 * The request is text like an HTTP message, so clients in any language can put one, and people can read it:
 *
 *     POST https://example.org/hook?source=shop
 *     Content-Type: application/json
 *
 *     {"order": 4711}
 *
 * The first line has the method (POST if it is left out), the URL, and optionally HTTP/1.1, which is ignored. Header
 * lines follow, then an empty line, and the body up to the job's last byte. A line ends with LF or CR LF.
 * ww_callback_parse has the exact rules.
 *
 * Results:
 *
 *     answer                                   the job is
 *     ---------------------------------------  ----------------------------------------------------------------------
 *     2xx, and statuses in config.success      finished
 *     408, 425, 429, 5xx                       tried again: after Retry-After, or its backoff
 *     none, or an incomplete one               tried again: no such host, no connection, no trust, time up, cut off
 *     3xx                                      tried again at once at the other place, as below; or buried
 *     other 4xx and all other statuses         buried
 *     no request, or one that may not be sent  buried; nothing was sent
 *
 * "Tried again" is ww_jobs_release: after its last attempt the job is buried. The job's error says why in either case:
 * the status with the first bytes of the answer's body, or what failed. A job without backoff and without Retry-After
 * waits config.retry, twice as long after each further attempt up to config.retry_max, less a random part of up to a
 * quarter. A job without a limit of attempts gets the limit config.attempts. Delivery is at least once: a receiver may
 * get a request twice if its answer was lost or came too late.
 *
 * Time. A request, including its redirections, ends before the job's lease does. It may take what is left of the lease,
 * less a tenth (at most 2 s), and never more than config.timeout. The time to run of each job is thus its timeout, if
 * it is below config.timeout.
 *
 * Size. Every byte that arrives on the connection from the request on counts: headers, the framing of chunks and of
 * HTTP/2, TLS. If there are more than twice config.response_max plus 384 KiB, the request is cut off and treated as one
 * without an answer. Requests over HTTP/2 share a connection: there each of up to config.per_host requests may get this
 * many bytes.
 *
 * Busy hosts. config.per_host limits the requests to one address, whatever names and ports lead to it; of an IPv6
 * address the first 64 bits count. Until a connection has shown the address, the limit goes by name. While less than
 * half of config.in_flight is free, the limit shrinks with the free part. A job whose host takes no more waits with its
 * lease renewed (ww_jobs_touch), and other jobs are sent meanwhile. When config.waiting jobs wait, further jobs of a
 * host that has not answered for a second are *put off*: returned with a delay (ww_jobs_return_after), which counts no
 * attempt. They come back one after the other, after 10 minutes at the latest, and not in their old order. Jobs of a
 * host that answers are returned to their old place (ww_jobs_return). There they may hide later jobs of the same tube,
 * for a second at a time. If a host gets more than it can take, give it a tube of its own. Urgent jobs and other tubes
 * go on.
 *
 * Hosts that do not answer. After config.rest_after requests in a row without any answer, a host, by name and port,
 * *rests*: its jobs are put off without being sent. After config.rest one of them tries the host. An answer, of
 * whatever status, ends the rest; otherwise the pause doubles, up to config.rest_max. All resting hosts together get
 * back at most 200 jobs a second. A job that was redirected to such a host is tried again after its backoff. A host
 * that never answers again keeps its jobs, except those that try it and reach their last attempt.
 *
 * Room. A quarter of config.in_flight is divided among the tubes, each of which has its part alone. A sixteenth is for
 * urgent jobs, those with a priority below 1024. The rest is for all.
 *
 * Headers. Each request has these, in addition to the job's own:
 *
 *     Weekwheel-Job-Id       the id, decimal
 *     Weekwheel-Job-Key      the key if there is one; bytes other than letters, digits, - . _ ~ as %XX
 *     Weekwheel-Tube         the tube, written likewise
 *     Weekwheel-Attempt      1 with the first delivery
 *     Weekwheel-Token        the fencing token: grows with every delivery; a receiver refuses one below its last
 *     Weekwheel-Timestamp    Unix time in seconds, when it was sent
 *     Weekwheel-Signature    only with config.secret: v1= and 64 hexadecimal digits
 *     Idempotency-Key        a quoted string, the same in all attempts of a job, and in those of one run of a periodic
 *                            job; unless the job has this header itself
 *
 * The job's own are those in its body and, unless the body has them, those that were put beside it (ww_job_spec.headers). What
 * a job may not set is left out, and so is what exceeds WW_CALLBACK_HEADERS_MAX in all.
 *
 * Signature. HMAC-SHA256, keyed with the secret, of these fields, joined by single LFs: timestamp, id, token, method,
 * URL, body. The first three are decimal, as in the headers. The URL is the one in the job or in the redirection. The
 * body is the bytes that are sent. Only the body can contain LF, so no field can pass for another. For example, with
 * the secret "secret", timestamp 1700000000, id 7, token 9, POST, https://example.org/hook and the body "hello":
 *
 *     v1=067948dc12a98df0c47cdaf541c89e0a90c4b89618b00c7470dcb3fcfd646329
 *
 * A receiver computes the same signature with its own copy of the secret and its own URL, and compares in constant
 * time. It refuses a timestamp more than some minutes away from its own clock. It refuses a token that is not above the
 * last one that it saw for that id. A job's key, tube, attempt and headers are not signed.
 *
 * Addresses. Anyone who reaches the store may put jobs. By default a pusher therefore calls only public addresses: no
 * loopback, private, link-local, multicast, reserved or translated ones. It checks the address of the actual
 * connection, so a name that resolves to another address the second time gains nothing. config can allow more. The
 * pusher uses no proxy, and nothing from the environment, .netrc or cookies.
 *
 * Redirections with 301, 302, 307 and 308 are followed, with the same method and body, and 303 for GET and HEAD. At
 * most config.redirects are followed, and only to the same scheme. Each is counted and checked like the first request.
 * Another host, port included, gets only these of the job's headers: Accept, Accept-Language, Content-Type,
 * Content-Encoding, Content-Language, Idempotency-Key and User-Agent. It gets no credentials and no signature.
 *
 * Losing the store. While the store answers with temporary errors, requests under way go on. The pusher keeps at most
 * config.in_flight results and reports them when the store is back, after pauses of up to 5 s. A lease that has ended
 * by then is counted as stale, and its job comes again.
 *
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed.
 * Every function answers WW_EINVAL to NULL where it needs an object.
 *
 * Fork: in a child every call with a pusher answers WW_ECLOSED.
 *
 * Threads: any, except for ww_callback_open and ww_callback_close of one pusher.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"
#include "weekwheel/error.h"
#include "weekwheel/jobs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Requests as text ---------------------------------------------------------------------------------------- */

#define WW_CALLBACK_HEADERS_MAX 64
#define WW_CALLBACK_URL_MAX 8000
#define WW_CALLBACK_HEAD_MAX 65536 /* bytes before the body */

/* A header of a request. Its strings do not end with NUL. */
struct ww_callback_header {
	const char *name;
	size_t name_length;
	const char *value;
	size_t value_length;
};

/* A request. Its strings do not end with NUL. */
struct ww_callback_request {
	const char *method;
	size_t method_length;
	const char *url;
	size_t url_length;
	const void *body;
	size_t body_length;
	size_t header_count;
	struct ww_callback_header headers[WW_CALLBACK_HEADERS_MAX];
};

/* Why a text is not a request. */
struct ww_callback_problem {
	size_t line;        /* counted from 1; 0: the problem is not in a single line */
	const char *reason; /* a constant phrase */
};

/*
 * Read a request. Fill *request, which then points into `text`; a method that was left out points to a constant "POST",
 * and GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS in any case point to constants in capitals.
 * problem may be NULL; on error *problem gets what is wrong, and where.
 * Range: the method is a token of up to 32 characters, but neither CONNECT nor TRACE. HEAD has no body. The URL is
 * http:// or https://, a host, an optional :port, then the path and what follows, in printable ASCII. The host is a
 * name of letters, digits, - . _, an IPv4 address, or an IPv6 address in brackets. The URL has neither a user's name
 * nor a fragment. A header is a token, a colon, and a value without control characters other than tabs; blanks at both
 * ends of the value are removed. A header does not continue in the next line. A job may not set the headers that the
 * transfer sets: Host, Content-Length, Transfer-Encoding, Connection, Keep-Alive, Proxy-..., TE, Trailer, Upgrade,
 * Expect, Weekwheel-..., nor any of these with _ for -.
 * Complexity: O(length of the head); allocates nothing.
 * Errors: WW_EINVAL: the text is not a request. WW_ETOOBIG: URL, head or number of headers is over its bound.
 */
WW_API int ww_callback_parse(
    const char *text, size_t length, struct ww_callback_request *request, struct ww_callback_problem *problem);

/*
 * Write a request for the body of a job, in the form that ww_callback_parse reads. Store its length in *length. If that
 * is more than `size`, nothing is written to buffer. buffer may be NULL if size is 0.
 * Errors: WW_EINVAL: the parser would refuse it, for example because of CR or LF in a header. WW_ETOOBIG: it needs more
 * than `size`, or is over a bound.
 */
WW_API int ww_callback_write(const struct ww_callback_request *request, char *buffer, size_t size, size_t *length);

#define WW_CALLBACK_SIGNATURE_SIZE 68 /* v1=, 64 digits and NUL */

/*
 * Compute the signature of the request, as described at the top. For receivers and tests.
 * Errors: WW_EINVAL: an argument is NULL. WW_ESYSTEM: the cryptography library refuses.
 */
WW_API int ww_callback_sign(const void *secret, size_t secret_length, uint64_t timestamp, uint64_t id, uint64_t token,
    const struct ww_callback_request *request, char signature[WW_CALLBACK_SIGNATURE_SIZE]);

/* ---- Pushers ------------------------------------------------------------------------------------------------- */

struct ww_callback;

/* The schemes that may be called. */
#define WW_CALLBACK_HTTP 1u
#define WW_CALLBACK_HTTPS 2u

/* Addresses that may be called in addition to public ones. */
#define WW_CALLBACK_LOOPBACK 1u   /* 127.0.0.0/8, ::1 */
#define WW_CALLBACK_PRIVATE 2u    /* 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7, fec0::/10 */
#define WW_CALLBACK_LINK_LOCAL 4u /* 169.254/16, where clouds keep their secrets, and fe80::/10 */
#define WW_CALLBACK_SPECIAL 8u    /* multicast, reserved, documentation, IPv4 within IPv6, which is then checked, too */

enum ww_callback_what { WW_CALLBACK_DONE, WW_CALLBACK_RETRIED, WW_CALLBACK_BURIED };

/* The outcome of a job. Everything is valid during the call. */
struct ww_callback_result {
	enum ww_callback_what what;
	uint64_t id;
	uint32_t attempt;
	uint32_t kicks; /* of its lease, as the next */
	uint64_t late;
	const char *tube;
	const char *error; /* "" with WW_CALLBACK_DONE */
};

/* The configuration of a pusher. Fill it with ww_callback_config_default, then set what differs. */
struct ww_callback_config {
	struct ww_jobs *jobs; /* must outlive the pusher */
	const char *const *tubes;
	size_t tube_count;        /* at least 1 */
	size_t in_flight;         /* requests under way and results not yet reported, 1 to 65,536; 256 */
	size_t per_host;          /* requests under way to one address, whatever its names and ports; 16 */
	size_t waiting;           /* jobs held while their host is busy; 1,024 */
	uint64_t connect_timeout; /* ns, name and TLS included; 5 s */
	uint64_t timeout;         /* ns for a whole request; 0: only the job's time to run counts; 30 s */
	uint64_t poll;            /* ns between polls of the store without ww_callback_wake; 100 ms */
	uint64_t retry;           /* ns after the first attempt of a job without a backoff; doubles with each; 1 s */
	uint64_t retry_max;       /* ns; the most that it doubles to; 1 h */
	uint32_t rest_after;      /* requests without an answer in a row after which a host rests; 0: never; 5 */
	uint64_t rest;            /* ns until a request tries a resting host, at least 1 ms; doubles each time; 1 s */
	uint64_t rest_max;        /* ns; the most that it doubles to, at least `rest`; 60 s */
	uint32_t attempts;        /* of a job that has no limit of its own; 0: no limit; 25, in some 14 hours */
	uint64_t retry_after_max; /* ns; the most that Retry-After counts for; 1 h */
	const uint16_t *success;  /* statuses from 200 to 599 that are success, in addition to 2xx */
	size_t success_count;
	const void *secret; /* of the signature; NULL: none */
	size_t secret_length;
	uint32_t schemes;         /* WW_CALLBACK_HTTP | WW_CALLBACK_HTTPS */
	uint32_t networks;        /* WW_CALLBACK_LOOPBACK and so on; 0 */
	const char *const *deny;  /* ranges such as "192.0.2.0/24" or "2001:db8::/32" that are never called */
	size_t deny_count;        /* deny takes precedence over `allow` */
	const char *const *allow; /* ranges that may be called, whatever `networks` says */
	size_t allow_count;
	uint32_t redirects;     /* the most that are followed; 5; 0: none */
	size_t body_max;        /* bytes of a request's body; 1 MiB */
	size_t response_max;    /* bytes of an answer's body to read before the connection is closed; 64 KiB */
	const char *user_agent; /* "weekwheel/" and the version; a job's own takes precedence */
	const char *ca_file;    /* certificates to trust, PEM; NULL: the system's */
	const struct ww_allocator *allocator; /* NULL: the default; libcurl has memory of its own */
	/*
	 * Called by the pusher's thread when the store is lost, when it is back, when a host begins to rest and when
	 * its rest ends, and when a result cannot be reported. NULL: no calls.
	 */
	void (*report)(const char *sentence, void *context);
	void *context; /* of report and result */
	/*
	 * Called by the pusher's thread when the store has taken the result of a job that was sent, or that cannot be
	 * sent. It may read from the store, but may not close the pusher. NULL: no calls.
	 */
	void (*result)(const struct ww_callback_result *of, void *context);
};

struct ww_callback_stats {
	uint64_t reserved;     /* leases taken */
	uint64_t requests;     /* requests sent or attempted, redirections included */
	uint64_t redirects;    /* followed */
	uint64_t connections;  /* connections opened; the other requests reused one */
	uint64_t finished;     /* successes reported to the store */
	uint64_t retried;      /* jobs to be tried again */
	uint64_t buried;       /* jobs buried, including after their last attempt */
	uint64_t given_back;   /* leases returned without sending anything, for whatever reason */
	uint64_t rested;       /* jobs put off because their host rested */
	uint64_t crowded;      /* jobs put off because too many waited */
	uint64_t rests;        /* rests of hosts that have begun */
	uint64_t refused;      /* addresses that were not allowed */
	uint64_t timed_out;    /* requests whose time was up */
	uint64_t over;         /* answers cut off because of the number of bytes received for them */
	uint64_t stale;        /* leases that ended before their result was reported */
	uint64_t lost;         /* results that the store refused, and those not reported when the pusher was closed */
	uint64_t store_errors; /* failed calls of the store that were repeated */
	size_t in_flight;      /* requests under way now */
	size_t waiting;        /* jobs that wait for their host now */
	size_t resting;        /* hosts that rest now */
	size_t untold;         /* results that wait for the store now */
};

/*
 * Fill *config with the defaults that the struct names. Set jobs and tubes yourself.
 * Errors: WW_EINVAL: config is NULL.
 */
WW_API int ww_callback_config_default(struct ww_callback_config *config);

/*
 * Start a pusher, and store it in *callback. The call copies config and all that it points to, except jobs and
 * allocator.
 * Errors: WW_EINVAL: a member is out of range, or a range of addresses cannot be read. WW_ENOMEM: no memory.
 * WW_ESYSTEM: no thread, or libcurl cannot be used.
 */
WW_API int ww_callback_open(struct ww_callback **callback, const struct ww_callback_config *config);

/*
 * Make the pusher look for ready jobs now. Waits for nothing.
 * Threads: any thread and the store's `ready` may call this, but not after ww_callback_close has been called. A `ready`
 * therefore reads the pusher's address under a mutex of the application and wakes it under that mutex. The thread that
 * closes the pusher first sets the address to NULL under the same mutex.
 * Errors: WW_ECLOSED: in a child.
 */
WW_API int ww_callback_wake(struct ww_callback *callback);

/* Fill *stats. */
WW_API int ww_callback_stats(const struct ww_callback *callback, struct ww_callback_stats *stats);

/*
 * Close the pusher: take no more jobs, and return those that wait. Let requests under way go on for up to grace_ns of
 * real time, then abort them and release their jobs with their own backoff. Report the results while there is grace,
 * and at least once. Free the pusher. NULL is harmless. A job that was not sent yet is ready again at once, and no
 * attempt is counted (ww_jobs_return). Return how many results could not be reported: their leases expire.
 * Errors: WW_EBUSY: called in `report`.
 */
WW_API int ww_callback_close(struct ww_callback *callback, uint64_t grace_ns);

#ifdef __cplusplus
}
#endif

#endif
