/* Numbers for Prometheus. */
#include "tools/weekwheeld/metrics.h"

#include <string.h>

#include "tools/weekwheeld/protocol/line.h"

#ifdef HAVE_REDIS
#include "weekwheel/jobs_redis.h"
#endif

#define LLU unsigned long long

static int add_head(struct buffer *out, const char *name, const char *type, const char *help)
{
	return buffer_format(out, "# HELP weekwheeld_%s %s\n# TYPE weekwheeld_%s %s\n", name, help, name, type);
}

int metrics_number(struct buffer *out, const char *name, const char *type, const char *help, uint64_t value)
{
	return add_head(out, name, type, help) || buffer_format(out, "weekwheeld_%s %llu\n", name, (LLU)value);
}

static int add_seconds(struct buffer *out, const char *name, const char *type, const char *help, uint64_t ns)
{
	return add_head(out, name, type, help) ||
	       buffer_format(out, "weekwheeld_%s %llu.%09llu\n", name, (LLU)(ns / WW_SECOND), (LLU)(ns % WW_SECOND));
}

struct metrics_tubes {
	struct server *server;
	struct buffer *out;
	int bad;
};

static int add_tube(const struct ww_tube_stats *stats, void *context)
{
	struct metrics_tubes *tubes = context;
	const char *name = stats->name;

	tubes->bad |= buffer_format(tubes->out,
	    "weekwheeld_tube_jobs{tube=\"%s\",state=\"delayed\"} %llu\n"
	    "weekwheeld_tube_jobs{tube=\"%s\",state=\"ready\"} %llu\n"
	    "weekwheeld_tube_jobs{tube=\"%s\",state=\"reserved\"} %llu\n"
	    "weekwheeld_tube_jobs{tube=\"%s\",state=\"buried\"} %llu\n",
	    name, (LLU)stats->delayed, name, (LLU)stats->ready, name, (LLU)stats->reserved, name, (LLU)stats->buried);
	return 0;
}

/* Those that have jobs, from the store at once: asking for each would be a round trip each where it is shared. */
static void add_tubes(struct metrics_tubes *tubes)
{
	tubes->bad |=
	    add_head(tubes->out, "tube_jobs", "gauge", "Jobs of a tube by state; of a tube without jobs none.");
	(void)ww_jobs_tubes(tubes->server->jobs, add_tube, tubes);
}

static void add_waiting(struct metrics_tubes *tubes)
{
	const struct tube *tube;

	tubes->bad |= add_head(tubes->out, "tube_waiting", "gauge", "Clients that wait for a job of a tube.");
	for (tube = tubes->server->tubes; tube; tube = tube->hh.next)
		tubes->bad |=
		    buffer_format(tubes->out, "weekwheeld_tube_waiting{tube=\"%s\"} %u\n", tube->name, tube->waiters);
}

static int add_commands(struct server *server, struct buffer *out)
{
	int bad = add_head(out, "commands_total", "counter", "Commands carried out.");
	int verb;

	for (verb = VERB_UNKNOWN + 1; verb < VERBS; verb++) {
		const char *name = protocol_verb_name((enum verb)verb);

		bad |= buffer_format(out, "weekwheeld_commands_total{command=\"%.*s\"} %llu\n", (int)strcspn(name, " "),
		    name, (LLU)server->commands[verb]);
	}
	return bad;
}

static int add_store(struct buffer *out, const struct ww_jobs_stats *stats)
{
	return metrics_number(out, "jobs_put_total", "counter", "Jobs put since the start.", stats->all.puts) ||
	       metrics_number(
	           out, "jobs_ended_total", "counter", "Jobs deleted since the start.", stats->all.finished) ||
	       metrics_number(
	           out, "job_timeouts_total", "counter", "Leases that ran out since the start.", stats->timeouts) ||
	       metrics_number(out, "commits_total", "counter", "Writes of the store.", stats->commits) ||
	       metrics_number(out, "syncs_total", "counter", "Times that the store was synced.", stats->syncs) ||
	       add_seconds(out, "sync_seconds_total", "counter", "Time spent in them.", stats->sync_ns) ||
	       metrics_number(out, "jobs_loaded", "gauge", "Jobs in memory.", stats->loaded) ||
	       metrics_number(out, "store_memory_bytes", "gauge", "Memory of the store.", stats->bytes) ||
	       metrics_number(out, "store_disk_bytes", "gauge", "Size of the store's file.", stats->disk) ||
	       add_seconds(
	           out, "oldest_ready_seconds", "gauge", "How long the first ready job has been due.", stats->oldest);
}

/* How late jobs became ready, as a histogram. */
static int add_lateness(struct buffer *out, const struct ww_jobs_stats *stats)
{
	static const char *const bounds[WW_LATE_CLASSES] = {"0.001", "0.01", "0.1", "1", "10", "100", "+Inf"};
	int bad = add_head(out, "job_lateness_seconds", "histogram", "From a job's due time until it was ready.");
	uint64_t count = 0;
	int i;

	for (i = 0; i < WW_LATE_CLASSES; i++) {
		count += stats->late[i];
		bad |= buffer_format(
		    out, "weekwheeld_job_lateness_seconds_bucket{le=\"%s\"} %llu\n", bounds[i], (LLU)count);
	}
	bad |= buffer_format(out, "weekwheeld_job_lateness_seconds_sum %llu.%09llu\n",
	    (LLU)(stats->late_ns / WW_SECOND), (LLU)(stats->late_ns % WW_SECOND));
	return bad | buffer_format(out, "weekwheeld_job_lateness_seconds_count %llu\n", (LLU)count);
}

static int add_server(struct server *server, struct buffer *out)
{
	return metrics_number(out, "connections", "gauge", "Clients that are connected.", server->connections_now) ||
	       metrics_number(
	           out, "connections_total", "counter", "Clients that have come.", server->connections_total) ||
	       metrics_number(out, "waiting", "gauge", "Clients that wait for a job.", server->waiting) ||
	       metrics_number(out, "commit_errors_total", "counter", "Writes that failed.", server->commit_errors) ||
	       metrics_number(out, "draining", "gauge", "1: no jobs are accepted.", (uint64_t)server->is_draining) ||
	       add_seconds(out, "uptime_seconds", "gauge", "Time since the start.", server_uptime(server));
}

/* Timers of the jobs that are in memory, by the wheel that holds them. */
static int add_wheels(struct server *server, struct buffer *out)
{
	const struct {
		const char *clock;
		struct ww_driver *driver;
	} drivers[] = {{"elapsed", server->elapsed}, {"wall", server->wall}};
	int bad = add_head(out, "wheel_timers", "gauge", "Timers in each wheel, the soonest first.");
	size_t i;

	for (i = 0; i < sizeof drivers / sizeof *drivers; i++) {
		struct ww_driver_stats stats;
		uint32_t level;

		if (!drivers[i].driver || ww_driver_stats(drivers[i].driver, &stats) != WW_OK)
			continue;
		for (level = 0; level < stats.levels; level++)
			bad |= buffer_format(out, "weekwheeld_wheel_timers{clock=\"%s\",level=\"%u\"} %llu\n",
			    drivers[i].clock, level, (LLU)stats.level[level]);
	}
	return bad;
}

#ifdef HAVE_REDIS
static int add_redis(struct server *server, struct buffer *out)
{
	struct ww_jobs_redis_stats stats;

	if (!server->is_shared || ww_jobs_redis_stats(server->jobs, &stats) != WW_OK)
		return 0;
	return metrics_number(out, "redis_nodes", "gauge", "Nodes of Redis.", stats.nodes) ||
	       metrics_number(out, "redis_shards", "gauge", "Shards of the store.", stats.shards) ||
	       metrics_number(
	           out, "redis_shards_watched", "gauge", "Shards that this server watches.", stats.watched) ||
	       metrics_number(out, "redis_workers", "gauge", "Processes that share the store.", stats.workers) ||
	       metrics_number(out, "redis_commands_total", "counter", "Commands sent to Redis.", stats.commands) ||
	       metrics_number(out, "redis_round_trips_total", "counter", "Waits for its answers.", stats.round_trips) ||
	       metrics_number(
	           out, "redis_reconnects_total", "counter", "Connections lost or refused.", stats.reconnects) ||
	       metrics_number(out, "redis_redirections_total", "counter", "MOVED and ASK.", stats.redirections) ||
	       metrics_number(out, "redis_wakes_total", "counter", "Messages heard.", stats.wakes) ||
	       metrics_number(
	           out, "redis_resets_total", "counter", "Times that the store was found gone.", stats.resets);
}
#else
static int add_redis(struct server *server, struct buffer *out)
{
	(void)server;
	(void)out;
	return 0;
}
#endif

int metrics_write(struct server *server, struct buffer *out)
{
	struct metrics_tubes tubes = {server, out, 0};
	struct ww_jobs_stats stats;
	int error = ww_jobs_stats(server->jobs, &stats);
	int bad;

	if (error != WW_OK && !server->is_shared)
		return error;
	bad = add_server(server, out) | add_commands(server, out) | add_wheels(server, out) | add_redis(server, out) ||
	      push_metrics(server, out);
	add_waiting(&tubes);
	bad |= metrics_number(out, "store_up", "gauge", "1: the store answers.", error == WW_OK);
	bad |= metrics_number(
	    out, "store_errors_total", "counter", "Calls that the store did not answer.", server->store_errors);
	/* While a shared one is away, there is no telling of its jobs. */
	if (error == WW_OK) {
		bad |= add_store(out, &stats) | add_lateness(out, &stats);
		add_tubes(&tubes);
	}
	return bad || tubes.bad ? WW_ENOMEM : WW_OK;
}
