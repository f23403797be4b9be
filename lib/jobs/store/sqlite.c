/* The index in SQLite. */

#include "lib/jobs/store/sqlite.h"
#include "lib/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/crc32c.h"
#include "lib/base/memory.h"
#include "lib/jobs/store/files.h"
#include "lib/jobs/store/pages.h"

enum { BLOCK_SIZE = 16384 };
/* The log is copied into the database when it has this many pages. A page that was written often is copied once. */
enum { CHECKPOINT_PAGES = 2000 };
/* Less than this is left in it at rest. */
enum { REST_PAGES = 250 };
/* How long before they are due jobs of a large slot are demoted, at least. The window of those in memory comes on top. */
#define AHEAD (600 * UINT64_C(1000000000))

struct sqlite_block {
	struct sqlite_block *older;
	size_t size; /* of the bytes */
	size_t used;
	unsigned char bytes[];
};

/* Note a failed sync, of a statement or a checkpoint. */
static int note_sync(struct sqlite *sqlite, int error)
{
	const char *name;
	int reason = ww_pages_failed_sync(sqlite->writer, &name);
	char path[4096];

	if (!reason)
		return error;
	(void)snprintf(path, sizeof path, "%s%s", sqlite3_db_filename(sqlite->writer, "main"), name);
	return ww_fault_sync(sqlite->fault, path, reason);
}

static int count_pages(void *context, sqlite3 *connection, const char *name, int pages)
{
	(void)connection;
	(void)name;
	((struct sqlite *)context)->pages = pages;
	return SQLITE_OK;
}

/* ---- Opening */

static int prepare(sqlite3 *connection, sqlite3_stmt **statement, const char *text, const char *table)
{
	char full[160];

	(void)snprintf(full, sizeof full, text, table);
	return ww_connection_prepare(connection, statement, full);
}

/* The tables that are kept as they are: pairs with a sum. */
static const char *const names[STORE_TABLES] = {[STORE_META] = "meta",
    [STORE_BURIED] = "buried",
    [STORE_KEYS] = "keys",
    [STORE_TUBES] = "tubes",
    [STORE_COUNTS] = "counts"};

static int prepare_table(struct sqlite *sqlite, int i)
{
	struct sqlite_table *table = &sqlite->table[i];
	int error = prepare(sqlite->reader, &table->get, "select value from %s where key = ?", names[i]);

	if (!error)
		error = prepare(
		    sqlite->reader, &table->from, "select key, value from %s where key >= ? order by key", names[i]);
	if (!error)
		error = prepare(sqlite->reader, &table->before,
		    "select key, value from %s where key < ? order by key desc limit 1", names[i]);
	if (!error && sqlite->writer)
		error = prepare(sqlite->writer, &table->put, "insert or replace into %s values (?, ?)", names[i]);
	if (!error && sqlite->writer)
		error = prepare(sqlite->writer, &table->remove, "delete from %s where key = ?", names[i]);
	return error;
}

static int make_tables(struct sqlite *sqlite)
{
	char text[160];
	int error = ww_connection_run(sqlite->writer, "begin immediate");

	for (int i = 0; i < STORE_TABLES && !error; i++) {
		if (!names[i])
			continue;
		(void)snprintf(text, sizeof text,
		    "create table if not exists %s (key blob primary key, value blob not null) without rowid",
		    names[i]);
		error = ww_connection_run(sqlite->writer, text);
	}
	if (!error)
		error = ww_store_slots_make(sqlite);
	if (!error)
		error = ww_connection_run(sqlite->writer,
		    "create table if not exists journal (one integer primary key, cut integer, record integer);"
		    "insert or ignore into journal values (1, 0, 1);"
		    /* From here on there is a log. */
		    "update journal set one = 1");
	if (!error)
		error = ww_connection_run(sqlite->writer, "commit");
	return error;
}

/*
 * Whether the file has all the pages that its head counts. SQLite would take a file that was cut short for a smaller
 * one. Nothing of it is in the log. The file is read through SQLite: closing another descriptor of it would give up
 * SQLite's locks.
 */
static int check_size(struct sqlite *sqlite)
{
	unsigned char head[32] = "";
	sqlite3_file *file = NULL;
	sqlite3_int64 size = 0;
	int code = sqlite3_file_control(sqlite->writer, "main", SQLITE_FCNTL_FILE_POINTER, &file);

	if (!code)
		code = file->pMethods->xFileSize(file, &size);
	if (!code && size)
		code = file->pMethods->xRead(file, head, sizeof head, 0);
	if (!code && (uint64_t)size < (uint64_t)store_read32(head + 28) * PAGES_SIZE)
		code = SQLITE_CORRUPT;
	return ww_connection_error(sqlite->writer, code);
}

static int read_cut(struct sqlite *sqlite, uint64_t *cut, uint64_t *record)
{
	sqlite3_stmt *statement = NULL;
	int error = ww_connection_prepare(sqlite->reader, &statement, "select cut, record from journal");

	if (!error)
		error = ww_connection_step(statement);
	if (!error) {
		*cut = (uint64_t)sqlite3_column_int64(statement, 0);
		*record = (uint64_t)sqlite3_column_int64(statement, 1);
	}
	sqlite3_finalize(statement);
	return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
}

static void reset_all(struct sqlite *sqlite)
{
	for (int i = 0; i < STORE_TABLES; i++)
		sqlite3_reset(sqlite->table[i].from);
	ww_store_slots_rest(&sqlite->slots);
}

/* The end of a transaction may fail, too. While it stays open, nothing written since can be read. */
static int leave(sqlite3 *reader)
{
	return sqlite3_get_autocommit(reader) ? WW_OK : ww_connection_run(reader, "commit");
}

static int begin_reading(struct sqlite *sqlite)
{
	int error;

	/* SQLite ends it after some errors. */
	if (sqlite->reading && sqlite3_get_autocommit(sqlite->reader)) {
		reset_all(sqlite);
		sqlite->reading = 0;
	}
	if (sqlite->reading)
		return WW_OK;
	error = leave(sqlite->reader);
	if (!error)
		error = ww_connection_run(sqlite->reader, "begin");
	if (!error)
		error = ww_store_slots_begin(&sqlite->slots);
	sqlite->reading = !error;
	return error;
}

static void end_reading(struct sqlite *sqlite)
{
	if (!sqlite->reader)
		return;
	reset_all(sqlite);
	(void)leave(sqlite->reader);
	sqlite->reading = 0;
}

static int prepare_all(struct sqlite *sqlite)
{
	int error = ww_connection_run(sqlite->reader, "pragma cache_size = -1024");

	for (int i = 0; i < STORE_TABLES && !error; i++)
		error = names[i] ? prepare_table(sqlite, i) : WW_OK;
	return error ? error : ww_store_slots_open(&sqlite->slots, sqlite, sqlite->ahead);
}

static void finalize_all(struct sqlite *sqlite)
{
	ww_store_slots_close(&sqlite->slots);
	for (int i = 0; i < STORE_TABLES; i++) {
		sqlite3_finalize(sqlite->table[i].get);
		sqlite3_finalize(sqlite->table[i].from);
		sqlite3_finalize(sqlite->table[i].before);
		sqlite3_finalize(sqlite->table[i].put);
		sqlite3_finalize(sqlite->table[i].remove);
		sqlite->table[i] = (struct sqlite_table){0};
	}
}

/* SQLite would let everybody read it, and gives its log the same mode. */
static int make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? WW_OK : error_of_errno(errno);
	close(fd);
	return WW_OK;
}

int ww_sqlite_open(struct sqlite *sqlite, const struct ww_jobs_config *config, struct journal_fault *fault,
    uint64_t *cut, uint64_t *record)
{
	int read_only = (config->flags & WW_JOBS_READONLY) != 0;
	char path[4096];
	int error = WW_OK;

	*sqlite = (struct sqlite){.allocator = config->allocator,
	    .folder = config->path,
	    .fault = fault,
	    .ahead = AHEAD + 2 * config->window};
	(void)snprintf(path, sizeof path, "%s/index.db", config->path);
	if (!read_only)
		error = make_file(path);
	if (!error && !read_only)
		error = ww_connection_open(&sqlite->writer, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	if (!error && !read_only)
		error = ww_connection_run(sqlite->writer,
		    "pragma page_size = 4096; pragma journal_mode = wal; pragma synchronous = full;"
		    "pragma cache_size = -1024; pragma temp_store = memory; pragma journal_size_limit = 16777216;"
		    "pragma secure_delete = off; pragma wal_checkpoint(truncate)");
	if (!error && !read_only)
		(void)sqlite3_wal_hook(sqlite->writer, count_pages, sqlite); /* in place of SQLite's own */
	if (!error && !read_only)
		error = check_size(sqlite);
	if (!error && !read_only)
		error = make_tables(sqlite);
	if (!error)
		error =
		    ww_connection_open(&sqlite->reader, path, read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
	if (!error)
		error = prepare_all(sqlite);
	/* A reader continues with what there is now. */
	if (!error && read_only)
		error = begin_reading(sqlite);
	if (!error)
		error = read_cut(sqlite, cut, record);
	if (error)
		ww_sqlite_close(sqlite);
	return error;
}

int ww_sqlite_detach(struct sqlite *sqlite)
{
	sqlite3 *copy = NULL;
	int error = ww_connection_copy(sqlite->reader, &copy);

	if (error) {
		sqlite3_close(copy);
		return error == WW_ECORRUPT ? WW_OK : error;
	}
	end_reading(sqlite);
	finalize_all(sqlite);
	sqlite->file = sqlite->reader;
	sqlite->reader = copy;
	return prepare_all(sqlite);
}

static void keep_log(sqlite3 *connection)
{
	if (connection)
		(void)sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void ww_sqlite_close(struct sqlite *sqlite)
{
	ww_sqlite_rest(sqlite);
	end_reading(sqlite);
	finalize_all(sqlite);
	/* Only a store that was closed in order has no log: without one the next opening refuses it. */
	if (!sqlite->is_ended) {
		keep_log(sqlite->reader);
		keep_log(sqlite->writer);
	}
	sqlite3_close(sqlite->file);
	sqlite3_close(sqlite->reader);
	sqlite3_close(sqlite->writer);
	*sqlite = (struct sqlite){.allocator = sqlite->allocator, .fault = sqlite->fault};
}

/* ---- Reading */

unsigned char *ww_sqlite_room(struct sqlite *sqlite, size_t size)
{
	struct sqlite_block *block = sqlite->blocks;

	if (!block || block->size - block->used < size) {
		size_t bytes = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		block = memory_take(sqlite->allocator, sizeof *block + bytes);
		if (!block)
			return NULL;
		*block = (struct sqlite_block){.older = sqlite->blocks, .size = bytes};
		sqlite->blocks = block;
	}
	block->used += size;
	return block->bytes + block->used - size;
}

/* A copy of a column that is valid until rest. */
int ww_sqlite_copy(struct sqlite *sqlite, sqlite3_stmt *statement, int column, struct store_bytes *bytes)
{
	const void *data = sqlite3_column_blob(statement, column);
	size_t size = (size_t)sqlite3_column_bytes(statement, column);
	unsigned char *copy = ww_sqlite_room(sqlite, size);

	if (!copy)
		return WW_ENOMEM;
	if (size)
		memcpy(copy, data, size);
	*bytes = (struct store_bytes){copy, size};
	return WW_OK;
}

static int start(struct sqlite *sqlite, sqlite3_stmt *statement, struct store_bytes key)
{
	int error = begin_reading(sqlite);

	sqlite3_reset(statement);
	if (!error)
		error = ww_connection_bind(statement, 1, key);
	return error;
}

/* The sum that lies behind a value. */
static uint32_t sum_of(enum store_table table, struct store_bytes key, struct store_bytes value)
{
	unsigned char number = (unsigned char)table;
	uint32_t sum = ww_crc32c(0, &number, 1);

	return ww_crc32c(ww_crc32c(sum, key.data, key.size), value.data, value.size);
}

int ww_sqlite_check(enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	uint32_t sum;

	if (value->size < sizeof sum)
		return WW_ECORRUPT;
	value->size -= sizeof sum;
	memcpy(&sum, (const char *)value->data + value->size, sizeof sum);
	return sum == sum_of(table, key, *value) ? WW_OK : WW_ECORRUPT;
}

static int step_pair(struct sqlite *sqlite, enum store_table table, sqlite3_stmt *statement, struct store_bytes *key,
    struct store_bytes *value)
{
	int error = ww_connection_step(statement);

	if (!error)
		error = ww_sqlite_copy(sqlite, statement, 0, key);
	if (!error)
		error = ww_sqlite_copy(sqlite, statement, 1, value);
	return error ? error : ww_sqlite_check(table, *key, value);
}

int ww_sqlite_get(struct sqlite *sqlite, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	sqlite3_stmt *statement = sqlite->table[table].get;

	if (slots_have(table)) {
		int began = begin_reading(sqlite);
		return began ? began : ww_store_slots_get(&sqlite->slots, table, key, value);
	}
	int error = start(sqlite, statement, key);

	if (!error)
		error = ww_connection_step(statement);
	if (!error)
		error = ww_sqlite_copy(sqlite, statement, 0, value);
	sqlite3_reset(statement);
	return error ? error : ww_sqlite_check(table, key, value);
}

int ww_sqlite_seek(struct sqlite *sqlite, enum store_table table, struct store_bytes from, struct store_bytes *key,
    struct store_bytes *value)
{
	sqlite3_stmt *statement = sqlite->table[table].from;

	if (slots_have(table)) {
		int began = begin_reading(sqlite);
		return began ? began : ww_store_slots_seek(&sqlite->slots, table, from, key, value);
	}
	unsigned char *kept = ww_sqlite_room(sqlite, from.size);
	int error = kept ? WW_OK : WW_ENOMEM;

	/* The statement continues with next, when the caller's bytes may be gone. */
	if (!error && from.size)
		memcpy(kept, from.data, from.size);
	if (!error)
		error = start(sqlite, statement, (struct store_bytes){kept, from.size});
	return error ? error : step_pair(sqlite, table, statement, key, value);
}

int ww_sqlite_next(struct sqlite *sqlite, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	if (slots_have(table))
		return ww_store_slots_next(&sqlite->slots, table, key, value);
	return step_pair(sqlite, table, sqlite->table[table].from, key, value);
}

int ww_sqlite_before(struct sqlite *sqlite, enum store_table table, struct store_bytes to, struct store_bytes *key,
    struct store_bytes *value)
{
	sqlite3_stmt *statement = sqlite->table[table].before;

	if (slots_have(table)) {
		int began = begin_reading(sqlite);
		return began ? began : ww_store_slots_before(&sqlite->slots, table, to, key, value);
	}
	int error = start(sqlite, statement, to);

	if (!error)
		error = step_pair(sqlite, table, statement, key, value);
	sqlite3_reset(statement);
	return error;
}

void ww_sqlite_rest(struct sqlite *sqlite)
{
	struct sqlite_block *older;

	/* A reader continues with what there was. */
	if (sqlite->writer)
		end_reading(sqlite);
	else
		reset_all(sqlite);
	for (struct sqlite_block *block = sqlite->blocks; block; block = older) {
		older = block->older;
		memory_give(sqlite->allocator, block, sizeof *block + block->size);
	}
	sqlite->blocks = NULL;
}

/* ---- Writing */

uint64_t ww_sqlite_bytes(const struct sqlite *sqlite, uint64_t *unused)
{
	uint64_t pages = ww_connection_number(sqlite->writer, "pragma page_count");
	uint64_t without = ww_connection_number(sqlite->writer, "pragma freelist_count");
	struct stat status = {0};
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/index.db-wal", sqlite->folder);
	(void)stat(path, &status);
	*unused = without * PAGES_SIZE;
	return (pages - without) * PAGES_SIZE + (uint64_t)status.st_size;
}

int ww_sqlite_begin(struct sqlite *sqlite)
{
	int error = sqlite->is_stale ? ww_store_slots_reread(&sqlite->slots) : WW_OK;

	sqlite->is_stale = error != WW_OK;
	/* A rollback needs memory, too, and may have failed. */
	if (!error && !sqlite3_get_autocommit(sqlite->writer))
		error = ww_connection_run(sqlite->writer, "rollback");
	return error ? error : ww_connection_run(sqlite->writer, "begin immediate");
}

int ww_sqlite_put(struct sqlite *sqlite, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	sqlite3_stmt *statement = sqlite->table[table].put;

	if (slots_have(table))
		return ww_store_slots_put(&sqlite->slots, table, key, value);
	uint32_t sum = sum_of(table, key, value);
	size_t size = value.size + sizeof sum;
	char few[512];
	char *summed = size <= sizeof few ? few : sqlite3_malloc64(size);
	int error;

	if (!summed)
		return WW_ENOMEM;
	if (value.size)
		memcpy(summed, value.data, value.size);
	memcpy(summed + value.size, &sum, sizeof sum);
	error = ww_connection_bind(statement, 1, key);
	if (!error)
		error = ww_connection_bind(statement, 2, (struct store_bytes){summed, size});
	if (!error)
		error = ww_connection_done(statement);
	if (summed != few)
		sqlite3_free(summed);
	return error;
}

int ww_sqlite_remove(struct sqlite *sqlite, enum store_table table, struct store_bytes key)
{
	sqlite3_stmt *statement = sqlite->table[table].remove;

	if (slots_have(table))
		return ww_store_slots_remove(&sqlite->slots, table, key);
	int error = ww_connection_bind(statement, 1, key);

	return error ? error : ww_connection_done(statement);
}

int ww_sqlite_commit(struct sqlite *sqlite, uint64_t cut, uint64_t record)
{
	char text[128];
	int error = ww_store_slots_save(&sqlite->slots);

	(void)snprintf(
	    text, sizeof text, "update journal set cut = %lld, record = %lld", (long long)cut, (long long)record);
	if (!error)
		error = ww_connection_run(sqlite->writer, text);
	return ww_sqlite_end(sqlite, error);
}

/* Errors other than of a sync, and a process that copies the store, leave the log as it is for the next time. */
static void checkpoint(struct sqlite *sqlite, int mode)
{
	int code;

	if (ww_store_files_copied(sqlite->folder, (uint64_t)sqlite->pages * PAGES_SIZE))
		return;
	code = sqlite3_wal_checkpoint_v2(sqlite->writer, NULL, mode, NULL, NULL);
	(void)note_sync(sqlite, code);
	if (code == SQLITE_OK && mode == SQLITE_CHECKPOINT_TRUNCATE)
		sqlite->pages = 0;
}

void ww_sqlite_settle(struct sqlite *sqlite)
{
	if (sqlite->pages > REST_PAGES)
		checkpoint(sqlite, SQLITE_CHECKPOINT_TRUNCATE);
}

int ww_sqlite_end(struct sqlite *sqlite, int error)
{
	if (!error)
		error = ww_connection_run(sqlite->writer, "commit");
	if (error)
		return ww_sqlite_abort(sqlite, error);
	if (sqlite->pages >= CHECKPOINT_PAGES)
		checkpoint(sqlite, SQLITE_CHECKPOINT_PASSIVE);
	return error;
}

int ww_sqlite_damage(struct journal_fault *fault, const char *folder)
{
	char text[FAULT_TEXT];

	(void)snprintf(text, sizeof text, "%s/index.db has a damaged page", folder);
	return ww_fault_damage(fault, text);
}

int ww_sqlite_abort(struct sqlite *sqlite, int error)
{
	/* The first page of a log is written before the commit, and its head synced. */
	error = note_sync(sqlite, error);
	/* What SQLite had found, statements since then may have hidden. */
	if (error == WW_ECORRUPT)
		(void)ww_sqlite_damage(sqlite->fault, sqlite->folder);
	if (!sqlite3_get_autocommit(sqlite->writer))
		(void)ww_connection_run(sqlite->writer, "rollback");
	/* Edges that the disk does not have would make jobs unseen: until they are read again, nothing is written. */
	sqlite->is_stale = ww_store_slots_reread(&sqlite->slots) != WW_OK;
	return error;
}
