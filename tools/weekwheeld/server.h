#ifndef TOOLS_WEEKWHEELD_SERVER_H
#define TOOLS_WEEKWHEELD_SERVER_H

/*
 * The server: one thread, one loop, one store, which other servers may have, too.
 *
 * What commands of one turn of the loop write is one write of the store (turn.c). Their answers wait in the buffers of
 * their connections until it is committed; if that fails, the answers that depend on it become errors. Whoever waits
 * for a job is served after the commit, in order of arrival at each tube (waiting.c).
 *
 * A store in Redis is shared: each call stands for itself, a commit is nothing, and what is known here of jobs may be
 * out of date. So the store is asked: a lease is worth what its token is there. While Redis is away, what is asked of
 * it fails at once, and who waits goes on waiting (store.c).
 */

#include <pthread.h>
#include <stdint.h>
#include <uv.h>

#include "tools/weekwheeld/buffer.h"
#include "tools/weekwheeld/protocol/protocol.h"
#include "tools/weekwheeld/settings/settings.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs.h"

/* uthash ends the program without memory, unless it is told not to. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct connection;

/* A tube that a connection uses or watches. The store knows those that have jobs or are paused. */
struct tube {
	UT_hash_handle hh;
	unsigned users;
	unsigned watchers;
	unsigned waiters;
	struct watch *first; /* those who wait, as they came */
	struct watch *last;
	struct tube *next_ready;
	int is_ready; /* it is in server.ready */
	char name[WW_TUBE_MAX + 1];
};

/* That a connection watches a tube, and its place among those who wait there. */
struct watch {
	struct tube *tube;
	struct connection *connection;
	struct watch *before;
	struct watch *after;
};

/* A job that a connection has reserved. */
struct lease {
	UT_hash_handle hh;
	struct connection *connection; /* NULL: it is closed */
	struct lease *before;
	struct lease *after; /* of the connection; in server.ended, the next one that ended */
	uint64_t id;
	uint64_t token;
	uint64_t ends; /* of elapsed time */
	uint32_t priority;
};

/* The answer up to `end` in a connection's buffer, of a command that was carried out since the store's write began. */
struct answer {
	size_t end;
	int depends; /* on the write */
};

/*
 * What other threads tell the loop: the store's worker, or that of a pusher. Names of tubes, each ended by NUL, of
 * which jobs may be ready; or that all have to be looked at.
 */
struct told {
	pthread_mutex_t lock;
	uv_async_t async;
	struct buffer tubes;
	int is_all;
	int is_open; /* the loop runs, or is to */
};

#define WAIT_FOREVER UINT64_MAX

struct connection {
	struct server *server;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io;
	uv_write_t write;
	struct connection *before; /* of all */
	struct connection *after;
	struct connection *next_flush;
	struct connection *next_resume;
	struct connection *next_fresh;
	struct connection *next_batch;

	struct protocol protocol;
	struct buffer in;      /* what has come and is not dealt with */
	struct buffer out;     /* answers, not yet given to the system */
	struct buffer sending; /* answers that uv_write has */
	struct answer *answers;
	size_t answer_count;
	size_t answer_room;
	size_t batch_start; /* of out: from there on answers[] tell */

	struct tube *used;
	struct watch **watches;
	const char **names; /* of the watched tubes, as the store takes them */
	size_t watch_count;
	size_t watch_room;

	struct lease *leases;
	uint64_t soonest; /* when the first lease ends; 0: look */
	uint64_t give_up; /* waiting: until then, of elapsed time, or WAIT_FOREVER */
	ww_handle timer;  /* waiting: runs out at give_up, or when a lease is about to end */

	unsigned is_waiting : 1;
	unsigned is_fresh : 1; /* it has begun to wait in this turn */
	unsigned in_flush : 1;
	unsigned in_resume : 1;
	unsigned in_batch : 1;
	unsigned is_reading : 1;
	unsigned is_stalled : 1; /* it has left too many answers unread for more of its commands */
	unsigned at_end : 1;     /* the client sends no more */
	unsigned is_over : 1;    /* closes when all is sent */
	unsigned is_lost : 1;    /* an answer of it is */
	unsigned is_closed : 1;
	unsigned is_producer : 1;
	unsigned is_worker : 1;
};

struct server {
	const struct settings *settings;
	uv_loop_t loop;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t idle; /* keeps the loop from sleeping while something is left to do */
	uv_poll_t elapsed_poll;
	uv_poll_t wall_poll;
	uv_signal_t signals[4];
	uv_timer_t patience; /* how long it waits for clients when it stops */
	struct listener *listeners;

	struct ww_clock *elapsed_clock; /* virtual ones, or NULL */
	struct ww_clock *wall_clock;
	struct ww_driver *elapsed;
	struct ww_driver *wall;
	struct ww_jobs *jobs;
	pthread_t thread; /* the loop's */
	struct told told;
	uv_timer_t again;      /* of a shared store: looks after who waits */
	struct push *push;     /* NULL: no tube is pushed */
	int is_shared;         /* other servers have the store, too */
	int is_away;           /* it did not answer when a job was wanted last */
	int said_error;        /* what a command failed of last, and when that was said */
	uint64_t said_at;      /* ms of the loop */
	uint64_t store_errors; /* calls that the store did not answer */

	struct tube *tubes; /* hashed by name, in the order in which they were made */
	struct tube *default_tube;
	struct tube *ready; /* tubes that may have jobs for those who wait */
	struct tube **ready_end;
	struct lease *leases; /* hashed by id */
	struct lease *ended;  /* leases that the write under way ends */

	struct connection *connections;
	struct connection *flush;
	struct connection *resume;
	struct connection **resume_end;
	struct connection *fresh;
	struct connection **fresh_end;
	struct connection *batch;

	int is_begun; /* a write of the store is under way */
	int is_due;   /* a driver has something to do */
	int is_draining;
	int is_stopping;
	int is_failing; /* the last write failed */
	char id[17];
	uint64_t started;

	uint64_t commands[VERBS]; /* how often each was carried out */
	uint64_t connections_total;
	uint64_t commit_errors;
	unsigned connections_now;
	unsigned connections_max;
	unsigned producers;
	unsigned workers;
	unsigned waiting;

	struct http *http;
	char input[65536]; /* what was just read, of whichever connection */
};

/* ---- turn.c: writes that are shared ---- */

/* See to it that a write of the store is under way. Returns 0 or a WW_E*. */
int turn_begin(struct server *server);

/* Commit what is under way, and see to its answers. */
void turn_commit(struct server *server);

/* The end of a turn: commit, let time pass, serve those who wait, send. */
void turn_end(struct server *server);

/* Have the loop come round again without sleeping. */
void turn_again(struct server *server);

/* ---- tube.c ---- */

/* Find a tube that is used or watched, or NULL. */
struct tube *tube_find(struct server *server, const char *name);

/* The same, or make it; NULL without memory. */
struct tube *tube_make(struct server *server, const char *name);

/* Forget it if nobody uses or watches it. */
void tube_drop(struct server *server, struct tube *tube);

/* Jobs of a tube may be ready; where somebody waits for them, they are seen to at the end of the turn. */
void tube_ready(struct server *server, struct tube *tube);

/* The same of all tubes. */
void tube_ready_all(struct server *server);

/* Watch a tube: 0, also if that was so before, or -1 without memory. */
int tube_watch(struct connection *connection, struct tube *tube);
void tube_ignore(struct connection *connection, struct tube *tube);
int tube_is_watched(const struct connection *connection, const struct tube *tube);

/* ---- lease.c ---- */

/* Note what a connection has reserved; NULL without memory. */
struct lease *lease_add(struct connection *connection, const struct ww_lease *reserved);

/* The lease of that job if it is this connection's, or NULL. */
struct lease *lease_of(const struct connection *connection, uint64_t id);

/* The lease has ended, with the write under way: it is the connection's again if that fails. */
void lease_end(struct server *server, struct lease *lease);

/* The lease had ended before: forget it. */
void lease_forget(struct server *server, struct lease *lease);

/* After a commit: all that ended is forgotten, or given back to its connections. */
void lease_settle(struct server *server, int committed);

/* A connection closes: its jobs are ready again. */
void lease_release_all(struct connection *connection);

/* The lease is about to end at another time. */
void lease_changed(const struct lease *lease);

/* When the connection's first lease ends, without those that have ended already; UINT64_MAX: it has none. */
uint64_t lease_soonest(struct connection *connection, uint64_t now);

/* ---- waiting.c ---- */

/* Reserve a job now, or wait for one until `timeout` ns are over. */
void waiting_reserve(struct connection *connection, uint64_t timeout);

/* Serve those who wait at the tubes that were marked, then those who have just come. */
void waiting_serve(struct server *server);

/* The client has closed its side: it gets no job any more. */
void waiting_at_end(struct connection *connection);

/* It does not wait any more. */
void waiting_end(struct connection *connection);

/* Answer with a job that was reserved for the connection, and note the lease. */
void waiting_give(struct connection *connection, struct ww_lease *lease);

uint64_t server_now(struct server *server);

/* ns since it was started; a shared store's clock may be set. */
uint64_t server_uptime(struct server *server);

/* ---- store.c ---- */

/* Open the store that the settings say; the loop is there. Returns 0, or -1 after a message. */
int store_start(struct server *server);

/* Nothing is told to the loop any more. */
void store_hush(struct server *server);

/* Close it; returns a WW_E*. */
int store_stop(struct server *server);

/* Return WW_OK if the store answers; one of its own process always does. */
int store_answers(struct server *server);

/* Count an error of the store, and say it unless that was said just before. */
void store_failed(struct server *server, int error);

/* ---- push.c ---- */

/* Begin to deliver jobs over HTTP, if the settings say so. Returns 0, or -1 after a message. */
int push_start(struct server *server);

/* Wait for what is under way, as long as the settings allow, and end. */
void push_stop(struct server *server);

/* Jobs of a tube may be ready. Any thread. */
void push_ready(struct server *server, const char *tube);

/* Return 1 if the tube is not pushed, or the body is a request; otherwise count it and return 0. */
int push_takes(struct server *server, const char *tube, const void *body, size_t length);

/* Add what it counts, as lines of stats or as metrics. */
int push_stats(struct server *server, struct buffer *out);
int push_metrics(struct server *server, struct buffer *out);

/* ---- connection.c ---- */

/* A client has come to a listener. */
void connection_accept(struct server *server, uv_stream_t *listener);

/* Carry out what has come, as far as possible. */
void connection_process(struct connection *connection);

/* Have it flushed at the end of the turn. */
void connection_to_flush(struct connection *connection);

/* Send what is to be sent; close it if that was all. */
void connection_flush(struct connection *connection);

/* Close it, and give its jobs back. */
void connection_close(struct connection *connection);

/* Go on with its commands in the next turn. */
void connection_resume(struct connection *connection);

/* Resume those that are to be. */
void connection_resume_all(struct server *server);

/* ---- answer.c: each of these adds to the connection's answers ---- */

void answer_text(struct connection *connection, const char *text);
void answer_format(struct connection *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_bytes(struct connection *connection, const void *data, size_t size);
/* "OK size", the block, and an end of line. */
void answer_block(struct connection *connection, const struct buffer *block);
/* What a WW_E* is called in the protocol. */
void answer_error(struct connection *connection, int error);
/* The answer that began at `start` is whole. */
void answer_end(struct connection *connection, size_t start, int depends);
/* The commit is done: answers since it began stand, or say what went wrong. */
void answer_settle(struct connection *connection, int error);

/* ---- commands.c, commands_own.c, stats.c, list.c ---- */

/* Carry out a command of this connection. */
void command_run(struct connection *connection, const struct command *command);
void command_own(struct connection *connection, const struct command *command);
void command_release(struct connection *connection, const struct command *command, const char *reason);
void command_bury(struct connection *connection, const struct command *command, const char *reason);
void command_put(struct connection *connection, const struct command *command, struct ww_job_spec *spec);
/* Answer with a job that was peeked at, or with why not. */
void command_found(struct connection *connection, int error, const struct ww_job_info *info, void *body);

/*
 * Fill *stats, with zeros where it has no jobs. WW_OK if a client uses or watches the tube, or it has jobs;
 * WW_ENOTFOUND, or another WW_E*.
 */
int stats_of(struct server *server, const char *name, struct ww_tube_stats *stats);
/* Call fn for the name of each tube that exists. Returns 0 or a WW_E*. */
int stats_each_tube(struct server *server, void (*fn)(const char *name, void *context), void *context);
void stats_server(struct connection *connection);
void stats_job(struct connection *connection, const struct ww_job_ref *job);
void stats_tube(struct connection *connection, const char *name);
void stats_tubes(struct connection *connection);
void stats_watched(struct connection *connection);

/* Write jobs as lines of JSON, and a line {"next":ID} if there may be more. Returns 0 or a WW_E*. */
int list_jobs(struct server *server, const struct command *command, struct buffer *out);
int list_forecast(struct server *server, const struct command *command, struct buffer *out);

/* ---- listen.c, http.c, main.c ---- */

/* Listen wherever the settings say, or where systemd does already. Returns 0, or -1 after a message. */
int listen_start(struct server *server);
void listen_stop(struct server *server);

int http_start(struct server *server);
void http_stop(struct server *server);

/* Say "weekwheeld: " and the formatted text; server_note: only with --verbose. */
void server_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void server_note(const struct server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
