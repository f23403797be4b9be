#ifndef TOOLS_WEEKWHEELD_V1_V1_H
#define TOOLS_WEEKWHEELD_V1_V1_H

/*
 * The interface over HTTP, under /v1: objects of JSON for what the protocol does by lines. A request takes this way:
 *
 *     http.c -> serve.c ------> route.c ----> an operation -----> the store -> write.c -> the commit -> http.c
 *               collects its    which one     prepare (read.c),                 JSON      of the turn
 *               body            it is         then run, as a task
 *
 * The operations are in put.c, job.c, lease.c, look.c, limit.c, schedule.c, history.c and stream.c, each with a table of its own.
 *
 * Ids and tokens are strings, because numbers of JavaScript end at 2^53. Lengths of time are seconds, or texts such as
 * "1.5h"; times are those of RFC 3339.
 */

#include "tools/common/json.h"
#include "tools/job/job.h"
#include "tools/weekwheeld/engine/server.h"
#include "tools/weekwheeld/protocol/words.h"
#include "tools/weekwheeld/v1/serve.h"

enum {
	V1_PUTS_MAX = 1000,
	V1_TUBES_MAX = 100,
	V1_OBJECT_MAX = 256 * 1024,
	V1_WAIT_MAX = 20, /* s; less than the time in which an answer must be read */
	V1_LOOK_MS = 1000 /* a list that finds nothing continues for this long */
};

/* What a schedule has beside what its jobs have. */
struct v1_plan {
	const char *expression;
	const char *zone;
	int overlap; /* enum ww_overlap of schedule.h, which may not be there */
	uint64_t spread;
	uint64_t start;
	uint64_t end;
	int is_paused;
};

/* What the objects of requests may have as members. Each operation takes some of them. */
struct v1_fields {
	struct job_request job;
	uint64_t seen; /* a bit for each member that it had */
	struct ww_limit limit;
	int each;
	struct v1_plan plan;
	uint64_t token;
	uint64_t span;
	uint64_t most;
	uint32_t code; /* of a reserve: the greatest of a job that it takes */
};

struct v1_request;

struct v1_operation {
	const char *method;
	const char *path; /* segments, where "*" stands for any */
	unsigned right;   /* that the token needs; 0: any token will do */
	unsigned members; /* that its object may have: V1_OF_... of read.c; and its query: V1_BY_... */
	int is_change;    /* it is answered after the commit */
	/* In the loop. Returns 0, or -1 if the request has been answered. */
	int (*prepare)(struct v1_request *request);
	/* A task's: asks the store, and writes the answer, which has the status 200. Returns an error of the store to answer it. */
	int (*run)(struct v1_request *request);
};

/* Kinds of objects, for the members that they may have. */
enum {
	V1_OF_PUT = JOB_PUT,
	V1_OF_MOVE = JOB_MOVE,
	V1_OF_END = 4,
	V1_OF_RELEASE = JOB_RELEASE,
	V1_OF_RESERVE = 16,
	V1_OF_PAUSE = 32,
	V1_OF_KICK = 64,
	V1_OF_LIMIT = JOB_LIMIT,
	V1_OF_SCHEDULE = JOB_SCHEDULE,
	V1_OF_REPORT = JOB_REPORT,
	V1_OF_EVENTS = 512, /* its query has several tubes */
	V1_OF_OBJECT = 0xffff & ~V1_OF_EVENTS
};

/* Arguments that the query of an operation may have, beside those. */
enum {
	V1_BY_TUBE = 1 << 16,
	V1_BY_PREFIX = 1 << 17,
	V1_BY_STATE = 1 << 18,
	V1_BY_AFTER = 1 << 19,
	V1_BY_LIMIT = 1 << 20,
	V1_BY_BODY = 1 << 21,
	V1_BY_SPAN = 1 << 22,
	V1_BY_COUNT = 1 << 23,
	V1_BY_EXPRESSION = 1 << 24,
	V1_BY_ZONE = 1 << 25
};

_Static_assert((int)JOB_SHOWN > (int)V1_BY_ZONE && (int)JOB_BODY > (int)V1_BY_ZONE,
    "no argument has the bit of an object of jobs");

#define V1_STORE_REMEDY "leave it out, or start the server with a store of its own or in PostgreSQL"

struct v1_request {
	struct task task;
	struct web_visit visit;
	TAILQ_ENTRY(v1_request) next; /* in one of the server's lists, or in none */
	enum { V1_NEW, V1_ASKING, V1_IN_BATCH, V1_WAITING, V1_KNOWN } state;
	int is_suspended;
	int is_refused; /* it has an answer before it is complete */

	const struct v1_operation *operation;
	struct access_client who; /* its token is NULL if tokens are not used */
	struct buffer in;
	struct buffer decoded; /* what strings of `in` stand for, and does not move; the tubes of a stream */

	/* From the path, the query and the headers. */
	uint64_t id;
	char tube[WW_TUBE_MAX + 1];
	unsigned char key[WW_JOB_KEY_MAX];
	size_t key_length;
	uint64_t version;        /* of If-Match; 0: any */
	int is_new_only;         /* If-None-Match: * */
	const char *idempotency; /* Idempotency-Key, or NULL */
	const char *last_event;  /* Last-Event-ID, or NULL */
	unsigned arguments;      /* V1_BY_... that the query has */
	struct ww_job_filter filter;
	size_t limit;
	int with_body;
	uint64_t span;
	char expression[256];
	char zone[256];

	/* From the object, or from each of a list. */
	struct v1_fields *fields;
	size_t count;
	int is_many;
	size_t at; /* which of the list is read or checked, from 1; 0: none */
	struct ww_job_put *puts;

	int is_run;       /* its operation has been carried out */
	int is_partial;   /* a list that found nothing so far, and goes on from filter.after */
	uint64_t begun;   /* ms of the loop: when it asked for the first time */
	enum count ended; /* a lease, which is counted so; COUNTS: not at all; 0: it ends none */

	/* Of a reserve. */
	struct ww_lease *leases; /* `got` of them, whose bodies are gone */
	int is_called;           /* one of its tubes may have jobs */
	const char *tubes[V1_TUBES_MAX];
	size_t tube_count;
	int got; /* how many leases it has */
	uint64_t give_up;
	ww_handle timer;
	struct server_tube *watched[V1_TUBES_MAX];

	struct events_stream *stream; /* its answer goes on (stream.c); or NULL */
	unsigned status;
	const char *type;
	uint64_t etag; /* 0: none */
	unsigned rest; /* s until the client may try again, or 0 */
	struct buffer out;
};

/* ---- admit.c */

/* Take the token, the path and the headers. Returns 0, or -1 if the request has been answered. */
int v1_admit(struct v1_request *request, const char *method, const char *path);

/* ---- route.c */

/*
 * Find the operation, and take what the path and the query say. Returns 0, or -1 if the request has been answered: there
 * is no such path, it has no such method, or an argument is wrong.
 */
int v1_route(struct v1_request *request, const char *method, const char *path);

/* Take one argument of the query. Returns 0, or -1 if the request has been answered. */
int v1_argument(struct v1_request *request, const char *name, const char *value);

/* ---- read.c */

/* Read the object in request->in, or a list of objects if `is_list_allowed`. Returns 0, or -1 if it has been answered. */
int v1_read(struct v1_request *request, int is_list_allowed);

/* Return 1 if the body is a list. */
int v1_is_list(const struct buffer *in);

/* Return 1 if the object had this field of a job. */
int v1_has(const struct v1_fields *fields, const char *name);

/* ---- The operations. Each table ends with one that has no method. */

extern const struct v1_operation v1_put_operations[];
extern const struct v1_operation v1_job_operations[];
extern const struct v1_operation v1_lease_operations[];
extern const struct v1_operation v1_look_operations[];
extern const struct v1_operation v1_limit_operations[];
extern const struct v1_operation v1_schedule_operations[];
extern const struct v1_operation v1_history_operations[];
extern const struct v1_operation v1_stream_operations[];

/* ---- stream.c */

/* Begin to answer with its stream, and end that. */
enum MHD_Result v1_stream_reply(struct v1_request *request);
void v1_stream_end(struct v1_request *request);

/* ---- held.c: leases that were given over HTTP */

void v1_held_add(struct server *server, const struct ww_lease *lease);
/* One has ended. COUNTS: that is not counted. */
void v1_held_end(struct server *server, uint64_t id, uint64_t token, enum count count);

/* ---- job.c: what several operations need */

/* Return 1 if the token grants the operation in the tube; with NULL, in all; with "", in any. Any thread, as all of these. */
int v1_may(const struct v1_request *request, const char *tube);

/* Answer that it does not. Returns -1. */
int v1_refuse_tube(struct v1_request *request, const char *tube);

/* In run(): return 0 if the token grants it in the tube of the path's job, or an error. */
int v1_may_job(struct v1_request *request);

/* Prepare an operation on the path's tube, without and with an object. */
int v1_prepare_tube(struct v1_request *request);
int v1_prepare_tube_object(struct v1_request *request);

/* In run(): answer 204, unless there is an error. Returns it. */
int v1_end(struct v1_request *request, int error);

#define v1_jobs(request) ((request)->task.server->jobs)

/*
 * In run(), a list has been written, unless there is an error: return it. If it found nothing and there is more to look at,
 * it goes on in another turn.
 */
int v1_listed(struct v1_request *request, int error, size_t count, uint64_t next);

/* Answer a reserve with no lease. */
void v1_no_leases(struct v1_request *request);

/* ---- write.c: answers. They note a want of memory in the request, and may be called in any thread. */

/* Answer with a problem (RFC 9457). field: what is wrong, or NULL. Returns -1. */
int v1_problem(struct v1_request *request, unsigned status, const char *field, const char *remedy, const char *format,
    ...) __attribute__((format(printf, 5, 6)));

/* Refuse a job of a pushed tube, for push_refuses. Returns -1. */
int v1_not_a_request(struct v1_request *request, const char *field, const char *tube);

/* Answer with what the store said. Returns -1. */
int v1_failed(struct v1_request *request, int error);

/* The same, where `of` says what there is none of. */
int v1_failed_of(struct v1_request *request, int error, const char *of);

/* Write the inside of a problem as an object, for one job of several. */
void v1_write_failure(struct v1_request *request, int error);

/* What time it is in the store. */
void v1_moment_now(struct ww_jobs *jobs, struct field_moment *moment);

/* Write an object, or only its members with commas between, by its table. */
void v1_write(struct v1_request *request, const struct field *fields, uint32_t where, const void *from,
    const struct field_moment *now);
void v1_write_members(struct v1_request *request, const struct field *fields, uint32_t where, const void *from,
    const struct field_moment *now);
void v1_write_stats(struct v1_request *request, const struct ww_jobs_stats *stats);
/* A tube as it is shown. */
struct v1_tube {
	struct ww_tube_stats stats;
	uint64_t unknown_code; /* ready jobs whose code no worker knows (tube_unknown) */
	uint32_t lowest_unknown_code;
};

extern const struct field v1_tube_fields[];

/* Add a time, or null for 0, to an object that has a member. */
void v1_add_time(struct v1_request *request, const char *name, uint64_t unix_ns);

/* Add text to the answer. */
void v1_add(struct v1_request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));

void v1_add_bytes(struct v1_request *request, const char *text, size_t size);

/* Add a string of JSON; bytes that are no UTF-8 become U+FFFD. */
void v1_add_string(struct v1_request *request, const char *text);

#endif
