/* Writing events as CSV. zlib writes plain files too, so that there is one way for both. */
#include "tools/weekwheel/input/csv_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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
	int descriptor;
	gzFile file;

	if (strcmp(name, "-") == 0)
		descriptor = dup(STDOUT_FILENO);
	else
		descriptor = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
	size_t i;

	if (size == 0 || text[0] == ' ' || text[0] == '\t' || text[size - 1] == ' ' || text[size - 1] == '\t')
		return 1;
	for (i = 0; i < size; i++)
		if (text[i] == ',' || text[i] == '"' || text[i] == '\r')
			return 1;
	return 0;
}

/* The functions below return 0, or -1 when the file took no more. */

static int write_bytes(gzFile file, const char *text, size_t size)
{
	return size == 0 || gzfwrite(text, 1, size, file) == size ? 0 : -1;
}

static int write_key(gzFile file, const char *text, size_t size)
{
	size_t i;

	if (!needs_quotes(text, size))
		return write_bytes(file, text, size);
	if (write_bytes(file, "\"", 1))
		return -1;
	for (i = 0; i < size; i++)
		if (write_bytes(file, "\"\"", text[i] == '"' ? 1 : 0) || write_bytes(file, text + i, 1))
			return -1;
	return write_bytes(file, "\"", 1);
}

static int write_event(gzFile file, const struct events *events, const struct event *event)
{
	char time[MOMENT_TEXT];
	char timeout[MOMENT_TEXT] = "";
	char text[2 * MOMENT_TEXT];
	size_t size;
	const char *key = keys_text(events->keys, event->id, &size);
	int length;

	moment_format(time, event_time(event));
	if (event->kind != EVENT_CANCEL)
		moment_format(timeout, moment_subtract(event_due(event), event_time(event)));
	length = snprintf(text, sizeof text, "%s,%s,", time, event_kind_name((enum event_kind)event->kind));
	if (write_bytes(file, text, (size_t)length) || write_key(file, key, size))
		return -1;
	length = snprintf(text, sizeof text, ",%s\n", timeout);
	return write_bytes(file, text, (size_t)length);
}

static int write_all(gzFile file, const struct events *events, const char *remark)
{
	static const char header[] = "time,event,key,timeout\n";
	size_t i;

	if (remark &&
	    (write_bytes(file, "# ", 2) || write_bytes(file, remark, strlen(remark)) || write_bytes(file, "\n", 1)))
		return -1;
	if (write_bytes(file, header, sizeof header - 1))
		return -1;
	for (i = 0; i < events->count; i++)
		if (write_event(file, events, &events->at[i]))
			return -1;
	return 0;
}

int csv_write(const struct events *events, const char *name, const char *remark)
{
	const char *shown = strcmp(name, "-") == 0 ? "standard output" : name;
	gzFile file = open_output(name);
	int failed;

	errno = file ? 0 : errno;
	failed = !file || write_all(file, events, remark);
	if (file) {
		int reason = errno;

		failed |= gzclose_w(file) != Z_OK;
		errno = reason ? reason : errno;
	}
	if (!failed || errno == EPIPE)
		return 0;
	message_error("%s: %s; the CSV is not complete", shown, errno ? strerror(errno) : "cannot be written");
	return -1;
}
