#ifndef LIB_JOBS_STORE_SALVAGE_H
#define LIB_JOBS_STORE_SALVAGE_H

/*
 * Reading a damaged store without SQLite: the problems of its files, and what they still have. No process may write it.
 */

#include "lib/jobs/store/store.h"

/* A pair of META, TUBES, DUE, WALL or BURIED. */
typedef int salvage_fn(void *context, enum store_table table, struct store_bytes key, struct store_bytes value);

/*
 * Report what is damaged or missing in the files: each page, the log and each record of the journal. Returns the number of
 * problems up to INT_MAX, WW_EDENIED or WW_EIO: they cannot be read, or WW_ENOMEM. A process may write meanwhile.
 */
int ww_salvage_examine(const char *folder, ww_jobs_problem_fn *problem, void *context);

/*
 * Call pair for all pairs that can be read: first those of META and TUBES, then jobs, none twice. What is damaged or
 * missing is reported. Errors: that of pair, WW_EDENIED, WW_EIO, WW_ENOMEM.
 */
int ww_salvage_read(const char *folder, const struct ww_allocator *allocator, salvage_fn *pair, void *pair_context,
    ww_jobs_problem_fn *problem, void *context);

#endif
