/* Reads the waiting jobs: by id, and in order of due time. */

#include <string.h>

#include "lib/jobs/store/slots.h"
#include "lib/jobs/store/sqlite.h"

static int line_of(enum store_table table)
{
	return table == STORE_WALL ? SLOTS_WALL : SLOTS_ELAPSED;
}

static void bind_mark(sqlite3_stmt *statement, int place, struct slots_mark mark)
{
	sqlite3_bind_int64(statement, place, (sqlite3_int64)mark.due);
	sqlite3_bind_int64(statement, place + 1, (sqlite3_int64)mark.id);
}

/* Numbers beyond those of SQLite come after all that there is. */
static struct slots_mark bounded(struct slots_mark mark)
{
	if (mark.due > INT64_MAX)
		return (struct slots_mark){INT64_MAX, INT64_MAX};
	mark.id = mark.id > INT64_MAX ? INT64_MAX : mark.id;
	return mark;
}

static int step(sqlite3_stmt *statement)
{
	return ww_connection_step(statement);
}

int ww_store_slots_begin(struct slots *slots)
{
	sqlite3_stmt *statement = slots->reads[READ_STATE];
	unsigned version = 0;
	int error = step(statement);

	for (int line = 0; line < SLOTS_LINES && !error; line++)
		slots->seen[line] = (struct slots_mark){(uint64_t)sqlite3_column_int64(statement, 2 * line),
		    (uint64_t)sqlite3_column_int64(statement, 2 * line + 1)};
	(void)sqlite3_file_control(slots->sqlite->reader, "main", SQLITE_FCNTL_DATA_VERSION, &version);
	for (int line = 0; line < SLOTS_LINES; line++) {
		struct slots_view *view = &slots->walk[line].view;
		view->is_valid = view->is_valid && view->version == version;
		view->version = version;
	}
	sqlite3_reset(statement);
	return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
}

void ww_store_slots_rest(struct slots *slots)
{
	for (int i = 0; i < SLOTS_READS; i++)
		sqlite3_reset(slots->reads[i]);
}

/* ---- By id */

/* Read a far job. WW_ENOTFOUND: it is not there, or gone. Without `job` only its due time. */
static int read_far(struct slots *slots, uint64_t slot, uint64_t id, struct slots_mark *mark, struct store_bytes *job)
{
	sqlite3_stmt *far = slots->reads[READ_FAR];
	sqlite3_stmt *gone = slots->reads[READ_GONE];
	int error;

	sqlite3_bind_int64(far, 1, (sqlite3_int64)slot);
	sqlite3_bind_int64(far, 2, (sqlite3_int64)id);
	error = step(far);
	if (!error)
		*mark = (struct slots_mark){slots_start(slot) + (uint64_t)sqlite3_column_int64(far, 0), id};
	if (!error && job)
		error = ww_sqlite_copy(slots->sqlite, far, 1, job);
	sqlite3_reset(far);
	if (error)
		return error;
	if (slots_is_near(*mark, slots->seen[slots_line(slot)]))
		return WW_ENOTFOUND;
	sqlite3_bind_int64(gone, 1, (sqlite3_int64)slot);
	sqlite3_bind_int64(gone, 2, (sqlite3_int64)id);
	error = step(gone);
	sqlite3_reset(gone);
	return error == WW_ENOTFOUND ? WW_OK : error ? error : WW_ENOTFOUND;
}

/* The value of JOBS of a job that lies where its place says. */
static int give_place(struct slots *slots, uint64_t slot, uint64_t id, struct store_bytes *value)
{
	struct slots_mark mark;
	int error = read_far(slots, slot, id, &mark, NULL);
	unsigned char *bytes = error ? NULL : ww_sqlite_room(slots->sqlite, 9);

	if (!bytes)
		return error ? error : WW_ENOMEM;
	bytes[0] = slots_line(slot) == SLOTS_WALL ? STORE_WALL : STORE_DUE;
	store_write64(bytes + 1, mark.due);
	*value = (struct store_bytes){bytes, 9};
	return WW_OK;
}

static int get_id(struct slots *slots, uint64_t id, struct store_bytes *value)
{
	sqlite3_stmt *moved = slots->reads[READ_MOVED];
	sqlite3_stmt *place = slots->reads[READ_PLACE];
	uint64_t slot = 0;
	int error;

	sqlite3_bind_int64(moved, 1, (sqlite3_int64)id);
	error = step(moved);
	if (!error)
		error = ww_sqlite_copy(slots->sqlite, moved, 0, value);
	sqlite3_reset(moved);
	if (error != WW_ENOTFOUND)
		return error;
	sqlite3_bind_int64(place, 1, (sqlite3_int64)id);
	error = step(place);
	if (!error)
		slot = (uint64_t)sqlite3_column_int64(place, 0);
	sqlite3_reset(place);
	return error ? error : give_place(slots, slot, id, value);
}

static int get_near(struct slots *slots, int line, struct slots_mark mark, struct store_bytes *value)
{
	sqlite3_stmt *near = slots->reads[READ_NEAR];
	int error;

	sqlite3_bind_int64(near, 1, line);
	bind_mark(near, 2, mark);
	error = step(near);
	if (!error)
		error = ww_sqlite_copy(slots->sqlite, near, 0, value);
	sqlite3_reset(near);
	return error;
}

int ww_store_slots_get(struct slots *slots, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	int line = line_of(table);
	struct slots_mark mark, found;
	int error;

	if (table == STORE_JOBS)
		return key.size == 8 ? get_id(slots, store_read64(key.data), value) : WW_ENOTFOUND;
	mark = slots_mark_of(key);
	if (slots_is_near(mark, slots->seen[line]))
		return get_near(slots, line, mark, value);
	error = read_far(slots, slots_of(line, mark.due), mark.id, &found, value);
	return error ? error : found.due == mark.due ? WW_OK : WW_ENOTFOUND;
}

/* ---- In order of due time */

static int give_pair(struct slots *slots, struct slots_mark mark, struct store_bytes *key)
{
	unsigned char *bytes = ww_sqlite_room(slots->sqlite, 16);

	if (!bytes)
		return WW_ENOMEM;
	store_write64(bytes, mark.due);
	store_write64(bytes + 8, mark.id);
	*key = (struct store_bytes){bytes, 16};
	return WW_OK;
}

static int step_near(struct slots *slots, sqlite3_stmt *statement, struct store_bytes *key, struct store_bytes *value)
{
	int error = step(statement);

	if (error)
		return error;
	error = ww_sqlite_copy(slots->sqlite, statement, 2, value);
	return error ? error
	             : give_pair(slots,
	                   (struct slots_mark){(uint64_t)sqlite3_column_int64(statement, 0),
	                       (uint64_t)sqlite3_column_int64(statement, 1)},
	                   key);
}

/* The slot with rows that comes next from `slot` on, or backwards. WW_ENOTFOUND: the line has none. */
static int find_slot(struct slots *slots, int back, uint64_t *slot)
{
	sqlite3_stmt *statement = slots->reads[back ? READ_SLOT_DOWN : READ_SLOT];
	int line = slots_line(*slot);
	int error;

	sqlite3_bind_int64(statement, 1, (sqlite3_int64)*slot);
	error = step(statement);
	if (!error)
		*slot = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return !error && slots_line(*slot) != line ? WW_ENOTFOUND : error;
}

static int look(struct slots *slots, struct slots_view *view, uint64_t slot, struct slots_mark from, int back)
{
	if (ww_store_slots_seen(view, slot, from, back))
		return WW_OK;
	if (ww_store_slots_view_open(view, slots->sqlite->allocator, ww_store_sizes.view))
		return WW_ENOMEM;
	view->slot = slot;
	view->from = from;
	view->back = back;
	return ww_store_slots_look(
	    view, slots->reads[SCAN_FAR], slots->reads[SCAN_GONE], slots->seen[slots_line(slot)]);
}

/* Let the view stand at the next far job, from its slot and `from` on. */
static int look_on(struct slots *slots, struct slots_view *view, uint64_t slot, struct slots_mark from, int back)
{
	int error = find_slot(slots, back, &slot);

	while (!error) {
		error = look(slots, view, slot, from, back);
		if (error || view->at < view->count)
			return error;
		if (!view->is_whole) {
			from = view->jobs[view->count - 1];
			from.id += !back;
			continue;
		}
		if (back ? slot % SLOTS_WALL_FIRST == 0 : (slot + 1) % SLOTS_WALL_FIRST == 0)
			return WW_ENOTFOUND;
		slot = back ? slot - 1 : slot + 1;
		error = find_slot(slots, back, &slot);
	}
	return error;
}

/* Give the far job at which the view stands. */
static int give_far(
    struct slots *slots, const struct slots_view *view, struct store_bytes *key, struct store_bytes *value)
{
	struct slots_mark mark = view->jobs[view->at], found;
	int error = read_far(slots, view->slot, mark.id, &found, value);

	return error ? (error == WW_ENOTFOUND ? WW_ECORRUPT : error) : give_pair(slots, mark, key);
}

static int seek_far(
    struct slots *slots, int line, struct slots_mark from, struct store_bytes *key, struct store_bytes *value)
{
	struct slots_walk *walk = &slots->walk[line];
	int error;

	walk->is_far = 1;
	error = look_on(slots, &walk->view, slots_of(line, from.due), from, 0);
	return error ? error : give_far(slots, &walk->view, key, value);
}

static int next_due(struct slots *slots, int line, struct store_bytes *key, struct store_bytes *value)
{
	struct slots_walk *walk = &slots->walk[line];
	struct slots_mark from;
	int error;

	if (!walk->is_far) {
		error = step_near(slots, slots->reads[SCAN_NEAR + line], key, value);
		return error == WW_ENOTFOUND ? seek_far(slots, line, slots->seen[line], key, value) : error;
	}
	if (++walk->view.at < walk->view.count)
		return give_far(slots, &walk->view, key, value);
	from = walk->view.jobs[walk->view.count - 1];
	from.id++;
	return seek_far(slots, line, from, key, value);
}

static int seek_due(
    struct slots *slots, int line, struct slots_mark from, struct store_bytes *key, struct store_bytes *value)
{
	sqlite3_stmt *near = slots->reads[SCAN_NEAR + line];

	sqlite3_reset(near);
	if (!slots_is_near(from, slots->seen[line]))
		return seek_far(slots, line, from, key, value);
	slots->walk[line].is_far = 0;
	sqlite3_bind_int64(near, 1, line);
	bind_mark(near, 2, from);
	return next_due(slots, line, key, value);
}

static int before_due(
    struct slots *slots, int line, struct slots_mark to, struct store_bytes *key, struct store_bytes *value)
{
	struct slots_view *view = &slots->walk[line].view;
	sqlite3_stmt *near = slots->reads[READ_NEAR_DOWN];
	int error = WW_ENOTFOUND;

	if (slots_is_before(slots->seen[line], to))
		error = look_on(slots, view, slots_of(line, to.due), to, 1);
	if (!error)
		return give_far(slots, view, key, value);
	if (error != WW_ENOTFOUND)
		return error;
	sqlite3_bind_int64(near, 1, line);
	bind_mark(near, 2, to);
	error = step_near(slots, near, key, value);
	sqlite3_reset(near);
	return error;
}

/* ---- In order of ids: those of place and of moved, of which moved hides the other */

/*
 * Give the job of the row at which either statement is, and step on behind it. *place and *moved are the results of their
 * last steps. Upwards, the lesser id comes first. WW_ENOTFOUND: it is a place of a job that is dead; *key says which.
 */
static int give_id(struct slots *slots, sqlite3_stmt *row[2], int found[2], int back, struct store_bytes *key,
    struct store_bytes *value)
{
	enum { PLACE, MOVED };
	uint64_t id[2];
	unsigned char *bytes = ww_sqlite_room(slots->sqlite, 8);
	int first, error;

	if (!bytes)
		return WW_ENOMEM;
	for (int i = PLACE; i <= MOVED; i++)
		id[i] = found[i] ? (back ? 0 : UINT64_MAX) : (uint64_t)sqlite3_column_int64(row[i], 0);
	first = (back ? id[MOVED] >= id[PLACE] : id[MOVED] <= id[PLACE]) ? MOVED : PLACE;
	store_write64(bytes, id[first]);
	*key = (struct store_bytes){bytes, 8};
	if (first == MOVED)
		error = ww_sqlite_copy(slots->sqlite, row[MOVED], 1, value);
	else
		error = give_place(slots, (uint64_t)sqlite3_column_int64(row[PLACE], 1), id[PLACE], value);
	for (int i = PLACE; i <= MOVED; i++)
		if (!found[i] && id[i] == id[first])
			found[i] = step(row[i]);
	return error;
}

static int next_id(struct slots *slots, int back, struct store_bytes *key, struct store_bytes *value)
{
	sqlite3_stmt *row[2] = {
	    slots->reads[back ? SCAN_PLACE_DOWN : SCAN_PLACE], slots->reads[back ? SCAN_MOVED_DOWN : SCAN_MOVED]};
	int *found = slots->ids;
	int error = WW_ENOTFOUND;

	while (error == WW_ENOTFOUND) {
		for (int i = 0; i < 2; i++)
			if (found[i] && found[i] != WW_ENOTFOUND)
				return found[i];
		if (found[0] && found[1])
			return WW_ENOTFOUND;
		error = give_id(slots, row, found, back, key, value);
	}
	return error;
}

static int seek_id(struct slots *slots, uint64_t from, int back, struct store_bytes *key, struct store_bytes *value)
{
	static const int statements[2][2] = {{SCAN_PLACE, SCAN_MOVED}, {SCAN_PLACE_DOWN, SCAN_MOVED_DOWN}};

	for (int i = 0; i < 2; i++) {
		sqlite3_stmt *row = slots->reads[statements[back][i]];
		sqlite3_reset(row);
		sqlite3_bind_int64(row, 1, from > INT64_MAX ? INT64_MAX : (sqlite3_int64)from);
		slots->ids[i] = step(row);
	}
	return next_id(slots, back, key, value);
}

int ww_store_slots_seek(struct slots *slots, enum store_table table, struct store_bytes from, struct store_bytes *key,
    struct store_bytes *value)
{
	struct slots_mark mark = slots_mark_of(from);

	if (table == STORE_JOBS)
		return seek_id(slots, mark.due + (from.size > 8), 0, key, value);
	return seek_due(slots, line_of(table), bounded(mark), key, value);
}

int ww_store_slots_before(struct slots *slots, enum store_table table, struct store_bytes to, struct store_bytes *key,
    struct store_bytes *value)
{
	struct slots_mark mark = slots_mark_of(to);

	if (table == STORE_JOBS)
		return seek_id(slots, mark.due, 1, key, value);
	return before_due(slots, line_of(table), bounded(mark), key, value);
}

int ww_store_slots_next(struct slots *slots, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	if (table == STORE_JOBS)
		return next_id(slots, 0, key, value);
	return next_due(slots, line_of(table), key, value);
}
