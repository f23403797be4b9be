#ifndef LIB_JOBS_STORE_LMDB_H
#define LIB_JOBS_STORE_LMDB_H

/*
 * What the files of the LMDB store share: lmdb.c has transactions and tables, lmdb_files.c the directory, lmdb_sync.c
 * the thread that syncs.
 */

#include <lmdb.h>
#include <pthread.h>
#include <stdint.h>

#include "lib/jobs/store/store.h"

/* The key that a walk read last. The next one must be greater, or pages lead back. */
struct last_key {
	size_t size;
	unsigned char key[STORE_KEY_MAX];
};

struct lmdb {
	const struct ww_allocator *allocator;
	MDB_env *env;
	MDB_txn *write; /* between begin and commit */
	MDB_txn *read;  /* made once, renewed for each reading */
	int reading;    /* `read` is under way */
	MDB_dbi table[STORE_TABLES];
	MDB_cursor *cursor[STORE_TABLES]; /* of the last seek, in the current transaction */
	struct last_key last[STORE_TABLES];
	size_t map;
	size_t room; /* for a body */
	char *path;
	unsigned flags; /* for mdb_env_open */
	unsigned begins;
	int dead; /* it failed, and could not be opened again */
	int lock; /* the locked file that keeps other processes out, or -1 */

	pthread_mutex_t exchange; /* held while the thread syncs the environment, or it is opened again */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	uint64_t sync_ns; /* 0: no thread */
	int ended;
	int dirty;
	_Atomic int sync_error;
};

/* The error of error.h for an error of LMDB or an errno. */
int ww_store_lmdb_error(int error);

/*
 * Make the directory if it is missing, and take it for this process. WW_EINUSE: another process has it. WW_ECORRUPT: it
 * has other files, or its data was emptied.
 */
int ww_store_lmdb_files_lock(struct lmdb *lmdb);
/*
 * Make a new store's files and their names stable, then note in the directory that it was made. If its data is empty
 * later, that is damage.
 */
int ww_store_lmdb_files_made(struct lmdb *lmdb);
/* Open the environment and its tables. On error there may be an environment to close. */
int ww_store_lmdb_files_open(struct lmdb *lmdb);
void ww_store_lmdb_files_close(struct lmdb *lmdb);
/* Bytes on disk. */
uint64_t ww_store_lmdb_files_size(const struct lmdb *lmdb);

int ww_store_lmdb_sync(struct lmdb *lmdb);
/* Start a thread that syncs every sync_ns what was written meanwhile. */
int ww_store_lmdb_sync_start(struct lmdb *lmdb, uint64_t sync_ns);
void ww_store_lmdb_sync_end(struct lmdb *lmdb);

#endif
