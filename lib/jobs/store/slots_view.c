/* Jobs of a slot in order of due time: a heap picks the first of them while the slot is read. */

#include "lib/base/memory.h"
#include "lib/jobs/store/slots.h"
#include "lib/jobs/store/sqlite.h"

int ww_store_slots_view_open(struct slots_view *view, const struct ww_allocator *allocator, size_t room)
{
	if (view->jobs)
		return WW_OK;
	view->room = room;
	view->jobs = memory_take(allocator, view->room * sizeof *view->jobs);
	return view->jobs ? WW_OK : WW_ENOMEM;
}

void ww_store_slots_view_close(struct slots_view *view, const struct ww_allocator *allocator)
{
	memory_give(allocator, view->jobs, view->room * sizeof *view->jobs);
	*view = (struct slots_view){0};
}

/* Whether a comes after b in the view's direction. */
static int is_after(const struct slots_view *view, struct slots_mark a, struct slots_mark b)
{
	return view->back ? slots_is_before(a, b) : slots_is_before(b, a);
}

/* The heap has the last job of the view at its top. */
static void sink(struct slots_view *view, size_t place, size_t count)
{
	struct slots_mark job = view->jobs[place];

	for (size_t child; (child = 2 * place + 1) < count; place = child) {
		if (child + 1 < count && is_after(view, view->jobs[child + 1], view->jobs[child]))
			child++;
		if (!is_after(view, view->jobs[child], job))
			break;
		view->jobs[place] = view->jobs[child];
	}
	view->jobs[place] = job;
}

static void rise(struct slots_view *view, size_t place)
{
	struct slots_mark job = view->jobs[place];

	for (size_t parent; place; place = parent) {
		parent = (place - 1) / 2;
		if (!is_after(view, job, view->jobs[parent]))
			break;
		view->jobs[place] = view->jobs[parent];
	}
	view->jobs[place] = job;
}

static void pick(struct slots_view *view, struct slots_mark job)
{
	if (view->count < view->room) {
		view->jobs[view->count++] = job;
		rise(view, view->count - 1);
		return;
	}
	view->is_whole = 0;
	if (!is_after(view, view->jobs[0], job))
		return;
	view->jobs[0] = job;
	sink(view, 0, view->count);
}

static void sort(struct slots_view *view)
{
	for (size_t left = view->count; left > 1;) {
		struct slots_mark last = view->jobs[0];
		view->jobs[0] = view->jobs[--left];
		view->jobs[left] = last;
		sink(view, 0, left);
	}
}

/* Whether the id is among those that are gone: both statements go up. */
static int is_gone(sqlite3_stmt *gone, uint64_t id, int *left, int *error)
{
	while (*left && !*error && (uint64_t)sqlite3_column_int64(gone, 0) < id) {
		*error = ww_connection_step(gone);
		if (*error == WW_ENOTFOUND)
			*left = *error = 0;
	}
	return *left && (uint64_t)sqlite3_column_int64(gone, 0) == id;
}

int ww_store_slots_look(struct slots_view *view, sqlite3_stmt *far, sqlite3_stmt *gone, struct slots_mark edge)
{
	uint64_t start = slots_start(view->slot);
	int left, error;

	view->count = view->at = 0;
	view->is_whole = 1;
	sqlite3_bind_int64(far, 1, (sqlite3_int64)view->slot);
	sqlite3_bind_int64(gone, 1, (sqlite3_int64)view->slot);
	error = ww_connection_step(gone);
	left = !error;
	if (error == WW_ENOTFOUND)
		error = WW_OK;
	while (!error && !(error = ww_connection_step(far))) {
		struct slots_mark job = {
		    start + (uint64_t)sqlite3_column_int64(far, 1), (uint64_t)sqlite3_column_int64(far, 0)};
		int fits = view->back ? slots_is_before(job, view->from) : !slots_is_before(job, view->from);
		if (!is_gone(gone, job.id, &left, &error) && fits && !slots_is_near(job, edge))
			pick(view, job);
	}
	/* The last statement returns what SQLite has found. */
	sqlite3_reset(gone);
	sqlite3_reset(far);
	if (error == WW_ENOTFOUND)
		error = WW_OK;
	sort(view);
	view->is_valid = !error;
	return error;
}

int ww_store_slots_seen(struct slots_view *view, uint64_t slot, struct slots_mark from, int back)
{
	size_t low = 0, high = view->count;

	if (!view->is_valid || view->slot != slot || view->back != back || is_after(view, view->from, from))
		return 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct slots_mark job = view->jobs[middle];
		if (back ? slots_is_before(job, from) : !slots_is_before(job, from))
			high = middle;
		else
			low = middle + 1;
	}
	view->at = low;
	return low < view->count || view->is_whole;
}
