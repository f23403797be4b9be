#ifndef TOOLS_WEEKWHEELD_SERVER_H
#define TOOLS_WEEKWHEELD_SERVER_H

/*
 * The server: one loop, one store, which other servers may share. A command takes this way:
 *
 *     listen.c -> connection.c -> protocol/line.c -> call.c, commands.c -> the store -> answer.c -> connection.c
 *      a client     its bytes      are parsed         carried out           lib/jobs     answered     sent
 *
 * A turn of the loop is one write of the store (turn.c). The answers wait in the buffers of their connections until
 * the write is committed. If it fails, the answers that depend on it become errors. Clients that wait for a job are
 * served after the commit, in order of arrival at each tube (waiting.c).
 *
 * A store in Redis is shared: threads ask it (task.c) while the loop goes on, calls take effect at once, commit does
 * nothing, and what this server knows may be stale. A lease is valid only if its token matches the store's. While Redis
 * is away, commands that need it fail, and clients that wait keep waiting (ask.c).
 */

#include <pthread.h>

#include "tools/common/message.h"
#include "tools/service/crowd.h"
#include "tools/service/state.h"
#include "tools/service/teller.h"
#include "tools/weekwheeld/auth.h"
#include "tools/weekwheeld/connection.h"
#include "tools/weekwheeld/counts.h"
#include "tools/weekwheeld/face.h"
#include "tools/weekwheeld/settings/settings.h"
#include "tools/weekwheeld/task.h"
#include "weekwheel/driver.h"

/*
 * What other threads tell the loop, the store's worker or that of a pusher: the names of tubes that may have ready jobs,
 * each ended by NUL, or that all tubes may have some.
 */
struct inbox {
	pthread_mutex_t lock;
	uv_async_t async;
	struct buffer tubes;
	int is_all;
	int is_open; /* the loop takes messages */
};

/* What memory there is, and what was refused for want of it (bounds.c). */
struct bounds {
	uint64_t memory_most;
	uint64_t buffers_most;
	uint64_t before; /* what buffers took at the start */
	uint64_t asked;  /* ms of the loop: the store was asked last; 0: never */
	uint64_t store_bytes;
	uint64_t store_tubes;
	uint64_t store_jobs;
	uint64_t put_bytes;  /* since then, into memory */
	uint64_t put_jobs;   /* since then, and perhaps refused */
	uint64_t call_bytes; /* of commands that wait for a shared store; buffers have them, too */
	uint64_t refused;
	uint64_t over_quota; /* jobs refused */
	uint64_t ended;
	struct crowd crowd; /* clients by address */
};

/* What an allocation takes beside its object. */
enum { BOUNDS_LINE = 64 };

/* What a shared store said last to clients that asked about all tubes (stats.c). Of the task that does so. */
struct heard {
	uint64_t tubes_at; /* ns of uv_hrtime(), when it was asked; 0: never */
	uint64_t stats_at;
	struct buffer tubes; /* names, each ended by NUL */
	struct ww_jobs_stats stats;
};

struct server {
	const struct settings *settings;
	struct tls *tls; /* NULL: no listener has it */
	uv_loop_t loop;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t idle; /* keeps the loop from sleeping while there is work left */
	uv_poll_t elapsed_poll;
	uv_poll_t wall_poll;
	uv_signal_t signals[4];
	uv_poll_t room_poll;     /* never active */
	uv_timer_t accept_again; /* tries to accept clients again */
	uv_timer_t patience;     /* how long to wait for clients when the server ends */
	struct teller teller;
	uv_timer_t watchdog;
	SLIST_HEAD(, listener) listeners;

	struct ww_clock *elapsed_clock; /* virtual clocks, or NULL */
	struct ww_clock *wall_clock;
	struct ww_driver *elapsed;
	struct ww_driver *wall;
	struct ww_jobs *jobs;
	pthread_t thread; /* the loop's */
	struct inbox inbox;
	struct tasks tasks;
	struct heard heard;
	uv_timer_t again;  /* of a shared store: serves those that wait from time to time */
	struct push *push; /* NULL: no tube is pushed */
	struct schedules *schedules;
	int is_probing;        /* the store is asked for the sake of /readyz */
	int is_shared;         /* other servers have the store, too */
	int said_fault;        /* why the store cannot write, which was reported, or WW_OK */
	uint64_t store_errors; /* calls that the store did not answer */

	struct server_tube *tubes; /* hashed by name, in the order in which they were made */
	struct server_tube *default_tube;
	struct watch *watches;            /* of all connections */
	STAILQ_HEAD(, server_tube) ready; /* tubes that may have jobs for clients that wait */
	struct lease *leases;             /* hashed by id */
	struct leases ended;              /* leases that the current write ends */
	size_t past_count;                /* past leases of all connections */

	LIST_HEAD(, connection) connections;
	SLIST_HEAD(, connection) flush;   /* they have answers to send */
	STAILQ_HEAD(, connection) resume; /* they have commands left, or are being closed */
	STAILQ_HEAD(, connection) fresh;  /* they have begun to wait in this turn */
	struct shakes shakes;
	SLIST_HEAD(, connection) batch; /* they have answers that wait for the commit */

	struct bounds bounds;
	struct job_counts counts;
	uint64_t turn;       /* its number */
	uint64_t turn_spent; /* ns of it that connections took */
	size_t turn_bytes;   /* that were read in it */
	size_t resuming;     /* how many are in `resume` */

	int is_begun; /* a write of the store is under way */
	int is_due;   /* a driver has something to do */
	int is_draining;
	int is_stopping;
	int is_failing; /* the last write failed */
	char id[17];
	uint64_t started;

	uint64_t commands[VERBS]; /* how many of each were carried out */
	uint64_t connections_total;
	uint64_t connections_going; /* bytes that libuv has of closed ones, and will soon free */
	uint64_t commit_errors;
	unsigned connections_now;
	unsigned connections_max;
	unsigned producers;
	unsigned workers;
	unsigned waiting;

	struct auth auth;
	struct http *http;
	struct web *web;                              /* NULL: nobody is served by HTTP */
	void (*go_on)(struct connection *connection); /* when its task is done */
	const struct face *const *faces;              /* ended by NULL */
	const struct steps *const *steps;             /* of each verb (commands.h) */
	struct events_feed *feed;                     /* events; NULL: nobody is served by HTTP */
	TAILQ_HEAD(v1_list, v1_request) v1_batch;     /* requests that wait for the commit */
	struct v1_list v1_waiting;                    /* for a job, in order of arrival */
	struct v1_list v1_looking;                    /* lists that go on */
	struct v1_held *v1_held;                      /* leases by id */
	LIST_HEAD(, relay) relays;                    /* of connections by HTTP that have TLS */
	char input[65536];                            /* what any connection has just read */
};

/* ---- bounds.c: how much memory there is */

void bounds_start(struct server *server);

/* Return how many bytes of answers a client may leave unread now. */
size_t bounds_unread(const struct server *server);

/* Return 1 if there is memory for a job with a body of so many bytes, or for another tube. */
int bounds_job(struct server *server, size_t size);
int bounds_tube(struct server *server);

/*
 * Return 1 if a quota of jobs has room for this one behind `before` others that are not put yet, `in_tube` of them in its
 * tube. A job that replaces another always has room.
 */
int bounds_quota(struct server *server, const struct ww_job_spec *spec, size_t before, size_t in_tube);

/* Return 1 if a client that watches `count` tubes, of so many bytes each, may watch one more. */
int bounds_watch(struct server *server, size_t count, size_t bytes);

/* Return 1 if a command with so many bytes may wait for a shared store. */
int bounds_call(struct server *server, size_t size);

/*
 * Return 1 if buffers have room for another answer beside `begun` that are being written. Otherwise the client with the
 * most makes room, if there is one, and a later turn has it.
 */
int bounds_answer(struct server *server, unsigned begun);

/* In each turn: end what takes too much. */
void bounds_hold(struct server *server);
/* The same when a client's bytes have been taken: in one turn, all clients may bring some. */
void bounds_hold_input(struct server *server);
/* The same before that, but for the client that carries out a command and takes so many bytes. */
void bounds_hold_but(struct server *server, const void *client, size_t bytes);

/* ---- turn.c: one write of the store for all commands of a turn */

/* Make sure that a write of the store is under way. Returns 0 or a WW_E*. */
int turn_begin(struct server *server);

/* Commit the write under way, and settle the answers that wait for it. */
void turn_commit(struct server *server);

/* ---- clock.c */

/* Make the clocks and drivers. Returns 0, or -1 after a message. */
int clock_start(struct server *server);
void clock_stop(struct server *server);

/* Move the virtual clocks forward, and let what is due by then happen. Returns a WW_E*. */
int clock_advance(struct server *server, uint64_t ns);

/* Let the time pass on virtual clocks that went by while the store was closed. Returns 0, or -1 after a message. */
int clock_pass_ahead(struct server *server);

/* ---- loop.c */

/* Let the loop come round again without sleeping. */
void loop_again(struct server *server);

/* Say that the loop could not be made; returns -1. */
int loop_not_made(void);

/* ---- round.c */

/* End a turn: commit, let time pass, serve clients that wait, send. */
void round_end(struct server *server);

/* ---- open.c: the store is opened and closed */

/* Open the store of the settings. The loop exists. Returns 0, or -1 after a message. */
int store_start(struct server *server);

/* Close it. Returns a WW_E*. */
int store_stop(struct server *server);

/* ---- ready.c: tubes that become ready */

/* Make ready to hear the store. Returns 0, or -1 after a message. */
int ready_start(struct server *server);

/* A tube may have ready jobs: `ready` of the store's config. Any thread. */
void ready_heard(const char *tube, void *server);

/* A shared store is open: from now on, look from time to time at what no message told. */
void ready_again(struct server *server);

/* Let the loop know nothing from now on. */
void ready_stop(struct server *server);

/* The store is closed. */
void ready_free(struct server *server);

/* ---- store.c: what is asked of the store beside jobs */

/*
 * Return why the store cannot write, or WW_OK, and the reason in text, unless that is NULL. Report once that it cannot,
 * and once that it can again.
 */
int store_fault(struct server *server, char text[WW_FAULT_MAX]);

/* Count an error of the store, and report it unless that was done just before. */
void store_failed(struct server *server, int error);

/* The store's elapsed time, which goes on across restarts; a driver's does not. */
uint64_t store_now(struct server *server);

/* ns since the start. The clock of a shared store may be set. */
uint64_t store_uptime(struct server *server);

/* Return 1 if a tube is not shown to clients: that of the schedules. Any thread. */
int store_hides(const char *tube);

/* Statistics of all jobs, without what keeps schedules. Returns as ww_jobs_stats. Any thread if the store is shared. */
int store_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats);

/*
 * burial.c: a job was buried, though the write of a local store may still fail: write a line of the log, unless there
 * are many. Any thread may call it.
 */
void burial_tell(struct ww_jobs *jobs, uint64_t id);

/* ---- push.c: jobs that are delivered over HTTP */

/* Begin to deliver jobs, if the settings say so. Returns 0, or -1 after a message. */
int push_start(struct server *server);

/* Wait for the requests under way, as long as the settings allow, and end. */
void push_stop(struct server *server);

/* Jobs of a tube may be ready. Any thread may call it. */
void push_ready(struct server *server, const char *tube);

/* Return 1 if the tube is not pushed, or the body is a request; otherwise count it and return 0. */
int push_takes(struct server *server, const char *tube, const void *body, size_t length);

/* ---- Numbers that both "stats" and /metrics tell */

/* Add a number, whose name has dashes, to *out. Not 0: there is no memory. */
typedef int number_fn(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value);

int push_numbers(struct server *server, struct buffer *out, number_fn *add);
int bounds_numbers(struct server *server, struct buffer *out, number_fn *add);
int store_numbers(struct server *server, struct buffer *out, number_fn *add);

/* ---- secure.c: the certificate of listeners that have TLS */

/* Read the files of the settings. Returns 0, or -1 after a message. */
int secure_start(struct server *server);
/* Read them again for connections to come. If they are wrong now, those of before stay. */
void secure_reload(struct server *server);
void secure_stop(struct server *server);

/* ---- relay.c: TLS before HTTP */

/*
 * A client with TLS has come by HTTP. Return the descriptor of what it says in clear, or -1; either way `fd` is taken.
 * Whoever closes that descriptor ends the connection.
 */
int relay_begin(struct server *server, int fd);
void relay_stop(struct server *server);

/* ---- clients.c: those of the protocol, all together */

extern const struct face clients_face;

void clients_start(struct server *server);

/* Process those that were resumed, in this order, as far as the turn allows. */
void clients_resume(struct server *server);

/* The tokens are others now: let go whose line has changed or is gone. Return how many. */
unsigned clients_reload(struct server *server);

/* ---- listen.c, http.c, run.c */

/* Listen on all addresses of the settings and on systemd's sockets. Returns 0, or -1 after a message. */
int listen_start(struct server *server);
void listen_stop(struct server *server);

/* Serve HTTP, if the settings say so. Returns 0, or -1 after a message. */
int http_start(struct server *server);
void http_stop(struct server *server);
extern const struct face http_face;

/* ---- v1: jobs over HTTP */

/* The turn's write has been committed, or has failed: answer the requests that wait for it. */
void v1_settle(struct server *server, int error);

/* Tubes of requests that wait may have jobs: let them ask. */
void v1_wake(struct server *server);

/* Let those go who have to leave while they wait, and one list that goes on look at another part of the store. */
void v1_turn(struct server *server);

/* Answer all that wait. */
void v1_stop(struct server *server);

/* held.c: forget all leases. */
void v1_held_free(struct server *server);

/* ---- v1/events.c: what becomes of jobs, for those who read /v1/events */

/* Returns 0, or -1 after a message. */
int events_start(struct server *server);
/* End all streams. */
void events_stop(struct server *server);
/* The store is closed: nobody can be heard any more. */
void events_free(struct server *server);

/* The tokens have changed. */
void events_reload(struct server *server);

/* Of a shared store: jobs of a tube may be ready. Any thread. */
void events_ready(struct server *server, const char *tube);

int events_numbers(struct server *server, struct buffer *out, number_fn *add);

/* Serve until a signal ends it. Returns the exit status of the program. */
int server_run(const struct settings *settings);

#define server_note(server, ...) ((void)(server), message_debug(__VA_ARGS__))

#endif
