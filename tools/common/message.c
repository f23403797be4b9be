/* Writes messages to standard error. */
#include "tools/common/message.h"

#include <stdarg.h>
#include <stdio.h>

#include "tools/common/progress.h"

const char *message_program = "weekwheel";

static void write_line(const char *prefix, const char *format, va_list arguments)
{
	/* Threads of a server's store and pusher write, too. */
	flockfile(stderr);
	progress_clear();
	if (prefix)
		fprintf(stderr, "%s: ", prefix);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	funlockfile(stderr);
}

int message_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(message_program, format, arguments);
	va_end(arguments);
	return -1;
}

void message_line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(NULL, format, arguments);
	va_end(arguments);
}

const char *message_excerpt(char *out, size_t room, const char *text, size_t size)
{
	const size_t closing = sizeof "...'";
	size_t at = 0;
	size_t i;

	if (room < closing + 2)
		return "";
	out[at++] = '\'';
	for (i = 0; i < size && at + closing < room; i++) {
		unsigned char byte = (unsigned char)text[i];

		out[at++] = byte < ' ' || byte >= 0x7f ? '?' : (char)byte;
	}
	snprintf(out + at, room - at, "%s'", i < size ? "..." : "");
	return out;
}
