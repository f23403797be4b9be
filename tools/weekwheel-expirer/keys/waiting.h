#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_WAITING_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_WAITING_H

/* Keys that wait to be looked up, first in, first out: their lengths and bytes, one behind the other. */

#include <stddef.h>
#include <stdint.h>

struct waiting {
	char *bytes;
	size_t room;
	size_t head; /* the first key begins here */
	size_t end;
	uint64_t added;   /* in all */
	uint64_t dropped; /* in all */
};

/* Returns 0, or -1 without memory. */
int waiting_add(struct waiting *waiting, const char *key, size_t length);

/* Return the key at *at and move *at to the next, or return NULL. Begin with waiting->head. */
const char *waiting_at(const struct waiting *waiting, size_t *at, size_t *length);

/* Drop the first key. There has to be one. */
void waiting_drop(struct waiting *waiting);

void waiting_free(struct waiting *waiting);

static inline int waiting_is_empty(const struct waiting *waiting)
{
	return waiting->head == waiting->end;
}

#endif
