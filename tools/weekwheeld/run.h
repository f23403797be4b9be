#ifndef TOOLS_WEEKWHEELD_RUN_H
#define TOOLS_WEEKWHEELD_RUN_H

/* The server as a whole: its parts are made, run, and taken down again. */

#include <pthread.h>
#include <uv.h>

#include "tools/service/net/listen.h"
#include "tools/service/state/reporter.h"
#include "tools/weekwheeld/clients/clients.h"
#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/standby/standby.h"
#include "tools/weekwheeld/v1/serve.h"

/*
 * Messages of other threads to the loop, from the store's worker or a pusher's: the names of tubes that may have ready
 * jobs, each ended by NUL, or that all tubes may have some.
 */
struct inbox {
	pthread_mutex_t lock;
	uv_async_t async;
	struct buffer tubes;
	int is_all;
	int is_open; /* the loop takes messages */
};

/* The parts, and the handles that only the beginning and the end of the server need. */
struct run {
	struct server server;
	struct http http;
	struct clients clients;
	struct v1 v1;

	uv_prepare_t prepare;
	uv_check_t check;
	uv_poll_t elapsed_poll;
	uv_poll_t wall_poll;
	int is_due; /* a driver has something to do */
	uv_signal_t signals[4];
	uv_timer_t patience; /* how long to wait for clients when the server ends */
	struct reporter reporter;
	uv_timer_t watchdog;

	struct listening listening;
	struct standby standby;

	struct inbox inbox;
	uv_timer_t again; /* of a shared store: serves those that wait from time to time */
};

/* Let signals come in by the loop: another server owns the store. */
void run_signals(struct server *server);

/* Serve until a signal ends it. Returns the exit status of the program. */
int server_run(const struct settings *settings);

/* ---- round.c */

/* End a turn: commit, let time pass, serve clients that wait, send. */
void round_end(struct server *server);

/* ---- open.c: the store is opened and closed */

/* Open the store of the settings. The loop exists. Returns 0, or after a message STATUS_USAGE: no other start repairs it; or -1. */
int store_start(struct server *server);

/* Close it. Returns a WW_E*. */
int store_stop(struct server *server);

/* ---- ready.c: tubes that become ready */

/* Prepare for messages of the store. Returns 0, or -1 after a message. */
int ready_start(struct server *server);

/* A tube may have ready jobs: `ready` of the store's config. Any thread. */
void ready_heard(const char *tube, void *server);

/* The store is open. If it is shared, look at it from time to time, in case a message was missed. */
void ready_again(struct server *server);
/* The connection to the store is gone, as any thread may notice: let the loop end. */
void ready_lost(struct server *server);

/* Wake the loop no more. */
void ready_stop(struct server *server);

/* The store is closed. */
void ready_free(struct server *server);

#endif
