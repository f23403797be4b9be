/* What the server asks of its store beside jobs: the time, why it cannot write, its numbers, and what clients see of it. */
#include <stdio.h>
#include <string.h>

#include "tools/weekwheeld/engine/server.h"
#include "weekwheel/schedule.h"

#ifdef HAVE_REDIS
#include "weekwheel/jobs_redis.h"
#endif

/* ---- Time */

uint64_t store_now(struct server *server)
{
	uint64_t now = 0;

	(void)ww_jobs_now(server->jobs, 0, &now);
	return now;
}

uint64_t store_uptime(struct server *server)
{
	uint64_t now = store_now(server);

	return now > server->started ? now - server->started : 0;
}

/* ---- Errors */

int store_fault(struct server *server, char text[WW_FAULT_MAX])
{
	struct ww_jobs_stats stats;

	if (server->is_shared || ww_jobs_stats(server->jobs, &stats) != WW_OK)
		return WW_OK;
	if (text)
		memcpy(text, stats.fault_text, WW_FAULT_MAX);
	if (stats.fault == server->reported_fault)
		return stats.fault;
	server->reported_fault = stats.fault;
	if (stats.fault == WW_OK)
		state_end("disk", "there is room again: jobs are accepted");
	else if (stats.fault == WW_EFULL)
		state_begin("disk", STATE_STOPS_WRITING,
		    "%s: no jobs are accepted until there is room; those that are stored go on", stats.fault_text);
	else if (stats.fault == WW_ECORRUPT)
		state_begin("disk", STATE_STOPS_WRITING,
		    "%s: every change is refused from now on; end the server, save what can be read with "
		    "'weekwheel recover', and start it on that",
		    stats.fault_text);
	else
		state_begin("disk", STATE_STOPS_WRITING,
		    "%s: every change is refused from now on; check the disk, then start the server again, which "
		    "checks what the disk has",
		    stats.fault_text);
	return stats.fault;
}

void store_failed(struct server *server, int error)
{
	char key[STATE_KEY_MAX];

	server->store_errors++;
	if (server->reported_fault == WW_EIO || server->reported_fault == WW_ECORRUPT ||
	    store_fault(server, NULL) != WW_OK) {
		state_met("disk");
		return;
	}
	/* lib/redis reports once that Redis is lost, and once that it is back. */
	if (server->is_shared && (error == WW_EIO || error == WW_EAGAIN))
		return;
	const char *why =
	    error == WW_ECORRUPT && !server->is_shared
	        ? "a record of the store is damaged: the jobs that it concerns are not served, and all "
	          "others are; 'weekwheel fsck' shows which, and 'weekwheel recover' saves what can be read"
	        : ww_strerror(error);
	snprintf(key, sizeof key, "failed commands: %d", error);
	state_seen(key, "a command failed: %s", why);
}

/* ---- What clients see */

int store_hides(const char *tube)
{
	/* No client can name such a tube. */
	return *tube == '-';
}

/* Between two calls of a shared store, others may change it. */
static void take_off(uint64_t *number, uint64_t part)
{
	*number -= part < *number ? part : *number;
}

int store_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats)
{
	int error = ww_jobs_stats(jobs, stats);
	struct ww_tube_stats hidden;

	if (error || ww_jobs_tube(jobs, WW_SCHEDULE_TUBE, &hidden) != WW_OK)
		return error;
	take_off(&stats->all.delayed, hidden.delayed);
	take_off(&stats->all.ready, hidden.ready);
	take_off(&stats->all.urgent, hidden.urgent);
	take_off(&stats->all.reserved, hidden.reserved);
	take_off(&stats->all.buried, hidden.buried);
	take_off(&stats->tubes, hidden.delayed + hidden.ready + hidden.reserved + hidden.buried > 0);
	return error;
}

#ifdef HAVE_REDIS
int store_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	struct ww_jobs_redis_stats stats;

	if (!server->is_shared || ww_jobs_redis_stats(server->jobs, &stats) != WW_OK)
		return 0;
	return add(out, "redis-nodes", 0, "Nodes of Redis.", stats.nodes) ||
	       add(out, "redis-shards", 0, "Shards of the store.", stats.shards) ||
	       add(out, "redis-shards-watched", 0, "Shards that this server watches.", stats.watched) ||
	       add(out, "redis-workers", 0, "Processes that share the store.", stats.workers) ||
	       add(out, "redis-commands", 1, "Commands sent to Redis.", stats.commands) ||
	       add(out, "redis-round-trips", 1, "Waits for its answers.", stats.round_trips) ||
	       add(out, "redis-reconnects", 1, "Connections lost or refused.", stats.reconnects) ||
	       add(out, "redis-redirections", 1, "MOVED and ASK.", stats.redirections) ||
	       add(out, "redis-wakes", 1, "Messages received.", stats.wakes) ||
	       add(out, "redis-resets", 1, "Times that the store was found gone.", stats.resets);
}
#else
int store_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	(void)server;
	(void)out;
	(void)add;
	return 0;
}
#endif
