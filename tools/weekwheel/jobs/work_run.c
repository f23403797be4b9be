/* Running a command for a job, and hearing what it says. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/weekwheel/jobs/work.h"

/* A file rather than a pipe, because a command that reads nothing, or slowly, then holds up nobody. */
int work_body_file(const struct reply *reply)
{
	FILE *file = tmpfile();
	int fd = -1;

	if (file && fwrite(reply->body, 1, reply->body_size, file) == reply->body_size && fflush(file) == 0) {
		fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
		if (fd >= 0)
			lseek(fd, 0, SEEK_SET);
	}
	if (fd < 0)
		message_error("the body of a job could not be put into a temporary file: %s", strerror(errno));
	if (file)
		fclose(file);
	return fd;
}

static void set_number(const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, number);
	setenv(name, text, 1);
}

static _Noreturn void run_child(const struct work *work, const struct slot *slot, int output)
{
	/* A Ctrl-C on the terminal is for the worker, which lets its commands end. */
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	set_number("WEEKWHEEL_JOB_ID", slot->id);
	set_number("WEEKWHEEL_JOB_ATTEMPT", slot->attempt);
	setenv("WEEKWHEEL_JOB_KEY", slot->key, 1);
	setenv("WEEKWHEEL_TUBE", slot->tube, 1);
	/* Standard output is the JSON's alone. */
	if (work->jobs.json)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	if (dup2(slot->body, STDIN_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
		execvp(work->command[0], work->command);
	dprintf(output, "%s: %s\n", work->command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int work_start(const struct work *work, struct slot *slot)
{
	int ends[2];

	if (pipe(ends)) {
		message_error("job %" PRIu64 ": no pipe for its command: %s", slot->id, strerror(errno));
		return -1;
	}
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	/* What is buffered would be written by the child as well. */
	fflush(NULL);
	slot->pid = fork();
	if (slot->pid == 0)
		run_child(work, slot, ends[1]);
	close(ends[1]);
	slot->output = ends[0];
	slot->line_size = 0;
	slot->last[0] = 0;
	if (slot->pid > 0) {
		/* Both do it, so that it is done whoever comes first. */
		setpgid(slot->pid, slot->pid);
		return 0;
	}
	message_error("job %" PRIu64 ": its command cannot be run: %s", slot->id, strerror(errno));
	close(slot->output);
	slot->output = -1;
	slot->pid = 0;
	return -1;
}

static void keep_line(struct slot *slot)
{
	size_t size = slot->line_size;
	size_t i;

	while (size && strchr(" \t\r\n", slot->line[size - 1]))
		size--;
	if (size) {
		for (i = 0; i < size && i < WORK_ERROR_MAX; i++)
			slot->last[i] = slot->line[i] ? slot->line[i] : '?';
		slot->last[i] = 0;
	}
	fwrite(slot->line, 1, slot->line_size, stderr);
	slot->line_size = 0;
}

/* Lines are passed on whole, as far as they fit, so that those of several commands do not mix. */
void work_read_output(struct slot *slot)
{
	char chunk[4096];
	ssize_t got;
	ssize_t i;

	if (slot->output < 0)
		return;
	while ((got = read(slot->output, chunk, sizeof chunk)) > 0) {
		for (i = 0; i < got; i++) {
			slot->line[slot->line_size++] = chunk[i];
			if (chunk[i] == '\n' || slot->line_size == sizeof slot->line)
				keep_line(slot);
		}
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(slot->output);
	slot->output = -1;
}

int work_reap(struct slot *slot, int flags)
{
	pid_t ended = slot->pid ? waitpid(slot->pid, &slot->status, flags) : 0;

	if (ended == 0 || (ended < 0 && errno == EINTR))
		return 0;
	/* What it left running may hold the pipe open; what they write is no longer waited for. */
	work_read_output(slot);
	if (slot->line_size)
		keep_line(slot);
	if (slot->output >= 0)
		close(slot->output);
	slot->output = -1;
	slot->pid = 0;
	return 1;
}

void work_describe(struct slot *slot)
{
	char how[80];

	if (WIFSIGNALED(slot->status))
		snprintf(how, sizeof how, "signal %d (%s)", WTERMSIG(slot->status), strsignal(WTERMSIG(slot->status)));
	else
		snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(slot->status));
	snprintf(slot->error, sizeof slot->error, "%s%s%.*s", how, *slot->last ? ": " : "",
	    (int)(sizeof slot->error - strlen(how) - 3), slot->last);
}
