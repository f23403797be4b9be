/* Answers commands that ask about the server, tubes and jobs, with beanstalkd's names for the numbers. */
#include "tools/weekwheeld/commands.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "weekwheel/version.h"

#define LLU unsigned long long

static LLU seconds(uint64_t ns)
{
	return (LLU)(ns / WW_SECOND);
}

/* Answer with a block; `bad`: there was no memory for all of it. */
static void answer(struct connection *connection, struct buffer *block, int bad)
{
	answer_block(connection, bad ? WW_ENOMEM : WW_OK, block);
}

/* The number of jobs in each state, as both a tube and the server tell it. */
static int add_states(struct buffer *block, const struct ww_tube_stats *stats)
{
	return buffer_format(block,
	    "current-jobs-urgent: %llu\ncurrent-jobs-ready: %llu\ncurrent-jobs-reserved: %llu\n"
	    "current-jobs-delayed: %llu\ncurrent-jobs-buried: %llu\n",
	    (LLU)stats->urgent, (LLU)stats->ready, (LLU)stats->reserved, (LLU)stats->delayed, (LLU)stats->buried);
}

/* ---- Tubes */

int stats_of(struct server *server, const char *name, struct ww_tube_stats *stats)
{
	int error = ww_jobs_tube(server->jobs, name, stats);

	if (error != WW_OK && error != WW_ENOTFOUND)
		return error;
	if (error == WW_ENOTFOUND)
		memset(stats, 0, sizeof *stats);
	if (!tube_find(server, name) && stats->delayed + stats->ready + stats->reserved + stats->buried == 0)
		return WW_ENOTFOUND;
	return WW_OK;
}

struct names {
	struct server *server;
	struct buffer block;
	uint64_t count;
	int bad;
};

static void add_name(struct names *names, const char *name)
{
	names->count++;
	names->bad |= buffer_format(&names->block, "- %s\n", name);
}

static int add_stored(const struct ww_tube_stats *tube, void *context)
{
	struct names *names = context;

	/* Those that clients name are in the list already. */
	if (!tube_find(names->server, tube->name))
		add_name(names, tube->name);
	return 0;
}

/* Gather the names of all tubes that exist. Returns 0 or a WW_E*. */
static int gather_tubes(struct server *server, struct names *names)
{
	*names = (struct names){.server = server};
	names->bad = buffer_format(&names->block, "---\n");
	for (struct server_tube *tube = server->tubes; tube; tube = tube->hh.next)
		add_name(names, tube->name);
	return ww_jobs_tubes(server->jobs, add_stored, names);
}

void stats_list_tubes(struct connection *connection, const struct command *command)
{
	struct names names;
	int error = gather_tubes(connection->server, &names);

	(void)command;
	answer_block(connection, error >= 0 && names.bad ? WW_ENOMEM : error, &names.block);
}

void stats_list_watched(struct connection *connection, const struct command *command)
{
	struct names names = {0};

	(void)command;
	names.bad = buffer_format(&names.block, "---\n");
	for (size_t i = 0; i < connection->watch_count; i++)
		add_name(&names, connection->names[i]);
	answer(connection, &names.block, names.bad);
}

void stats_tube(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	const struct server_tube *tube = tube_find(server, command->tube);
	struct ww_tube_stats stats;
	struct buffer block = {0};
	int error = stats_of(server, command->tube, &stats);
	int bad;

	if (error < 0) {
		answer_result(connection, error, NULL);
		return;
	}
	bad = buffer_format(&block, "---\nname: %s\n", command->tube) || add_states(&block, &stats) ||
	      buffer_format(&block,
	          "total-jobs: %llu\ncurrent-using: %u\ncurrent-watching: %u\ncurrent-waiting: %u\n"
	          "cmd-delete: %llu\ncmd-pause-tube: %llu\npause: %llu\npause-time-left: %llu\n",
	          (LLU)stats.puts, tube ? tube->users : 0, tube ? tube->watchers : 0, tube ? tube->waiters : 0,
	          (LLU)stats.finished, (LLU)stats.pauses, seconds(stats.pause), seconds(stats.pause_left));
	answer(connection, &block, bad);
}

/* ---- Jobs */

/* How long ago a job was put. */
static uint64_t age(struct server *server, const struct ww_job_info *info)
{
	uint64_t now = 0;

	(void)ww_jobs_now(server->jobs, WW_JOB_WALL, &now);
	return now > info->created ? now - info->created : 0;
}

void stats_job(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_job_ref job = command_job(connection, command);
	struct ww_job_info info;
	struct buffer block = {0};
	int error = job.id || job.key_length ? ww_jobs_peek(server->jobs, &job, &info, NULL) : WW_ENOTFOUND;
	int bad;

	if (error < 0) {
		answer_result(connection, error, NULL);
		return;
	}
	bad = buffer_format(&block,
	    "---\nid: %llu\ntube: %s\nstate: %s\npri: %u\nage: %llu\ndelay: %llu\nttr: %llu\ntime-left: %llu\n"
	    "file: 0\nreserves: %u\ntimeouts: %u\nreleases: %u\nburies: %u\nkicks: %u\n",
	    (LLU)info.id, info.tube, protocol_states[info.state], info.priority, seconds(age(server, &info)),
	    seconds(info.delay), seconds(info.run), seconds(info.left), info.reserves, info.timeouts, info.releases,
	    info.buries, info.kicks);
	answer(connection, &block, bad);
}

/* ---- The server */

static int add_commands(struct server *server, struct buffer *block)
{
	int bad = 0;

	for (int verb = VERB_PUT; verb <= VERB_PAUSE_TUBE; verb++) {
		const char *name = protocol_verb_name((enum verb)verb);

		bad |= buffer_format(
		    block, "cmd-%.*s: %llu\n", (int)strcspn(name, " "), name, (LLU)server->commands[verb]);
	}
	return bad;
}

/* The tubes that have jobs, and those that clients name and have none. */
static uint64_t count_tubes(struct server *server, const struct ww_jobs_stats *stats)
{
	uint64_t count = stats->tubes;
	struct names names;

	if (server->is_shared) {
		/* A call for each would be a round trip each. */
		(void)gather_tubes(server, &names);
		buffer_free(&names.block);
		return names.count;
	}
	for (const struct server_tube *tube = server->tubes; tube; tube = tube->hh.next) {
		struct ww_tube_stats one = {0};
		(void)ww_jobs_tube(server->jobs, tube->name, &one);
		count += one.delayed + one.ready + one.reserved + one.buried == 0;
	}
	return count;
}

static int add_process(struct server *server, struct buffer *block, const struct ww_jobs_stats *stats)
{
	struct rusage used = {0};
	struct utsname machine = {0};

	(void)getrusage(RUSAGE_SELF, &used);
	(void)uname(&machine);
	return buffer_format(block,
	    "job-timeouts: %llu\ntotal-jobs: %llu\nmax-job-size: %llu\ncurrent-tubes: %llu\n"
	    "current-connections: %u\ncurrent-producers: %u\ncurrent-workers: %u\ncurrent-waiting: %u\n"
	    "total-connections: %llu\npid: %ld\nversion: \"%s\"\nrusage-utime: %ld.%06ld\nrusage-stime: %ld.%06ld\n"
	    "uptime: %llu\nbinlog-oldest-index: 0\nbinlog-current-index: 0\nbinlog-records-migrated: 0\n"
	    "binlog-records-written: 0\nbinlog-max-size: 0\ndraining: %s\nid: %s\nhostname: %s\nos: %s\n"
	    "platform: %s\noldest-ready: %llu.%03llu\n",
	    (LLU)stats->timeouts, (LLU)stats->all.puts, (LLU)server->settings->max_job_size,
	    (LLU)count_tubes(server, stats), server->connections_now, server->producers, server->workers,
	    server->waiting, (LLU)server->connections_total, (long)getpid(), ww_version(), (long)used.ru_utime.tv_sec,
	    (long)used.ru_utime.tv_usec, (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec,
	    seconds(store_uptime(server)), server->is_draining ? "true" : "false", server->id, machine.nodename,
	    machine.version, machine.machine, seconds(stats->oldest),
	    (LLU)(stats->oldest % WW_SECOND / WW_MILLISECOND));
}

static int add_number(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	(void)is_counter;
	(void)help;
	return buffer_format(out, "%s: %llu\n", name, (LLU)value);
}

void stats_server(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_jobs_stats stats;
	struct buffer block = {0};
	int error = ww_jobs_stats(server->jobs, &stats);
	int bad;

	(void)command;
	if (error < 0) {
		answer_result(connection, error, NULL);
		return;
	}
	bad = buffer_format(&block, "---\n") || add_states(&block, &stats.all) || add_commands(server, &block) ||
	      add_process(server, &block, &stats) || store_numbers(server, &block, add_number) ||
	      (server->is_shared && add_number(&block, "redis-errors", 1, "", server->store_errors)) ||
	      push_numbers(server, &block, add_number);
	answer(connection, &block, bad);
}
