#ifndef LIB_BASE_REPORT_H
#define LIB_BASE_REPORT_H

/* Messages to the function that a caller has given. */

#include <stdarg.h>
#include <stdio.h>

typedef void report_fn(const char *text, void *context);

/* Format a message and pass it on, if there is a function. A path fits in. */
__attribute__((format(printf, 3, 0))) static inline void report_message(
    report_fn *fn, void *context, const char *format, va_list arguments)
{
	char text[4400];

	if (!fn)
		return;
	(void)vsnprintf(text, sizeof text, format, arguments);
	fn(text, context);
}

#endif
