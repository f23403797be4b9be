/*
 * Loads a file. The first line that a format recognises decides the format of the file, which is then read from its
 * beginning.
 */
#include "tools/weekwheel/input/load.h"

#include <inttypes.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/input/input.h"

/* The format is looked for in this much of a file at most. Otherwise the file's name decides. */
enum { LOOKED_AT_LINES = 1000, LOOKED_AT_BYTES = 1 << 20 };

struct loader {
	const struct load_options *options;
	struct events *events;
	struct source *source;
	struct input input;
	uint64_t *reported;
};

const char *source_title(const struct source *source)
{
	return strcmp(source->name, "-") == 0 ? "standard input" : source->name;
}

/* Count a line that cannot be read. Return -1 if that ends the reading. */
static int report(struct loader *loader, const char *problem)
{
	struct source *source = loader->source;

	source->unreadable++;
	if (++*loader->reported <= LOAD_MESSAGES_MAX)
		message_line("%s:%" PRIu64 ": %s", source_title(source), source->lines, problem);
	if (!loader->options->strict)
		return 0;
	return message_error("stopped at the first line that cannot be read (--strict)");
}

static int take_line(struct loader *loader, struct input_line line)
{
	struct source *source = loader->source;
	struct line_problem problem;

	source->lines++;
	if (source->format->read(&source->context, line, loader->events, &problem) == LINE_UNREADABLE)
		return report(loader, problem.text);
	return 0;
}

/* Some editors begin a text with a byte order mark. */
static struct input_line without_mark(struct input_line line)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (line.size >= 3 && memcmp(line.text, mark, 3) == 0)
		return (struct input_line){line.text + 3, line.size - 3};
	return line;
}

static const struct format *recognise(struct loader *loader)
{
	const struct format *format = NULL;
	int comments = 1;
	size_t lines = 0;
	size_t bytes = 0;
	struct input_line line;

	input_keep(&loader->input);
	while (!format && lines < LOOKED_AT_LINES && bytes < LOOKED_AT_BYTES &&
	       input_line(&loader->input, &line.text, &line.size) == INPUT_LINE) {
		line = lines == 0 ? without_mark(line) : line;
		format = format_of_line(line, comments);
		comments = comments && line_trim(line).size == 0;
		lines++;
		bytes += line.size + 1;
	}
	input_rewind(&loader->input);
	return format ? format : format_of_name(loader->source->name);
}

/* What was read before the failure is used, and a message says that it is not all. */
static int accept_failure(struct loader *loader, size_t lost)
{
	struct source *source = loader->source;

	source->damaged = 1;
	message_error("%s: %s, after %" PRIu64 " lines; get the whole file", source_title(source),
	    loader->input.problem, source->lines);
	if (lost > 0) {
		source->lines++;
		return report(loader, "the line is cut off");
	}
	return loader->options->strict ? -1 : 0;
}

static int read_lines(struct loader *loader)
{
	struct source *source = loader->source;
	struct input_line line;

	for (;;) {
		int stop = 0;

		switch (input_line(&loader->input, &line.text, &line.size)) {
		case INPUT_LINE:
			stop = take_line(loader, source->lines == 0 ? without_mark(line) : line);
			break;
		case INPUT_LONG:
			source->lines++;
			stop = report(loader, "the line is longer than 64 MiB; expected text");
			break;
		case INPUT_FAILED:
			return accept_failure(loader, line.size);
		case INPUT_END:
			return 0;
		}
		if (stop)
			return -1;
		if (source->lines % 1024 == 0)
			progress_show(
			    loader->input.size ? input_position(&loader->input) : source->lines, loader->input.size);
	}
}

int load_file(const char *name, const struct load_options *options, struct events *events, struct source *source,
    uint64_t *reported)
{
	struct loader loader = {.options = options, .events = events, .source = source, .reported = reported};
	int result;

	*source = (struct source){.name = name, .format = options->format, .context.timeout = options->timeout};
	if (input_open(&loader.input, name))
		return message_error("%s: %s", source_title(source), loader.input.problem);
	progress_begin("reading   ");
	if (!source->format)
		source->format = recognise(&loader);
	result = read_lines(&loader);
	progress_clear();
	source->gzip = input_is_gzip(&loader.input);
	input_close(&loader.input);
	return result;
}
