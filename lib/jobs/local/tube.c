/* Tubes: their names, numbers, counts and pauses. */
#include "lib/jobs/local/tube.h"

#include <string.h>

#include "lib/jobs/local/group.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/soonest.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/writing.h"

enum {
	COUNTS = 16,       /* bytes of the counts before a stored name */
	KEPT = 9,          /* behind it, if jobs are kept: a NUL and their number */
	EMPTY_KEPT = 1000, /* empty tubes to remember, for their statistics */
	/* A tube gets the lowest free number. A larger one is damage, and its table would be too large. */
	NUMBERS = 1 << 24
};

struct tube *ww_jobs_tube_find(const struct jobs_local *jobs, const char *name)
{
	struct tube *tube;

	HASH_FIND(hh, jobs->tubes, name, strlen(name), tube);
	return tube;
}

struct tube *ww_jobs_tube_number(const struct jobs_local *jobs, uint64_t number)
{
	return number < jobs->numbered_room ? jobs->numbered[number] : NULL;
}

static int widen(struct jobs_local *jobs, uint32_t number)
{
	uint32_t room = jobs->numbered_room ? jobs->numbered_room : 16;
	struct tube **more;

	if (number < jobs->numbered_room)
		return WW_OK;
	if (number >= NUMBERS)
		return WW_ENOMEM;
	while (room <= number)
		room *= 2;
	more = ww_jobs_resize(jobs, jobs->numbered, jobs->numbered_room * sizeof *more, room * sizeof *more);
	if (!more)
		return WW_ENOMEM;
	jobs->numbered = more;
	jobs->numbered_room = room;
	return WW_OK;
}

static int add_tube(struct jobs_local *jobs, uint32_t number, const char *name, size_t length, struct tube **tube)
{
	struct tube *made;

	if (widen(jobs, number))
		return WW_ENOMEM;
	made = ww_jobs_resize(jobs, NULL, 0, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	made->jobs = jobs;
	made->number = number;
	made->name_length = (uint32_t)length;
	memcpy(made->name, name, length);
	HASH_ADD_KEYPTR(hh, jobs->tubes, made->name, made->name_length, made);
	if (!made->hh.tbl) {
		ww_jobs_give(jobs, made, sizeof *made);
		return WW_ENOMEM;
	}
	jobs->numbered[number] = made;
	*tube = made;
	return WW_OK;
}

void ww_jobs_tube_touch(struct tube *tube)
{
	if (tube->dirty)
		return;
	tube->dirty = 1;
	tube->next_dirty = tube->jobs->dirty;
	tube->jobs->dirty = tube;
}

int ww_jobs_tube_get(struct jobs_local *jobs, const char *name, struct tube **tube)
{
	int error;

	*tube = ww_jobs_tube_find(jobs, name);
	if (*tube)
		return WW_OK;
	while (ww_jobs_tube_number(jobs, jobs->free_number))
		jobs->free_number++;
	error = add_tube(jobs, jobs->free_number, name, strlen(name), tube);
	if (!error)
		ww_jobs_tube_touch(*tube);
	return error;
}

static uint64_t is_empty(const struct tube *tube)
{
	return tube->waiting + tube->buried == 0;
}

/* Jobs that are kept have its number. */
static int is_unused(const struct tube *tube)
{
	return is_empty(tube) && !tube->kept;
}

void ww_jobs_tube_change(const struct undo *undo, int sign)
{
	struct tube *tube = undo->tube;
	struct totals *all = &tube->jobs->all;
	uint64_t was_empty = is_empty(tube);

	tube->waiting += (uint64_t)(sign * undo->waiting);
	tube->buried += (uint64_t)(sign * undo->buried);
	tube->puts += (uint64_t)(sign * undo->puts);
	tube->finished += (uint64_t)(sign * undo->finished);
	tube->kept += (uint64_t)(sign * undo->kept);
	all->kept += (uint64_t)(sign * undo->kept);
	all->waiting += (uint64_t)(sign * undo->waiting);
	all->buried += (uint64_t)(sign * undo->buried);
	all->puts += (uint64_t)(sign * undo->puts);
	all->finished += (uint64_t)(sign * undo->finished);
	all->tubes += was_empty - is_empty(tube);
	if (sign < 0)
		tube->buried_from = 0;
	ww_jobs_tube_touch(tube);
}

static int note_and_change(struct jobs_local *jobs, const struct undo *undo)
{
	int error = ww_jobs_note(jobs, undo);

	if (!error)
		ww_jobs_tube_change(undo, 1);
	return ww_jobs_broken(jobs, error);
}

int ww_jobs_tube_count(
    struct jobs_local *jobs, struct tube *tube, int64_t waiting, int64_t buried, int64_t puts, int64_t finished)
{
	struct undo undo = {.kind = UNDO_COUNTS,
	    .tube = tube,
	    .waiting = waiting,
	    .buried = buried,
	    .puts = puts,
	    .finished = finished};

	return note_and_change(jobs, &undo);
}

int ww_jobs_tube_keep(struct jobs_local *jobs, struct tube *tube, int64_t kept)
{
	struct undo undo = {.kind = UNDO_COUNTS, .tube = tube, .kept = kept};

	return note_and_change(jobs, &undo);
}

/* ---- Stored */

int ww_jobs_tubes_store(struct jobs_local *jobs)
{
	unsigned char key[4];
	unsigned char value[COUNTS + WW_TUBE_MAX + KEPT];
	int error = WW_OK;

	for (const struct tube *tube = jobs->dirty; tube && !error; tube = tube->next_dirty) {
		store_write32(key, tube->number);
		size_t size = COUNTS + tube->name_length;
		if (is_unused(tube)) {
			error = jobs->store.ops->remove(
			    jobs->store.self, STORE_TUBES, (struct store_bytes){key, sizeof key});
			error = error == WW_ENOTFOUND ? WW_OK : error;
			continue;
		}
		store_write64(value, tube->waiting);
		store_write64(value + 8, tube->buried);
		memcpy(value + COUNTS, tube->name, tube->name_length);
		if (tube->kept) {
			value[size] = 0;
			store_write64(value + size + 1, tube->kept);
			size += KEPT;
		}
		error = jobs->store.ops->put(jobs->store.self, STORE_TUBES, (struct store_bytes){key, sizeof key},
		    (struct store_bytes){value, size});
	}
	return error;
}

static void free_tube(struct jobs_local *jobs, struct tube *tube)
{
	HASH_DELETE(hh, jobs->tubes, tube);
	jobs->numbered[tube->number] = NULL;
	if (tube->number < jobs->free_number)
		jobs->free_number = tube->number;
	ww_jobs_limits_free(tube);
	ww_jobs_give(jobs, tube->soonest, 2 * sizeof *tube->soonest);
	ww_jobs_give(jobs, tube->heap.at, tube->heap.room * sizeof(struct entry *));
	ww_jobs_give(jobs, tube, sizeof *tube);
}

void ww_jobs_tubes_settle(struct jobs_local *jobs)
{
	struct tube *next;

	for (struct tube *tube = jobs->dirty; tube; tube = next) {
		next = tube->next_dirty;
		tube->dirty = 0;
		/* The late callback of a pause may look at its tube. */
		if (is_unused(tube) && !tube->pause_ends && !(tube->limits && tube->limits->rules) && !jobs->late &&
		    HASH_COUNT(jobs->tubes) > EMPTY_KEPT)
			free_tube(jobs, tube);
	}
	jobs->dirty = NULL;
}

int ww_jobs_tube_read(struct store_bytes value, struct tube_value *tube)
{
	const char *bytes = value.data;

	if (value.size <= COUNTS)
		return WW_ECORRUPT;
	*tube = (struct tube_value){.waiting = store_read64(bytes),
	    .buried = store_read64(bytes + 8),
	    .name = bytes + COUNTS,
	    .length = strnlen(bytes + COUNTS, value.size - COUNTS)};
	if (COUNTS + tube->length + KEPT == value.size)
		tube->kept = store_read64(bytes + COUNTS + tube->length + 1);
	else if (COUNTS + tube->length != value.size)
		return WW_ECORRUPT;
	return tube->length && tube->length <= WW_TUBE_MAX ? WW_OK : WW_ECORRUPT;
}

int ww_jobs_tubes_open(struct jobs_local *jobs)
{
	struct store_bytes key;
	struct store_bytes value;
	struct tube_value stored;
	struct tube *tube;
	int error = jobs->store.ops->seek(jobs->store.self, STORE_TUBES, (struct store_bytes){"", 0}, &key, &value);

	while (!error) {
		if (key.size != 4 || store_read32(key.data) >= NUMBERS || ww_jobs_tube_read(value, &stored))
			return WW_ECORRUPT;
		error = add_tube(jobs, store_read32(key.data), stored.name, stored.length, &tube);
		if (error)
			return error;
		tube->waiting = stored.waiting;
		tube->buried = stored.buried;
		tube->kept = stored.kept;
		jobs->all.kept += tube->kept;
		jobs->all.waiting += tube->waiting;
		jobs->all.buried += tube->buried;
		jobs->all.tubes += !is_empty(tube);
		error = jobs->store.ops->next(jobs->store.self, STORE_TUBES, &key, &value);
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

void ww_jobs_tubes_close(struct jobs_local *jobs)
{
	struct tube *tube;
	struct tube *next;

	HASH_ITER(hh, jobs->tubes, tube, next)
		free_tube(jobs, tube);
	ww_jobs_give(jobs, jobs->numbered, jobs->numbered_room * sizeof *jobs->numbered);
}

/* ---- Readiness */

void ww_jobs_tube_notify(struct tube *tube)
{
	if (tube->notify)
		return;
	tube->notify = 1;
	tube->next_notify = tube->jobs->notify;
	tube->jobs->notify = tube;
}

int ww_jobs_tube_is_paused(const struct tube *tube)
{
	return tube->pause_ends && ww_jobs_time(&tube->jobs->elapsed) < tube->pause_ends;
}
