#ifndef LIB_JOBS_LOCAL_RECORDS_H
#define LIB_JOBS_LOCAL_RECORDS_H

/*
 * Jobs in the store: the record of each, and what leads to it. A job lies in one place, the table and the key for its
 * state; JOBS leads there by its id, KEYS by its key, and the counts know that it waits.
 *
 *     id  -> JOBS -------------------v
 *     key -> KEYS -> id    DUE, WALL or BURIED: the record     COUNTS: by tube and slot
 *
 * Functions that find a job return WW_ENOTFOUND if there is none, and WW_ECORRUPT if its record cannot be read. Those
 * that change something begin a write (writing.h), and on error the batch is broken.
 */

#include <stdint.h>

#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/record.h"
#include "lib/jobs/store/store.h"
#include "weekwheel/jobs.h"

struct jobs_local;
struct tube;

/* ---- Read, O(log n) */

/* WW_ENOTFOUND: also if it has ended and is kept. The second function reads that too. */
int ww_jobs_read(struct jobs_local *jobs, uint64_t id, struct job_record *record);
int ww_jobs_read_any(struct jobs_local *jobs, uint64_t id, struct job_record *record);
/* The same for a job that is then written: the begin of a write ends what was read before it. */
int ww_jobs_read_to_write(struct jobs_local *jobs, uint64_t id, struct job_record *record);
/* The job of a key, which may have ended. */
int ww_jobs_key(
    struct jobs_local *jobs, const struct tube *tube, struct store_bytes key, uint64_t *id, struct job_record *record);
/*
 * The job of a ref. WW_ENOTFOUND: also if it has ended; then *id and *record say which one it was. WW_ESTALE: it has
 * another version.
 */
int ww_jobs_refer(struct jobs_local *jobs, const struct ww_job_ref *ref, uint64_t *id, struct job_record *record);
/* The job of a pair of DUE, WALL or BURIED. WW_ECORRUPT */
int ww_jobs_read_pair(
    enum store_table table, struct store_bytes key, struct store_bytes value, uint64_t *id, struct job_record *record);
/* Whether the value of a pair of JOBS says that the job lies there. */
int ww_jobs_is_place(uint64_t id, enum store_table table, struct store_bytes key, struct store_bytes value);

/* ---- Write */

/*
 * Store a job, and what leads to it, in place of `before`, unless that is NULL. Bytes of the records may lie in the
 * store.
 */
int ww_jobs_write(struct jobs_local *jobs, uint64_t id, const struct job_record *before, struct job_record *after);
/* The same, and let memory know the job as it is stored. */
int ww_jobs_settle(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record);
/* Remove a job, and what leads to it. Its entry stays. */
int ww_jobs_erase(struct jobs_local *jobs, uint64_t id, const struct job_record *before);

/* ---- Records and entries */

/* The image of a stored job without a lease, ready if it is due. Its group is not filled in. */
struct image ww_jobs_image(struct jobs_local *jobs, const struct job_record *record);
/* The fence of a job that has to run anew, whatever worker still has it. The entry may be NULL. */
uint64_t ww_jobs_fence(const struct jobs_local *jobs, const struct job_record *record, const struct entry *entry);
/* Add the counts that only memory knows. The entry may be NULL. */
void ww_jobs_merge(struct job_record *record, const struct entry *entry);

#endif
