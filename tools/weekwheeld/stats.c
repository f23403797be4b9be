/* What the server tells about itself, its tubes and its jobs, under the names that beanstalkd gives it. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/weekwheeld/server.h"
#include "weekwheel/version.h"

#ifdef HAVE_REDIS
#include "weekwheel/jobs_redis.h"
#endif

#define LLU unsigned long long

static LLU seconds(uint64_t ns)
{
	return (LLU)(ns / WW_SECOND);
}

/* Answer with what was gathered, and free it. */
static void stats_answer(struct connection *connection, struct buffer *block, int bad)
{
	if (bad)
		answer_text(connection, "OUT_OF_MEMORY\r\n");
	else
		answer_block(connection, block);
	buffer_free(block);
}

/* ---- Tubes */

static int is_empty(const struct ww_tube_stats *tube)
{
	return tube->delayed + tube->ready + tube->reserved + tube->buried == 0;
}

int stats_of(struct server *server, const char *name, struct ww_tube_stats *stats)
{
	int error = ww_jobs_tube(server->jobs, name, stats);

	if (error != WW_OK && error != WW_ENOTFOUND)
		return error;
	if (error == WW_ENOTFOUND)
		memset(stats, 0, sizeof *stats);
	return tube_find(server, name) || !is_empty(stats) ? WW_OK : WW_ENOTFOUND;
}

struct each {
	struct server *server;
	void (*fn)(const char *name, void *context);
	void *context;
};

/* Those that clients name were told before. */
static int each_stored(const struct ww_tube_stats *tube, void *context)
{
	struct each *each = context;

	if (!tube_find(each->server, tube->name))
		each->fn(tube->name, each->context);
	return 0;
}

int stats_each_tube(struct server *server, void (*fn)(const char *name, void *context), void *context)
{
	struct each each = {server, fn, context};
	struct tube *tube;

	for (tube = server->tubes; tube; tube = tube->hh.next)
		fn(tube->name, context);
	return ww_jobs_tubes(server->jobs, each_stored, &each);
}

struct names {
	struct buffer block;
	int bad;
};

static void add_name(const char *name, void *context)
{
	struct names *names = context;

	names->bad |= buffer_format(&names->block, "- %s\n", name);
}

void stats_tubes(struct connection *connection)
{
	struct names names = {{0}, 0};
	int error;

	names.bad = buffer_format(&names.block, "---\n");
	error = stats_each_tube(connection->server, add_name, &names);
	if (error < 0) {
		answer_error(connection, error);
		buffer_free(&names.block);
		return;
	}
	stats_answer(connection, &names.block, names.bad);
}

void stats_watched(struct connection *connection)
{
	struct names names = {{0}, 0};
	size_t i;

	names.bad = buffer_format(&names.block, "---\n");
	for (i = 0; i < connection->watch_count; i++)
		add_name(connection->names[i], &names);
	stats_answer(connection, &names.block, names.bad);
}

void stats_tube(struct connection *connection, const char *name)
{
	struct server *server = connection->server;
	const struct tube *tube = tube_find(server, name);
	struct ww_tube_stats stats;
	struct buffer block = {0};
	int error = stats_of(server, name, &stats);
	int bad;

	if (error < 0) {
		answer_error(connection, error);
		return;
	}
	bad = buffer_format(&block,
	    "---\nname: %s\ncurrent-jobs-urgent: %llu\ncurrent-jobs-ready: %llu\ncurrent-jobs-reserved: %llu\n"
	    "current-jobs-delayed: %llu\ncurrent-jobs-buried: %llu\ntotal-jobs: %llu\n"
	    "current-using: %u\ncurrent-watching: %u\ncurrent-waiting: %u\n"
	    "cmd-delete: %llu\ncmd-pause-tube: %llu\npause: %llu\npause-time-left: %llu\n",
	    name, (LLU)stats.urgent, (LLU)stats.ready, (LLU)stats.reserved, (LLU)stats.delayed, (LLU)stats.buried,
	    (LLU)stats.puts, tube ? tube->users : 0, tube ? tube->watchers : 0, tube ? tube->waiters : 0,
	    (LLU)stats.finished, (LLU)stats.pauses, seconds(stats.pause), seconds(stats.pause_left));
	stats_answer(connection, &block, bad);
}

/* ---- Jobs */

static const char *const states[] = {"invalid", "delayed", "ready", "reserved", "buried"};

/* How long ago a job was put. */
static uint64_t age(struct server *server, const struct ww_job_info *info)
{
	uint64_t now = 0;

	(void)ww_jobs_now(server->jobs, WW_JOB_WALL, &now);
	return now > info->created ? now - info->created : 0;
}

void stats_job(struct connection *connection, const struct ww_job_ref *job)
{
	struct server *server = connection->server;
	struct ww_job_info info;
	struct buffer block = {0};
	int error = job->id || job->key_length ? ww_jobs_peek(server->jobs, job, &info, NULL) : WW_ENOTFOUND;
	int bad;

	if (error < 0) {
		answer_error(connection, error);
		return;
	}
	bad = buffer_format(&block,
	    "---\nid: %llu\ntube: %s\nstate: %s\npri: %u\nage: %llu\ndelay: %llu\nttr: %llu\ntime-left: %llu\n"
	    "file: 0\nreserves: %u\ntimeouts: %u\nreleases: %u\nburies: %u\nkicks: %u\n",
	    (LLU)info.id, info.tube, states[info.state], info.priority, seconds(age(server, &info)),
	    seconds(info.delay), seconds(info.run), seconds(info.left), info.reserves, info.timeouts, info.releases,
	    info.buries, info.kicks);
	stats_answer(connection, &block, bad);
}

/* ---- The server */

static void count_name(const char *name, void *context)
{
	uint64_t *count = context;

	(void)name;
	++*count;
}

static int add_jobs(struct server *server, struct buffer *block, const struct ww_jobs_stats *stats)
{
	const uint64_t *n = server->commands;

	return buffer_format(block,
	    "---\ncurrent-jobs-urgent: %llu\ncurrent-jobs-ready: %llu\ncurrent-jobs-reserved: %llu\n"
	    "current-jobs-delayed: %llu\ncurrent-jobs-buried: %llu\n"
	    "cmd-put: %llu\ncmd-peek: %llu\ncmd-peek-ready: %llu\ncmd-peek-delayed: %llu\ncmd-peek-buried: %llu\n"
	    "cmd-reserve: %llu\ncmd-reserve-with-timeout: %llu\ncmd-delete: %llu\ncmd-release: %llu\n"
	    "cmd-use: %llu\ncmd-watch: %llu\ncmd-ignore: %llu\ncmd-bury: %llu\ncmd-kick: %llu\ncmd-touch: %llu\n"
	    "cmd-stats: %llu\ncmd-stats-job: %llu\ncmd-stats-tube: %llu\ncmd-list-tubes: %llu\n"
	    "cmd-list-tube-used: %llu\ncmd-list-tubes-watched: %llu\ncmd-pause-tube: %llu\n",
	    (LLU)stats->all.urgent, (LLU)stats->all.ready, (LLU)stats->all.reserved, (LLU)stats->all.delayed,
	    (LLU)stats->all.buried, (LLU)n[VERB_PUT], (LLU)n[VERB_PEEK], (LLU)n[VERB_PEEK_READY],
	    (LLU)n[VERB_PEEK_DELAYED], (LLU)n[VERB_PEEK_BURIED], (LLU)n[VERB_RESERVE], (LLU)n[VERB_RESERVE_TIMEOUT],
	    (LLU)n[VERB_DELETE], (LLU)n[VERB_RELEASE], (LLU)n[VERB_USE], (LLU)n[VERB_WATCH], (LLU)n[VERB_IGNORE],
	    (LLU)n[VERB_BURY], (LLU)n[VERB_KICK], (LLU)n[VERB_TOUCH], (LLU)n[VERB_STATS], (LLU)n[VERB_STATS_JOB],
	    (LLU)n[VERB_STATS_TUBE], (LLU)n[VERB_LIST_TUBES], (LLU)n[VERB_LIST_TUBE_USED],
	    (LLU)n[VERB_LIST_TUBES_WATCHED], (LLU)n[VERB_PAUSE_TUBE]);
}

static int add_process(struct server *server, struct buffer *block, const struct ww_jobs_stats *stats)
{
	struct rusage used = {0};
	struct utsname machine = {0};
	uint64_t tubes = 0;

	(void)stats_each_tube(server, count_name, &tubes);
	(void)getrusage(RUSAGE_SELF, &used);
	(void)uname(&machine);
	return buffer_format(block,
	    "job-timeouts: %llu\ntotal-jobs: %llu\nmax-job-size: %llu\ncurrent-tubes: %llu\n"
	    "current-connections: %u\ncurrent-producers: %u\ncurrent-workers: %u\ncurrent-waiting: %u\n"
	    "total-connections: %llu\npid: %ld\nversion: \"%s\"\nrusage-utime: %ld.%06ld\nrusage-stime: %ld.%06ld\n"
	    "uptime: %llu\nbinlog-oldest-index: 0\nbinlog-current-index: 0\nbinlog-records-migrated: 0\n"
	    "binlog-records-written: 0\nbinlog-max-size: 0\ndraining: %s\nid: %s\nhostname: %s\nos: %s\n"
	    "platform: %s\noldest-ready: %llu.%03llu\n",
	    (LLU)stats->timeouts, (LLU)stats->all.puts, (LLU)server->settings->max_job_size, (LLU)tubes,
	    server->connections_now, server->producers, server->workers, server->waiting,
	    (LLU)server->connections_total, (long)getpid(), ww_version(), (long)used.ru_utime.tv_sec,
	    (long)used.ru_utime.tv_usec, (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec,
	    seconds(server_uptime(server)), server->is_draining ? "true" : "false", server->id, machine.nodename,
	    machine.version, machine.machine, seconds(stats->oldest),
	    (LLU)(stats->oldest % WW_SECOND / WW_MILLISECOND));
}

/* What is shared, and with whom. */
#ifdef HAVE_REDIS
static int add_redis(struct server *server, struct buffer *block)
{
	struct ww_jobs_redis_stats stats;

	if (!server->is_shared || ww_jobs_redis_stats(server->jobs, &stats) != WW_OK)
		return 0;
	return buffer_format(block,
	    "redis-nodes: %u\nredis-shards: %u\nredis-shards-watched: %u\nredis-workers: %u\n"
	    "redis-commands: %llu\nredis-round-trips: %llu\nredis-reconnects: %llu\nredis-redirections: %llu\n"
	    "redis-wakes: %llu\nredis-resets: %llu\nredis-errors: %llu\n",
	    stats.nodes, stats.shards, stats.watched, stats.workers, (LLU)stats.commands, (LLU)stats.round_trips,
	    (LLU)stats.reconnects, (LLU)stats.redirections, (LLU)stats.wakes, (LLU)stats.resets,
	    (LLU)server->store_errors);
}
#else
static int add_redis(struct server *server, struct buffer *block)
{
	(void)server;
	(void)block;
	return 0;
}
#endif

void stats_server(struct connection *connection)
{
	struct server *server = connection->server;
	struct ww_jobs_stats stats;
	struct buffer block = {0};
	int error = ww_jobs_stats(server->jobs, &stats);
	int bad;

	if (error < 0) {
		answer_error(connection, error);
		return;
	}
	bad = add_jobs(server, &block, &stats) | add_process(server, &block, &stats) | add_redis(server, &block) |
	      push_stats(server, &block);
	stats_answer(connection, &block, bad);
}
