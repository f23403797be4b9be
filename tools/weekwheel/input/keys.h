#ifndef TOOLS_WEEKWHEEL_INPUT_KEYS_H
#define TOOLS_WEEKWHEEL_INPUT_KEYS_H

/*
 * The names of timers, each with a small number: the number is an index into whatever is kept for each timer.
 * A key is any bytes, zeros included, without a line break.
 */

#include <stddef.h>
#include <stdint.h>

struct keys;

/* Return an empty collection; keys_free gives it back. */
struct keys *keys_new(void);
void keys_free(struct keys *keys);

/* Return the number of the key text[0 .. size-1], which is given one if it is new. The text is copied. */
uint32_t keys_intern(struct keys *keys, const char *text, size_t size);

/* Return 1 if keys_intern has seen this text. */
int keys_known(const struct keys *keys, const char *text, size_t size);

/* Give a number to a text that is known to be new and will not be looked up; saves the cost of the table. */
uint32_t keys_append(struct keys *keys, const char *text, size_t size);

/* Return how many numbers are in use; they are 0 to keys_count - 1. */
size_t keys_count(const struct keys *keys);

/* Return the text of a number and its size; it ends with a 0 that is not counted, and lives as long as the keys. */
const char *keys_text(const struct keys *keys, uint32_t id, size_t *size);

#endif
