#ifndef LIB_JOBS_LOCAL_META_H
#define LIB_JOBS_LOCAL_META_H

/*
 * META's two records about the whole store: which ids were given, how many jobs there were, and the clocks of the last
 * write. The pairs of limits and of runs are in the same table (rule.c, history.c).
 */

#include <stdint.h>

#include "lib/jobs/store/store.h"

struct jobs_local;

struct meta {
	uint64_t next_id;
	uint64_t id_bound; /* ids below it may have been given; the next opening begins there */
	uint64_t accepted;
	uint64_t ended;
	uint64_t epoch;   /* how often the store was opened */
	uint64_t burials; /* since the store was made */
	uint64_t offset;  /* elapsed time of jobs minus elapsed time of the system, in the boot of boot_id */
	uint64_t elapsed; /* time of the last write */
	uint64_t wall;    /* the same moment on the wall clock */
	uint64_t secret;  /* seed of the hashes of keys, so that nobody can choose keys that collide */
	unsigned char boot_id[16];
	/* Only in memory: the runs that are kept; last_run + 1 == first_run: none. */
	uint64_t first_run;
	uint64_t last_run;
};

/* Read both into jobs->meta, or fill it in for a new store. WW_ECORRUPT; WW_EVERSION: another version wrote it. */
int ww_jobs_meta_read(struct jobs_local *jobs, int *is_new);
/* Read one of the two pairs. WW_ECORRUPT, WW_EVERSION. */
int ww_jobs_meta_take(struct meta *meta, struct store_bytes key, struct store_bytes value);
/* The id of a new job. */
uint64_t ww_jobs_meta_new_id(struct jobs_local *jobs);
/*
 * Write them with the batch; the first only if it has changed. Unless each batch is synced, ids are set aside now and
 * then, and the batch that does so has to be (`must_sync`).
 */
int ww_jobs_meta_write(struct jobs_local *jobs);

#endif
