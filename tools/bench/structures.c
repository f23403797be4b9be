/* The list of what is compared. */
#include <string.h>

#include "tools/bench/structure.h"

const struct structure *const structures[] = {
    &structure_weekwheel,
    &structure_linked,
    &structure_linked_clocks,
    &structure_flat,
    &structure_flat60,
    &structure_rounds300,
    &structure_rounds3600,
    &structure_scan,
    &structure_heap2,
    &structure_heap4,
#ifdef HAVE_LIBEV
    &structure_libev,
#endif
#ifdef HAVE_LIBEVENT
    &structure_libevent,
#endif
#ifdef HAVE_LIBUV
    &structure_libuv,
#endif
    &structure_floor,
    NULL,
};

const struct structure *const layer_structures[] = {
    &structure_session,
#ifdef HAVE_KHASH
    &structure_khash,
#endif
    &structure_uthash,
    &structure_driver1,
    &structure_driver2,
    &structure_driver,
    &structure_sleep,
    NULL,
};

static const struct structure *find_in(const struct structure *const *structure, const char *name)
{
	for (; *structure; structure++)
		if (strcmp((*structure)->name, name) == 0)
			return *structure;
	return NULL;
}

const struct structure *structure_by_name(const char *name)
{
	const struct structure *structure = find_in(structures, name);

	return structure ? structure : find_in(layer_structures, name);
}
