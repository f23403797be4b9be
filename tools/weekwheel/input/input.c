/* Reads lines through zlib, which also reads plain files. */
#include "tools/weekwheel/input/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/memory.h"

enum { CHUNK = 1 << 18 };

static int input_fail(struct input *input, int descriptor, const char *problem)
{
	input->problem = problem;
	if (descriptor > STDERR_FILENO)
		close(descriptor);
	return -1;
}

int input_open(struct input *input, const char *name)
{
	int descriptor = strcmp(name, "-") == 0 ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
	struct stat status;

	memset(input, 0, sizeof *input);
	if (descriptor < 0 || fstat(descriptor, &status) != 0)
		return input_fail(input, descriptor, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return input_fail(input, descriptor, "is a directory; name the files in it");
	if (S_ISREG(status.st_mode))
		input->size = (uint64_t)status.st_size;
	input->file = gzdopen(descriptor, "rb");
	if (!input->file)
		return input_fail(input, descriptor, "zlib cannot open it");
	gzbuffer(input->file, CHUNK);
	input->capacity = CHUNK;
	input->buffer = memory_resize(NULL, input->capacity, 1);
	return 0;
}

static const char *input_reason(struct input *input)
{
	int code;

	gzerror(input->file, &code);
	switch (code) {
	case Z_OK:
	case Z_STREAM_END:
		return NULL;
	case Z_BUF_ERROR:
		return "the gzip data ends too early: the file is cut off";
	case Z_DATA_ERROR:
		return "the gzip data is damaged";
	case Z_ERRNO:
		return strerror(errno);
	default:
		return "zlib cannot read it";
	}
}

/* Read more behind what the buffer has. Set `ended` at the end of the input. */
static void input_fill(struct input *input)
{
	int got;

	if (input->start > 0 && !input->keeps) {
		memmove(input->buffer, input->buffer + input->start, input->end - input->start);
		input->end -= input->start;
		input->start = 0;
	}
	if (input->capacity - input->end < CHUNK) {
		input->capacity = input->capacity * 2 + CHUNK;
		input->buffer = memory_resize(input->buffer, input->capacity, 1);
	}
	got = gzread(input->file, input->buffer + input->end, CHUNK);
	if (got > 0) {
		input->end += (size_t)got;
		return;
	}
	input->ended = 1;
	input->problem = input_reason(input);
}

static size_t without_return(const char *text, size_t size)
{
	return size > 0 && text[size - 1] == '\r' ? size - 1 : size;
}

static enum input_result input_last(struct input *input, const char **text, size_t *size)
{
	*text = input->buffer + input->start;
	*size = input->end - input->start;
	input->start = input->end;
	if (input->problem)
		return INPUT_FAILED;
	if (*size == 0)
		return INPUT_END;
	*size = without_return(*text, *size);
	return INPUT_LINE;
}

/* Drop the rest of a line that is too long. */
static enum input_result input_skip(struct input *input)
{
	char *end;

	while (!(end = memchr(input->buffer + input->start, '\n', input->end - input->start))) {
		input->start = input->end;
		if (input->ended)
			return INPUT_LONG;
		input_fill(input);
	}
	input->start = (size_t)(end - input->buffer) + 1;
	return INPUT_LONG;
}

enum input_result input_line(struct input *input, const char **text, size_t *size)
{
	size_t searched = 0;

	*size = 0;
	for (;;) {
		size_t there = input->end - input->start;
		char *line = input->buffer + input->start;
		char *end = there > searched ? memchr(line + searched, '\n', there - searched) : NULL;

		if (end) {
			*text = line;
			*size = without_return(line, (size_t)(end - line));
			input->start += (size_t)(end - line) + 1;
			return INPUT_LINE;
		}
		if (there > INPUT_LINE_MAX)
			return input->keeps ? INPUT_LONG : input_skip(input);
		if (input->ended)
			return input_last(input, text, size);
		searched = there;
		input_fill(input);
	}
}

void input_keep(struct input *input)
{
	input->keeps = 1;
}

void input_rewind(struct input *input)
{
	input->start = 0;
	input->keeps = 0;
}

int input_is_gzip(struct input *input)
{
	return !gzdirect(input->file);
}

uint64_t input_position(struct input *input)
{
	z_off_t offset = gzoffset(input->file);

	return offset > 0 ? (uint64_t)offset : 0;
}

void input_close(struct input *input)
{
	if (input->file)
		gzclose_r(input->file);
	free(input->buffer);
	memset(input, 0, sizeof *input);
}
