#ifndef LIB_JOBS_STORE_LMDB_H
#define LIB_JOBS_STORE_LMDB_H

/*
 * The store in an LMDB environment, as its files share it: store_lmdb.c has its tables, _files its files, _sync its
 * thread.
 */

#include <lmdb.h>
#include <pthread.h>
#include <stdint.h>

#include "lib/jobs/store/store.h"

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

/* The error of error.h that says an error of LMDB or of the system. */
int ww_store_lmdb_error(int error);

/*
 * Take the directory for this process, making it; WW_EINUSE: another has it, WW_ECORRUPT: it is no store or an emptied
 * one.
 */
int ww_store_lmdb_files_lock(struct lmdb *lmdb);
/* Note that the store was made: without its data it is damaged from then on. */
void ww_store_lmdb_files_made(const struct lmdb *lmdb);
/* Open the environment and its tables; on error there may be an environment to close. */
int ww_store_lmdb_files_open(struct lmdb *lmdb);
void ww_store_lmdb_files_close(struct lmdb *lmdb);
/* Bytes on disk. */
uint64_t ww_store_lmdb_files_size(const struct lmdb *lmdb);

int ww_store_lmdb_sync(struct lmdb *lmdb);
/* Sync so often what was written meanwhile, in a thread, until the end. */
int ww_store_lmdb_sync_start(struct lmdb *lmdb, uint64_t sync_ns);
void ww_store_lmdb_sync_end(struct lmdb *lmdb);

#endif
