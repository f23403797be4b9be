/* Finishes the standard output of a program, and says once what went wrong. */
#include "tools/common/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"

static int first_reason;

void command_output_failed(int reason)
{
	if (!first_reason)
		first_reason = reason;
}

int command_finish_output(int status)
{
	/* The message comes once, although the stream stays broken and the program asks again when it ends. */
	static int told;
	int reason;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	reason = first_reason ? first_reason : errno;
	if (reason == EPIPE)
		told = 1;
	if (told)
		return status;
	told = 1;
	message_error("standard output: %s", reason ? strerror(reason) : "could not be written");
	return status == STATUS_OK ? STATUS_FAILED : status;
}
