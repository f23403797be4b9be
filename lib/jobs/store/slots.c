/* The tables of the slots, the statements, and what the writer keeps in memory. */

#include <string.h>

#include "lib/base/memory.h"
#include "lib/jobs/store/slots.h"
#include "lib/jobs/store/sqlite.h"

int ww_store_slots_make(struct sqlite *sqlite)
{
	return ww_connection_run(sqlite->writer,
	    "create table if not exists far (slot integer, id integer, due integer not null, job blob not null,"
	    " primary key (slot, id)) without rowid;"
	    "create table if not exists gone (slot integer, id integer, primary key (slot, id)) without rowid;"
	    "create table if not exists near (line integer, due integer, id integer, job blob not null,"
	    " primary key (line, due, id)) without rowid;"
	    "create table if not exists place (id integer primary key, slot integer not null);"
	    "create table if not exists moved (id integer primary key, place blob not null);"
	    "create table if not exists slots (slot integer primary key, rows integer not null, gone integer not null,"
	    " bytes integer not null);"
	    "create table if not exists state (one integer primary key, due integer not null, id integer not null,"
	    " wall_due integer not null, wall_id integer not null, placed integer not null);"
	    "insert or ignore into state values (1, 0, 0, 0, 0, 0)");
}

static const char *const reads[SLOTS_READS] = {
    [READ_STATE] = "select due, id, wall_due, wall_id, placed from state",
    [READ_MOVED] = "select place from moved where id = ?",
    [READ_PLACE] = "select slot from place where id = ?",
    [READ_FAR] = "select due, job from far where slot = ? and id = ?",
    [READ_GONE] = "select 1 from gone where slot = ? and id = ?",
    [READ_NEAR] = "select job from near where line = ? and due = ? and id = ?",
    [READ_SLOT] = "select slot from far where slot >= ? order by slot limit 1",
    [READ_SLOT_DOWN] = "select slot from far where slot <= ? order by slot desc limit 1",
    [SCAN_FAR] = "select id, due from far where slot = ? order by id",
    [SCAN_GONE] = "select id from gone where slot = ? order by id",
    [SCAN_NEAR] = "select due, id, job from near where line = ? and (due, id) >= (?, ?) order by due, id",
    [SCAN_NEAR_WALL] = "select due, id, job from near where line = ? and (due, id) >= (?, ?) order by due, id",
    [SCAN_PLACE] = "select id, slot from place where id >= ? order by id",
    [SCAN_MOVED] = "select id, place from moved where id >= ? order by id",
    [READ_NEAR_DOWN] =
        "select due, id, job from near where line = ? and (due, id) < (?, ?) order by due desc, id desc limit 1",
    [SCAN_PLACE_DOWN] = "select id, slot from place where id < ? order by id desc",
    [SCAN_MOVED_DOWN] = "select id, place from moved where id < ? order by id desc",
};

static const char *const writes[SLOTS_WRITES] = {
    [PICK_FAR] = "select id, due from far where slot = ? order by id",
    [PICK_GONE] = "select id from gone where slot = ? order by id",
    [PICK_JOB] = "select job from far where slot = ? and id = ?",
    [PICK_PLACES] = "select id, slot from place where id > ? order by id limit ?",
    [FIND_MARK] = "select 1 from gone where slot = ? and id = ?",
    [PUT_FAR] = "insert or replace into far values (?, ?, ?, ?)",
    [PUT_NEAR] = "insert or replace into near values (?, ?, ?, ?)",
    [PUT_GONE] = "insert or replace into gone values (?, ?)",
    [PUT_PLACE] = "insert or replace into place values (?, ?)",
    [PUT_MOVED] = "insert or replace into moved values (?, ?)",
    [PUT_COUNT] = "insert or replace into slots values (?, ?, ?, ?)",
    [PUT_STATE] = "insert or replace into state values (1, ?, ?, ?, ?, ?)",
    [REMOVE_NEAR] = "delete from near where line = ? and due = ? and id = ?",
    [REMOVE_GONE] = "delete from gone where slot = ? and id = ?",
    [REMOVE_MOVED] = "delete from moved where id = ?",
    [REMOVE_PLACE] = "delete from place where id = ?",
};

static int read_state(struct slots *slots)
{
	sqlite3_stmt *statement = NULL;
	int error = ww_connection_prepare(slots->sqlite->writer, &statement, reads[READ_STATE]);

	if (!error)
		error = ww_connection_step(statement);
	for (int line = 0; line < SLOTS_LINES && !error; line++)
		slots->edge[line] = (struct slots_mark){(uint64_t)sqlite3_column_int64(statement, 2 * line),
		    (uint64_t)sqlite3_column_int64(statement, 2 * line + 1)};
	if (!error)
		slots->placed = sqlite3_column_int64(statement, 4);
	sqlite3_finalize(statement);
	return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
}

static int read_counts(struct slots *slots)
{
	sqlite3_stmt *statement = NULL;
	int error = ww_connection_prepare(
	    slots->sqlite->writer, &statement, "select slot, rows, gone, bytes from slots order by slot");

	slots->slots = 0;
	while (!error && !(error = ww_connection_step(statement))) {
		struct slots_count *count = ww_store_slots_count(slots, (uint64_t)sqlite3_column_int64(statement, 0));
		if (!count) {
			error = WW_ENOMEM;
			break;
		}
		count->rows = sqlite3_column_int64(statement, 1);
		count->gone = sqlite3_column_int64(statement, 2);
		count->bytes = sqlite3_column_int64(statement, 3);
		count->is_dirty = 0;
	}
	sqlite3_finalize(statement);
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int read_last(sqlite3 *connection, const char *text, uint64_t *id)
{
	sqlite3_stmt *statement = NULL;
	int error = ww_connection_prepare(connection, &statement, text);

	if (!error)
		error = ww_connection_step(statement);
	*id = error ? 0 : (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return error == WW_ENOTFOUND ? WW_OK : error;
}

int ww_store_slots_highest(sqlite3 *connection, uint64_t *id)
{
	uint64_t moved;
	int error = read_last(connection, "select max(id) from place", id);

	if (!error)
		error = read_last(connection, "select max(id) from moved", &moved);
	if (!error && moved > *id)
		*id = moved;
	return error;
}

int ww_store_slots_reread(struct slots *slots)
{
	int error;

	if (!slots->sqlite || !slots->sqlite->writer)
		return WW_OK;
	error = read_state(slots);
	if (!error)
		error = read_counts(slots);
	return error ? error : ww_store_slots_highest(slots->sqlite->writer, &slots->highest);
}

int ww_store_slots_open(struct slots *slots, struct sqlite *sqlite, uint64_t ahead)
{
	int error = WW_OK;

	*slots = (struct slots){.sqlite = sqlite, .ahead = ahead};
	for (int i = 0; i < SLOTS_READS && !error; i++)
		error = ww_connection_prepare(sqlite->reader, &slots->reads[i], reads[i]);
	for (int i = 0; i < SLOTS_WRITES && !error && sqlite->writer; i++)
		error = ww_connection_prepare(sqlite->writer, &slots->writes[i], writes[i]);
	return error ? error : ww_store_slots_reread(slots);
}

void ww_store_slots_close(struct slots *slots)
{
	if (!slots->sqlite)
		return;
	for (int i = 0; i < SLOTS_READS; i++)
		sqlite3_finalize(slots->reads[i]);
	for (int i = 0; i < SLOTS_WRITES; i++)
		sqlite3_finalize(slots->writes[i]);
	for (int line = 0; line < SLOTS_LINES; line++)
		ww_store_slots_view_close(&slots->walk[line].view, slots->sqlite->allocator);
	ww_store_slots_view_close(&slots->picked, slots->sqlite->allocator);
	memory_give(slots->sqlite->allocator, slots->counts, slots->room * sizeof *slots->counts);
	*slots = (struct slots){0};
}
