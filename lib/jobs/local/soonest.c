/*
 * Finds the jobs of one tube that are due first, in an index of the jobs of all tubes.
 *
 *                now              until
 *     -----------|--o-----o---o----|--- ? -------o----------->  due time of the tube's delayed jobs
 *                   jobs[] has them       the counts tell in which slot to look
 *
 * Each place is searched once: `until` goes back only when jobs are put before it and jobs[] is full. A search begins
 * at the first job that the slot's count names. If that job has left, the search goes on from there through jobs of
 * other tubes, at most to the end of the slot.
 */
#include <string.h>

#include "lib/jobs/local/local_internal.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/store/slot.h"

/* ---- What is known */

static int is_before(uint64_t due, uint64_t id, uint64_t other_due, uint64_t other_id)
{
	return due < other_due || (due == other_due && id < other_id);
}

/* What is known of a tube, or NULL. */
static struct soonest *known_of(const struct tube *tube, int wall)
{
	struct soonest *known = tube->soonest ? &tube->soonest[wall] : NULL;

	return known && known->taken_back == tube->jobs->taken_back ? known : NULL;
}

static void drop(struct soonest *known, unsigned at)
{
	known->count--;
	memmove(&known->jobs[at], &known->jobs[at + 1], (known->count - at) * sizeof known->jobs[0]);
}

void ww_jobs_soonest_remove(struct tube *tube, int wall, uint64_t due, uint64_t id)
{
	struct soonest *known = known_of(tube, wall);

	for (unsigned i = 0; known && i < known->count; i++)
		if (known->jobs[i].due == due && known->jobs[i].id == id) {
			drop(known, i);
			return;
		}
}

void ww_jobs_soonest_add(struct tube *tube, int wall, uint64_t due, uint64_t id)
{
	struct soonest *known = known_of(tube, wall);
	unsigned at = 0;

	if (!known || !is_before(due, id, known->until_due, known->until_id))
		return;
	while (at < known->count && is_before(known->jobs[at].due, known->jobs[at].id, due, id))
		at++;
	if (at < known->count && known->jobs[at].due == due && known->jobs[at].id == id)
		return;
	if (known->count == SOONEST_MOST) {
		/* The last one, or this one, is found again by a search. */
		known->until_due = at < known->count ? known->jobs[known->count - 1].due : due;
		known->until_id = at < known->count ? known->jobs[known->count - 1].id : id;
		if (at == known->count)
			return;
		known->count--;
	}
	memmove(&known->jobs[at + 1], &known->jobs[at], (known->count - at) * sizeof known->jobs[0]);
	known->jobs[at].due = due;
	known->jobs[at].id = id;
	known->count++;
}

/* ---- Search */

/* A job that was reserved before it was due waits in the index, too. */
static int is_delayed(const struct jobs_local *jobs, uint64_t id)
{
	const struct entry *entry = ww_jobs_find(jobs, id);

	return !entry || entry->is.state == WW_JOB_DELAYED;
}

/* The search is over: this job is the first one. */
static void find(struct soonest *known, uint64_t due, uint64_t id)
{
	known->jobs[0].due = due;
	known->jobs[0].id = id;
	known->count = 1;
	known->until_due = due;
	known->until_id = id + 1;
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
		find(known, record.due, id);
		return WW_OK;
	}
	known->until_due = slot_start(slot + 1);
	known->until_id = 0;
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
			known->until_due = UINT64_MAX;
		if (error)
			return error;
		if (!is_before(count.due, count.id, known->until_due, known->until_id)) {
			known->until_due = count.due;
			known->until_id = count.id;
			if (is_there(line, count.due, count.id)) {
				find(known, count.due, count.id);
				return WW_OK;
			}
		}
		error = search_slot(line, tube, known, count.slot);
	}
	return error;
}

/* Find the first delayed job of a tube on a clock: the first of known->jobs. */
static int soonest_on(struct timeline *line, const struct tube *tube, struct soonest *known, uint64_t now)
{
	struct jobs_local *jobs = line->jobs;

	if (known->taken_back != jobs->taken_back || now < known->now)
		*known = (struct soonest){.taken_back = jobs->taken_back};
	known->now = now;
	while (known->count && (known->jobs[0].due <= now || !is_delayed(jobs, known->jobs[0].id)))
		drop(known, 0);
	if (known->count)
		return WW_OK;
	if (known->until_due <= now) {
		known->until_due = now + 1;
		known->until_id = 0;
	}
	return search(line, tube, known);
}

int ww_jobs_soonest(struct jobs_local *jobs, struct tube *tube, uint64_t *id)
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
		int error = line->driver ? soonest_on(line, tube, known, now) : WW_ENOTFOUND;
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

int ww_jobs_first_buried(struct jobs_local *jobs, struct tube *tube, uint64_t *id)
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
