/* Deadlines in the maps, and on disk as wall time. */
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

uint64_t keep_wall_of(const struct keep *keep, uint64_t deadline)
{
	if (deadline != DATA_NEVER && deadline & KEEP_BEFORE)
		return deadline & ~KEEP_BEFORE;
	return deadline == DATA_NEVER ? DATA_NEVER
	                              : (uint64_t)data_to_wall_ms(keep->data, deadline + WW_MILLISECOND - 1);
}

uint64_t keep_disk_of(const struct keep *keep, uint64_t wall_ms)
{
	uint64_t deadline = keep_deadline_of(keep, wall_ms);

	return deadline == 1 ? KEEP_BEFORE | wall_ms : deadline;
}

uint64_t keep_deadline_of(const struct keep *keep, uint64_t wall_ms)
{
	return wall_ms == DATA_NEVER ? DATA_NEVER : data_from_wall_ms(keep->data, (int64_t)wall_ms);
}
