#ifndef LIB_CORE_DRIVER_RECORD_H
#define LIB_CORE_DRIVER_RECORD_H

/* The life of a record: taken, pending, given back. The shard's lock is held in all of these. */

#include "lib/core/driver/driver_internal.h"

static inline ww_handle handle_of(const struct timer_record *record)
{
	return (uint64_t)record->shard << HANDLE_SHARD | (uint64_t)record->index << HANDLE_INDEX | record->generation;
}

static inline struct timer_record *record_at(const struct shard *shard, uint32_t index)
{
	return slab_at(&shard->slab, index);
}

static inline struct timer_record *take_record(struct shard *shard, uint32_t number)
{
	uint32_t index = ww_slab_take(&shard->slab);
	struct timer_record *record;

	if (index == SLAB_NONE)
		return NULL;
	record = record_at(shard, index);
	record->index = record->of = index;
	record->shard = (uint16_t)number;
	record->generation++;
	record->flags = 0;
	record->missed = 0;
	record->calls = record->begun = 0;
	return record;
}

static inline void give_record(struct shard *shard, struct timer_record *record)
{
	record->state = RECORD_UNUSED;
	/* If generations began again, old handles would hit new timers. */
	if (record->generation != UINT32_MAX)
		ww_slab_give(&shard->slab, record->index);
}

/* Let the record wait for its deadline. */
static inline void file_record(struct shard *shard, struct timer_record *record)
{
	record->as.timer = (struct ww_timer){0};
	record->state = RECORD_PENDING;
	shard->pending++;
	ww_source_schedule(shard->source, &record->as.timer, record->deadline);
}

/* The timer will not fire any more. Its record is given back when the calls that name it have ended. */
static inline void end_timer(struct shard *shard, struct timer_record *record)
{
	if (record->calls)
		record->state = RECORD_RUNNING;
	else
		give_record(shard, record);
}

#endif
