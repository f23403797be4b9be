/*
 * Takes the store's messages that a tube may have ready jobs, from any thread, and passes them on to clients that wait, to
 * the pusher, to schedules and to readers of events.
 */
#include <string.h>

#include "tools/service/state/handles.h"
#include "tools/weekwheeld/engine/schedules.h"
#include "tools/weekwheeld/run.h"
#include "tools/weekwheeld/v1/events.h"

enum {
	AGAIN_MS = 250, /* how often clients that wait are served in case a message was missed */
	INBOX_MAX = 65536
};

static void inbox_add(struct inbox *inbox, const char *name)
{
	pthread_mutex_lock(&inbox->lock);
	/* If the names do not fit, all tubes are tried. */
	if (inbox->is_all || inbox->tubes.size > INBOX_MAX || buffer_append(&inbox->tubes, name, strlen(name) + 1) != 0)
		inbox->is_all = 1;
	if (inbox->is_open)
		uv_async_send(&inbox->async);
	pthread_mutex_unlock(&inbox->lock);
}

static void inbox_take(uv_async_t *async)
{
	struct server *server = async->data;
	struct inbox *inbox = &server->run->inbox;
	struct buffer tubes;
	size_t at;
	int is_all;

	pthread_mutex_lock(&inbox->lock);
	tubes = inbox->tubes;
	is_all = inbox->is_all;
	inbox->tubes = (struct buffer){0};
	inbox->is_all = 0;
	pthread_mutex_unlock(&inbox->lock);
	for (at = 0; at < tubes.size && !is_all; at += strlen(tubes.data + at) + 1) {
		struct server_tube *tube = tube_find(server, tubes.data + at);

		if (tube)
			tube_ready(server, tube);
		else if (store_hides(tubes.data + at))
			schedules_ready(server);
	}
	if (is_all) {
		tube_ready_all(server);
		schedules_ready(server);
	}
	buffer_free(&tubes);
}

/* The store may be locked, or the thread not be the loop's: only note the tube. */
void ready_heard(const char *name, void *context)
{
	struct server *server = context;
	struct server_tube *tube;

	push_ready(server, name);
	if (server->is_shared)
		events_ready(server, name);
	if (server->is_shared || !pthread_equal(pthread_self(), server->thread)) {
		inbox_add(&server->run->inbox, name);
		return;
	}
	tube = tube_find(server, name);
	if (tube)
		tube_ready(server, tube);
	else if (store_hides(name))
		schedules_ready(server);
}

/* A message may have been missed, or the store may be back. To ask for a job costs little if none is ready. */
static void try_again(uv_timer_t *timer)
{
	struct server *server = timer->data;

	if (server->tubes.waiting > 0)
		tube_ready_all(server);
	schedules_ready(server);
}

void ready_lost(struct server *server)
{
	server->is_lost = 1;
	inbox_add(&server->run->inbox, "");
}

void ready_stop(struct server *server)
{
	pthread_mutex_lock(&server->run->inbox.lock);
	server->run->inbox.is_open = 0;
	pthread_mutex_unlock(&server->run->inbox.lock);
}

int ready_start(struct server *server)
{
	if (pthread_mutex_init(&server->run->inbox.lock, NULL) != 0 ||
	    uv_async_init(&server->loop, &server->run->inbox.async, inbox_take) != 0 ||
	    uv_timer_init(&server->loop, &server->run->again) != 0)
		return handles_not_made();
	server->run->inbox.async.data = server->run->again.data = server;
	server->run->inbox.is_open = 1;
	return 0;
}

void ready_again(struct server *server)
{
	if (server->is_shared)
		uv_timer_start(&server->run->again, try_again, AGAIN_MS, AGAIN_MS);
}

void ready_free(struct server *server)
{
	buffer_free(&server->run->inbox.tubes);
}
