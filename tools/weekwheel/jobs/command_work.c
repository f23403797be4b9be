/* The command work: the loop around the slots. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/work.h"

/* What the signal handlers write to wakes the loop; a byte of it is a signal. */
static int signal_pipe[2] = {-1, -1};

static void on_signal(int number)
{
	unsigned char byte = (unsigned char)number;
	int saved = errno;

	if (write(signal_pipe[1], &byte, 1) < 0)
		errno = 0; /* it is full: the loop wakes anyway */
	errno = saved;
}

static int catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigaction before;
	int i;

	if (pipe(signal_pipe))
		return -1;
	for (i = 0; i < 2; i++) {
		fcntl(signal_pipe[i], F_SETFD, FD_CLOEXEC);
		fcntl(signal_pipe[i], F_SETFL, O_NONBLOCK);
	}
	sigemptyset(&action.sa_mask);
	/* nohup(1) has it ignored, and that is to stay. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(SIGHUP, &action, NULL);
	return sigaction(SIGTERM, &action, NULL) || sigaction(SIGINT, &action, NULL) ||
	       sigaction(SIGCHLD, &action, NULL);
}

static void read_signals(struct work *work)
{
	unsigned char bytes[64];
	ssize_t got;
	ssize_t i;

	while ((got = read(signal_pipe[0], bytes, sizeof bytes)) > 0)
		for (i = 0; i < got; i++)
			work->stopping += bytes[i] != SIGCHLD;
}

static int can_run(const char *path)
{
	struct stat file;

	return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Whether execvp will find it: a mistyped command should not use up the attempts of all jobs. */
static int command_exists(const char *name)
{
	const char *path = getenv("PATH");
	char file[4096];

	if (strchr(name, '/'))
		return can_run(name);
	while (path && *path) {
		size_t length = strcspn(path, ":");

		snprintf(file, sizeof file, "%.*s/%s", length ? (int)length : 1, length ? path : ".", name);
		if (can_run(file))
			return 1;
		path += length + (path[length] != 0);
	}
	return 0;
}

/* The first connection tells whether there is a server at all, and which. */
static int look_at_server(struct work *work)
{
	struct jobs *jobs = &work->jobs;

	if (client_open(&jobs->client, jobs->server, jobs->timeout_ms))
		return -1;
	work->own = jobs_has_own_verbs(jobs);
	jobs_close(jobs);
	return work->own < 0 ? -1 : 0;
}

static int wait_time(const struct work *work, const struct slot *slots)
{
	int64_t next = INT64_MAX;
	int64_t left;
	uint64_t i;

	for (i = 0; i < work->slots; i++)
		if (slot_next(&slots[i]) < next)
			next = slot_next(&slots[i]);
	if (next == INT64_MAX)
		return -1;
	left = next - clock_ms();
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Wait for whatever comes first, and read it. The sockets stand first in the array, then what the commands write. */
static void wait_and_read(struct work *work, struct slot *slots, struct pollfd *fds)
{
	uint64_t n = work->slots;
	uint64_t i;

	for (i = 0; i < n; i++) {
		short events = client_pending(&slots[i].client) ? POLLIN | POLLOUT : POLLIN;

		fds[i] = (struct pollfd){slots[i].client.fd, events, 0};
		fds[n + i] = (struct pollfd){slots[i].output, POLLIN, 0};
	}
	fds[2 * n] = (struct pollfd){signal_pipe[0], POLLIN, 0};
	if (poll(fds, (nfds_t)(2 * n + 1), wait_time(work, slots)) <= 0)
		return;
	read_signals(work);
	for (i = 0; i < n; i++) {
		if (fds[n + i].revents)
			work_read_output(&slots[i]);
		if ((fds[i].revents & ~POLLOUT) && slots[i].client.fd == fds[i].fd)
			slot_receive(work, &slots[i]);
	}
}

static void say_stopping(const struct work *work, const struct slot *slots, int *told)
{
	uint64_t running = 0;
	uint64_t i;

	if (*told || !work->stopping)
		return;
	*told = 1;
	for (i = 0; i < work->slots; i++)
		running += slots[i].pid != 0;
	if (running)
		message_error("stopping when %llu %s ended; a second signal kills and gives the jobs back",
		    (unsigned long long)running, running == 1 ? "command has" : "commands have");
}

static int loop(struct work *work, struct slot *slots, struct pollfd *fds)
{
	uint64_t done;
	int told = 0;
	uint64_t i;

	for (;;) {
		done = 0;
		for (i = 0; i < work->slots; i++) {
			slot_turn(work, &slots[i]);
			done += slots[i].state == SLOT_DONE;
		}
		if (done == work->slots)
			return STATUS_OK;
		say_stopping(work, slots, &told);
		wait_and_read(work, slots, fds);
		if (work->stopping > 1)
			break;
	}
	for (i = 0; i < work->slots; i++)
		slot_abandon(work, &slots[i]);
	return STATUS_FAILED;
}

static int run(struct work *work)
{
	struct pollfd *fds;
	struct slot *slots;
	int status;
	uint64_t i;

	if (!command_exists(work->command[0])) {
		message_error(
		    "work: '%s' is no command that can be run; look at its name and at PATH", work->command[0]);
		return STATUS_FAILED;
	}
	if (look_at_server(work))
		return STATUS_FAILED;
	if (catch_signals()) {
		message_error("work: signals cannot be caught: %s", strerror(errno));
		return STATUS_FAILED;
	}
	work->seed = clock_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
	slots = memory_zeroed(work->slots, sizeof *slots);
	fds = memory_zeroed(2 * work->slots + 1, sizeof *fds);
	for (i = 0; i < work->slots; i++)
		slots[i].client.fd = slots[i].output = slots[i].body = -1;
	status = loop(work, slots, fds);
	free(slots);
	free(fds);
	return status;
}

int command_work(char **arguments)
{
	struct work work;
	int parsed = work_parse(&work, arguments);

	if (parsed)
		return parsed > 0 ? STATUS_OK : STATUS_USAGE;
	return run(&work);
}

void command_work_help(FILE *out)
{
	work_help(out);
}
