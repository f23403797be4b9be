#ifndef WEEKWHEEL_CALLBACK_H
#define WEEKWHEEL_CALLBACK_H

/*
 * Jobs that are delivered by push: the body of a job is an HTTP request, and a pusher sends it when the job is ready.
 *
 * A *pusher* takes the ready jobs of some tubes of a store, of either kind (jobs.h), sends the request that each of
 * them carries, and tells the store what came of it. It has one thread, which sends hundreds of requests side by side,
 * so that one that is answered slowly does not keep the others.
 *
 *     store                    pusher                           receiver
 *     ready job -- reserve --> waits for its host --> under way --> POST /path
 *       ^  finished or buried                          |  <------- 204
 *       +---- again later ---- result, kept until <----+
 *                              the store takes it
 *
 * The request is text like an HTTP message, so that every client in any language can put one, and everybody can read
 * it:
 *
 *     POST https://example.org/hook?source=shop
 *     Content-Type: application/json
 *
 *     {"order": 4711}
 *
 * The first line has the method, which may be left out where it is POST, the URL, and if one likes HTTP/1.1, which
 * means nothing. Lines of headers follow, an empty line, and the body, to the job's last byte. A line ends with LF or
 * CR LF. What exactly is taken, ww_callback_parse says.
 *
 * What comes of a request:
 *
 *     answer                                   the job is
 *     ---------------------------------------  ----------------------------------------------------------------------
 *     2xx, and what config.success lists       finished
 *     408, 425, 429, 5xx                       tried again: after Retry-After, or its backoff
 *     none, or none that is whole              tried again: no such host, no connection, no trust, time up, cut off
 *     3xx                                      tried again at once at the other place, as below; or buried
 *     other 4xx and what else there may be     buried
 *     no request, or one that may not be sent  buried; nothing was sent
 *
 * "Tried again" is ww_jobs_release: after its last attempt the job is buried. The job's error says why, in either
 * case: the status with the first bytes of the answer's body, or what failed. A job without backoff and without
 * Retry-After waits config.retry. Delivery is at least once: a receiver may get a request twice, if its answer was lost
 * or came too late.
 *
 * Time. A request ends, whole with its redirections, before the job's lease does: it has what is left of the lease less
 * a tenth, that at most 2 s; and at most config.timeout. So each job has its own timeout, its time to run.
 *
 * Busy hosts. A job whose host has config.per_host requests under way waits, with its lease renewed (ww_jobs_touch),
 * and others are sent meanwhile. When config.waiting jobs wait, the pusher takes from each tube a few at a time, sends
 * what can be sent, and returns the others (ww_jobs_return), which counts no attempt. A tube of which nothing could be
 * sent rests for ten times config.poll, 1 s at most, so that the same jobs are not taken in a circle. So urgent jobs
 * and other tubes go on behind any number of jobs of a busy host; what is neither may have to wait for these. A host
 * that may be slow for long belongs into a tube of its own.
 *
 * Headers. Each request has, beside those of the job:
 *
 *     Weekwheel-Job-Id       the id, decimal
 *     Weekwheel-Job-Key      the key if there is one; bytes other than letters, digits, - . _ ~ as %XX
 *     Weekwheel-Tube         the tube, written likewise
 *     Weekwheel-Attempt      1 with the first delivery
 *     Weekwheel-Token        the fencing token: grows with every delivery of the job; a receiver refuses what is below its last
 *     Weekwheel-Timestamp    Unix time in seconds, when it was sent
 *     Weekwheel-Signature    only with config.secret: v1= and 64 hexadecimal digits
 *
 * Signature. HMAC-SHA256, keyed with the secret, of these, with one LF between each two: timestamp, id, token, method,
 * URL, body. The first three are decimal as in the headers; the URL is as the job has it, or as the redirection says
 * it; the body is the bytes that are sent. None but the body can contain LF, so that nothing can pass for something
 * else. For example, with the secret "secret", timestamp 1700000000, id 7, token 9, POST, https://example.org/hook and
 * the body "hello":
 *
 *     v1=067948dc12a98df0c47cdaf541c89e0a90c4b89618b00c7470dcb3fcfd646329
 *
 * A receiver verifies: compute the same with its own copy of the secret and the URL that it knows it is called by;
 * compare in constant time; refuse a timestamp more than some minutes away from its own clock; and refuse a token that
 * is not above the last one that it has seen of that id. A job's key, tube and attempt are not signed.
 *
 * Addresses. Jobs may come from whoever reaches the store, so that a pusher refuses by default to call anything but
 * public addresses: no loopback, private, link-local, multicast, reserved or translated ones. What counts is the
 * address that is connected to, when it is: a name that resolves to another one the second time gains nothing. config
 * says what else may be called. No proxy is used, and nothing of the environment, of .netrc, or of cookies.
 *
 * Redirections with 301, 302, 307 and 308 are followed, with the same method and body, and 303 for GET and HEAD; up to
 * config.redirects of them, and to the same scheme alone. Each is counted and checked like the first request. Another
 * host, port included, gets of the job's headers none but Accept, Accept-Language, Content-Type, Content-Encoding,
 * Content-Language and User-Agent; no credentials therefore, and no signature.
 *
 * Losing the store. While it answers with errors that may pass, requests under way go on; their results are kept,
 * config.in_flight of them at most, and told when it is back, after pauses of up to 5 s. A lease that has ended by then
 * is counted as stale, and its job comes again.
 *
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed. WW_EINVAL is answered
 * for a NULL where an object is needed. Fork: in a child every call with a pusher answers WW_ECLOSED.
 *
 * Threads: any, but for ww_callback_open and ww_callback_close of one pusher.
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
#define WW_CALLBACK_HEAD_MAX 65536 /* bytes up to the body */

/* A header of a request. Not ended by NUL. */
struct ww_callback_header {
	const char *name;
	size_t name_length;
	const char *value;
	size_t value_length;
};

/* A request. Its strings are not ended by NUL. */
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

/* What is wrong with a text. */
struct ww_callback_problem {
	size_t line;        /* counted from 1; 0: it is not one line's */
	const char *reason; /* a constant phrase */
};

/*
 * Read a request. Fills *request, which then points into `text` ("POST", where the method was left out, is constant).
 *
 * The method is a token of up to 32 characters, but neither CONNECT nor TRACE. The URL is http:// or https://, a host
 * as a name of letters, digits, - . _, an IPv4 address or an IPv6 address in brackets, :port if one likes, then the
 * path and what follows, of printable ASCII; without a user's name, and without a fragment. A header is a token, a
 * colon, and a value without control characters other than tabs, from which blanks at both ends are taken. Not
 * continued in the next line. A job may not set what the transfer sets: Host, Content-Length, Transfer-Encoding,
 * Connection, Keep-Alive, Proxy-..., TE, Trailer, Upgrade, Expect, nor Weekwheel-..., nor these with _ for -. HEAD has
 * no body.
 *
 * Complexity: O(length of the head); allocates nothing. problem may be NULL; on error it says what is wrong, and where.
 * Errors: WW_EINVAL: it is not a request. WW_ETOOBIG: URL, head or number of headers is over the bound.
 */
WW_API int ww_callback_parse(
    const char *text, size_t length, struct ww_callback_request *request, struct ww_callback_problem *problem);

/*
 * Write a request so that ww_callback_parse reads it: for the body of a job. Stores in *length how long it is, also
 * when that is more than `size`; then nothing is written to buffer, which may be NULL if size is 0.
 * Errors: WW_EINVAL: the parser would not take it, for CR or LF in a header for one. WW_ETOOBIG: it needs more than
 * `size`, or is over a bound.
 */
WW_API int ww_callback_write(const struct ww_callback_request *request, char *buffer, size_t size, size_t *length);

#define WW_CALLBACK_SIGNATURE_SIZE 68 /* v1=, 64 digits and NUL */

/*
 * Compute the signature of the request, as the top says. For receivers and tests.
 * Errors: WW_EINVAL: an argument is NULL. WW_ESYSTEM: the library of cryptography refuses.
 */
WW_API int ww_callback_sign(const void *secret, size_t secret_length, uint64_t timestamp, uint64_t id, uint64_t token,
    const struct ww_callback_request *request, char signature[WW_CALLBACK_SIGNATURE_SIZE]);

/* ---- Pushers ------------------------------------------------------------------------------------------------- */

struct ww_callback;

/* Which schemes may be called. */
#define WW_CALLBACK_HTTP 1u
#define WW_CALLBACK_HTTPS 2u

/* What may be called beside public addresses. */
#define WW_CALLBACK_LOOPBACK 1u   /* 127.0.0.0/8, ::1 */
#define WW_CALLBACK_PRIVATE 2u    /* 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7, fec0::/10 */
#define WW_CALLBACK_LINK_LOCAL 4u /* 169.254/16, where clouds keep their secrets, and fe80::/10 */
#define WW_CALLBACK_SPECIAL 8u /* multicast, reserved, documentation, IPv4 inside of IPv6, which is then judged, too */

/* Fill it with ww_callback_config_default, then set what differs. */
struct ww_callback_config {
	struct ww_jobs *jobs; /* must outlive the pusher */
	const char *const *tubes;
	size_t tube_count;        /* at least 1 */
	size_t in_flight;         /* requests under way and results not told yet, 1 to 65,536; 256 */
	size_t per_host;          /* requests under way to one host and port; 16 */
	size_t waiting;           /* jobs that are held while their host has no room; 1,024 */
	uint64_t connect_timeout; /* ns, name and TLS included; 5 s */
	uint64_t timeout;         /* ns of a whole request; 0: what the job's time to run leaves; 0 */
	uint64_t poll;            /* ns until the store is asked again if nobody calls ww_callback_wake; 100 ms */
	uint64_t retry;           /* ns until a job without a backoff is tried again; 1 s */
	uint64_t retry_after_max; /* ns; Retry-After is taken for no more than that; 1 h */
	const uint16_t *success;  /* statuses from 200 to 599 that are success, beside 2xx */
	size_t success_count;
	const void *secret; /* of the signature; NULL: none */
	size_t secret_length;
	uint32_t schemes;         /* WW_CALLBACK_HTTP | WW_CALLBACK_HTTPS */
	uint32_t networks;        /* WW_CALLBACK_LOOPBACK and so on; 0 */
	const char *const *deny;  /* ranges such as "192.0.2.0/24" or "2001:db8::/32" that are never called */
	size_t deny_count;        /* before `allow` */
	const char *const *allow; /* ranges that are called, whatever `networks` says */
	size_t allow_count;
	uint32_t redirects;     /* that are followed; 5; 0: none */
	size_t body_max;        /* bytes of a request's body; 1 MiB */
	size_t response_max;    /* bytes of an answer's body that are read; then the connection is closed; 64 KiB */
	const char *user_agent; /* "weekwheel/" and the version; a job's own goes before it */
	const char *ca_file;    /* certificates to trust, PEM; NULL: the system's */
	const struct ww_allocator *allocator; /* NULL: the default; libcurl has its own memory */
	/*
	 * Called by the pusher's thread when the store is lost, when it is back, and when a result cannot be told.
	 * NULL: not.
	 */
	void (*report)(const char *sentence, void *context);
	void *context;
};

struct ww_callback_stats {
	uint64_t reserved;     /* leases taken */
	uint64_t requests;     /* sent, or tried to; redirections included */
	uint64_t redirects;    /* followed */
	uint64_t connections;  /* opened; what is less than requests was reused */
	uint64_t finished;     /* results told to the store: success */
	uint64_t retried;      /* to be tried again */
	uint64_t buried;       /* buried, by their last attempt too */
	uint64_t given_back;   /* leases returned, and nothing sent */
	uint64_t refused;      /* addresses that may not be called */
	uint64_t stale;        /* leases that had ended before their result was told */
	uint64_t lost;         /* results that the store would not take, and those untold when the pusher was closed */
	uint64_t store_errors; /* calls of the store that failed and were repeated */
	size_t in_flight;      /* requests under way now */
	size_t waiting;        /* jobs that wait for their host now */
	size_t untold;         /* results that wait for the store now */
};

/* Fill *config with the defaults that the struct names; jobs and tubes are left to be set. Errors: WW_EINVAL. */
WW_API int ww_callback_config_default(struct ww_callback_config *config);

/*
 * Start a pusher, and store it in *callback. config is copied, with all that it points to but jobs and allocator.
 * Errors: WW_EINVAL: a member is out of range, or a range of addresses cannot be read. WW_ENOMEM. WW_ESYSTEM: no
 * thread, or libcurl cannot be used.
 */
WW_API int ww_callback_open(struct ww_callback **callback, const struct ww_callback_config *config);

/*
 * Let it look for ready jobs now; waits for nothing. May be called from any thread and from the store's `ready`, but
 * not any more once ww_callback_close is called. So a `ready` reads the pusher's address under a mutex of the
 * application's and wakes it under that; and who closes the pusher sets the address to NULL under the same mutex
 * before.
 * Errors: WW_ECLOSED: in a child.
 */
WW_API int ww_callback_wake(struct ww_callback *callback);

/* Fill *stats. */
WW_API int ww_callback_stats(const struct ww_callback *callback, struct ww_callback_stats *stats);

/*
 * Take no more jobs, give back those that wait, let what is under way go on for up to grace_ns of real time, then
 * break it off and release it with its job's backoff; tell the results, as long as there is grace and once in any case;
 * free the pusher. NULL is harmless. A job that was not sent yet is ready again at once, and no attempt is counted
 * (ww_jobs_return).
 * Returns how many results could not be told: their leases run out.
 * Errors: WW_EBUSY: called in `report`.
 */
WW_API int ww_callback_close(struct ww_callback *callback, uint64_t grace_ns);

#ifdef __cplusplus
}
#endif

#endif
