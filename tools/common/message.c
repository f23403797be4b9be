/* Writes messages to standard error. */
#include "tools/common/message.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/json.h"
#include "tools/common/progress.h"
#include "tools/common/utf8.h"

/* Longer texts and fields are cut. */
enum { TEXT_MAX = 2048, FIELD_MAX = 512, FIELDS_MAX = 8 };

const char *message_program = "weekwheel";
enum message_level message_level = MESSAGE_INFO;
enum message_form message_form = MESSAGE_TEXT;

/* Guards the line that is made, and what a terminal shows of progress. ThreadSanitizer does not see stderr's own lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* systemd names the file that the journal reads, since the program may have redirected its standard error. */
enum message_form message_form_found(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device;
	unsigned long long inode;
	struct stat about;

	if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(STDERR_FILENO, &about) != 0)
		return MESSAGE_TEXT;
	return about.st_dev == device && about.st_ino == inode ? MESSAGE_JOURNAL : MESSAGE_TEXT;
}

/* ---- One line of JSON */

static const char *level_name(enum message_level level)
{
	switch (level) {
	case MESSAGE_ERROR:
		return "error";
	case MESSAGE_WARNING:
		return "warning";
	case MESSAGE_INFO:
		return "info";
	default:
		return "debug";
	}
}

static size_t add_member(char *out, const char *name, const char *value, size_t max)
{
	size_t at = (size_t)sprintf(out, "\"%.32s\":", name);

	return at + json_quote(out + at, value, strnlen(value, max));
}

static size_t add_time(char *out)
{
	struct timespec now = {0};
	struct tm parts = {0};
	size_t at = (size_t)sprintf(out, "{\"time\":\"");

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &parts);
	at += strftime(out + at, 32, "%Y-%m-%dT%H:%M:%S", &parts);
	return at + (size_t)sprintf(out + at, ".%03ldZ\",", now.tv_nsec / 1000000);
}

static size_t make_json(char *out, enum message_level level, const struct message_field *fields, const char *text)
{
	size_t at = add_time(out);

	at += add_member(out + at, "level", level_name(level), FIELD_MAX);
	out[at++] = ',';
	at += add_member(out + at, "message", text, TEXT_MAX);
	for (int i = 0; fields && fields[i].name && i < FIELDS_MAX; i++) {
		out[at++] = ',';
		if (fields[i].value)
			at += add_member(out + at, fields[i].name, fields[i].value, FIELD_MAX);
		else
			at += (size_t)sprintf(
			    out + at, "\"%.32s\":%llu", fields[i].name, (unsigned long long)fields[i].number);
	}
	out[at++] = '}';
	return at;
}

/* ---- Any line */

static size_t make_text(char *out, enum message_level level, const char *text)
{
	size_t at = 0;

	if (message_form == MESSAGE_JOURNAL)
		at += (size_t)sprintf(out, "<%d>", level);
	return at + (size_t)sprintf(
	                out + at, "%.32s: %s%s", message_program, level == MESSAGE_WARNING ? "warning: " : "", text);
}

/* A line is one write, since other processes may write there, too. */
static void write_line(
    enum message_level level, const struct message_field *fields, const char *format, va_list arguments)
{
	static char line[JSON_QUOTED(TEXT_MAX) + FIELDS_MAX * (JSON_QUOTED(FIELD_MAX) + 64) + 256];
	char text[TEXT_MAX];
	size_t size;

	if (level > message_level)
		return;
	if (vsnprintf(text, sizeof text, format, arguments) >= (int)sizeof text)
		memcpy(text + sizeof text - 4, "...", 4);
	/* It may have what others chose: arguments, names of files, answers. */
	if (message_form != MESSAGE_JSON)
		(void)utf8_show_lines(text, strlen(text));
	pthread_mutex_lock(&lock);
	progress_clear();
	size = message_form == MESSAGE_JSON ? make_json(line, level, fields, text) : make_text(line, level, text);
	line[size++] = '\n';
	(void)fwrite(line, 1, size, stderr);
	pthread_mutex_unlock(&lock);
}

void message_log(enum message_level level, const struct message_field *fields, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(level, fields, format, arguments);
	va_end(arguments);
}

int message_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(MESSAGE_ERROR, NULL, format, arguments);
	va_end(arguments);
	return -1;
}

void message_line(const char *format, ...)
{
	char *text = NULL;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (size < 0)
		return;
	pthread_mutex_lock(&lock);
	progress_clear();
	fprintf(stderr, "%s\n", utf8_show_lines(text, (size_t)size));
	pthread_mutex_unlock(&lock);
	free(text);
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
