/* The verbs that ask about the server, tubes and jobs, with beanstalkd's names for the numbers. */

#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/job/job.h"
#include "tools/weekwheeld/verbs/verbs.h"
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

/* The number of jobs in each state, for a tube and for the server. */
static int add_states(struct buffer *block, const struct ww_tube_stats *stats)
{
	return buffer_format(block,
	    "current-jobs-urgent: %llu\ncurrent-jobs-ready: %llu\ncurrent-jobs-reserved: %llu\n"
	    "current-jobs-delayed: %llu\ncurrent-jobs-buried: %llu\n",
	    (LLU)stats->urgent, (LLU)stats->ready, (LLU)stats->reserved, (LLU)stats->delayed, (LLU)stats->buried);
}

/* ---- Tubes */

int stats_tube_prepare(struct call *call)
{
	call->is_known = tube_find(call->connection->server, call->command->tube) != NULL;
	return 1;
}

/* A tube that no client uses or watches exists while it has jobs. */
void stats_tube_run(struct call *call)
{
	struct ww_tube_stats *stats = &call->tube;

	call->result = ww_jobs_tube(call_jobs(call), call->command->tube, stats);
	if (call->result == WW_ENOTFOUND && call->is_known) {
		memset(stats, 0, sizeof *stats);
		call->result = WW_OK;
	}
	if (call->result == WW_OK && !call->is_known &&
	    stats->delayed + stats->ready + stats->reserved + stats->buried == 0)
		call->result = WW_ENOTFOUND;
}

struct names {
	struct buffer block;
	uint64_t count;
	int bad;
};

static void add_name(struct names *names, const char *name)
{
	names->count++;
	names->bad |= buffer_append(&names->block, "- ", 2) || buffer_append(&names->block, name, strlen(name)) ||
	              buffer_append(&names->block, "\n", 1);
}

/* Add the name of a tube that has jobs, with its NUL. */
static int add_stored(const struct ww_tube_stats *tube, void *context)
{
	return !store_hides(tube->name) && buffer_append(context, tube->name, strlen(tube->name) + 1) != 0;
}

static int ask_tubes(struct call *call, struct buffer *names)
{
	int result = ww_jobs_tubes(call_jobs(call), add_stored, names);

	return result > 0 ? WW_ENOMEM : result;
}

/*
 * Gather the names of the tubes that have jobs. Those who asked before a shared store was asked for another client
 * get what it said then: this runs for one client at a time.
 */
static void stored_tubes(struct call *call)
{
	struct heard *heard = &call->connection->server->tasks.heard;
	uint64_t now = uv_hrtime();

	if (!call->connection->server->is_shared) {
		call->result = ask_tubes(call, &call->made);
		return;
	}
	call->result = WW_OK;
	if (heard->tubes_at < call->task.begun) {
		heard->tubes_at = 0;
		buffer_free(&heard->tubes);
		call->result = ask_tubes(call, &heard->tubes);
		heard->tubes_at = call->result < 0 ? 0 : now;
	}
	if (call->result == WW_OK && buffer_append(&call->made, heard->tubes.data, heard->tubes.size) != 0)
		call->result = WW_ENOMEM;
}

static void ask_stats(struct call *call)
{
	struct heard *heard = &call->connection->server->tasks.heard;
	uint64_t now = uv_hrtime();

	if (!call->connection->server->is_shared) {
		call->result = store_stats(call_jobs(call), &call->stats);
		return;
	}
	call->result = WW_OK;
	if (heard->stats_at < call->task.begun) {
		call->result = store_stats(call_jobs(call), &heard->stats);
		heard->stats_at = call->result < 0 ? 0 : now;
	}
	call->stats = heard->stats;
}

/* The names of all tubes that exist: those that clients name come first. */
static void name_tubes(struct server *server, const struct buffer *stored, struct names *names)
{
	*names = (struct names){0};
	names->bad = buffer_format(&names->block, "---\n");
	for (struct server_tube *tube = server->tubes.all; tube; tube = tube->hh.next)
		add_name(names, tube->name);
	for (size_t at = 0; at < stored->size; at += strlen(stored->data + at) + 1)
		if (!tube_find(server, stored->data + at))
			add_name(names, stored->data + at);
}

static void stats_list_tubes_run(struct call *call)
{
	stored_tubes(call);
}

static void stats_list_tubes(struct call *call)
{
	struct names names;

	name_tubes(call->connection->server, &call->made, &names);
	buffer_free(&call->made);
	answer_block(call->connection, call->result >= 0 && names.bad ? WW_ENOMEM : call->result, &names.block);
}

static int stats_list_watched(struct call *call)
{
	struct connection *connection = call->connection;
	struct names names = {0};

	names.bad = buffer_format(&names.block, "---\n");
	for (size_t i = 0; i < connection->watch_count; i++)
		add_name(&names, connection->names[i]);
	answer(connection, &names.block, names.bad);
	return 0;
}

/* Ready jobs that wait for a worker who knows their code, and those that this connection does not know. */
static int add_codes(struct connection *connection, struct buffer *block, const struct ww_tube_stats *stats)
{
	struct server *server = connection->server;
	uint64_t above = 0;
	uint32_t lowest;
	uint64_t unknown = tube_unknown(server, stats, &lowest);
	int bad = buffer_format(
	    block, "current-jobs-unknown-code: %llu\nlowest-unknown-code: %llu\n", (LLU)unknown, (LLU)lowest);

	(void)ww_jobs_above(server->jobs, stats->name, connection->code, &above, &lowest);
	return bad | buffer_format(block, "current-jobs-above-code: %llu\n", (LLU)above);
}

static void stats_tube(struct call *call)
{
	struct connection *connection = call->connection;
	const struct server_tube *tube = tube_find(connection->server, call->command->tube);
	const struct ww_tube_stats *stats = &call->tube;
	struct buffer block = {0};
	int bad;

	if (call->result < 0) {
		answer_result(connection, call->result, NULL);
		return;
	}
	bad = buffer_format(&block, "---\nname: %s\n", call->command->tube) || add_states(&block, stats) ||
	      buffer_format(&block,
	          "total-jobs: %llu\ncurrent-using: %u\ncurrent-watching: %u\ncurrent-waiting: %u\n"
	          "cmd-delete: %llu\ncmd-pause-tube: %llu\npause: %llu\npause-time-left: %llu\n",
	          (LLU)stats->puts, tube ? tube->users : 0, tube ? tube->watchers : 0, tube ? tube->waiters : 0,
	          (LLU)stats->finished, (LLU)stats->pauses, seconds(stats->pause), seconds(stats->pause_left));
	/* Only of a tube with a limit: clients of beanstalkd know the others. */
	if (stats->is_limited)
		bad |= buffer_format(&block, "current-jobs-held: %llu\n", (LLU)stats->held);
	if (stats->coded)
		bad |= add_codes(connection, &block, stats);
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

static void stats_job_run(struct call *call)
{
	call->result = ww_jobs_peek(call_jobs(call), &call->job, &call->info, NULL);
	if (call->result == WW_OK && store_hides(call->info.tube))
		call->result = WW_ENOTFOUND;
}

static void stats_job(struct call *call)
{
	struct connection *connection = call->connection;
	const struct ww_job_info *info = &call->info;
	struct buffer block = {0};
	int bad;

	if (call->result < 0) {
		answer_result(connection, call->result, NULL);
		return;
	}
	bad = buffer_format(&block,
	    "---\nid: %llu\ntube: %s\nstate: %s\npri: %u\nage: %llu\ndelay: %llu\nttr: %llu\ntime-left: %llu\n"
	    "file: 0\nreserves: %u\ntimeouts: %u\nreleases: %u\nburies: %u\nkicks: %u\n",
	    (LLU)info->id, info->tube, job_states[info->state], info->priority, seconds(age(connection->server, info)),
	    seconds(info->delay), seconds(info->run), seconds(info->left), info->reserves, info->timeouts,
	    info->releases, info->buries, info->kicks);
	answer(connection, &block, bad);
}

/* ---- The server */

static int add_commands(struct server *server, struct buffer *block)
{
	int bad = 0;

	for (int verb = VERB_PUT; verb <= VERB_PAUSE_TUBE; verb++) {
		const char *name = protocol_verb_name((enum verb)verb);

		bad |= buffer_format(
		    block, "cmd-%.*s: %llu\n", (int)strcspn(name, " "), name, (LLU)server->clients->commands[verb]);
	}
	return bad;
}

struct counted {
	struct server *server;
	uint64_t named;
};

static int add_named(const struct ww_tube_stats *tube, void *context)
{
	struct counted *counted = context;

	counted->named += tube_find(counted->server, tube->name) != NULL;
	return 0;
}

/* The tubes that have jobs, and those that clients name and have none. */
static uint64_t count_tubes(struct server *server, const struct call *call)
{
	struct counted counted = {server, 0};
	struct names names;

	if (server->is_shared) {
		/* A call for each would be a round trip each. */
		name_tubes(server, &call->made, &names);
		buffer_free(&names.block);
		return names.count;
	}
	/* Those that have jobs are mostly fewer than those that clients name. */
	(void)ww_jobs_tubes(server->jobs, add_named, &counted);
	return call->stats.tubes + HASH_COUNT(server->tubes.all) - counted.named;
}

static int add_process(struct call *call, struct buffer *block)
{
	struct server *server = call->connection->server;
	const struct ww_jobs_stats *stats = &call->stats;
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
	    (LLU)count_tubes(server, call), server->clients->now, server->clients->producers, server->clients->workers,
	    server->tubes.waiting, (LLU)server->clients->total, (long)getpid(), ww_version(),
	    (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec, (long)used.ru_stime.tv_sec,
	    (long)used.ru_stime.tv_usec, seconds(store_uptime(server)), server->is_draining ? "true" : "false",
	    server->id, machine.nodename, machine.version, machine.machine, seconds(stats->oldest),
	    (LLU)(stats->oldest % WW_SECOND / WW_MILLISECOND));
}

static int add_number(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	(void)is_counter;
	(void)help;
	return buffer_format(out, "%s: %llu\n", name, (LLU)value);
}

static void stats_server_run(struct call *call)
{
	if (call->connection->server->is_shared)
		stored_tubes(call);
	if (call->result == WW_OK)
		ask_stats(call);
}

static void stats_server(struct call *call)
{
	struct connection *connection = call->connection;
	struct server *server = connection->server;
	struct buffer block = {0};
	int bad;

	if (call->result < 0) {
		answer_result(connection, call->result, NULL);
		return;
	}
	bad = buffer_format(&block, "---\n") || add_states(&block, &call->stats.all) || add_commands(server, &block) ||
	      add_process(call, &block) || store_numbers(server, &block, add_number) ||
	      (server->is_shared && add_number(&block, "redis-errors", 1, "", server->store_errors)) ||
	      push_numbers(server, &block, add_number) ||
	      (server->settings->max_memory && bounds_numbers(server, &block, add_number));
	answer(connection, &block, bad);
}

/* ---- All */

const struct steps verb_list_tubes = {NULL, stats_list_tubes_run, stats_list_tubes, NULL};
const struct steps verb_list_watched = {stats_list_watched, NULL, NULL, NULL};
const struct steps verb_stats = {NULL, stats_server_run, stats_server, NULL};
const struct steps verb_stats_job = {job_prepare, stats_job_run, stats_job, NULL};
const struct steps verb_stats_tube = {stats_tube_prepare, stats_tube_run, stats_tube, NULL};
