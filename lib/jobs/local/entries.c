/* The jobs in memory: entries, found by id, each with a timer or in the heap of its tube. */
#include "lib/jobs/local/entries.h"

#include <string.h>

#include "lib/jobs/local/group.h"
#include "lib/jobs/local/heap.h"
#include "lib/jobs/local/limit.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/soonest.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/timer.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

/* ---- By id */

static uint64_t hash_of(uint64_t id)
{
	return id * UINT64_C(0x9e3779b97f4a7c15);
}

struct sought {
	const struct jobs_local *jobs;
	uint64_t id;
};

static int is_same(const void *context, uint32_t index)
{
	const struct sought *sought = context;
	const struct entry *entry = slab_at(&sought->jobs->entries, index);

	return entry->id == sought->id;
}

struct entry *ww_jobs_find(const struct jobs_local *jobs, uint64_t id)
{
	struct sought sought = {jobs, id};
	uint32_t index = table_find(&jobs->ids, hash_of(id), is_same, &sought);

	return index == TABLE_NONE ? NULL : slab_at(&jobs->entries, index);
}

static struct entry *make_entry(struct jobs_local *jobs, uint64_t id)
{
	uint32_t index = ww_slab_take(&jobs->entries);
	struct entry *entry;

	if (index == SLAB_NONE)
		return NULL;
	if (ww_table_insert(&jobs->ids, hash_of(id), index)) {
		ww_slab_give(&jobs->entries, index);
		return NULL;
	}
	entry = slab_at(&jobs->entries, index);
	/* A late callback reads it without a lock: it is set only once. */
	if (!entry->jobs)
		entry->jobs = jobs;
	entry->id = id;
	entry->index = index;
	entry->place = NO_PLACE;
	entry->timer = 0;
	memset(&entry->is, 0, sizeof entry->is);
	return entry;
}

static void forget_entry(struct jobs_local *jobs, struct entry *entry)
{
	(void)ww_table_remove(&jobs->ids, hash_of(entry->id), entry->index);
	entry->is.state = 0;
	ww_slab_give(&jobs->entries, entry->index);
}

/* ---- Timers */

static call_fn expire;

static void on_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct entry *entry = user;

	(void)driver;
	ww_jobs_submit_firing(entry->jobs, expire, entry, firing);
}

static int set_timer(struct jobs_local *jobs, struct entry *entry, const struct image *image, ww_handle *timer)
{
	const struct timeline *line = ww_jobs_timeline(jobs, image_is_on_wall(image));
	uint64_t at = image->state == WW_JOB_DELAYED    ? image->due
	              : image->state == WW_JOB_RESERVED ? image->ends
	                                                : image->expires;

	/* After a failed write, try again later: the disk may be full for long. */
	if (jobs->undoing && at <= ww_jobs_time(line))
		at = time_after(ww_jobs_time(line), WW_SECOND);
	return ww_driver_schedule_at(line->driver, ww_jobs_driver_time(line, at), on_timer, entry, timer);
}

static int has_timer(const struct image *image)
{
	return image->state == WW_JOB_DELAYED || image->state == WW_JOB_RESERVED ||
	       (image->state == WW_JOB_READY && image->expires);
}

static int act(struct jobs_local *jobs, struct entry *entry)
{
	if (entry->is.state == WW_JOB_RESERVED)
		return jobs->time_out(jobs, entry);
	return entry->is.state == WW_JOB_READY ? jobs->expire(jobs, entry) : jobs->come_due(jobs, entry);
}

static int expire(struct jobs_local *jobs, void *arguments)
{
	const struct fired *fired = arguments;
	struct entry *entry = fired->owner;

	if (!ww_jobs_take_firing(jobs, fired, &entry->timer))
		return WW_OK;
	int error = act(jobs, entry);
	/* If that failed before a note could set the timer again, set it here: try again later. */
	if (error && !entry->timer && has_timer(&entry->is)) {
		jobs->undoing = 1;
		(void)set_timer(jobs, entry, &entry->is, &entry->timer);
		jobs->undoing = 0;
	}
	return error;
}

/* ---- Changes */

static int is_in_heap(const struct image *image)
{
	return image->state == WW_JOB_READY && !image->is_over;
}

static void count(struct jobs_local *jobs, const struct image *image, int sign)
{
	struct tube *tube = image->tube;
	uint64_t one = (uint64_t)sign;
	struct group *group = ww_jobs_group_of(image);

	if (group)
		group->entries += one;
	if (group && !group->entries)
		ww_jobs_group_idle(group);

	if (image->state == WW_JOB_DELAYED) {
		ww_jobs_timeline(jobs, image->wall)->loaded += (size_t)sign;
	} else if (image->state == WW_JOB_RESERVED) {
		tube->reserved += one;
		jobs->all.reserved += one;
		if (group)
			group->running += one;
		if (group && sign < 0)
			ww_jobs_limit_end(image);
	} else if (is_in_heap(image)) {
		jobs->all.ready += one;
		tube->urgent += image->priority < 1024 ? one : 0;
		jobs->all.urgent += image->priority < 1024 ? one : 0;
	}
}

/* Take an entry out of its heap, cancel its timer, and count it no more. */
static void detach(struct jobs_local *jobs, struct entry *entry)
{
	ww_jobs_cancel_timer(jobs, ww_jobs_timeline(jobs, image_is_on_wall(&entry->is))->driver, &entry->timer);
	if (is_in_heap(&entry->is))
		ww_jobs_ready_remove(entry);
	count(jobs, &entry->is, -1);
}

static void attach(struct jobs_local *jobs, struct entry *entry, const struct image *image, ww_handle timer)
{
	entry->is = *image;
	entry->timer = timer;
	count(jobs, image, 1);
	if (is_in_heap(image)) {
		ww_jobs_ready_add(entry);
		ww_jobs_tube_notify(image->tube);
	}
}

int ww_jobs_set(struct jobs_local *jobs, uint64_t id, const struct image *image)
{
	struct entry *entry = ww_jobs_find(jobs, id);
	struct entry *made = NULL;
	ww_handle timer = 0;
	int error = WW_OK;

	if (!image->state) {
		if (entry) {
			detach(jobs, entry);
			forget_entry(jobs, entry);
		}
		return WW_OK;
	}
	if (!entry)
		entry = made = make_entry(jobs, id);
	if (!entry)
		return WW_ENOMEM;
	if (image->state == WW_JOB_READY)
		error = ww_jobs_ready_reserve(image);
	if (!error && has_timer(image))
		error = set_timer(jobs, entry, image, &timer);
	if (error) {
		if (made)
			forget_entry(jobs, made);
		return error;
	}
	if (!made)
		detach(jobs, entry);
	attach(jobs, entry, image, timer);
	return WW_OK;
}

int ww_jobs_place(struct jobs_local *jobs, uint64_t id, const struct image *image)
{
	const struct entry *entry = ww_jobs_find(jobs, id);
	struct undo undo = {.kind = UNDO_ENTRY, .id = id};
	struct image none = {0};
	int error;

	if (image->state == WW_JOB_DELAYED)
		ww_jobs_soonest_add(image->tube, image->wall, image->due, id);
	if (image->state == WW_JOB_BURIED ||
	    (image->state == WW_JOB_DELAYED && !ww_jobs_is_near(ww_jobs_timeline(jobs, image->wall), image->due, id)))
		image = &none;
	if (entry)
		undo.was = entry->is;
	else if (!image->state)
		return WW_OK;
	error = ww_jobs_note(jobs, &undo);
	if (!error)
		error = ww_jobs_set(jobs, id, image);
	return ww_jobs_broken(jobs, error);
}
