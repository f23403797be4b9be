#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_DEADLINES_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_DEADLINES_H

/*
 * The keys with a deadline, in a wheel of milliseconds and a table by key. A key takes 64 bytes, room of 16, 24,
 * 32, 40, 48, 64, 96 or 128 for itself, and 9 to 13 in the table. A longer one has a block of its own.
 *
 *     set ---> | key | pending in the wheel | ---> due: idle, still in the table ---> drop, set, or again
 *
 * A *pass* goes through all keys of Redis. A key that it has not seen when it ends is gone: the sweep drops it, unless it is
 * due and may have ended.
 *
 * Time is the caller's, in ms. It runs backwards only by deadlines_step_back. Threads: one at a time.
 */

#include <stddef.h>
#include <stdint.h>

enum { DEADLINES_KEY_MAX = 65535 };

struct deadlines;

/* NULL without memory. */
struct deadlines *deadlines_make(void);
void deadlines_free(struct deadlines *deadlines);
/* Keys set from now on are due early, too, this many ms before. */
void deadlines_set_lead(struct deadlines *deadlines, uint64_t lead);

/* Set a key that is due at `at`, or at the next ms if that has passed. Returns 0, or -1 without memory. */
int deadlines_set(struct deadlines *deadlines, const char *key, size_t length, uint64_t at);

/* The same, but `at` is a guess: the key's deadline is not known. */
int deadlines_guess(struct deadlines *deadlines, const char *key, size_t length, uint64_t at);

/* What is known of a key. */
struct known_key {
	uint32_t index;
	uint64_t at; /* when it is due, or was */
	int is_idle; /* it was due */
	int is_guess;
	int is_sure; /* since it was set, it was not doubted, and no change was reported */
};

/* Return 1 and fill *known, or return 0 if it is unknown. */
int deadlines_find(const struct deadlines *deadlines, const char *key, size_t length, struct known_key *known);
void deadlines_look(const struct deadlines *deadlines, uint32_t index, struct known_key *known);

/*
 * Redis reported a change of the key; or changes of any key may have been missed. Until they are set again, they are
 * not sure.
 */
void deadlines_doubt(struct deadlines *deadlines, uint32_t index);
void deadlines_doubt_all(struct deadlines *deadlines);

/* A key that is due. */
struct due_key {
	uint32_t index;
	unsigned slot; /* the caller's */
	uint64_t at;   /* later than now: it is early */
};

/* Move the time to `now`, and take at most `most` keys that are due. Returns how many. */
size_t deadlines_due(struct deadlines *deadlines, uint64_t now, struct due_key *due, size_t most);

/* When deadlines_due is to be called next, or UINT64_MAX: never. */
uint64_t deadlines_next(const struct deadlines *deadlines);
/* The time that deadlines_due was given last. */
uint64_t deadlines_now(const struct deadlines *deadlines);
/* The clock went back to `now`, if that is earlier. Returns by how much. */
uint64_t deadlines_step_back(struct deadlines *deadlines, uint64_t now);

/* The key of one that was due. It stays valid until it is dropped. */
const char *deadlines_key(const struct deadlines *deadlines, uint32_t index, size_t *length);
/* Whether it is still there, and was not set again. */
int deadlines_is_due(const struct deadlines *deadlines, uint32_t index);
void deadlines_drop(struct deadlines *deadlines, uint32_t index);
/* Make one that was due due again, not early, and not before `when`. Its deadline stays. */
void deadlines_again(struct deadlines *deadlines, uint32_t index, uint64_t when);
/* The same for one that has ended: its deadline is one no more, but a guess. */
void deadlines_outlive(struct deadlines *deadlines, uint32_t index, uint64_t when);

/*
 * A pass begins, and has ended: call fn, which drops them, with some of the keys that it has not seen and that are due
 * after `now`. Returns 1 while there may be more.
 */
typedef void deadlines_fn(void *context, uint32_t index);
void deadlines_pass(struct deadlines *deadlines);
int deadlines_sweep(struct deadlines *deadlines, uint64_t now, deadlines_fn *fn, void *context);

/* Call fn with some of all keys, and move *from on, which begins at 0. Returns 1 while there may be more. */
int deadlines_walk(const struct deadlines *deadlines, uint32_t *from, deadlines_fn *fn, void *context);

size_t deadlines_count(const struct deadlines *deadlines);
/* Those of them whose deadline is a guess. */
size_t deadlines_guesses(const struct deadlines *deadlines);
size_t deadlines_bytes(const struct deadlines *deadlines);

#endif
