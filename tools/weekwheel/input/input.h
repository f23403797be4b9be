#ifndef TOOLS_WEEKWHEEL_INPUT_INPUT_H
#define TOOLS_WEEKWHEEL_INPUT_INPUT_H

/* Reads lines of a file or, for "-", of standard input, plain or compressed with gzip. */

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

struct input {
	gzFile file;
	char *buffer;
	size_t start, end, capacity; /* buffer[start .. end-1] is read and not yet handed out */
	uint64_t size;               /* of the file on disk, 0 if unknown */
	int ended;
	int keeps;           /* nothing is dropped from the buffer, for input_rewind */
	const char *problem; /* what is wrong, after INPUT_FAILED or a failure to open */
};

enum input_result {
	INPUT_LINE,
	INPUT_LONG,  /* a line of more than INPUT_LINE_MAX bytes; it was skipped */
	INPUT_END,   /* no more lines */
	INPUT_FAILED /* reading failed; an unfinished last line of *size bytes was dropped */
};

/* The longest line that is read. It keeps an endless line from taking all memory. */
#define INPUT_LINE_MAX ((size_t)64 << 20)

/* Open the file. Return 0, or -1 with the reason in input->problem. */
int input_open(struct input *input, const char *name);

/*
 * Read the next line. *text is valid until the next call. It holds *size bytes, any bytes, without the line's end (\n or
 * \r\n). The last line need not have an end.
 */
enum input_result input_line(struct input *input, const char **text, size_t *size);

/*
 * From the beginning of the input on, keep all that is read, until input_rewind lets it be read again. In between, the
 * rest of a line that is too long is not skipped.
 */
void input_keep(struct input *input);
void input_rewind(struct input *input);

/* Return 1 if the input is compressed. */
int input_is_gzip(struct input *input);

/* Return how many bytes of the file on disk have been read. */
uint64_t input_position(struct input *input);

void input_close(struct input *input);

#endif
