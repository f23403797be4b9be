/* Runs the command for a job, and collects what it writes to standard error and how it ends. */
#include <ctype.h>
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
#include "tools/common/program.h"
#include "tools/common/utf8.h"
#include "tools/weekwheel/jobs/work.h"

/* A file and not a pipe: a command that reads slowly or not at all then delays nothing. */
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

#define HEADER_PREFIX "WEEKWHEEL_HEADER_"

enum { PREFIX = sizeof HEADER_PREFIX - 1 };

/* Those of the job for which this worker may run. */
static void forget_headers(void)
{
	char name[PREFIX + WW_JOB_HEADERS_MAX + 1];

	for (char **at = environ; *at;) {
		size_t length = strcspn(*at, "=");

		if (strncmp(*at, HEADER_PREFIX, PREFIX) != 0 || length >= sizeof name || !(*at)[length]) {
			at++;
			continue;
		}
		memcpy(name, *at, length);
		name[length] = 0;
		if (unsetenv(name))
			at++;
	}
}

/*
 * A name of the environment that no program, loader or shell heeds: the prefix, and letters, digits and underscores. Only a
 * trace also has the names by which OpenTelemetry looks for it.
 */
static void set_headers(const struct runner *runner)
{
	char name[PREFIX + WW_JOB_HEADERS_MAX + 1] = HEADER_PREFIX;
	char value[WW_JOB_HEADERS_MAX + 1];
	struct ww_job_header header;
	size_t at = 0;

	forget_headers();
	while (ww_job_headers_next(runner->headers, runner->headers_length, &at, &header)) {
		for (size_t i = 0; i < header.name_length; i++)
			name[PREFIX + i] =
			    isalnum((unsigned char)header.name[i]) ? (char)toupper((unsigned char)header.name[i]) : '_';
		name[PREFIX + header.name_length] = 0;
		snprintf(value, sizeof value, "%.*s", (int)header.value_length, header.value);
		setenv(name, value, 1);
		if (strcmp(name + PREFIX, "TRACEPARENT") == 0 || strcmp(name + PREFIX, "TRACESTATE") == 0)
			setenv(name + PREFIX, value, 1);
	}
}

static _Noreturn void run_child(const struct work *work, const struct runner *runner, int output)
{
	/* Ctrl-C on the terminal must reach only the worker, which lets its commands end. */
	setpgid(0, 0);
	program_give_back();
	set_number("WEEKWHEEL_JOB_ID", runner->id);
	set_number("WEEKWHEEL_JOB_ATTEMPT", runner->attempt);
	setenv("WEEKWHEEL_JOB_KEY", runner->key, 1);
	setenv("WEEKWHEEL_TUBE", runner->tube, 1);
	set_headers(runner);
	/* Standard output is for JSON only. */
	if (work->log || work->jobs.json)
		dup2(work->log ? output : STDERR_FILENO, STDOUT_FILENO);
	if (dup2(runner->body, STDIN_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
		execvp(work->command[0], work->command);
	dprintf(output, "%s: %s\n", work->command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int work_start(const struct work *work, struct runner *runner)
{
	int ends[2];

	if (pipe(ends))
		return message_error("job %" PRIu64 ": no pipe for its command: %s", runner->id, strerror(errno));
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	/* Otherwise the child would write the buffered output again. */
	fflush(NULL);
	runner->pid = fork();
	if (runner->pid == 0)
		run_child(work, runner, ends[1]);
	close(ends[1]);
	runner->output = ends[0];
	runner->line_size = 0;
	runner->tail_size = 0;
	runner->last[0] = 0;
	runner->logs = work->log;
	if (runner->pid > 0) {
		/* Parent and child both do this, since either may be first to need it. */
		setpgid(runner->pid, runner->pid);
		return 0;
	}
	message_error("job %" PRIu64 ": its command cannot be run: %s", runner->id, strerror(errno));
	close(runner->output);
	runner->output = -1;
	runner->pid = 0;
	return -1;
}

/* The end of what it writes, for its report. */
static void keep_tail(struct runner *runner)
{
	size_t over = runner->tail_size + runner->line_size;

	over = over > WORK_TAIL ? over - WORK_TAIL : 0;
	memmove(runner->tail, runner->tail + over, runner->tail_size - over);
	runner->tail_size -= over;
	memcpy(runner->tail + runner->tail_size, runner->line, runner->line_size);
	runner->tail_size += runner->line_size;
}

/* Bodies of jobs may be in it. What a terminal would obey is not shown there; files and pipes get the bytes unchanged. */
static void show_line(const struct runner *runner)
{
	size_t size = runner->line_size;
	char shown[sizeof runner->line + 1];

	if (!isatty(STDERR_FILENO)) {
		fwrite(runner->line, 1, size, stderr);
		return;
	}
	memcpy(shown, runner->line, size);
	if (size >= 2 && memcmp(shown + size - 2, "\r\n", 2) == 0)
		shown[--size - 1] = '\n';
	fputs(utf8_show_lines(shown, size), stderr);
}

static void keep_line(struct runner *runner)
{
	size_t size = runner->line_size;
	size_t i;

	while (size && strchr(" \t\r\n", runner->line[size - 1]))
		size--;
	if (size) {
		for (i = 0; i < size && i < WORK_ERROR_MAX; i++)
			runner->last[i] = runner->line[i] ? runner->line[i] : '?';
		runner->last[i] = 0;
	}
	keep_tail(runner);
	if (runner->logs)
		fprintf(stderr, "job %" PRIu64 ": ", runner->id);
	show_line(runner);
	if (runner->logs && (runner->line_size == 0 || runner->line[runner->line_size - 1] != '\n'))
		fputc('\n', stderr);
	runner->line_size = 0;
}

/* Lines are passed on whole if they fit, so that the lines of several commands do not mix. */
void work_read_output(struct runner *runner)
{
	char chunk[4096];
	ssize_t got;

	if (runner->output < 0)
		return;
	while ((got = read(runner->output, chunk, sizeof chunk)) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			runner->line[runner->line_size++] = chunk[i];
			if (chunk[i] == '\n' || runner->line_size == sizeof runner->line)
				keep_line(runner);
		}
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(runner->output);
	runner->output = -1;
}

int work_reap(struct runner *runner, int flags)
{
	pid_t ended = runner->pid ? waitpid(runner->pid, &runner->status, flags) : 0;

	if (ended == 0 || (ended < 0 && errno == EINTR))
		return 0;
	/* Processes that it left running may hold the pipe open. Do not wait for what they write. */
	work_read_output(runner);
	if (runner->line_size)
		keep_line(runner);
	if (runner->output >= 0)
		close(runner->output);
	runner->output = -1;
	runner->pid = 0;
	return 1;
}

static int is_runners(const struct work *work, const struct runner *runners, pid_t pid)
{
	for (uint64_t i = 0; i < work->runners; i++)
		if (runners[i].pid == pid)
			return 1;
	return 0;
}

void work_reap_others(const struct work *work, const struct runner *runners)
{
	siginfo_t ended;

	/* A runner's has its own wait, in the next turn. */
	while ((ended.si_pid = 0, waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT)) == 0 && ended.si_pid != 0 &&
	       !is_runners(work, runners, ended.si_pid))
		(void)waitpid(ended.si_pid, NULL, WNOHANG);
}

void work_describe(struct runner *runner)
{
	const char *late = runner->late ? "it ran too long: " : "";
	char how[80];

	if (WIFSIGNALED(runner->status))
		snprintf(how, sizeof how, "%ssignal %d (%s)", late, WTERMSIG(runner->status),
		    strsignal(WTERMSIG(runner->status)));
	else
		snprintf(how, sizeof how, "%sexit status %d", late, WEXITSTATUS(runner->status));
	snprintf(runner->error, sizeof runner->error, "%s%s%.*s", how, *runner->last ? ": " : "",
	    (int)(sizeof runner->error - strlen(how) - 3), runner->last);
}
