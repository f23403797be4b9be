/* Rows and sets of ids. */
#include "lib/postgres/ids.h"

#include <string.h>

#include "lib/base/memory.h"
#include "weekwheel/error.h"

int ww_postgres_ids_add(struct ids *ids, const struct ww_allocator *allocator, uint64_t id)
{
	if (ids->count == ids->room) {
		size_t room = ids->room ? 2 * ids->room : 64;
		uint64_t *more = memory_take(allocator, room * sizeof *more);
		if (!more)
			return WW_ENOMEM;
		if (ids->count)
			memcpy(more, ids->all, ids->count * sizeof *more);
		memory_give(allocator, ids->all, ids->room * sizeof *more);
		ids->all = more;
		ids->room = room;
	}
	ids->all[ids->count++] = id;
	return WW_OK;
}

void ww_postgres_ids_free(struct ids *ids, const struct ww_allocator *allocator)
{
	memory_give(allocator, ids->all, ids->room * sizeof *ids->all);
	*ids = (struct ids){0};
}

/* The slot of the id, or the free one where it belongs. There is always a free one. */
static uint64_t *slot_of(const struct ids *slots, uint64_t id)
{
	size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slots->room - 1);

	while (slots->all[at] && slots->all[at] != id)
		at = (at + 1) & (slots->room - 1);
	return &slots->all[at];
}

static int grow(struct ids *slots, const struct ww_allocator *allocator)
{
	struct ids wider = {.room = slots->room ? 2 * slots->room : 64};

	wider.all = memory_take_zeroed(allocator, wider.room * sizeof *wider.all);
	if (!wider.all)
		return WW_ENOMEM;
	for (size_t i = 0; i < slots->room; i++)
		if (slots->all[i])
			*slot_of(&wider, slots->all[i]) = slots->all[i];
	wider.count = slots->count;
	memory_give(allocator, slots->all, slots->room * sizeof *slots->all);
	*slots = wider;
	return WW_OK;
}

int ww_postgres_ids_set(struct id_set *set, const struct ww_allocator *allocator, uint64_t id)
{
	struct ids *slots = &set->slots;
	uint64_t *slot;

	if (2 * slots->count >= slots->room && grow(slots, allocator))
		return WW_ENOMEM;
	slot = slot_of(slots, id);
	slots->count += *slot == 0;
	*slot = id;
	return WW_OK;
}

int ww_postgres_ids_has(const struct id_set *set, uint64_t id)
{
	return set->slots.count && *slot_of(&set->slots, id) == id;
}

void ww_postgres_ids_clear(struct id_set *set, const struct ww_allocator *allocator)
{
	ww_postgres_ids_free(&set->slots, allocator);
}
