/* Keeps the tubes that connections use or watch, and the lists of the watched ones. The store keeps a tube's jobs. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/server.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

struct server_tube *tube_find(struct server *server, const char *name)
{
	struct server_tube *tube;

	HASH_FIND_STR(server->tubes, name, tube);
	return tube;
}

struct server_tube *tube_make(struct server *server, const char *name)
{
	struct server_tube *tube = tube_find(server, name);

	if (tube)
		return tube;
	tube = bounds_tube(server) ? calloc(1, sizeof *tube) : NULL;
	if (!tube)
		return NULL;
	TAILQ_INIT(&tube->waiting);
	memcpy(tube->name, name, strlen(name) + 1);
	HASH_ADD_STR(server->tubes, name, tube);
	if (!tube->hh.tbl) {
		free(tube);
		return NULL;
	}
	return tube;
}

void tube_drop(struct server *server, struct server_tube *tube)
{
	if (tube->users || tube->watchers || tube->pollers || tube->is_ready || tube == server->default_tube)
		return;
	HASH_DEL(server->tubes, tube);
	free(tube);
}

void tube_drop_all(struct server *server)
{
	struct server_tube *tube;
	struct server_tube *next;

	HASH_ITER(hh, server->tubes, tube, next) {
		HASH_DEL(server->tubes, tube);
		free(tube);
	}
}

void tube_ready(struct server *server, struct server_tube *tube)
{
	if (TAILQ_EMPTY(&tube->waiting) && !tube->pollers)
		return;
	tube->events++;
	if (tube->wanted == 0)
		tube->wanted = 1;
	if (tube->is_ready)
		return;
	tube->is_ready = 1;
	STAILQ_INSERT_TAIL(&server->ready, tube, next_ready);
}

void tube_ready_all(struct server *server)
{
	for (struct server_tube *tube = server->tubes; tube; tube = tube->hh.next)
		tube_ready(server, tube);
}

enum { WATCH_KEY = offsetof(struct watch, index) - offsetof(struct watch, tube) };

static struct watch *find_watch(struct connection *connection, struct server_tube *tube)
{
	struct watch key = {.tube = tube, .connection = connection};
	struct watch *watch;

	HASH_FIND(hh, connection->server->watches, &key.tube, WATCH_KEY, watch);
	return watch;
}

int tube_is_watched(struct connection *connection, struct server_tube *tube)
{
	return find_watch(connection, tube) != NULL;
}

/* If one of the arrays cannot grow, neither is used beyond the old size. */
static int watches_grow(struct connection *connection)
{
	size_t room = connection->watch_room ? connection->watch_room * 2 : 1;
	struct watch **watches;
	const char **names;

	if (connection->watch_count < connection->watch_room)
		return 0;
	watches = realloc(connection->watches, room * sizeof *watches);
	if (!watches)
		return -1;
	connection->watches = watches;
	names = realloc(connection->names, room * sizeof *names);
	if (!names)
		return -1;
	connection->names = names;
	connection->watch_room = room;
	return 0;
}

int tube_watch(struct connection *connection, struct server_tube *tube)
{
	struct watch *watch;

	if (tube_is_watched(connection, tube))
		return 0;
	if (!bounds_watch(connection->server, connection->watch_count, TUBE_WATCH_BYTES))
		return -1;
	watch = calloc(1, sizeof *watch);
	if (!watch || watches_grow(connection) != 0) {
		free(watch);
		return -1;
	}
	watch->tube = tube;
	watch->connection = connection;
	watch->index = connection->watch_count;
	HASH_ADD(hh, connection->server->watches, tube, WATCH_KEY, watch);
	if (!watch->hh.tbl) {
		free(watch);
		return -1;
	}
	connection->watches[connection->watch_count] = watch;
	connection->names[connection->watch_count] = tube->name;
	connection->watch_count++;
	tube->watchers++;
	return 0;
}

void tube_ignore(struct connection *connection, struct server_tube *tube)
{
	struct watch *watch = find_watch(connection, tube);

	if (!watch)
		return;
	/* The last one takes its place, as in beanstalkd, whose clients see this order. */
	connection->watch_count--;
	connection->watches[watch->index] = connection->watches[connection->watch_count];
	connection->watches[watch->index]->index = watch->index;
	connection->names[watch->index] = connection->names[connection->watch_count];
	HASH_DEL(connection->server->watches, watch);
	free(watch);
	tube->watchers--;
	tube_drop(connection->server, tube);
}
