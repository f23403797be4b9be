/* Keeps which tubes a connection watches. */
#include <stddef.h>
#include <stdlib.h>

#include "tools/weekwheeld/clients/clients.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

enum { WATCH_KEY = offsetof(struct watch, index) - offsetof(struct watch, tube) };

static struct watch *find_watch(struct connection *connection, struct server_tube *tube)
{
	struct watch key = {.tube = tube, .connection = connection};
	struct watch *watch;

	HASH_FIND(hh, connection->server->clients->watches, &key.tube, WATCH_KEY, watch);
	return watch;
}

int watch_has(struct connection *connection, struct server_tube *tube)
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

int watch_add(struct connection *connection, struct server_tube *tube)
{
	struct watch *watch;

	if (watch_has(connection, tube))
		return 0;
	if (!bounds_watch(connection->server, connection->watch_count, WATCH_BYTES))
		return -1;
	watch = calloc(1, sizeof *watch);
	if (!watch || watches_grow(connection) != 0) {
		free(watch);
		return -1;
	}
	watch->tube = tube;
	watch->connection = connection;
	watch->index = connection->watch_count;
	HASH_ADD(hh, connection->server->clients->watches, tube, WATCH_KEY, watch);
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

void watch_remove(struct connection *connection, struct server_tube *tube)
{
	struct watch *watch = find_watch(connection, tube);

	if (!watch)
		return;
	/* The last one takes its place, as in beanstalkd, whose clients see this order. */
	connection->watch_count--;
	connection->watches[watch->index] = connection->watches[connection->watch_count];
	connection->watches[watch->index]->index = watch->index;
	connection->names[watch->index] = connection->names[connection->watch_count];
	HASH_DEL(connection->server->clients->watches, watch);
	free(watch);
	tube->watchers--;
	tube_drop(connection->server, tube);
}
