/* The directory of an LMDB environment: locks it, checks that its files are whole, opens them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/jobs/store/lmdb.h"

/* Only address space: the file grows with its content. The map is doubled before half of it is used. */
#define MAP_FIRST ((size_t)1 << (sizeof(size_t) > 4 ? 34 : 28))

static const char *const names[STORE_TABLES] = {"meta", "jobs", "due", "wall", "buried", "keys", "tubes"};

uint64_t ww_store_lmdb_files_size(const struct lmdb *lmdb)
{
	struct stat status;
	int fd;

	if (mdb_env_get_fd(lmdb->env, &fd) || fstat(fd, &status))
		return 0;
	return (uint64_t)status.st_size;
}

/* Whether the directory has other files but no data: then it was hardly meant. lost+found does not count. */
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

/* Whether the data is empty. If the store was made once, somebody emptied it. If not, its making was interrupted. */
static int is_emptied(const char *path)
{
	char name[4096];
	struct stat status;

	(void)snprintf(name, sizeof name, "%s/data.mdb", path);
	return stat(name, &status) == 0 && status.st_size == 0;
}

/* The locked file also says whether the store was ever made. */
static int was_made(const struct lmdb *lmdb)
{
	struct stat status;

	return fstat(lmdb->lock, &status) == 0 && status.st_size > 0;
}

static int sync_folder(const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = folder < 0 || fsync(folder);

	if (folder >= 0)
		(void)close(folder);
	return failed ? ww_store_lmdb_error(errno) : WW_OK;
}

int ww_store_lmdb_files_made(struct lmdb *lmdb)
{
	static const char text[] = "the store was made\n";
	char parent[4096 + 4];
	int error;

	if (lmdb->lock < 0 || was_made(lmdb))
		return WW_OK;
	(void)snprintf(parent, sizeof parent, "%s/..", lmdb->path);
	error = ww_store_lmdb_sync(lmdb);
	if (!error)
		error = sync_folder(lmdb->path);
	if (!error)
		error = sync_folder(parent);
	/* Should this fail, emptied data would pass for a new store. */
	if (!error && pwrite(lmdb->lock, text, sizeof text - 1, 0) < 0)
		error = ww_store_lmdb_error(errno);
	return error;
}

int ww_store_lmdb_files_lock(struct lmdb *lmdb)
{
	const char *path = lmdb->path;
	char name[4096];
	int length = snprintf(name, sizeof name, "%s/owner", path);

	if (length < 0 || (size_t)length >= sizeof name)
		return WW_EINVAL;
	if (mkdir(path, 0700) && errno != EEXIST)
		return errno == ENOENT || errno == ENOTDIR ? WW_EDENIED : ww_store_lmdb_error(errno);
	if (is_foreign(path))
		return WW_ECORRUPT;
	lmdb->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lmdb->lock < 0)
		return errno == ENOTDIR ? WW_EDENIED : ww_store_lmdb_error(errno);
	if (flock(lmdb->lock, LOCK_EX | LOCK_NB))
		return WW_EINUSE;
	return was_made(lmdb) && is_emptied(path) ? WW_ECORRUPT : WW_OK;
}

/* Whether the file has all its pages. Reading one that is missing would end the process. */
static int is_whole(struct lmdb *lmdb)
{
	MDB_envinfo info;
	MDB_stat stat;

	if (mdb_env_info(lmdb->env, &info) || mdb_env_stat(lmdb->env, &stat))
		return 0;
	return info.me_last_pgno < 2 || ww_store_lmdb_files_size(lmdb) >= (info.me_last_pgno + 1) * stat.ms_psize;
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
		return error == MDB_NOTFOUND ? WW_ECORRUPT : ww_store_lmdb_error(error);
	}
	return ww_store_lmdb_error(mdb_txn_commit(txn));
}

void ww_store_lmdb_files_close(struct lmdb *lmdb)
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
		ww_store_lmdb_files_close(lmdb);
	return error;
}

int ww_store_lmdb_files_open(struct lmdb *lmdb)
{
	MDB_envinfo info;
	int error = open_mapped(lmdb, MAP_FIRST);

	/* Address space is limited. */
	if (error == ENOMEM)
		error = open_mapped(lmdb, MAP_FIRST / 64);
	if (error == ENOENT || error == ENOTDIR)
		return WW_EDENIED;
	if (error)
		return ww_store_lmdb_error(error);
	/* A larger file has a larger map. */
	(void)mdb_env_info(lmdb->env, &info);
	lmdb->map = info.me_mapsize;
	if (!is_whole(lmdb))
		return WW_ECORRUPT;
	return open_tables(lmdb, lmdb->flags);
}
