/* Finds hints for mistyped words by their edit distance. */
#include "tools/common/suggest.h"

#include <stdint.h>
#include <string.h>

/* Longer words are compared by their beginning. No word of the programs is longer. */
enum { LONGEST = 31 };

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t suggest_distance(const char *a, const char *b)
{
	size_t d[LONGEST + 1][LONGEST + 1];
	size_t rows = smaller(strlen(a), LONGEST);
	size_t columns = smaller(strlen(b), LONGEST);
	size_t i, j;

	for (i = 0; i <= rows; i++) {
		for (j = 0; j <= columns; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			d[i][j] = smaller(d[i][j], smaller(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[rows][columns];
}

const char *suggest(const char *typed, const char *const *words, size_t count)
{
	const char *best = NULL;
	size_t nearest = SIZE_MAX;
	size_t i;

	for (i = 0; i < count; i++) {
		size_t distance = suggest_distance(typed, words[i]);
		size_t allowed = 1 + strlen(words[i]) / 5;

		/* The beginning of a word means the word, whatever is missing. */
		if (strlen(typed) >= 2 && strncmp(words[i], typed, strlen(typed)) == 0)
			distance = 1;
		if (distance <= allowed && distance < nearest) {
			nearest = distance;
			best = words[i];
		}
	}
	return best;
}
