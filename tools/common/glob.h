#ifndef TOOLS_COMMON_GLOB_H
#define TOOLS_COMMON_GLOB_H

/* Patterns of KEYS, SCAN and PSUBSCRIBE, as Redis has them. */

#include <stddef.h>

/*
 * Return 1 if all of the text matches: "*" any bytes, "?" one, "[a-c]" and "[^a-c]" one of these or none of them, "\" takes
 * away the meaning of what follows. O(pattern + text): a pattern longer than 4096 bytes, and one that would take more than
 * some steps for each byte of the text, matches nothing.
 */
int glob_matches(const char *pattern, size_t pattern_size, const char *text, size_t text_size);

/* The same, which also adds its steps to *steps: about a nanosecond each. */
int glob_matches_count(const char *pattern, size_t pattern_size, const char *text, size_t text_size, size_t *steps);

#endif
