/* Keeps the tubes that clients use or watch. The store keeps a tube's jobs. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/engine/server.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

struct server_tube *tube_find(struct server *server, const char *name)
{
	struct server_tube *tube;

	HASH_FIND_STR(server->tubes.all, name, tube);
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
	HASH_ADD_STR(server->tubes.all, name, tube);
	if (!tube->hh.tbl) {
		free(tube);
		return NULL;
	}
	return tube;
}

void tube_drop(struct server *server, struct server_tube *tube)
{
	if (tube->users || tube->watchers || tube->pollers || tube->is_ready || tube == server->tubes.default_tube)
		return;
	HASH_DEL(server->tubes.all, tube);
	free(tube);
}

void tube_drop_all(struct server *server)
{
	struct server_tube *tube;
	struct server_tube *next;

	HASH_ITER(hh, server->tubes.all, tube, next) {
		HASH_DEL(server->tubes.all, tube);
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
	STAILQ_INSERT_TAIL(&server->tubes.ready, tube, next_ready);
}

void tube_ready_all(struct server *server)
{
	for (struct server_tube *tube = server->tubes.all; tube; tube = tube->hh.next)
		tube_ready(server, tube);
}
