#ifndef TOOLS_COMMON_SUGGEST_H
#define TOOLS_COMMON_SUGGEST_H

/* Finds the word that a mistyped one most likely meant. */

#include <stddef.h>

/* Return the one of `count` words that a mistyped one most likely meant, or NULL if none is near. */
const char *suggest(const char *typed, const char *const *words, size_t count);

/* Return how many insertions, deletions, replacements and swaps of neighbours lead from a to b. */
size_t suggest_distance(const char *a, const char *b);

#endif
