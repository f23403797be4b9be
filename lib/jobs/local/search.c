/*
 * Finds the jobs of one tube that are due first, or were buried first, in an index of the jobs of all tubes.
 *
 * A search for a delayed job begins where what is known ends (soonest.h), at the first job that the slot's count names.
 * If that job has left, the search goes on from there through jobs of other tubes, at most to the end of the slot.
 */
#include "lib/jobs/local/search.h"

#include <string.h>

#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/soonest.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/store/slot.h"

/* ---- Delayed jobs */

/* A job that was reserved before it was due waits in the index, too. */
static int is_delayed(const struct jobs_local *jobs, uint64_t id)
{
	const struct entry *entry = ww_jobs_find(jobs, id);

	return !entry || entry->is.state == WW_JOB_DELAYED;
}

/* Whether the first job that a count names is still there. Finding it takes no walk. */
static int is_there(struct timeline *line, uint64_t due, uint64_t id)
{
	struct jobs_local *jobs = line->jobs;
	unsigned char key[16];
	struct store_bytes value;

	store_write64(key, due);
	store_write64(key + 8, id);
	return is_delayed(jobs, id) && jobs->store.ops->get(jobs->store.self, line->table,
	                                   (struct store_bytes){key, sizeof key}, &value) == WW_OK;
}

/* Search from `until` to the end of a slot. */
static int search_slot(struct timeline *line, const struct tube *tube, struct soonest *known, uint64_t slot)
{
	struct jobs_local *jobs = line->jobs;
	const struct store_ops *ops = jobs->store.ops;
	unsigned char from[16];
	struct store_bytes key;
	struct store_bytes value;
	struct job_record record;
	uint64_t id;

	store_write64(from, known->until_due);
	store_write64(from + 8, known->until_id);
	int error = ops->seek(jobs->store.self, line->table, (struct store_bytes){from, sizeof from}, &key, &value);
	for (; !error; error = ops->next(jobs->store.self, line->table, &key, &value)) {
		error = ww_jobs_read_pair(line->table, key, value, &id, &record);
		if (error)
			return error;
		if (slot_of(record.due) > slot)
			break;
		if (record.tube != tube->number || !is_delayed(jobs, id))
			continue;
		ww_jobs_soonest_find(known, record.due, id);
		return WW_OK;
	}
	ww_jobs_soonest_skip(known, slot_start(slot + 1), 0);
	return error ? error : WW_ENOTFOUND;
}

static int search(struct timeline *line, const struct tube *tube, struct soonest *known)
{
	int error = WW_ENOTFOUND;

	while (error == WW_ENOTFOUND && known->until_due != UINT64_MAX) {
		struct slot_count count;
		error =
		    ww_jobs_counts_seek(line->jobs, tube->number, line == &line->jobs->wall, known->until_due, &count);
		if (error == WW_ENOTFOUND)
			ww_jobs_soonest_skip(known, UINT64_MAX, 0);
		if (error)
			return error;
		if (!soonest_is_before(count.due, count.id, known->until_due, known->until_id)) {
			ww_jobs_soonest_skip(known, count.due, count.id);
			if (is_there(line, count.due, count.id)) {
				ww_jobs_soonest_find(known, count.due, count.id);
				return WW_OK;
			}
		}
		error = search_slot(line, tube, known, count.slot);
	}
	return error;
}

/* Find the first delayed job of a tube on a clock: the first of known->jobs. */
static int search_line(struct timeline *line, const struct tube *tube, struct soonest *known, uint64_t now)
{
	struct jobs_local *jobs = line->jobs;

	ww_jobs_soonest_ask(known, jobs->taken_back, now);
	while (known->count && (known->jobs[0].due <= now || !is_delayed(jobs, known->jobs[0].id)))
		ww_jobs_soonest_drop(known);
	if (known->count)
		return WW_OK;
	if (known->until_due <= now)
		ww_jobs_soonest_skip(known, now + 1, 0);
	return search(line, tube, known);
}

int ww_jobs_search_delayed(struct jobs_local *jobs, struct tube *tube, uint64_t *id)
{
	uint64_t least = UINT64_MAX;

	if (tube->waiting <= tube->ready + tube->reserved)
		return WW_ENOTFOUND;
	if (!tube->soonest)
		tube->soonest = ww_jobs_resize(jobs, NULL, 0, 2 * sizeof *tube->soonest);
	if (!tube->soonest)
		return WW_ENOMEM;
	for (int wall = 0; wall < 2; wall++) {
		struct timeline *line = ww_jobs_timeline(jobs, wall);
		struct soonest *known = &tube->soonest[wall];
		uint64_t now = ww_jobs_time(line);
		int error = line->driver ? search_line(line, tube, known, now) : WW_ENOTFOUND;
		if (error && error != WW_ENOTFOUND)
			return error;
		if (!error && known->jobs[0].due - now < least) {
			least = known->jobs[0].due - now;
			*id = known->jobs[0].id;
		}
	}
	return least == UINT64_MAX ? WW_ENOTFOUND : WW_OK;
}

/* ---- Buried jobs */

int ww_jobs_search_buried(struct jobs_local *jobs, struct tube *tube, uint64_t *id)
{
	unsigned char from[12];
	struct store_bytes key;
	struct store_bytes value;
	int error;

	if (!tube->buried)
		return WW_ENOTFOUND;
	store_write32(from, tube->number);
	store_write64(from + 4, tube->buried_from);
	error = jobs->store.ops->seek(
	    jobs->store.self, STORE_BURIED, (struct store_bytes){from, sizeof from}, &key, &value);
	if (error)
		return error;
	if (key.size != 20 || memcmp(key.data, from, 4) != 0)
		return WW_ENOTFOUND;
	tube->buried_from = store_read64((const char *)key.data + 4);
	*id = store_read64((const char *)key.data + 12);
	return WW_OK;
}
