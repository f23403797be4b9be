/* Does work in a process of its own, which a damaged disk may kill. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/message.h"
#include "tools/weekwheel/store/store.h"

static const struct {
	int number;
	const char *name;
} damages[] = {{SIGBUS, "SIGBUS, a part of the file is missing or cannot be read"}, {SIGSEGV, "SIGSEGV"},
    {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};

static _Noreturn void do_work(int (*work)(void *context), void *context)
{
	const struct rlimit none = {0, 0};

	/* A core dump would contain the whole map. */
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(command_finish_output(work(context)));
}

static void describe(struct store_end *end)
{

	snprintf(end->reason, sizeof end->reason, "signal %d", end->signal);
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		if (damages[i].number != end->signal)
			continue;
		end->is_damage = 1;
		snprintf(end->reason, sizeof end->reason, "%s", damages[i].name);
	}
}

int store_apart(int (*work)(void *context), void *context, struct store_end *end)
{
	pid_t child;
	int status = 0;

	memset(end, 0, sizeof *end);
	fflush(stdout);
	child = fork();
	if (child < 0)
		return message_error("no process can be started: %s", strerror(errno));
	if (child == 0)
		do_work(work, context);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFSIGNALED(status)) {
		end->signal = WTERMSIG(status);
		describe(end);
		return 0;
	}
	end->status = WEXITSTATUS(status);
	return 0;
}
