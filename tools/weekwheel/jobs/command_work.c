/* The command work: its options, and the loop that serves the runners. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "tools/common/command.h"
#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "tools/weekwheel/jobs/work.h"

enum { RUNNERS = 1, ATTEMPTS, RELEASE_DELAY, TUBE, CODE, RUN_TIMEOUT, KILL_AFTER };

static const struct option table[] = {
    {TUBE, 't', "tube", "TUBE[=N]",
        "whose jobs (default 'default'); can be given several\ntimes, with weights such as mail=3"},
    {CODE, 'c', "code", "N", "take only jobs whose --code is N or less, or that have\nnone (default: all jobs)"},
    {RUNNERS, 'n', "jobs", "N", "run up to N commands at a time, 1 to 256 (default 1)"},
    {ATTEMPTS, 'a', "attempts", "N",
        "bury a job after N failures if it has no limit of its\nown; 0: never (default 10)"},
    {RELEASE_DELAY, 'd', "release-delay", "TIME",
        "a failed job is due again after TIME. Without this,\nafter its own backoff; without one, after 1s,\n"
        "doubled with each failure up to 1h"},
    {RUN_TIMEOUT, 'r', "run-timeout", "TIME", "a command that runs longer gets SIGTERM, and its job\nfails"},
    {KILL_AFTER, 'k', "kill-after", "TIME", "and SIGKILL this long after it (default 10s)"},
    {JOBS_FLAG(struct work, log), 'l', "log", NULL,
        "write what commands say to standard error, each line\nwith the job's id"},
    {JOBS_FLAG(struct work, history), 0, "history", NULL,
        "report to the server how long each run took, and the\nend of its output; for jobs with --keep"},
    {JOBS_FLAG(struct work, drain), 'D', "drain", NULL, "end when no job is ready, instead of waiting"},
    {JOBS_FLAG(struct work, no_wait), 0, "no-wait", NULL,
        "fail if there is no server at the start, instead of\nwaiting for it; --drain does so, too"},
    {JOBS_FLAG(struct work, verbose), 'v', "verbose", NULL, "also report the jobs that succeeded"},
    JOBS_OPTIONS,
};

static int take_option(void *context, struct options *options, int id)
{
	struct work *work = context;

	switch (id) {
	case RUNNERS:
		return jobs_whole(options, "jobs", 1, WORK_RUNNERS_MAX, &work->runners, "a number from 1 to 256");
	case ATTEMPTS:
		return jobs_whole(options, "attempts", 0, UINT32_MAX, &work->attempts, "a number from 0");
	case RELEASE_DELAY:
		work->has_release_delay = 1;
		return jobs_duration(options, "release-delay", 0, UINT32_MAX * DURATION_SECOND, &work->release_delay);
	case TUBE:
		return work_take_tube(work, options);
	case CODE:
		work->has_code = 1;
		return jobs_whole(options, "code", 0, WW_JOB_CODE_MAX, &work->code, "a number from 0 to 2147483647");
	case RUN_TIMEOUT:
		return jobs_duration(options, "run-timeout", DURATION_SECOND / 1000, DURATION_MAX, &work->run_timeout);
	case KILL_AFTER:
		work->has_kill_after = 1;
		return jobs_duration(options, "kill-after", 0, DURATION_MAX, &work->kill_after);
	default:
		/* All words from the command on belong to the command, even if they look like options. */
		work->command = options->arguments - 1;
		while (*options->arguments)
			options->arguments++;
		return 0;
	}
}

static int check(void *context, const struct options *options)
{
	const struct work *work = context;

	if (work->has_kill_after && !work->run_timeout)
		return options_fail(options, "--kill-after follows the --run-timeout, which is missing");
	return work->command
	           ? 0
	           : options_fail(options, "a command is missing, such as: weekwheel work --tube mail -- ./send");
}

/* The signal handler writes the number of the signal into this pipe, which wakes the loop. */
static int signal_pipe[2] = {-1, -1};

static void on_signal(int number)
{
	unsigned char byte = (unsigned char)number;
	int saved = errno;

	if (write(signal_pipe[1], &byte, 1) < 0)
		errno = 0; /* the pipe is full, and the loop wakes anyway */
	errno = saved;
}

static int catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigaction before;

	if (pipe(signal_pipe))
		return -1;
	for (int i = 0; i < 2; i++) {
		fcntl(signal_pipe[i], F_SETFD, FD_CLOEXEC);
		fcntl(signal_pipe[i], F_SETFL, O_NONBLOCK);
	}
	sigemptyset(&action.sa_mask);
	/* Under nohup(1) it is ignored, and must stay so. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(SIGHUP, &action, NULL);
	return sigaction(SIGTERM, &action, NULL) || sigaction(SIGINT, &action, NULL) ||
	       sigaction(SIGCHLD, &action, NULL);
}

static void read_signals(struct work *work)
{
	unsigned char bytes[64];
	ssize_t got;

	while ((got = read(signal_pipe[0], bytes, sizeof bytes)) > 0)
		for (ssize_t i = 0; i < got; i++)
			work->stopping += bytes[i] != SIGCHLD;
}

static int can_run(const char *path)
{
	struct stat file;

	return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Return whether execvp will find it. A mistyped command must not use up the attempts of all jobs. */
static int command_exists(const char *name)
{
	const char *path = getenv("PATH");
	char file[4096];

	if (!path)
		path = "/bin:/usr/bin"; /* as execvp has it */
	if (strchr(name, '/'))
		return can_run(name);
	while (*path) {
		size_t length = strcspn(path, ":");

		snprintf(file, sizeof file, "%.*s/%s", length ? (int)length : 1, length ? path : ".", name);
		if (can_run(file))
			return 1;
		path += length + (path[length] != 0);
	}
	return 0;
}

/* A worker may come before the first job of its tube. With a name that is near another's, it may as well be misspelt. */
static int warn_of_misspelt_tubes(struct work *work)
{
	char hint[TUBE_HINT];

	for (size_t i = 0; i < work->tube_count && work->own; i++) {
		int is_new = tube_is_new(&work->jobs, work->tubes[i].name, hint);

		if (is_new < 0)
			return -1;
		if (is_new && *hint)
			message_line("Nobody uses the tube %s yet, and it has no job%s", work->tubes[i].name, hint);
	}
	return 0;
}

/* A first connection shows whether there is a server, and which verbs it knows. */
static int look_at_server(struct work *work)
{
	struct jobs *jobs = &work->jobs;
	int failed = jobs_connect(jobs);

	if (!failed)
		work->own = jobs_has_own_verbs(jobs);
	failed = failed || work->own < 0 || warn_of_misspelt_tubes(work);
	client_close(&jobs->client);
	return failed ? -1 : 0;
}

/* Wait for a server that is not there yet: a machine may start its services in any order. A signal just ends this. */
static int find_server(struct work *work)
{
	int64_t pause = 0;

	while (look_at_server(work)) {
		if (work->no_wait || work->drain || work->jobs.client.token == CLIENT_TOKEN_REFUSED ||
		    work->jobs.client.is_misled)
			return -1;
		if (!pause)
			message_error("%s: no connection; trying again", work->jobs.server);
		pause = work_pause(pause);
		(void)poll(NULL, 0, (int)pause);
	}
	return 0;
}

static int wait_time(const struct work *work, const struct runner *runners)
{
	int64_t next = INT64_MAX;
	int64_t left;

	for (uint64_t i = 0; i < work->runners; i++)
		if (runner_next(work, &runners[i]) < next)
			next = runner_next(work, &runners[i]);
	if (next == INT64_MAX)
		return -1;
	left = next - time_ms();
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Wait for input, and read it. The array has the sockets first, then the pipes from the commands, then the signals. */
static void wait_and_read(struct work *work, struct runner *runners, struct pollfd *fds)
{
	uint64_t n = work->runners;

	for (uint64_t i = 0; i < n; i++) {
		short events = channel_is_pending(&runners[i].client.channel) ? POLLIN | POLLOUT : POLLIN;

		fds[i] = (struct pollfd){runners[i].client.channel.fd, events, 0};
		fds[n + i] = (struct pollfd){runners[i].output, POLLIN, 0};
	}
	fds[2 * n] = (struct pollfd){signal_pipe[0], POLLIN, 0};
	if (poll(fds, (nfds_t)(2 * n + 1), wait_time(work, runners)) <= 0)
		return;
	read_signals(work);
	for (uint64_t i = 0; i < n; i++) {
		if (fds[n + i].revents)
			work_read_output(&runners[i]);
		if ((fds[i].revents & ~POLLOUT) && runners[i].client.channel.fd == fds[i].fd)
			runner_receive(work, &runners[i]);
	}
}

static void print_stopping(const struct work *work, const struct runner *runners, int *printed)
{
	uint64_t running = 0;

	if (*printed || !work->stopping)
		return;
	*printed = 1;
	for (uint64_t i = 0; i < work->runners; i++)
		running += runners[i].pid != 0;
	if (running)
		message_error("stopping when %" PRIu64 " %s ended; a second signal kills and gives the jobs back",
		    running, running == 1 ? "command has" : "commands have");
}

static int loop(struct work *work, struct runner *runners, struct pollfd *fds)
{
	uint64_t done;
	int printed = 0;

	for (;;) {
		done = 0;
		for (uint64_t i = 0; i < work->runners; i++) {
			runner_turn(work, &runners[i]);
			done += runners[i].state == RUNNER_DONE;
		}
		work_reap_others(work, runners);
		if (done == work->runners)
			return work->refused ? -1 : 0;
		print_stopping(work, runners, &printed);
		wait_and_read(work, runners, fds);
		if (work->stopping > 1)
			break;
	}
	for (uint64_t i = 0; i < work->runners; i++)
		runner_abandon(work, &runners[i]);
	return -1;
}

static void name_worker(struct work *work)
{
	char host[60] = "";

	(void)gethostname(host, sizeof host - 1);
	snprintf(work->name, sizeof work->name, "%s:%ld", host, (long)getpid());
}

static int run(void *context)
{
	struct work *work = context;
	struct pollfd *fds;
	struct runner *runners;
	int failed;

	if (!command_exists(work->command[0])) {
		message_error(
		    "work: '%s' is not a command that can be run; look at its name and at PATH", work->command[0]);
		return STATUS_USAGE;
	}
	if (find_server(work))
		return -1;
	if (work->history && !work->own)
		return message_error("work: %s keeps no history: it is not weekwheeld", work->jobs.server);
	name_worker(work);
	if (catch_signals())
		return message_error("work: signals cannot be caught: %s", strerror(errno));
	work->seed = time_now(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
	runners = memory_zeroed(work->runners, sizeof *runners);
	fds = memory_zeroed(2 * work->runners + 1, sizeof *fds);
	for (uint64_t i = 0; i < work->runners; i++)
		runners[i].client.channel.fd = runners[i].output = runners[i].body = -1;
	failed = loop(work, runners, fds);
	free(runners);
	free(fds);
	return failed;
}

const struct jobs_command command_work = {
    .name = "weekwheel work",
    JOBS_TABLE(table),
    .context = &(struct work){.runners = 1, .attempts = 10, .kill_after = 10 * DURATION_SECOND},
    .server = JOBS_ADDRESS,
    .repeats = (const int[]){TUBE, 0},
    .needs = {"work", "the tube default"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel work [OPTION]... -- COMMAND [ARGUMENT]...\n"
             "\n"
             "Take jobs as they become ready, and run COMMAND for each, with the body on\n"
             "standard input and WEEKWHEEL_JOB_ID, WEEKWHEEL_JOB_KEY, WEEKWHEEL_JOB_ATTEMPT\n"
             "(from 1), WEEKWHEEL_TUBE and WEEKWHEEL_HEADER_NAME for each header in its\n"
             "environment. If it ends with status 0 the job is done, and deleted; otherwise it\n"
             "is delivered again later. The job stays reserved while the command runs, however\n"
             "long that takes.\n"
             "\n"
             "SIGTERM, SIGINT and SIGHUP: takes no more jobs, waits for the running commands,\n"
             "and ends. A second one: kills them, gives their jobs back, and ends.\n",
    .examples = "Examples:\n"
                "  weekwheel work --tube mail -n 4 -- ./send --quiet\n"
                "  weekwheel work --tube urgent=5 --tube mail --run-timeout 5m --log -- ./send\n"
                "  weekwheel work --drain -- sh -c 'echo \"$WEEKWHEEL_JOB_ID: $(cat)\"'\n",
};
