/* The store in an LMDB environment. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store.h"

/* Address space only: the file grows with what is in it. Doubled before half of it is used. */
#define MAP_FIRST ((size_t)1 << (sizeof(size_t) > 4 ? 34 : 28))
/* Begins after which readers that died are looked for; they would keep freed pages from being used again. */
enum { BEGINS_A_LOOK = 1000 };

/* Where a walk is: what comes next has a greater key, or pages lead back to where it was. */
struct place {
	size_t size;
	unsigned char key[STORE_KEY_MAX];
};

struct lmdb {
	const struct ww_allocator *allocator;
	MDB_env *env;
	MDB_txn *write; /* between begin and commit */
	MDB_txn *read;  /* made once, renewed for each reading */
	int reading;    /* whether it is under way */
	MDB_dbi table[STORE_TABLES];
	MDB_cursor *cursor[STORE_TABLES]; /* of the last seek, with the transaction under way */
	struct place place[STORE_TABLES]; /* of these */
	size_t map;
	size_t room; /* for a body */
	char *path;
	unsigned flags; /* that it was opened with */
	unsigned begins;
	int dead; /* it broke, and could not be opened again */
	int lock; /* the descriptor that keeps others out, or -1 */

	/* Syncing now and then. Held while the environment is used for that, or exchanged. */
	pthread_mutex_t exchange;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	uint64_t sync_ns; /* 0: no thread */
	int ended;
	int dirty;
	_Atomic int sync_error;
};

static const char *const names[STORE_TABLES] = {"meta", "jobs", "due", "wall", "buried", "keys", "tubes"};

static int error_of(int error)
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
	case MDB_CURSOR_FULL: /* deeper than any tree: a page leads to one above it */
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

/* The transaction to read in: the one that writes, if there is one. */
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
	return error_of(error);
}

/* A write may double what is stored, or be of a body of any size, without finding the map too small. */
static int widen(struct lmdb *lmdb)
{
	MDB_envinfo info;
	MDB_stat stat;
	int error = mdb_env_info(lmdb->env, &info);

	if (!error)
		error = mdb_env_stat(lmdb->env, &stat);
	if (!error && lmdb->begins++ % BEGINS_A_LOOK == 0)
		(void)mdb_reader_check(lmdb->env, NULL);
	while (!error && (info.me_last_pgno + 1) * stat.ms_psize + lmdb->room > lmdb->map / 2) {
		error = mdb_env_set_mapsize(lmdb->env, lmdb->map * 2);
		/* The former map is gone then. */
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
	return error_of(error);
}

static void abort_write(void *self)
{
	struct lmdb *lmdb = self;

	close_cursors(lmdb);
	if (lmdb->write)
		mdb_txn_abort(lmdb->write);
	lmdb->write = NULL;
}

static int open_environment(struct lmdb *lmdb);
static int sync_now(void *self);
static void close_environment(struct lmdb *lmdb);

static int is_broken(struct lmdb *lmdb)
{
	MDB_txn *txn = NULL;
	int error = mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &txn);

	if (txn)
		mdb_txn_abort(txn);
	return error == MDB_PANIC;
}

/*
 * When its last page could not be written, and what was there before could not be restored, LMDB refuses everything from
 * then on: open it again. The write of that number may have happened then, which is told by WW_OK. If it has, and may be
 * lost all the same, neither answer would be true for good: nothing is answered any more.
 */
static int begin_again(struct lmdb *lmdb, size_t number, int why)
{
	MDB_envinfo info;
	int stands = 0;

	if (lmdb->read)
		mdb_txn_abort(lmdb->read);
	lmdb->read = NULL;
	pthread_mutex_lock(&lmdb->exchange);
	close_environment(lmdb);
	lmdb->dead = open_environment(lmdb) != WW_OK;
	if (!lmdb->dead && !mdb_env_info(lmdb->env, &info))
		stands = info.me_last_txnid >= number;
	if (stands)
		lmdb->dead = sync_now(lmdb) != WW_OK;
	pthread_mutex_unlock(&lmdb->exchange);
	return stands && !lmdb->dead ? WW_OK : why;
}

static int commit(void *self)
{
	struct lmdb *lmdb = self;
	size_t number = mdb_txn_id(lmdb->write);
	int error = lmdb->sync_error;

	/* While nothing can be synced, nothing is acknowledged as if it had been. */
	if (error) {
		abort_write(lmdb);
		return error;
	}
	close_cursors(lmdb);
	error = error_of(mdb_txn_commit(lmdb->write));
	lmdb->write = NULL;
	if (error && is_broken(lmdb))
		error = begin_again(lmdb, number, error);
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
	return error_of(error);
}

static int put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct lmdb *lmdb = self;
	MDB_val k = val_of(key);
	MDB_val v = val_of(value);
	int error = MDB_KEYEXIST;

	/* Ids grow: pages that are filled from the front stay full. */
	if (table == STORE_JOBS)
		error = mdb_put(lmdb->write, lmdb->table[table], &k, &v, MDB_APPEND);
	if (error == MDB_KEYEXIST)
		error = mdb_put(lmdb->write, lmdb->table[table], &k, &v, 0);
	return error_of(error);
}

static int remove_pair(void *self, enum store_table table, struct store_bytes key)
{
	struct lmdb *lmdb = self;
	MDB_val k = val_of(key);

	return error_of(mdb_del(lmdb->write, lmdb->table[table], &k, NULL));
}

static int compare(struct store_bytes left, struct store_bytes right)
{
	size_t size = left.size < right.size ? left.size : right.size;
	int order = size ? memcmp(left.data, right.data, size) : 0;

	return order ? order : (left.size > right.size) - (left.size < right.size);
}

/*
 * In a damaged file pages may lead anywhere, so that a walk sees the same pairs again and again. Keys that only grow end every
 * walk; one step of LMDB is bounded by the 32 levels of its cursors, up and down once.
 */
static int cursor_at(struct lmdb *lmdb, enum store_table table, MDB_cursor_op op, MDB_val *k, struct store_bytes *key,
    struct store_bytes *value)
{
	struct place *place = &lmdb->place[table];
	struct store_bytes last = {place->key, place->size};
	MDB_val v;
	int error = mdb_cursor_get(lmdb->cursor[table], k, &v, op);

	if (error)
		return error_of(error);
	if (k->mv_size > STORE_KEY_MAX || (op == MDB_NEXT && compare(bytes_of(*k), last) <= 0))
		return WW_ECORRUPT;
	*key = bytes_of(*k);
	*value = bytes_of(v);
	memcpy(place->key, key->data, key->size);
	place->size = key->size;
	return WW_OK;
}

static int open_cursor(struct lmdb *lmdb, enum store_table table)
{
	MDB_txn *txn;
	int error = reading_in(lmdb, &txn);

	if (!error && !lmdb->cursor[table])
		error = error_of(mdb_cursor_open(txn, lmdb->table[table], &lmdb->cursor[table]));
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
	return !error && compare(*key, from) < 0 ? WW_ECORRUPT : error;
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
	return !error && compare(*key, to) >= 0 ? WW_ECORRUPT : error;
}

static int next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	struct lmdb *lmdb = self;
	MDB_val k;

	return lmdb->cursor[table] ? cursor_at(lmdb, table, MDB_NEXT, &k, key, value) : WW_ENOTFOUND;
}

/* ---- Syncing */

static int sync_now(void *self)
{
	struct lmdb *lmdb = self;

	return error_of(mdb_env_sync(lmdb->env, 1));
}

static void *sync_often(void *argument)
{
	struct lmdb *lmdb = argument;
	struct timespec until;

	pthread_mutex_lock(&lmdb->mutex);
	clock_gettime(CLOCK_MONOTONIC, &until);
	while (!lmdb->ended) {
		uint64_t ns = (uint64_t)until.tv_nsec + lmdb->sync_ns;
		until.tv_sec += (time_t)(ns / WW_SECOND);
		until.tv_nsec = (long)(ns % WW_SECOND);
		while (!lmdb->ended && pthread_cond_timedwait(&lmdb->wake, &lmdb->mutex, &until) != ETIMEDOUT)
			continue;
		if (!lmdb->dirty)
			continue;
		lmdb->dirty = 0;
		pthread_mutex_unlock(&lmdb->mutex);
		pthread_mutex_lock(&lmdb->exchange);
		int error = lmdb->dead ? WW_EIO : sync_now(lmdb);
		pthread_mutex_unlock(&lmdb->exchange);
		pthread_mutex_lock(&lmdb->mutex);
		lmdb->sync_error = error;
		lmdb->dirty |= error != WW_OK;
	}
	pthread_mutex_unlock(&lmdb->mutex);
	return NULL;
}

static int start_syncing(struct lmdb *lmdb, uint64_t sync_ns)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&lmdb->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&lmdb->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	lmdb->sync_ns = sync_ns;
	if (pthread_create(&lmdb->thread, NULL, sync_often, lmdb)) {
		lmdb->sync_ns = 0;
		return WW_ESYSTEM;
	}
	return WW_OK;
}

static void end_syncing(struct lmdb *lmdb)
{
	if (!lmdb->sync_ns)
		return;
	pthread_mutex_lock(&lmdb->mutex);
	lmdb->ended = 1;
	pthread_cond_signal(&lmdb->wake);
	pthread_mutex_unlock(&lmdb->mutex);
	pthread_join(lmdb->thread, NULL);
	pthread_cond_destroy(&lmdb->wake);
	pthread_mutex_destroy(&lmdb->mutex);
}

/* ---- Opening and closing */

static uint64_t disk(void *self)
{
	struct lmdb *lmdb = self;
	struct stat status;
	int fd;

	if (mdb_env_get_fd(lmdb->env, &fd) || fstat(fd, &status))
		return 0;
	return (uint64_t)status.st_size;
}

static int end(struct lmdb *lmdb)
{
	int error = WW_OK;

	end_syncing(lmdb);
	rest(lmdb);
	if (lmdb->read)
		mdb_txn_abort(lmdb->read);
	if (lmdb->dead)
		error = WW_EIO;
	else if (lmdb->env && lmdb->flags & MDB_NOSYNC && !(lmdb->flags & MDB_RDONLY))
		error = sync_now(lmdb);
	close_environment(lmdb);
	if (lmdb->lock >= 0)
		close(lmdb->lock);
	pthread_mutex_destroy(&lmdb->exchange);
	free(lmdb->path);
	lmdb->allocator->free(lmdb->allocator->user, lmdb, sizeof *lmdb);
	return error;
}

static int close_store(void *self)
{
	return end(self);
}

static const struct store_ops lmdb_ops = {
    begin, commit, abort_write, rest, get, put, remove_pair, seek, before, next, sync_now, disk, close_store};

/* A directory with anything else in it was hardly meant; a file system's own folder is no matter. */
static int is_foreign(const char *path)
{
	static const char *const known[] = {".", "..", "data.mdb", "lock.mdb", "owner", "lost+found"};
	DIR *folder = opendir(path);
	const struct dirent *entry;
	int others = 0;
	int data = 0;

	if (!folder)
		return 0;
	while ((entry = readdir(folder))) {
		size_t i = 0;
		while (i < sizeof known / sizeof *known && strcmp(entry->d_name, known[i]) != 0)
			i++;
		others += i == sizeof known / sizeof *known;
		data |= strcmp(entry->d_name, "data.mdb") == 0;
	}
	closedir(folder);
	return others && !data;
}

/* Whether the file is empty: of a store that was made, somebody emptied it; otherwise the making was interrupted. */
static int is_emptied(const char *path)
{
	char name[4096];
	struct stat status;

	(void)snprintf(name, sizeof name, "%s/data.mdb", path);
	return stat(name, &status) == 0 && status.st_size == 0;
}

/* The file that one process locks also says whether the store was ever made. */
static int was_made(const struct lmdb *lmdb)
{
	struct stat status;

	return fstat(lmdb->lock, &status) == 0 && status.st_size > 0;
}

static void say_made(const struct lmdb *lmdb)
{
	static const char text[] = "the store was made\n";

	/* If it cannot be said, an emptied file will pass for a new one. */
	if (lmdb->lock >= 0 && !was_made(lmdb) && pwrite(lmdb->lock, text, sizeof text - 1, 0) < 0)
		return;
}

/* One process has the store; a reader leaves it alone. */
static int take_lock(struct lmdb *lmdb, const char *path)
{
	char name[4096];
	int length = snprintf(name, sizeof name, "%s/owner", path);

	if (length < 0 || (size_t)length >= sizeof name)
		return WW_EINVAL;
	if (mkdir(path, 0700) && errno != EEXIST)
		return errno == ENOENT || errno == ENOTDIR ? WW_EDENIED : error_of(errno);
	if (is_foreign(path))
		return WW_ECORRUPT;
	lmdb->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lmdb->lock < 0)
		return errno == ENOTDIR ? WW_EDENIED : error_of(errno);
	if (flock(lmdb->lock, LOCK_EX | LOCK_NB))
		return WW_EINUSE;
	return was_made(lmdb) && is_emptied(path) ? WW_ECORRUPT : WW_OK;
}

/* A file that was cut short would end the process when the part that is missing is touched. */
static int is_whole(struct lmdb *lmdb)
{
	MDB_envinfo info;
	MDB_stat stat;

	if (mdb_env_info(lmdb->env, &info) || mdb_env_stat(lmdb->env, &stat))
		return 0;
	return info.me_last_pgno < 2 || disk(lmdb) >= (info.me_last_pgno + 1) * stat.ms_psize;
}

static int open_tables(struct lmdb *lmdb, unsigned flags)
{
	MDB_txn *txn;
	int error = mdb_txn_begin(lmdb->env, NULL, flags & MDB_RDONLY, &txn);

	for (int i = 0; !error && i < STORE_TABLES; i++)
		error = mdb_dbi_open(txn, names[i], flags & MDB_RDONLY ? 0 : MDB_CREATE, &lmdb->table[i]);
	if (error) {
		if (txn)
			mdb_txn_abort(txn);
		return error == MDB_NOTFOUND ? WW_ECORRUPT : error_of(error);
	}
	return error_of(mdb_txn_commit(txn));
}

static void close_environment(struct lmdb *lmdb)
{
	if (lmdb->env)
		mdb_env_close(lmdb->env);
	lmdb->env = NULL;
}

static int open_mapped(struct lmdb *lmdb, size_t map)
{
	int error = mdb_env_create(&lmdb->env);

	if (!error)
		error = mdb_env_set_maxdbs(lmdb->env, STORE_TABLES);
	if (!error)
		error = mdb_env_set_mapsize(lmdb->env, map);
	if (!error)
		error = mdb_env_open(lmdb->env, lmdb->path, lmdb->flags, 0600);
	if (error)
		close_environment(lmdb);
	return error;
}

static int open_environment(struct lmdb *lmdb)
{
	MDB_envinfo info;
	int error = open_mapped(lmdb, MAP_FIRST);

	/* Where address space is limited. */
	if (error == ENOMEM)
		error = open_mapped(lmdb, MAP_FIRST / 64);
	if (error == ENOENT || error == ENOTDIR)
		return WW_EDENIED;
	if (error)
		return error_of(error);
	/* A file that has outgrown the first size has its own. */
	(void)mdb_env_info(lmdb->env, &info);
	lmdb->map = info.me_mapsize;
	if (!is_whole(lmdb))
		return WW_ECORRUPT;
	return open_tables(lmdb, lmdb->flags);
}

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
		error = take_lock(lmdb, config->path);
	if (!error)
		error = open_environment(lmdb);
	if (!error)
		say_made(lmdb);
	if (!error && !(config->flags & WW_JOBS_READONLY) && config->sync == WW_SYNC_INTERVAL)
		error = start_syncing(lmdb, config->sync_ns);
	if (error) {
		(void)end(lmdb);
		return error;
	}
	*store = (struct store){&lmdb_ops, lmdb};
	return WW_OK;
}
