/* Upkeep as time passes: slots are demoted and dropped, and dead rows are removed. */

#include "lib/jobs/store/slots.h"
#include "lib/jobs/store/sqlite.h"

/* Views that are demoted at a time: each piece reads the whole slot. */
enum { PICKED = 4 };
/* When what is left of a small slot is demoted, after its begin: what has ended may take long to reach the index. */
#define LEFT_FOR (24 * SLOTS_HOUR)
/* The most rows that one transaction removes: others wait for it. */
enum { DROP_ROWS = 50000, REWRITE_ROWS = 20000, PURGE_ROWS = 20000 };

/* Bytes that one piece moves or removes at most, about. Less than this that is dead is not worth a rewrite. */
#define PIECE_BYTES (INT64_C(8) << 20)

/* The number of a slot's rows that make a piece. */
static int piece_of(const struct slots_count *count, int rows)
{
	int64_t average = count->rows > 0 ? count->bytes / count->rows : 0;
	int64_t fit = PIECE_BYTES / (average + 1) + 1;

	return fit < rows ? (int)fit : rows;
}

static int step(sqlite3_stmt *statement)
{
	return ww_connection_step(statement);
}

/* ---- Demoting */

static int demote_job(struct slots *slots, uint64_t slot, struct slots_mark mark)
{
	sqlite3_stmt *read = slots->writes[PICK_JOB];
	sqlite3_stmt *near = slots->writes[PUT_NEAR];
	sqlite3_stmt *moved = slots->writes[PUT_MOVED];
	int line = slots_line(slot);
	unsigned char place[9];
	int error;

	sqlite3_bind_int64(read, 1, (sqlite3_int64)slot);
	sqlite3_bind_int64(read, 2, (sqlite3_int64)mark.id);
	error = step(read);
	if (!error) {
		sqlite3_bind_int64(near, 1, line);
		sqlite3_bind_int64(near, 2, (sqlite3_int64)mark.due);
		sqlite3_bind_int64(near, 3, (sqlite3_int64)mark.id);
		error = ww_connection_bind(
		    near, 4, (struct store_bytes){sqlite3_column_blob(read, 0), (size_t)sqlite3_column_bytes(read, 0)});
	}
	if (!error)
		error = ww_connection_done(near);
	sqlite3_reset(read);
	place[0] = line == SLOTS_WALL ? STORE_WALL : STORE_DUE;
	store_write64(place + 1, mark.due);
	sqlite3_bind_int64(moved, 1, (sqlite3_int64)mark.id);
	if (!error)
		error = ww_connection_bind(moved, 2, (struct store_bytes){place, sizeof place});
	return error ? error : ww_connection_done(moved);
}

static int demote_slot(struct slots *slots, const struct slots_count *count)
{
	uint64_t slot = count->slot;
	struct slots_view *view = &slots->picked;
	struct slots_mark *edge = &slots->edge[slots_line(slot)];
	int error = WW_OK;

	if (ww_store_slots_view_open(
	        view, slots->sqlite->allocator, (size_t)piece_of(count, PICKED * (int)ww_store_sizes.view)))
		return WW_ENOMEM;
	view->slot = slot;
	view->from = *edge;
	error = ww_store_slots_look(view, slots->writes[PICK_FAR], slots->writes[PICK_GONE], *edge);
	for (size_t i = 0; i < view->count && !error; i++)
		error = demote_job(slots, slot, view->jobs[i]);
	if (view->is_whole)
		*edge = (struct slots_mark){slots_start(slot) + SLOTS_HOUR, 0};
	else
		*edge = view->jobs[view->count - 1];
	ww_store_slots_view_close(view, slots->sqlite->allocator);
	return error;
}

static int64_t living(const struct slots_count *count)
{
	return count->rows - count->gone;
}

/* Demote a piece of a line if something there has to go. Returns 1 then. */
static int demote(struct slots *slots, int line, uint64_t now)
{
	const struct slots_count *first = NULL;
	int must = 0, error;

	for (size_t i = 0; i < slots->slots && now; i++) {
		const struct slots_count *count = &slots->counts[i];
		uint64_t start = slots_start(count->slot);
		if (slots_line(count->slot) != line || slots_is_passed(count->slot, slots->edge))
			continue;
		if (start > now + slots->ahead)
			break;
		first = first ? first : count;
		must |= start + LEFT_FOR <= now || living(count) > (int64_t)ww_store_sizes.view;
	}
	if (!must)
		return 0;
	error = demote_slot(slots, first);
	return error ? error : 1;
}

/* ---- Removing what is dead */

/* Execute a statement with the slot as ?1 and, if it has that, the limit as ?2. Returns how many rows it has removed. */
static int remove_rows(struct slots *slots, const char *text, uint64_t slot, int limit)
{
	sqlite3_stmt *statement = NULL;
	int error = ww_connection_prepare(slots->sqlite->writer, &statement, text);

	if (!error) {
		sqlite3_bind_int64(statement, 1, (sqlite3_int64)slot);
		if (sqlite3_bind_parameter_count(statement) > 1)
			sqlite3_bind_int(statement, 2, limit);
		error = ww_connection_done(statement);
	}
	sqlite3_finalize(statement);
	return error ? error : sqlite3_changes(slots->sqlite->writer);
}

/* Drop a slot that the edge has passed. */
static int drop(struct slots *slots, struct slots_count *count)
{
	int most = piece_of(count, DROP_ROWS);
	int rows = remove_rows(slots,
	    "delete from far where slot = ?1 and id <="
	    " (select max(id) from (select id from far where slot = ?1 order by id limit ?2))",
	    count->slot, most);
	int error = rows < 0 ? rows : WW_OK;

	if (rows < 0 || rows == most)
		return error;
	rows = remove_rows(slots, "delete from gone where slot = ?1", count->slot, 0);
	if (rows >= 0)
		rows = remove_rows(slots, "delete from slots where slot = ?1", count->slot, 0);
	if (rows >= 0) {
		size_t at = (size_t)(count - slots->counts);
		for (slots->slots--; at < slots->slots; at++)
			slots->counts[at] = slots->counts[at + 1];
	}
	return rows < 0 ? rows : WW_OK;
}

#define FIRST_GONE "(select max(id) from (select id from gone where slot = ?1 order by id limit ?2))"

/* Remove jobs that are gone from their slot, the marks last. */
static int rewrite(struct slots *slots, struct slots_count *count)
{
	int most = piece_of(count, REWRITE_ROWS);
	int rows = remove_rows(slots,
	    "delete from far where slot = ?1 and id in"
	    " (select id from gone where slot = ?1 order by id limit ?2)",
	    count->slot, most);
	int marks =
	    rows < 0 ? rows
	             : remove_rows(slots, "delete from gone where slot = ?1 and id <= " FIRST_GONE, count->slot, most);

	if (marks < 0)
		return marks;
	if (rows < count->rows) {
		count->bytes -= count->bytes / count->rows * rows;
		count->rows -= rows;
	} else
		count->rows = count->bytes = 0;
	count->gone = marks < most ? 0 : count->gone - marks;
	count->is_dirty = 1;
	return WW_OK;
}

static int is_half_gone(const struct slots_count *count)
{
	return count->gone * 2 > count->rows && (count->gone > ww_store_sizes.few || count->bytes / 2 > PIECE_BYTES);
}

/* Whether no job lies where the place says. One that has moved is found without it. */
static int is_dead(struct slots *slots, uint64_t slot, uint64_t id)
{
	sqlite3_stmt *find = slots->writes[FIND_MARK];
	int found;

	if (slots_is_passed(slot, slots->edge))
		return 1;
	sqlite3_bind_int64(find, 1, (sqlite3_int64)slot);
	sqlite3_bind_int64(find, 2, (sqlite3_int64)id);
	found = step(find) == WW_OK;
	sqlite3_reset(find);
	return found;
}

/* Remove the next places of dead jobs. */
static int purge(struct slots *slots)
{
	sqlite3_stmt *pick = slots->writes[PICK_PLACES];
	sqlite3_stmt *remove = slots->writes[REMOVE_PLACE];
	int error, left = PURGE_ROWS;

	sqlite3_bind_int64(pick, 1, (sqlite3_int64)slots->purged);
	sqlite3_bind_int(pick, 2, PURGE_ROWS);
	while (!(error = step(pick))) {
		uint64_t id = (uint64_t)sqlite3_column_int64(pick, 0);
		left--;
		slots->purged = id;
		if (!is_dead(slots, (uint64_t)sqlite3_column_int64(pick, 1), id))
			continue;
		sqlite3_bind_int64(remove, 1, (sqlite3_int64)id);
		error = ww_connection_done(remove);
		if (error)
			break;
		slots->placed--;
	}
	sqlite3_reset(pick);
	if (left > 0) {
		slots->purged = 0;
		slots->purge_above = 2 * slots->placed + ww_store_sizes.few;
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int is_purge_due(const struct slots *slots)
{
	int64_t alive = 0;

	for (size_t i = 0; i < slots->slots; i++)
		alive += living(&slots->counts[i]);
	return slots->purged || (slots->placed > 2 * alive + ww_store_sizes.few && slots->placed > slots->purge_above);
}

static int remove_dead(struct slots *slots)
{
	int error;

	for (size_t i = 0; i < slots->slots; i++) {
		struct slots_count *count = &slots->counts[i];
		if (slots_is_passed(count->slot, slots->edge))
			error = drop(slots, count);
		else if (is_half_gone(count) || (slots->is_pressed && count->gone > 0))
			error = rewrite(slots, count);
		else
			continue;
		return error ? error : 1;
	}
	if (!is_purge_due(slots))
		return 0;
	error = purge(slots);
	return error ? error : 1;
}

/* ---- One piece */

int ww_store_slots_tend(struct slots *slots, const uint64_t now[SLOTS_LINES])
{
	int did = ww_sqlite_begin(slots->sqlite);

	for (int line = 0; line < SLOTS_LINES && !did; line++)
		did = demote(slots, line, now[line]);
	if (!did)
		did = remove_dead(slots);
	if (!did)
		return ww_connection_run(slots->sqlite->writer, "rollback");
	int error = ww_sqlite_end(slots->sqlite, did < 0 ? did : ww_store_slots_save(slots));
	return error ? error : did;
}
