/* Writes the counters of the server and its store for Prometheus. */
#include "tools/service/http/metric.h"
#include "tools/weekwheeld/clients/clients.h"
#include "tools/weekwheeld/engine/schedules.h"
#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/standby/standby.h"
#include "tools/weekwheeld/v1/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/job.h"
#include "weekwheel/jobs_redis.h"

#define LLU unsigned long long

static int add_head(struct buffer *out, char *whole, const char *name, const char *type, const char *help)
{
	return metric_head(out, whole, METRICS_PREFIX, name, type, help);
}

static int add(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	return metric_add(out, METRICS_PREFIX, name, is_counter, help, value);
}

static int add_seconds(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t ns)
{
	return metric_add_seconds(out, METRICS_PREFIX, name, is_counter, help, ns);
}

/* Tubes have lines of their own up to a bound, as their counters do. All others have theirs together. */
struct tube_lines {
	struct buffer *out;
	struct buffer coded; /* the numbers of those that have jobs with a code */
	size_t tubes;
	uint64_t others[4];
};

static int add_jobs(struct buffer *out, const char *name, const uint64_t counts[4])
{
	int bad = 0;

	for (int i = 0; i < 4; i++)
		bad |= buffer_format(out, "weekwheeld_tube_jobs{tube=\"%s\",state=\"%s\"} %llu\n", name,
		    job_states[WW_JOB_DELAYED + i], (LLU)counts[i]);
	return bad != 0;
}

/* A part of those that are ready. */
static int add_held(struct buffer *out, const struct ww_tube_stats *stats)
{
	return stats->is_limited && buffer_format(out, "weekwheeld_tube_jobs{tube=\"%s\",state=\"held\"} %llu\n",
	                                stats->name, (LLU)stats->held) != 0;
}

static int add_tube(const struct ww_tube_stats *stats, void *context)
{
	struct tube_lines *lines = context;
	const uint64_t counts[] = {stats->delayed, stats->ready, stats->reserved, stats->buried};

	if (lines->tubes++ < COUNTS_TUBES)
		return add_jobs(lines->out, stats->name, counts) || add_held(lines->out, stats) ||
		       (stats->coded && buffer_append(&lines->coded, stats, sizeof *stats));
	for (int i = 0; i < 4; i++)
		lines->others[i] += counts[i];
	return 0;
}

/* Of tubes with ready jobs that have a code: how many no worker knows, or the lowest such code. */
static int add_unknown(struct server *server, struct buffer *out, const struct buffer *coded, int wants_code)
{
	char whole[METRIC_NAME_MAX];
	int bad = wants_code ? add_head(out, whole, "tube-lowest-unknown-code", "gauge",
	                           "The lowest code of ready jobs that no worker knows; 0: there are none.")
	                     : add_head(out, whole, "tube-jobs-unknown-code", "gauge",
	                           "Ready jobs of a tube whose code no worker knows.");

	for (size_t at = 0; at < coded->size; at += sizeof(struct ww_tube_stats)) {
		struct ww_tube_stats stats;
		uint32_t lowest;

		memcpy(&stats, coded->data + at, sizeof stats);
		uint64_t unknown = tube_unknown(server, &stats, &lowest);
		bad |= buffer_format(
		    out, "%s{tube=\"%s\"} %llu\n", whole, stats.name, wants_code ? (LLU)lowest : (LLU)unknown);
	}
	return bad;
}

/* One call gets all tubes that have jobs: a call for each would be a round trip each if the store is shared. */
static int add_tubes(struct server *server, struct buffer *out)
{
	char whole[METRIC_NAME_MAX];
	struct tube_lines lines = {.out = out};
	int bad = add_head(out, whole, "tube-jobs", "gauge", "Jobs of a tube by state, if it has any.");

	bad |= ww_jobs_tubes(server->jobs, add_tube, &lines) > 0;
	bad |= lines.tubes > COUNTS_TUBES && add_jobs(out, "-others", lines.others);
	bad |= add_unknown(server, out, &lines.coded, 0) | add_unknown(server, out, &lines.coded, 1);
	buffer_free(&lines.coded);
	return bad;
}

static int add_waiting(struct server *server, struct buffer *out)
{
	char whole[METRIC_NAME_MAX];
	int bad = add_head(out, whole, "tube-waiting", "gauge", "Clients that wait for a job of a tube.");
	size_t tubes = 0;
	uint64_t others = 0;

	for (const struct server_tube *tube = server->tubes.all; tube; tube = tube->hh.next)
		if (tubes++ < COUNTS_TUBES)
			bad |= buffer_format(out, "%s{tube=\"%s\"} %u\n", whole, tube->name, tube->waiters);
		else
			others += tube->waiters;
	return bad || (tubes > COUNTS_TUBES && buffer_format(out, "%s{tube=\"-others\"} %llu\n", whole, (LLU)others));
}

static int add_commands(struct server *server, struct buffer *out)
{
	char whole[METRIC_NAME_MAX];
	int bad = add_head(out, whole, "commands", "counter", "Commands carried out.");

	for (int verb = VERB_UNKNOWN + 1; verb < VERBS; verb++) {
		const char *name = protocol_verb_name((enum verb)verb);

		bad |= buffer_format(out, "%s{command=\"%.*s\"} %llu\n", whole, (int)strcspn(name, " "), name,
		    (LLU)server->clients->commands[verb]);
	}
	return bad;
}

static int add_store(struct buffer *out, const struct ww_jobs_stats *stats)
{
	return add(out, "jobs-put", 1, "Jobs put since the start.", stats->all.puts) ||
	       add(out, "jobs-ended", 1, "Jobs deleted since the start.", stats->all.finished) ||
	       add(out, "jobs-ended-kept", 0, "Ended jobs whose keys are not free yet.", stats->kept) ||
	       add(out, "history-runs", 0, "Runs of jobs that are kept.", stats->runs) ||
	       add(out, "job-timeouts", 1, "Leases that ran out since the start.", stats->timeouts) ||
	       add(out, "jobs-expired", 1, "Jobs that nobody took in time, since the start.", stats->expired) ||
	       add(out, "commits", 1, "Writes of the store.", stats->commits) ||
	       add(out, "syncs", 1, "Syncs of the store.", stats->syncs) ||
	       add_seconds(out, "sync-seconds", 1, "Time spent in syncs.", stats->sync_ns) ||
	       add(out, "store-writable", 0, "0: jobs are refused; /readyz says why.", stats->fault == WW_OK) ||
	       add(out, "jobs-loaded", 0, "Jobs in memory.", stats->loaded) ||
	       add(out, "store-memory-bytes", 0, "Memory of the store.", stats->bytes) ||
	       add(out, "store-disk-bytes", 0, "Size of the store's file.", stats->disk) ||
	       add_seconds(out, "oldest-ready-seconds", 0, "How long the first ready job has been due.", stats->oldest);
}

/* How late jobs became ready, as a histogram. */
static int add_lateness(struct buffer *out, const struct ww_jobs_stats *stats)
{
	static const char *const bounds[WW_LATE_CLASSES] = {"0.001", "0.01", "0.1", "1", "10", "100", "+Inf"};
	char whole[METRIC_NAME_MAX];
	int bad =
	    add_head(out, whole, "job-lateness-seconds", "histogram", "Time from a job's due time until it was ready.");
	uint64_t count = 0;

	for (int i = 0; i < WW_LATE_CLASSES; i++) {
		count += stats->late[i];
		bad |= buffer_format(out, "%s_bucket{le=\"%s\"} %llu\n", whole, bounds[i], (LLU)count);
	}
	bad |= buffer_format(
	    out, "%s_sum %llu.%09llu\n", whole, (LLU)(stats->late_ns / WW_SECOND), (LLU)(stats->late_ns % WW_SECOND));
	return bad | buffer_format(out, "%s_count %llu\n", whole, (LLU)count);
}

static int add_server(struct server *server, struct buffer *out)
{
	return add(out, "connections", 0, "Clients that are connected.", server->clients->now) ||
	       add(out, "connections", 1, "Clients that have connected.", server->clients->total) ||
	       add(out, "waiting", 0, "Clients that wait for a job.", server->tubes.waiting) ||
	       add(out, "commit-errors", 1, "Writes that failed.", server->turn.commit_errors) ||
	       add(out, "draining", 0, "1: jobs are no longer accepted.", (uint64_t)server->is_draining);
}

/* Timers of the jobs in memory, by the wheel that holds them. */
static int add_wheels(struct buffer *out, const char *clock, struct ww_driver *driver, const char *whole)
{
	struct ww_driver_stats stats;
	int bad = 0;

	if (ww_driver_stats(driver, &stats) != WW_OK)
		return 0;
	for (uint32_t level = 0; level < stats.levels; level++)
		bad |= buffer_format(
		    out, "%s{clock=\"%s\",level=\"%u\"} %llu\n", whole, clock, level, (LLU)stats.level[level]);
	return bad;
}

/* ---- Nodes */

#ifdef HAVE_REDIS
static int add_nodes(struct server *server, struct buffer *out)
{
	static const char *const names[] = {"serves", "aside", "lost"};
	struct ww_jobs_redis_node *nodes;
	char whole[METRIC_NAME_MAX];
	size_t count;
	int bad = health_nodes(server, &nodes, &count);

	if (count > 0)
		bad |=
		    add_head(out, whole, "redis-node-state", "gauge", "1 for the state in which a node of Redis is.");
	for (size_t i = 0; i < count; i++)
		for (size_t state = 0; state < 3; state++)
			bad |= buffer_format(out, "%s{", whole) || metric_label(out, "node", nodes[i].address) ||
			       buffer_format(out, ",state=\"%s\"} %d\n", names[state],
			           strcmp(health_node_state(&nodes[i]), names[state]) == 0);
	if (count > 0)
		bad |= add_head(out, whole, "redis-node-shards", "gauge", "Shards of the store on a node of Redis.");
	for (size_t i = 0; i < count; i++)
		bad |= buffer_format(out, "%s{", whole) || metric_label(out, "node", nodes[i].address) ||
		       buffer_format(out, "} %u\n", (unsigned)nodes[i].shards);
	free(nodes);
	return bad;
}
#else
static int add_nodes(struct server *server, struct buffer *out)
{
	(void)server;
	(void)out;
	return 0;
}
#endif

/* The week to come. A store in Redis would count job by job, each time. */
static int add_week(const struct server *server, const struct metrics_sample *sample, struct buffer *out)
{
	char whole[METRIC_NAME_MAX];
	int bad;

	if (server->is_shared)
		return 0;
	bad = add_head(out, whole, "forecast-jobs", "gauge",
	    "Jobs due in the hour that begins this many hours from now; a full hour of the clock counts as spread evenly.");
	for (unsigned hour = 0; hour < METRICS_HOURS; hour++)
		bad |= buffer_format(out, "%s{hours=\"%u\"} %llu\n", whole, hour, (LLU)sample->week[hour]);
	return bad;
}

int metrics_ask(struct server *server, struct metrics_sample *sample)
{
	int error = store_stats(server->jobs, &sample->stats);

	if (error == WW_OK && !server->is_shared)
		error = ww_jobs_forecast(server->jobs, NULL, 3600 * WW_SECOND, sample->week, METRICS_HOURS);

	if (error == WW_OK && add_tubes(server, &sample->tubes))
		error = WW_ENOMEM;
	return error;
}

void metrics_forget(struct metrics_sample *sample)
{
	buffer_free(&sample->tubes);
}

int metrics_of_standby(struct server *server, struct buffer *out)
{
	const struct standby *standby = server->standby;

	return site_metrics(&server->http->site, uv_hrtime() - standby->began, out) ||
	               add(out, "standby", 0, "1: another server owns the store.", 1) ||
	               add(out, "standby-waiting", 0, "Clients that wait for the owner.", standby->guest_count) ||
	               add(out, "standby-connections", 0, "Clients that are passed on to the owner.",
	                   standby->relays.count)
	           ? WW_ENOMEM
	           : WW_OK;
}

int metrics_write(struct server *server, const struct metrics_sample *sample, int error, struct buffer *out)
{
	char whole[METRIC_NAME_MAX];
	int bad;

	if (error != WW_OK && !server->is_shared)
		return error;
	bad = site_metrics(&server->http->site, store_uptime(server), out) || add_server(server, out) ||
	      add_commands(server, out) ||
	      add_head(out, whole, "wheel-timers", "gauge", "Timers in each wheel, the soonest first.") ||
	      add_wheels(out, "elapsed", server->elapsed, whole) || add_wheels(out, "wall", server->wall, whole) ||
	      store_numbers(server, out, add) || push_numbers(server, out, add) ||
	      schedules_numbers(server, out, add) || add_waiting(server, out) ||
	      add(out, "store-up", 0, "1: the store answers.", error == WW_OK) ||
	      add(out, "store-errors", 1, "Calls that the store did not answer.", server->store_errors) ||
	      add_nodes(server, out) || events_numbers(server, out, add) || bounds_numbers(server, out, add) ||
	      counts_write(&server->counts, store_now(server), out);
	/* While a shared store is away, its jobs are unknown. */
	if (error == WW_OK)
		bad = bad || add_store(out, &sample->stats) || add_lateness(out, &sample->stats) ||
		      add_week(server, sample, out) || buffer_append(out, sample->tubes.data, sample->tubes.size);
	return bad ? WW_ENOMEM : WW_OK;
}
