/* Writes the waiting jobs that a takeover brings. */

#include <string.h>

#include "lib/base/memory.h"
#include "lib/jobs/store/slots.h"
#include "lib/jobs/store/sqlite.h"

/* ---- Counts */

struct slots_count *ww_store_slots_count(struct slots *slots, uint64_t slot)
{
	size_t low = 0, high = slots->slots;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (slots->counts[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < slots->slots && slots->counts[low].slot == slot)
		return &slots->counts[low];
	if (slots->slots == slots->room) {
		size_t room = slots->room ? 2 * slots->room : 256;
		struct slots_count *more = memory_take(slots->sqlite->allocator, room * sizeof *more);
		if (!more)
			return NULL;
		if (slots->slots)
			memcpy(more, slots->counts, slots->slots * sizeof *more);
		memory_give(slots->sqlite->allocator, slots->counts, slots->room * sizeof *more);
		slots->counts = more;
		slots->room = room;
	}
	memmove(slots->counts + low + 1, slots->counts + low, (slots->slots++ - low) * sizeof *slots->counts);
	slots->counts[low] = (struct slots_count){.slot = slot};
	return &slots->counts[low];
}

static int add_to_count(struct slots *slots, uint64_t slot, int64_t rows, int64_t gone, size_t bytes)
{
	struct slots_count *count = ww_store_slots_count(slots, slot);

	if (!count)
		return WW_ENOMEM;
	count->rows += rows;
	count->gone += gone;
	count->bytes += (int64_t)bytes;
	count->is_dirty = 1;
	return WW_OK;
}

int ww_store_slots_save(struct slots *slots)
{
	sqlite3_stmt *state = slots->writes[PUT_STATE];
	sqlite3_stmt *put = slots->writes[PUT_COUNT];
	int error = WW_OK;

	for (size_t i = 0; i < slots->slots && !error; i++) {
		struct slots_count *count = &slots->counts[i];
		if (!count->is_dirty)
			continue;
		sqlite3_bind_int64(put, 1, (sqlite3_int64)count->slot);
		sqlite3_bind_int64(put, 2, count->rows);
		sqlite3_bind_int64(put, 3, count->gone);
		sqlite3_bind_int64(put, 4, count->bytes);
		error = ww_connection_done(put);
		count->is_dirty = 0;
	}
	for (int line = 0; line < SLOTS_LINES; line++) {
		sqlite3_bind_int64(state, 2 * line + 1, (sqlite3_int64)slots->edge[line].due);
		sqlite3_bind_int64(state, 2 * line + 2, (sqlite3_int64)slots->edge[line].id);
	}
	sqlite3_bind_int64(state, 5, slots->placed);
	return error ? error : ww_connection_done(state);
}

/* ---- Jobs */

static int bind_job(sqlite3_stmt *statement, int place, struct slots_mark mark)
{
	sqlite3_bind_int64(statement, place, (sqlite3_int64)mark.due);
	return ww_connection_bind_number(statement, place + 1, mark.id);
}

static int put_far(struct slots *slots, int line, struct slots_mark mark, struct store_bytes job)
{
	uint64_t slot = slots_of(line, mark.due);
	sqlite3_stmt *far = slots->writes[PUT_FAR];
	sqlite3_stmt *gone = slots->writes[REMOVE_GONE];
	int error = add_to_count(slots, slot, 1, 0, job.size);

	sqlite3_bind_int64(far, 1, (sqlite3_int64)slot);
	sqlite3_bind_int64(far, 2, (sqlite3_int64)mark.id);
	sqlite3_bind_int64(far, 3, (sqlite3_int64)(mark.due - slots_start(slot)));
	if (!error)
		error = ww_connection_bind(far, 4, job);
	if (!error)
		error = ww_connection_done(far);
	/* It may have been in this slot before. */
	if (error || ww_store_slots_count(slots, slot)->gone == 0)
		return error;
	sqlite3_bind_int64(gone, 1, (sqlite3_int64)slot);
	sqlite3_bind_int64(gone, 2, (sqlite3_int64)mark.id);
	error = ww_connection_done(gone);
	if (!error && sqlite3_changes(slots->sqlite->writer) > 0)
		error = add_to_count(slots, slot, -1, -1, 0);
	return error;
}

/* Whether a far job gets a place: it is new, nothing in moved can hide that. */
static int gets_place(const struct slots *slots, uint64_t id, struct store_bytes value, uint64_t *slot)
{
	const unsigned char *bytes = value.data;
	int line;
	uint64_t due;

	if (value.size != 9 || id <= slots->highest)
		return 0;
	line = bytes[0] == STORE_WALL ? SLOTS_WALL : SLOTS_ELAPSED;
	due = store_read64(bytes + 1);
	*slot = slots_of(line, due);
	return !slots_is_near((struct slots_mark){due, id}, slots->edge[line]);
}

static int put_id(struct slots *slots, uint64_t id, struct store_bytes value)
{
	uint64_t slot = 0;
	int has_place = gets_place(slots, id, value, &slot);
	sqlite3_stmt *put = slots->writes[has_place ? PUT_PLACE : PUT_MOVED];
	int error;

	if (id > slots->highest)
		slots->highest = id;
	slots->placed += has_place;
	sqlite3_bind_int64(put, 1, (sqlite3_int64)id);
	error = has_place ? ww_connection_bind_number(put, 2, slot) : ww_connection_bind(put, 2, value);
	return error ? error : ww_connection_done(put);
}

int ww_store_slots_put(struct slots *slots, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	int line = table == STORE_WALL ? SLOTS_WALL : SLOTS_ELAPSED;
	struct slots_mark mark = slots_mark_of(key);
	sqlite3_stmt *near = slots->writes[PUT_NEAR];
	int error;

	if (table == STORE_JOBS)
		return put_id(slots, mark.due, value);
	if (!slots_is_near(mark, slots->edge[line]))
		return put_far(slots, line, mark, value);
	sqlite3_bind_int64(near, 1, line);
	error = bind_job(near, 2, mark);
	if (!error)
		error = ww_connection_bind(near, 4, value);
	return error ? error : ww_connection_done(near);
}

int ww_store_slots_remove(struct slots *slots, enum store_table table, struct store_bytes key)
{
	int line = table == STORE_WALL ? SLOTS_WALL : SLOTS_ELAPSED;
	struct slots_mark mark = slots_mark_of(key);
	sqlite3_stmt *statement;
	uint64_t slot;
	int error;

	if (table == STORE_JOBS) {
		statement = slots->writes[REMOVE_MOVED];
		sqlite3_bind_int64(statement, 1, (sqlite3_int64)mark.due);
		return ww_connection_done(statement);
	}
	if (slots_is_near(mark, slots->edge[line])) {
		statement = slots->writes[REMOVE_NEAR];
		sqlite3_bind_int64(statement, 1, line);
		error = bind_job(statement, 2, mark);
		return error ? error : ww_connection_done(statement);
	}
	slot = slots_of(line, mark.due);
	statement = slots->writes[PUT_GONE];
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)slot);
	sqlite3_bind_int64(statement, 2, (sqlite3_int64)mark.id);
	error = ww_connection_done(statement);
	return error ? error : add_to_count(slots, slot, 0, 1, 0);
}
