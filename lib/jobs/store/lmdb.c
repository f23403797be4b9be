/* The store in an LMDB environment: transactions, tables and cursors. */
#include <errno.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/jobs/store/lmdb.h"

/* Each so many writes, look for readers that died. They would keep freed pages from being used again. */
enum { WRITES_PER_READER_CHECK = 1000 };

int ww_store_lmdb_error(int error)
{
	switch (error) {
	case 0:
		return WW_OK;
	case MDB_NOTFOUND:
		return WW_ENOTFOUND;
	case MDB_MAP_FULL:
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return WW_EFULL;
	case ENOMEM:
		return WW_ENOMEM;
	case EACCES:
	case EPERM:
	case EROFS:
		return WW_EDENIED;
	case EAGAIN:
	case EBUSY:
		return WW_EINUSE;
	case MDB_VERSION_MISMATCH:
		return WW_EVERSION;
	case MDB_CORRUPTED:
	case MDB_CURSOR_FULL: /* deeper than any tree: a page leads back to one above it */
	case MDB_PAGE_NOTFOUND:
	case MDB_INVALID:
	case MDB_BAD_VALSIZE:
	case MDB_INCOMPATIBLE:
	case MDB_PANIC:
		return WW_ECORRUPT;
	default:
		return WW_EIO;
	}
}

/* ---- Reading and writing */

static void close_cursors(struct lmdb *lmdb)
{
	for (int i = 0; i < STORE_TABLES; i++) {
		if (lmdb->cursor[i])
			mdb_cursor_close(lmdb->cursor[i]);
		lmdb->cursor[i] = NULL;
	}
}

static void rest(void *self)
{
	struct lmdb *lmdb = self;

	if (!lmdb->reading)
		return;
	close_cursors(lmdb);
	mdb_txn_reset(lmdb->read);
	lmdb->reading = 0;
}

/* Find the transaction to read in: the write, if one is under way. */
static int reading_in(struct lmdb *lmdb, MDB_txn **txn)
{
	int error = 0;

	*txn = lmdb->write;
	if (lmdb->write)
		return WW_OK;
	if (lmdb->dead)
		return WW_EIO;
	if (!lmdb->reading)
		error =
		    lmdb->read ? mdb_txn_renew(lmdb->read) : mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &lmdb->read);
	lmdb->reading = !error;
	*txn = lmdb->read;
	return ww_store_lmdb_error(error);
}

/* Enlarge the map in advance: a write may double what is stored, or have a body of any size. */
static int widen(struct lmdb *lmdb)
{
	MDB_envinfo info;
	MDB_stat stat;
	int error = mdb_env_info(lmdb->env, &info);

	if (!error)
		error = mdb_env_stat(lmdb->env, &stat);
	if (!error && lmdb->begins++ % WRITES_PER_READER_CHECK == 0)
		(void)mdb_reader_check(lmdb->env, NULL);
	while (!error && (info.me_last_pgno + 1) * stat.ms_psize + lmdb->room > lmdb->map / 2) {
		error = mdb_env_set_mapsize(lmdb->env, lmdb->map * 2);
		/* On error LMDB has unmapped the former map already. */
		lmdb->dead = error != 0;
		lmdb->map *= 2;
	}
	return error;
}

static int begin(void *self)
{
	struct lmdb *lmdb = self;
	int error;

	rest(lmdb);
	if (lmdb->dead)
		return WW_EIO;
	error = widen(lmdb);
	if (!error)
		error = mdb_txn_begin(lmdb->env, NULL, 0, &lmdb->write);
	return ww_store_lmdb_error(error);
}

static void abort_write(void *self)
{
	struct lmdb *lmdb = self;

	close_cursors(lmdb);
	if (lmdb->write)
		mdb_txn_abort(lmdb->write);
	lmdb->write = NULL;
}

static int is_broken(struct lmdb *lmdb)
{
	MDB_txn *txn = NULL;
	int error = mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &txn);

	if (txn)
		mdb_txn_abort(txn);
	return error == MDB_PANIC;
}

/*
 * If LMDB can neither write its last page nor restore the page before, it refuses everything from then on. Open it
 * again, and see whether the write with this number has happened. If it has, sync it and return WW_OK. If that sync
 * fails, the write may still be lost, and neither answer would stay true: the store is dead.
 */
static int reopen(struct lmdb *lmdb, size_t number, int why)
{
	MDB_envinfo info;
	int stands = 0;

	if (lmdb->read)
		mdb_txn_abort(lmdb->read);
	lmdb->read = NULL;
	pthread_mutex_lock(&lmdb->exchange);
	ww_store_lmdb_files_close(lmdb);
	lmdb->dead = ww_store_lmdb_files_open(lmdb) != WW_OK;
	if (!lmdb->dead && !mdb_env_info(lmdb->env, &info))
		stands = info.me_last_txnid >= number;
	if (stands)
		lmdb->dead = ww_store_lmdb_sync(lmdb) != WW_OK;
	pthread_mutex_unlock(&lmdb->exchange);
	return stands && !lmdb->dead ? WW_OK : why;
}

static int commit(void *self)
{
	struct lmdb *lmdb = self;
	size_t number = mdb_txn_id(lmdb->write);
	int error = lmdb->sync_error;

	/* While syncing fails, acknowledge nothing. */
	if (error) {
		abort_write(lmdb);
		return error;
	}
	close_cursors(lmdb);
	error = ww_store_lmdb_error(mdb_txn_commit(lmdb->write));
	lmdb->write = NULL;
	if (error && is_broken(lmdb))
		error = reopen(lmdb, number, error);
	if (!error && lmdb->sync_ns) {
		pthread_mutex_lock(&lmdb->mutex);
		lmdb->dirty = 1;
		pthread_mutex_unlock(&lmdb->mutex);
	}
	return error;
}

static MDB_val val_of(struct store_bytes bytes)
{
	return (MDB_val){bytes.size, (void *)(uintptr_t)bytes.data};
}

static struct store_bytes bytes_of(MDB_val val)
{
	return (struct store_bytes){val.mv_data, val.mv_size};
}

static int get(void *self, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	struct lmdb *lmdb = self;
	MDB_val k = val_of(key);
	MDB_val v;
	MDB_txn *txn;
	int error = reading_in(lmdb, &txn);

	if (error)
		return error;
	error = mdb_get(txn, lmdb->table[table], &k, &v);
	if (!error)
		*value = bytes_of(v);
	return ww_store_lmdb_error(error);
}

static int put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct lmdb *lmdb = self;
	MDB_val k = val_of(key);
	MDB_val v = val_of(value);
	int error = MDB_KEYEXIST;

	/* Ids grow. Appending leaves full pages behind. */
	if (table == STORE_JOBS)
		error = mdb_put(lmdb->write, lmdb->table[table], &k, &v, MDB_APPEND);
	if (error == MDB_KEYEXIST)
		error = mdb_put(lmdb->write, lmdb->table[table], &k, &v, 0);
	return ww_store_lmdb_error(error);
}

static int remove_pair(void *self, enum store_table table, struct store_bytes key)
{
	struct lmdb *lmdb = self;
	MDB_val k = val_of(key);

	return ww_store_lmdb_error(mdb_del(lmdb->write, lmdb->table[table], &k, NULL));
}

/*
 * In a damaged file pages may lead anywhere, and a walk could see the same pairs again and again. Each walk ends
 * because a key that does not grow counts as damage. One step of LMDB ends because its cursors have at most 32 levels.
 */
static int cursor_at(struct lmdb *lmdb, enum store_table table, MDB_cursor_op op, MDB_val *k, struct store_bytes *key,
    struct store_bytes *value)
{
	struct last_key *last = &lmdb->last[table];
	struct store_bytes former = {last->key, last->size};
	MDB_val v;
	int error = mdb_cursor_get(lmdb->cursor[table], k, &v, op);

	if (error)
		return ww_store_lmdb_error(error);
	if (k->mv_size > STORE_KEY_MAX || (op == MDB_NEXT && store_compare(bytes_of(*k), former) <= 0))
		return WW_ECORRUPT;
	*key = bytes_of(*k);
	*value = bytes_of(v);
	memcpy(last->key, key->data, key->size);
	last->size = key->size;
	return WW_OK;
}

static int open_cursor(struct lmdb *lmdb, enum store_table table)
{
	MDB_txn *txn;
	int error = reading_in(lmdb, &txn);

	if (!error && !lmdb->cursor[table])
		error = ww_store_lmdb_error(mdb_cursor_open(txn, lmdb->table[table], &lmdb->cursor[table]));
	return error;
}

static int seek(
    void *self, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value)
{
	struct lmdb *lmdb = self;
	MDB_val k = val_of(from);
	int error = open_cursor(lmdb, table);

	if (!error)
		error = cursor_at(lmdb, table, from.size ? MDB_SET_RANGE : MDB_FIRST, &k, key, value);
	return !error && store_compare(*key, from) < 0 ? WW_ECORRUPT : error;
}

static int before(
    void *self, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value)
{
	struct lmdb *lmdb = self;
	MDB_val k = val_of(to);
	int error = seek(self, table, to, key, value);

	if (error && error != WW_ENOTFOUND)
		return error;
	error = cursor_at(lmdb, table, error ? MDB_LAST : MDB_PREV, &k, key, value);
	return !error && store_compare(*key, to) >= 0 ? WW_ECORRUPT : error;
}

static int next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	struct lmdb *lmdb = self;
	MDB_val k;

	return lmdb->cursor[table] ? cursor_at(lmdb, table, MDB_NEXT, &k, key, value) : WW_ENOTFOUND;
}

/* ---- Opening and closing */

static int end(void *self)
{
	struct lmdb *lmdb = self;
	int error = WW_OK;

	ww_store_lmdb_sync_end(lmdb);
	rest(lmdb);
	if (lmdb->read)
		mdb_txn_abort(lmdb->read);
	if (lmdb->dead)
		error = WW_EIO;
	else if (lmdb->env && lmdb->flags & MDB_NOSYNC && !(lmdb->flags & MDB_RDONLY))
		error = ww_store_lmdb_sync(lmdb);
	ww_store_lmdb_files_close(lmdb);
	if (lmdb->lock >= 0)
		close(lmdb->lock);
	pthread_mutex_destroy(&lmdb->exchange);
	free(lmdb->path);
	lmdb->allocator->free(lmdb->allocator->user, lmdb, sizeof *lmdb);
	return error;
}

static int sync_now(void *self)
{
	struct lmdb *lmdb = self;

	return lmdb->dead ? WW_EIO : ww_store_lmdb_sync(lmdb);
}

static uint64_t disk(void *self)
{
	return ww_store_lmdb_files_size(self);
}

static const struct store_ops lmdb_ops = {
    begin, commit, abort_write, rest, get, put, remove_pair, seek, before, next, sync_now, disk, end};

int ww_store_lmdb_open(struct store *store, const struct ww_jobs_config *config)
{
	const struct ww_allocator *allocator = config->allocator;
	struct lmdb *lmdb = allocator->allocate(allocator->user, sizeof *lmdb);
	int error = WW_OK;

	if (!lmdb)
		return WW_ENOMEM;
	memset(lmdb, 0, sizeof *lmdb);
	lmdb->allocator = allocator;
	lmdb->lock = -1;
	lmdb->room = config->body_max;
	lmdb->flags = MDB_NOTLS | MDB_NORDAHEAD;
	lmdb->flags |= config->flags & WW_JOBS_READONLY ? MDB_RDONLY : 0;
	lmdb->flags |= config->sync != WW_SYNC_ALWAYS ? MDB_NOSYNC : 0;
	pthread_mutex_init(&lmdb->exchange, NULL);
	lmdb->path = strdup(config->path);
	if (!lmdb->path)
		error = WW_ENOMEM;
	if (!error && !(config->flags & WW_JOBS_READONLY))
		error = ww_store_lmdb_files_lock(lmdb);
	if (!error)
		error = ww_store_lmdb_files_open(lmdb);
	if (!error)
		error = ww_store_lmdb_files_made(lmdb);
	if (!error && !(config->flags & WW_JOBS_READONLY) && config->sync == WW_SYNC_INTERVAL)
		error = ww_store_lmdb_sync_start(lmdb, config->sync_ns);
	if (error) {
		(void)end(lmdb);
		return error;
	}
	*store = (struct store){&lmdb_ops, lmdb};
	return WW_OK;
}
