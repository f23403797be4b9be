/*
 * Loads a file. The first line that a format recognises decides the format of the file. The lines before it are held back
 * until then, and their problems are those of the right format.
 */
#include "tools/weekwheel/input/load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/input/input.h"

/* At most this much is held back. Then the file's name decides. */
enum { HELD_LINES = 1000, HELD_BYTES = 1 << 20 };

struct loader {
	const struct load_options *options;
	struct events *events;
	struct source *source;
	struct input input;
	uint64_t *reported;
	char *held; /* lines, each ended by \n */
	size_t held_bytes, held_lines;
	int held_text; /* one of the lines is not blank */
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
	message_error("stopped at the first line that cannot be read (--strict)");
	return -1;
}

static int take_line(struct loader *loader, struct line line)
{
	struct source *source = loader->source;
	struct line_problem problem;

	source->lines++;
	if (source->format->read(&source->context, line, loader->events, &problem) == LINE_UNREADABLE)
		return report(loader, problem.text);
	return 0;
}

/* Some editors begin a text with a byte order mark. */
static struct line without_mark(struct line line)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (line.size >= 3 && memcmp(line.text, mark, 3) == 0)
		return (struct line){line.text + 3, line.size - 3};
	return line;
}

static int take_held(struct loader *loader)
{
	const char *at = loader->held;

	while (loader->held_lines > 0) {
		const char *end = memchr(at, '\n', loader->held_bytes - (size_t)(at - loader->held));
		struct line line = {at, (size_t)(end - at)};

		loader->held_lines--;
		at = end + 1;
		if (take_line(loader, line))
			return -1;
	}
	return 0;
}

static void hold(struct loader *loader, struct line line)
{
	loader->held = memory_resize(loader->held, loader->held_bytes + line.size + 1, 1);
	memcpy(loader->held + loader->held_bytes, line.text, line.size);
	loader->held[loader->held_bytes + line.size] = '\n';
	loader->held_bytes += line.size + 1;
	loader->held_lines++;
	loader->held_text |= line_trim(line).size > 0;
}

static int decide(struct loader *loader, const struct format *format)
{
	loader->source->format = format ? format : format_of_name(loader->source->name);
	return take_held(loader);
}

static int accept_line(struct loader *loader, struct line line)
{
	const struct format *format;

	if (loader->source->format)
		return take_line(loader, line);
	format = format_of_line(line, !loader->held_text);
	if (!format) {
		hold(loader, line);
		if (loader->held_lines < HELD_LINES && loader->held_bytes < HELD_BYTES)
			return 0;
		return decide(loader, NULL);
	}
	return decide(loader, format) || take_line(loader, line) ? -1 : 0;
}

/* A line that is too long belongs to no format. Lines that are held back go first, which keeps their numbers right. */
static int accept_long(struct loader *loader)
{
	if (!loader->source->format && decide(loader, NULL))
		return -1;
	loader->source->lines++;
	return report(loader, "the line is longer than 64 MiB; expected text");
}

/* What was read before the failure is used, and a message says that it is not all. */
static int accept_failure(struct loader *loader, size_t lost)
{
	struct source *source = loader->source;

	if (!source->format && decide(loader, NULL))
		return -1;
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
	struct line line;
	uint64_t count = 0;

	for (;;) {
		int stop = 0;

		switch (input_line(&loader->input, &line.text, &line.size)) {
		case INPUT_LINE:
			stop = accept_line(loader, count == 0 ? without_mark(line) : line);
			break;
		case INPUT_LONG:
			stop = accept_long(loader);
			break;
		case INPUT_FAILED:
			return accept_failure(loader, line.size);
		case INPUT_END:
		default:
			return loader->source->format ? 0 : decide(loader, NULL);
		}
		if (stop)
			return -1;
		if (++count % 1024 == 0)
			progress_show(loader->input.size ? input_position(&loader->input) : count, loader->input.size);
	}
}

int load_file(const char *name, const struct load_options *options, struct events *events, struct source *source,
    uint64_t *reported)
{
	struct loader loader = {.options = options, .events = events, .source = source, .reported = reported};
	int result;

	*source = (struct source){.name = name, .format = options->format, .context.timeout = options->timeout};
	if (input_open(&loader.input, name)) {
		message_error("%s: %s", source_title(source), loader.input.problem);
		return -1;
	}
	progress_begin("reading   ");
	result = read_lines(&loader);
	progress_clear();
	source->gzip = input_is_gzip(&loader.input);
	input_close(&loader.input);
	free(loader.held);
	return result;
}
