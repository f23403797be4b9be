#ifndef TOOLS_WEEKWHEELD_ENGINE_SERVER_H
#define TOOLS_WEEKWHEELD_ENGINE_SERVER_H

/*
 * The server's engine: the turn and its write, tasks, bounds, tubes, schedules and pushes. It calls no client, verb
 * or HTTP: what stands above it sees it by this struct, and it sees what stands above by its faces (face.h).
 *
 * A turn of the loop is one write of the store (turn.c). The answers wait in the buffers of their connections until
 * the write is committed. If it fails, the answers that depend on it become errors.
 *
 * A store in Redis is shared: threads ask it (task.c) while the loop goes on, calls take effect at once, commit does
 * nothing, and what this server knows may be stale. A lease is valid only if its token matches the store's. While Redis
 * is away, commands that need it fail, and clients that wait keep waiting.
 */

#include <pthread.h>

#include "tools/common/message.h"
#include "tools/service/net/certificate.h"
#include "tools/service/net/shake.h"
#include "tools/service/state/state.h"
#include "tools/weekwheeld/engine/auth.h"
#include "tools/weekwheeld/engine/bounds.h"
#include "tools/weekwheeld/engine/counts.h"
#include "tools/weekwheeld/engine/face.h"
#include "tools/weekwheeld/engine/task.h"
#include "tools/weekwheeld/engine/tube.h"
#include "tools/weekwheeld/engine/turn.h"
#include "tools/weekwheeld/settings/settings.h"
#include "weekwheel/driver.h"

struct server {
	const struct settings *settings;
	const struct face *const *faces; /* ended by NULL */
	uv_loop_t loop;
	uv_idle_t idle;    /* keeps the loop from sleeping while there is work left */
	pthread_t thread;  /* the loop's */
	char input[65536]; /* what any connection has just read */

	struct ww_clock *elapsed_clock; /* virtual clocks, or NULL */
	struct ww_clock *wall_clock;
	struct ww_driver *elapsed;
	struct ww_driver *wall;

	struct ww_jobs *jobs;  /* NULL: not open yet, perhaps as another server owns them */
	int is_shared;         /* other servers have the store, too */
	int is_standby;        /* another server owned the store when this one came */
	_Atomic int is_lost;   /* the connection to the store is gone: the server ends, and begins anew */
	int reported_fault;    /* why the store cannot write, which was reported, or WW_OK */
	uint64_t store_errors; /* calls that the store did not answer */
	uint64_t started;      /* in the store's elapsed time */

	struct turn turn;
	struct tasks tasks;
	struct bounds bounds;
	struct tubes tubes;
	struct job_counts counts;
	struct access access;
	struct shakes shakes;
	struct push *push; /* NULL: no tube is pushed */
	struct schedules *schedules;
	struct certificate certificate;
	struct web *web; /* NULL: HTTP is not served */

	char id[17];
	int is_draining;
	int is_stopping;

	/* What stands above. */
	struct clients *clients;
	struct v1 *v1;
	struct http *http;       /* NULL: HTTP is not served */
	struct standby *standby; /* where clients go while another server owns the store */
	struct run *run;
};

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
void burial_log(struct ww_jobs *jobs, uint64_t id);

/* ---- push.c: jobs that are delivered over HTTP */

/* Begin to deliver jobs, if the settings say so. Returns 0, or -1 after a message. */
int push_start(struct server *server);

/* Wait for the requests under way, as long as the settings allow, and end. */
void push_stop(struct server *server);

/* Jobs of a tube may be ready. Any thread may call it. */
void push_ready(struct server *server, const char *tube);

/* Return 1 if the jobs of a tube are delivered over HTTP. Any thread may call it. */
int push_takes(const struct server *server, const char *tube);

/* Return NULL if the tube is not pushed, or the job is a request. Otherwise count it and return the member at fault. */
const char *push_refuses(struct server *server, const char *tube, const struct ww_job_spec *spec);

/* ---- Numbers that both "stats" and /metrics tell */

/* Add a number, whose name has dashes, to *out. Not 0: there is no memory. */
typedef int number_fn(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value);

int push_numbers(struct server *server, struct buffer *out, number_fn *add);
int bounds_numbers(struct server *server, struct buffer *out, number_fn *add);
int store_numbers(struct server *server, struct buffer *out, number_fn *add);

#define server_note(server, ...) ((void)(server), message_debug(__VA_ARGS__))

#endif
