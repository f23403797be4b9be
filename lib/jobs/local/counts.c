/*
 * Counts the waiting jobs by tube and slot of their due time, and in all tubes together. A question about a tube thus
 * reads no jobs of other tubes.
 *
 *     tube, slot        -> due time and id, and the number of jobs. None of them comes before these.
 *     ALL_TUBES, slot   -> the number of jobs
 *
 * Counts that a batch has changed are in memory until its end, or until a call wants to read them. They also serve as a
 * cache. After a failure the cache is dropped, and the store has the counts as they were before.
 */
#include "lib/jobs/local/counts.h"

#include <string.h>

#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"
#include "lib/jobs/store/slot.h"

/* The number of counts that stay in memory from batch to batch. */
enum { KEPT = 16384 };
/* The high bit of a stored slot: it is one of the wall clock. */
#define WALL_SLOT (UINT32_C(1) << 31)
#define MARK 16 /* bytes of the due time and the id */

struct count {
	uint32_t tube;
	uint32_t slot;
	uint32_t next_dirty; /* its place in the array and 1; 0: none */
	int is_dirty;
	uint64_t jobs;
	uint64_t due;
	uint64_t id;
};

static uint32_t stored_slot(int wall, uint64_t due)
{
	return (uint32_t)slot_of(due) | (wall ? WALL_SLOT : 0);
}

static struct store_bytes count_key(unsigned char key[8], uint32_t tube, uint32_t slot)
{
	store_write32(key, tube);
	store_write32(key + 4, slot);
	return (struct store_bytes){key, 8};
}

/* ---- Stored */

static struct store_bytes write_count(unsigned char value[MARK + 8], const struct count *count)
{
	unsigned char number[8];
	size_t zeros = 0;
	size_t head = count->tube == ALL_TUBES ? 0 : MARK;

	store_write64(value, count->due);
	store_write64(value + 8, count->id);
	store_write64(number, count->jobs);
	while (zeros < 7 && !number[zeros])
		zeros++;
	memcpy(value + head, number + zeros, 8 - zeros);
	return (struct store_bytes){value, head + 8 - zeros};
}

static int read_count(struct count *count, struct store_bytes value)
{
	const unsigned char *bytes = value.data;
	size_t head = count->tube == ALL_TUBES ? 0 : MARK;

	if (value.size <= head || value.size > head + 8)
		return WW_ECORRUPT;
	if (head) {
		count->due = store_read64(bytes);
		count->id = store_read64(bytes + 8);
	}
	count->jobs = 0;
	for (size_t i = head; i < value.size; i++)
		count->jobs = count->jobs << 8 | bytes[i];
	return WW_OK;
}

/* ---- In memory */

static uint64_t hash_of(uint32_t tube, uint32_t slot)
{
	return ((uint64_t)tube << 32 | slot) * UINT64_C(0x9e3779b97f4a7c15);
}

struct sought_count {
	const struct counts *counts;
	uint32_t tube;
	uint32_t slot;
};

static int is_same(const void *context, uint32_t index)
{
	const struct sought_count *sought = context;
	const struct count *count = &sought->counts->all[index];

	return count->tube == sought->tube && count->slot == sought->slot;
}

static int make_room(struct jobs_local *jobs)
{
	struct counts *counts = &jobs->counts;
	uint32_t room = counts->room ? 2 * counts->room : 16;

	if (counts->used < counts->room)
		return WW_OK;
	struct count *more = ww_jobs_resize(jobs, counts->all, counts->room * sizeof *more, room * sizeof *more);
	if (!more)
		return WW_ENOMEM;
	counts->all = more;
	counts->room = room;
	return WW_OK;
}

/* Find a count in memory, or read it from the store. */
static int find(struct jobs_local *jobs, uint32_t tube, uint32_t slot, struct count **result)
{
	struct counts *counts = &jobs->counts;
	struct sought_count sought = {counts, tube, slot};
	uint32_t index = table_find(&counts->index, hash_of(tube, slot), is_same, &sought);
	struct count count = {.tube = tube, .slot = slot};
	unsigned char key[8];
	struct store_bytes value;

	if (index != TABLE_NONE) {
		*result = &counts->all[index];
		return WW_OK;
	}
	int error = jobs->store.ops->get(jobs->store.self, STORE_COUNTS, count_key(key, tube, slot), &value);
	if (!error)
		error = read_count(&count, value);
	if (error && error != WW_ENOTFOUND)
		return error;
	error = make_room(jobs);
	if (!error)
		error = ww_table_insert(&counts->index, hash_of(tube, slot), counts->used);
	if (error)
		return error;
	*result = &counts->all[counts->used++];
	**result = count;
	return WW_OK;
}

static int change(struct jobs_local *jobs, uint32_t tube, uint64_t id, const struct job_record *record, int sign)
{
	struct counts *counts = &jobs->counts;
	struct count *count;
	int error = find(jobs, tube, stored_slot((record->flags & WW_JOB_WALL) != 0, record->due), &count);

	if (error)
		return error;
	/* A count that is too small is damage, which ww_jobs_check reports. */
	if (sign < 0)
		count->jobs -= count->jobs > 0;
	else if (!count->jobs++ || record->due < count->due || (record->due == count->due && id < count->id)) {
		count->due = record->due;
		count->id = id;
	}
	if (!count->is_dirty) {
		count->is_dirty = 1;
		count->next_dirty = counts->dirty;
		counts->dirty = (uint32_t)(count - counts->all) + 1;
	}
	return WW_OK;
}

int ww_jobs_counts_change(struct jobs_local *jobs, uint64_t id, const struct job_record *record, int sign)
{
	int error = change(jobs, (uint32_t)record->tube, id, record, sign);

	return error ? error : change(jobs, ALL_TUBES, id, record, sign);
}

int ww_jobs_counts_store(struct jobs_local *jobs)
{
	const struct store_ops *ops = jobs->store.ops;
	struct counts *counts = &jobs->counts;
	unsigned char key[8];
	unsigned char value[MARK + 8];
	int error = WW_OK;

	while (counts->dirty && !error) {
		struct count *count = &counts->all[counts->dirty - 1];
		struct store_bytes at = count_key(key, count->tube, count->slot);
		if (count->jobs)
			error = ops->put(jobs->store.self, STORE_COUNTS, at, write_count(value, count));
		else
			error = ops->remove(jobs->store.self, STORE_COUNTS, at);
		error = error == WW_ENOTFOUND ? WW_OK : error;
		count->is_dirty = 0;
		counts->dirty = count->next_dirty;
	}
	return ww_jobs_broken(jobs, error);
}

void ww_jobs_counts_settle(struct jobs_local *jobs, int failed)
{
	struct counts *counts = &jobs->counts;

	if (!failed && counts->used <= KEPT)
		return;
	for (uint32_t i = 0; i < counts->used; i++)
		(void)ww_table_remove(&counts->index, hash_of(counts->all[i].tube, counts->all[i].slot), i);
	ww_jobs_give(jobs, counts->all, counts->room * sizeof *counts->all);
	counts->all = NULL;
	counts->used = counts->room = counts->dirty = 0;
}

int ww_jobs_counts_open(struct jobs_local *jobs)
{
	return ww_table_init(&jobs->counts.index, jobs->allocator);
}

void ww_jobs_counts_close(struct jobs_local *jobs)
{
	ww_table_destroy(&jobs->counts.index);
	ww_jobs_give(jobs, jobs->counts.all, jobs->counts.room * sizeof *jobs->counts.all);
}

/* ---- Read */

/* The count of a pair of COUNTS. WW_ECORRUPT */
static int read_pair(struct store_bytes key, struct store_bytes value, struct slot_count *count)
{
	struct count read = {0};

	if (key.size != 8)
		return WW_ECORRUPT;
	read.tube = store_read32(key.data);
	read.slot = store_read32((const unsigned char *)key.data + 4);
	int error = read_count(&read, value);
	*count = (struct slot_count){.tube = read.tube,
	    .wall = (read.slot & WALL_SLOT) != 0,
	    .slot = read.slot & ~WALL_SLOT,
	    .jobs = read.jobs,
	    .due = read.due,
	    .id = read.id};
	return error;
}

/* Take a pair that was read, if it is one of the tube and the clock. */
static int take(struct slot_count *count, struct store_bytes key, struct store_bytes value, uint32_t tube, int wall)
{
	int error = read_pair(key, value, count);

	if (error)
		return error;
	return count->tube == tube && count->wall == wall ? WW_OK : WW_ENOTFOUND;
}

int ww_jobs_counts_seek(struct jobs_local *jobs, uint32_t tube, int wall, uint64_t due, struct slot_count *count)
{
	unsigned char from[8];
	struct store_bytes key;
	struct store_bytes value;
	int error = ww_jobs_counts_store(jobs);

	if (!error)
		error = jobs->store.ops->seek(
		    jobs->store.self, STORE_COUNTS, count_key(from, tube, stored_slot(wall, due)), &key, &value);
	return error ? error : take(count, key, value, tube, wall);
}

int ww_jobs_counts_next(struct jobs_local *jobs, struct slot_count *count)
{
	struct store_bytes key;
	struct store_bytes value;
	uint32_t tube = count->tube;
	int wall = count->wall;
	int error = jobs->store.ops->next(jobs->store.self, STORE_COUNTS, &key, &value);

	return error ? error : take(count, key, value, tube, wall);
}

int ww_jobs_counts_all(struct jobs_local *jobs, const struct slot_count *count, uint64_t *number)
{
	struct count all = {.tube = ALL_TUBES};
	unsigned char key[8];
	struct store_bytes value;
	int error = jobs->store.ops->get(jobs->store.self, STORE_COUNTS,
	    count_key(key, ALL_TUBES, stored_slot(count->wall, slot_start(count->slot))), &value);

	if (!error)
		error = read_count(&all, value);
	*number = all.jobs;
	return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
}
