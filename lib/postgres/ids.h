#ifndef LIB_POSTGRES_IDS_H
#define LIB_POSTGRES_IDS_H

/* Rows of ids, which only grow until they are cleared, and sets of ids. */

#include <stddef.h>
#include <stdint.h>

struct ww_allocator;

struct ids {
	uint64_t *all;
	size_t count;
	size_t room;
};

/* WW_ENOMEM. */
int ww_postgres_ids_add(struct ids *ids, const struct ww_allocator *allocator, uint64_t id);
void ww_postgres_ids_free(struct ids *ids, const struct ww_allocator *allocator);

/* Open addressing: `all` has room for twice as many, and 0 is no id. */
struct id_set {
	struct ids slots;
};

/* WW_ENOMEM. */
int ww_postgres_ids_set(struct id_set *set, const struct ww_allocator *allocator, uint64_t id);
int ww_postgres_ids_has(const struct id_set *set, uint64_t id);
void ww_postgres_ids_clear(struct id_set *set, const struct ww_allocator *allocator);

#endif
