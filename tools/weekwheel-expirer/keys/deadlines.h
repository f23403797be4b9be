#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_DEADLINES_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_DEADLINES_H

/*
 * The keys with a deadline, in a wheel of milliseconds and a table by key. A key of up to 24 bytes takes 80 bytes and 9
 * to 13 in the table; a longer one has a block of its own.
 *
 *     set ---> | key | pending in the wheel | ---> due: idle, still in the table ---> drop, or set again
 *
 * A *pass* goes through all keys of Redis. A key that it has not seen when it ends is gone: the sweep drops it.
 *
 * Time is the caller's, in ms, and never runs backwards. Threads: one at a time.
 */

#include <stddef.h>
#include <stdint.h>

enum { DEADLINES_KEY_MAX = 65535 };

struct deadlines;

/* NULL without memory. */
struct deadlines *deadlines_make(void);
void deadlines_free(struct deadlines *deadlines);

/* Let a key be due at `at`, or at the next ms if that has passed. Returns 0, or -1 without memory. */
int deadlines_set(struct deadlines *deadlines, const char *key, size_t length, uint64_t at);
void deadlines_remove(struct deadlines *deadlines, const char *key, size_t length);
/* Return 1 and store when the key is due if it is pending. Return 0 if it is idle or unknown. */
int deadlines_pending(const struct deadlines *deadlines, const char *key, size_t length, uint64_t *at);

/* A key that is due. */
struct due_key {
	uint32_t index;
	unsigned slot; /* the caller's */
	uint64_t at;
};

/* Move the time to `now`, and take at most `most` keys that are due. Returns how many. */
size_t deadlines_due(struct deadlines *deadlines, uint64_t now, struct due_key *due, size_t most);

/* When deadlines_due is to be called next, or UINT64_MAX: never. */
uint64_t deadlines_next(const struct deadlines *deadlines);
/* What deadlines_due was told last. */
uint64_t deadlines_now(const struct deadlines *deadlines);

/* The key of one that was due. It stays valid until it is dropped. */
const char *deadlines_key(const struct deadlines *deadlines, uint32_t index, size_t *length);
/* Whether there still is one, and it is not set again. */
int deadlines_is_due(const struct deadlines *deadlines, uint32_t index);
void deadlines_drop(struct deadlines *deadlines, uint32_t index);

/* A pass begins, and has ended: drop some of the keys that it has not seen. Returns 1 while there may be more. */
void deadlines_pass(struct deadlines *deadlines);
int deadlines_sweep(struct deadlines *deadlines);

size_t deadlines_count(const struct deadlines *deadlines);
size_t deadlines_bytes(const struct deadlines *deadlines);

#endif
