/* Keeps the tubes that clients use or watch. The store keeps a tube's jobs. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/engine/server.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

/* A worker over HTTP has no connection. Its code counts for so long. Beyond so many tubes, the oldest is forgotten. */
enum { ASKED_S = 60, ASKED_MAX = 1000 };

struct asked_tube {
	UT_hash_handle hh;
	uint32_t code;
	uint64_t until; /* elapsed time */
	char name[WW_TUBE_MAX + 1];
};

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

static void forget_asked(struct server *server, struct asked_tube *asked)
{
	HASH_DEL(server->tubes.asked, asked);
	free(asked);
}

void tube_drop_all(struct server *server)
{
	struct server_tube *tube;
	struct server_tube *next;

	HASH_ITER(hh, server->tubes.all, tube, next) {
		HASH_DEL(server->tubes.all, tube);
		free(tube);
	}
	while (server->tubes.asked)
		forget_asked(server, server->tubes.asked);
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

/* ---- Codes of jobs */

static struct asked_tube *find_asked(struct server *server, const char *name)
{
	struct asked_tube *asked;

	HASH_FIND_STR(server->tubes.asked, name, asked);
	return asked;
}

static struct asked_tube *make_asked(struct server *server, const char *name)
{
	struct asked_tube *asked = find_asked(server, name);

	if (asked)
		return asked;
	if (HASH_COUNT(server->tubes.asked) == ASKED_MAX)
		forget_asked(server, server->tubes.asked);
	asked = calloc(1, sizeof *asked);
	if (!asked)
		return NULL;
	memcpy(asked->name, name, strlen(name) + 1);
	HASH_ADD_STR(server->tubes.asked, name, asked);
	if (asked->hh.tbl)
		return asked;
	free(asked);
	return NULL;
}

void tube_asked(struct server *server, const char *name, uint32_t code)
{
	struct asked_tube *asked = server->is_shared ? NULL : make_asked(server, name);
	uint64_t now = store_now(server);

	if (!asked || (asked->until > now && asked->code > code))
		return;
	asked->code = code;
	asked->until = now + ASKED_S * WW_SECOND;
}

/* -1: there is no worker. */
static int64_t known_code(struct server *server, const char *name)
{
	struct server_tube *tube = tube_find(server, name);
	int64_t known = tube ? server->tubes.known(server, tube) : -1;
	const struct asked_tube *asked = find_asked(server, name);

	if (push_takes(server, name))
		return WW_JOB_CODE_MAX;
	return asked && asked->until > store_now(server) && asked->code > known ? (int64_t)asked->code : known;
}

uint64_t tube_unknown(struct server *server, const struct ww_tube_stats *stats, uint32_t *lowest)
{
	int64_t known = stats->coded ? known_code(server, stats->name) : WW_JOB_CODE_MAX;
	uint64_t count = 0;

	*lowest = 0;
	if (known < WW_JOB_CODE_MAX)
		(void)ww_jobs_above(server->jobs, stats->name, known < 0 ? 0 : (uint32_t)known, &count, lowest);
	return count;
}
