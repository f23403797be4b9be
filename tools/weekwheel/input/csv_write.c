/* Writes events as CSV. zlib writes plain files too, and one way serves both. */
#include "tools/weekwheel/input/csv_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/common/message.h"

static int ends_in_gz(const char *name)
{
	size_t size = strlen(name);

	return size > 3 && strcmp(name + size - 3, ".gz") == 0;
}

static gzFile open_output(const char *name)
{
	int to_stdout = strcmp(name, "-") == 0;
	int descriptor = to_stdout ? dup(STDOUT_FILENO) : open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	gzFile file;

	if (descriptor < 0)
		return NULL;
	file = gzdopen(descriptor, ends_in_gz(name) ? "wb6" : "wbT");
	if (!file) {
		close(descriptor);
		errno = ENOMEM;
		return NULL;
	}
	gzbuffer(file, 1 << 17);
	return file;
}

static int needs_quotes(const char *text, size_t size)
{
	if (size == 0 || memchr(" \t", text[0], 2) || memchr(" \t", text[size - 1], 2))
		return 1;
	return memchr(text, ',', size) || memchr(text, '"', size) || memchr(text, '\r', size);
}

/* After an error zlib refuses all further writes, and errno stays. Checking the last write of an event is enough. */
static void write_key(gzFile file, const char *text, size_t size)
{
	if (!needs_quotes(text, size)) {
		gzfwrite(text, 1, size, file);
		return;
	}
	gzputc(file, '"');
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '"')
			gzputc(file, '"');
		gzputc(file, text[i]);
	}
	gzputc(file, '"');
}

static int write_event(gzFile file, const struct events *events, const struct event *event)
{
	char time[MOMENT_TEXT];
	char timeout[MOMENT_TEXT] = "";
	size_t size;
	const char *key = keys_text(events->keys, event->id, &size);

	if (event->kind != EVENT_CANCEL)
		moment_format(timeout, moment_subtract(event_due(event), event_time(event)));
	gzprintf(file, "%s,%s,", moment_format(time, event_time(event)), event_kind_name((enum event_kind)event->kind));
	write_key(file, key, size);
	return gzprintf(file, ",%s\n", timeout) > 0 ? 0 : -1;
}

static int write_all(gzFile file, const struct events *events, const char *remark)
{
	if (remark)
		gzprintf(file, "# %s\n", remark);
	if (gzputs(file, "time,event,key,timeout\n") < 0)
		return -1;
	for (size_t i = 0; i < events->count; i++)
		if (write_event(file, events, &events->at[i]))
			return -1;
	return 0;
}

int csv_write(const struct events *events, const char *name, const char *remark)
{
	gzFile file = open_output(name);
	int reason = file ? 0 : errno;
	int failed = 1;

	if (file) {
		errno = 0;
		failed = write_all(file, events, remark);
		reason = errno;
		failed |= gzclose_w(file) != Z_OK;
		reason = reason ? reason : errno;
	}
	if (!failed || reason == EPIPE)
		return 0;
	return message_error("%s: %s; the CSV is not complete", strcmp(name, "-") == 0 ? "standard output" : name,
	    reason ? strerror(reason) : "cannot be written");
}
