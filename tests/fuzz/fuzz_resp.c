/* Fuzzes the parser of weekwheel-sessiond: the same commands must come out wherever the bytes are split. */
/* tier: quick */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/weekwheel-sessiond/protocol/resp_transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BULK_MAX = 40000 };

/* The bytes of the input itself say how long the pieces are. */
static size_t piece(size_t at, size_t size, void *context)
{
	const uint8_t *data = context;
	size_t wanted = 1 + data[at] % 16;

	return wanted < size - at ? wanted : size - at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int is_stranger = size > 0 && data[size - 1] % 2;
	char *whole = resp_transcript((const char *)data, size, BULK_MAX, is_stranger, resp_whole_piece, NULL);
	char *pieces = resp_transcript((const char *)data, size, BULK_MAX, is_stranger, piece, (void *)(uintptr_t)data);

	if (whole && pieces && (strcmp(whole, pieces) != 0 || strstr(whole, "it waits"))) {
		(void)fprintf(stderr, "whole:\n%s\nin pieces:\n%s\n", whole, pieces);
		abort();
	}
	free(whole);
	free(pieces);
	return 0;
}
