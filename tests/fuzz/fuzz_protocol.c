/* Fuzzes the parser of weekwheeld: the same commands must come out wherever the bytes are split. */
/* tier: quick */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/weekwheeld/protocol/transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 64 };

/* The bytes of the input itself say how long the pieces are. */
static size_t piece(size_t at, size_t size, void *context)
{
	const uint8_t *data = context;
	size_t wanted = 1 + data[at] % 16;

	return wanted < size - at ? wanted : size - at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *whole = transcript((const char *)data, size, BODY_MAX, transcript_whole, NULL);
	char *pieces = transcript((const char *)data, size, BODY_MAX, piece, (void *)(uintptr_t)data);

	if (whole && pieces && strcmp(whole, pieces) != 0) {
		(void)fprintf(stderr, "whole:\n%s\nin pieces:\n%s\n", whole, pieces);
		abort();
	}
	free(whole);
	free(pieces);
	return 0;
}
