/* The list of all structures that the benchmark compares. */
#include <string.h>

#include "tools/bench/structure.h"

const struct structure *const structures[] = {&structure_weekwheel, &structure_weekwheel_many, &structure_linked,
    &structure_linked_clocks, &structure_flat, &structure_flat60, &structure_rounds300, &structure_rounds3600,
    &structure_scan, &structure_heap2, &structure_heap4,
#ifdef HAVE_LIBEV
    &structure_libev,
#endif
#ifdef HAVE_LIBEVENT
    &structure_libevent,
#endif
#ifdef HAVE_LIBUV
    &structure_libuv,
#endif
    &structure_floor, &structure_session, &structure_session_many,
#ifdef HAVE_KHASH
    &structure_khash,
#endif
    &structure_uthash, &structure_driver1, &structure_driver2, &structure_driver, &structure_sleep, &structure_map,
    &structure_maps, &structure_ww_sleep, &structure_nanosleep, &structure_driver64, &structure_short, &structure_slow,
    &structure_due, &structure_due1, &structure_due2, &structure_due_alone, &structure_due_us, &structure_due_us1,
    &structure_due_us2, NULL};

const struct structure *structure_by_name(const char *name)
{
	const struct structure *const *structure = structures;

	while (*structure && strcmp((*structure)->name, name) != 0)
		structure++;
	return *structure;
}
