#ifndef TOOLS_WEEKWHEEL_INPUT_KEYS_H
#define TOOLS_WEEKWHEEL_INPUT_KEYS_H

/*
 * The keys of timers. Each gets a small number, which is an index into any array that has an element a timer. A key is
 * any bytes, zeros included, without a line break.
 */

#include <stddef.h>
#include <stdint.h>

struct keys;

/* Return an empty collection, for keys_free to free. */
struct keys *keys_new(void);
void keys_free(struct keys *keys);

/* Return the number of the key text[0 .. size-1]. A new key gets the next number, and its text is copied. */
uint32_t keys_intern(struct keys *keys, const char *text, size_t size);

/* Return 1 if keys_intern has seen this text. */
int keys_known(const struct keys *keys, const char *text, size_t size);

/* Give a number to a key that is new and is never looked up. This saves the cost of the hash table. */
uint32_t keys_append(struct keys *keys, const char *text, size_t size);

/* Return how many numbers are in use; they are 0 to keys_count - 1. */
size_t keys_count(const struct keys *keys);

/* Return the text of a key. It lives as long as the keys, and a 0 that *size does not count follows it. */
const char *keys_text(const struct keys *keys, uint32_t id, size_t *size);

#endif
