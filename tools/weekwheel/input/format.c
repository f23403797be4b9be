/* Recognises formats, and has what their readers share. */
#include "tools/weekwheel/input/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/common/message.h"

static const struct format *const formats[] = {&format_swf, &format_log, &format_csv};

enum { FORMATS = sizeof formats / sizeof *formats };

static enum line_result unknown_read(
    struct format_context *context, struct input_line line, struct events *events, struct line_problem *problem)
{
	char excerpt[40];

	(void)context;
	(void)events;
	if (line_trim(line).size == 0)
		return LINE_BLANK;
	return line_problem_set(problem,
	    "%s is of no known format; expected a workload in SWF, a common or combined access log, or CSV of events",
	    message_excerpt(excerpt, sizeof excerpt, line.text, line.size));
}

const struct format format_unknown = {"unknown", "unknown format", "", 0, unknown_read};

const struct format *format_by_name(const char *name)
{
	for (int i = 0; i < FORMATS; i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

const struct format *format_of_line(struct input_line line, int comments)
{
	const struct format *found = NULL;

	for (int i = 0; i < FORMATS && !found; i++) {
		struct format_context context = {.jobs_in_parts = 0};
		struct line_problem problem;
		struct events events;
		enum line_result result;

		events_init(&events);
		result = formats[i]->read(&context, line, &events, &problem);
		if (result == LINE_EVENTS || (result == LINE_COMMENT && comments))
			found = formats[i];
		events_free(&events);
	}
	return found;
}

const struct format *format_of_name(const char *file_name)
{
	size_t size = strlen(file_name);

	if (size > 3 && strcasecmp(file_name + size - 3, ".gz") == 0)
		size -= 3;
	for (int i = 0; i < FORMATS; i++) {
		size_t suffix = strlen(formats[i]->suffix);

		if (size > suffix && strncasecmp(file_name + size - suffix, formats[i]->suffix, suffix) == 0)
			return formats[i];
	}
	return &format_unknown;
}

enum line_result line_problem_set(struct line_problem *problem, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem->text, sizeof problem->text, format, arguments);
	va_end(arguments);
	return LINE_UNREADABLE;
}

int line_number(struct input_line field, const char *what, struct moment *moment, struct line_problem *problem)
{
	static const char *const expected[] = {
	    [NUMBER_NEGATIVE] = "0 or more seconds",
	    [NUMBER_TOO_LARGE] = "at most 9223372036854775807 seconds",
	    [NUMBER_INVALID] = "a decimal number of seconds",
	};
	enum number result = moment_parse(field.text, field.size, moment);
	char excerpt[40];

	if (result == NUMBER_OK)
		return 0;
	message_excerpt(excerpt, sizeof excerpt, field.text, field.size);
	return line_problem_set(problem, "the %s is %s; expected %s", what, excerpt, expected[result]);
}

int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct input_line line_trim(struct input_line line)
{
	while (line.size > 0 && is_blank(line.text[0])) {
		line.text++;
		line.size--;
	}
	while (line.size > 0 && is_blank(line.text[line.size - 1]))
		line.size--;
	return line;
}

int line_equals(struct input_line line, const char *text)
{
	return line.size == strlen(text) && strncasecmp(line.text, text, line.size) == 0;
}
