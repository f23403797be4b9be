/* Finishes the standard output of a program, and says once what went wrong. */
#include "tools/common/command.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"

static int first_reason;

void command_output_failed(int reason)
{
	if (!first_reason)
		first_reason = reason;
}

/* Which error it was may be forgotten. */
static int is_reader_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int command_finish_output(int status)
{
	/* The message comes once, although the stream stays broken and the program asks again when it ends. */
	static int warned;
	int reason;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	reason = first_reason ? first_reason : errno;
	if (reason == EPIPE || is_reader_gone())
		warned = 1;
	if (warned)
		return status;
	warned = 1;
	message_error("standard output: %s", reason ? strerror(reason) : "could not be written");
	return status == STATUS_OK ? STATUS_FAILED : status;
}
