/* Messages on standard error. */
#include "tools/common/message.h"

#include <stdarg.h>
#include <stdio.h>

#include "tools/common/progress.h"

const char *message_program = "weekwheel";

void message_error(const char *format, ...)
{
	va_list arguments;

	progress_clear();
	fprintf(stderr, "%s: ", message_program);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

void message_line(const char *format, ...)
{
	va_list arguments;

	progress_clear();
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
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
