/*
 * The main function of a fuzz target without libFuzzer. It runs the target once on each named file, or on standard
 * input: "make check" replays every corpus with any compiler, and AFL++ can drive a target.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run(FILE *file, const char *name)
{
	uint8_t *data = NULL, *grown;
	size_t size = 0, room = 0, got;

	do {
		room = 2 * room + 4096;
		grown = realloc(data, room);
		if (grown == NULL) {
			(void)fprintf(stderr, "%s: no memory\n", name);
			free(data);
			return 0;
		}
		data = grown;
		got = fread(data + size, 1, room - size, file);
		size += got;
	} while (size == room);
	if (ferror(file)) {
		perror(name);
		free(data);
		return 0;
	}
	/* Exactly as large as the input: a sanitizer sees a read beyond it. */
	grown = realloc(data, size > 0 ? size : 1);
	LLVMFuzzerTestOneInput(grown != NULL ? grown : data, size);
	free(grown != NULL ? grown : data);
	return 1;
}

int main(int argc, char **argv)
{
	int all = 1;

	if (argc < 2)
		return run(stdin, "standard input") ? EXIT_SUCCESS : EXIT_FAILURE;
	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");

		if (file == NULL) {
			perror(argv[i]);
			all = 0;
			continue;
		}
		all &= run(file, argv[i]);
		(void)fclose(file);
	}
	printf("%d inputs\n", argc - 1);
	return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
