#ifndef LIB_JOBS_STORE_FILES_H
#define LIB_JOBS_STORE_FILES_H

/*
 * The folder of a store: which process has it, and whether its files are complete.
 *
 *     index.db       the index
 *     index.db-wal   its log: what is not in index.db yet. Only after the store was closed it may be missing.
 *     index.db-shm   where in the log pages lie, for all who have it open; can be made again
 *     journal.N      what the index does not have yet; there is at least one
 *
 * A new store gets its journal before its index. A file is therefore missing if there is an index without a journal, or
 * a journal with records but no index. Links are not followed.
 */

#include <stdint.h>

#include "weekwheel/jobs.h"

/* How much of the log and of the journal a server puts off for a copy, at least. */
#define STORE_PATIENCE ((uint64_t)64 << 20)

struct store_files {
	int lock; /* the folder, locked; or -1 */
	int has_index;
	int has_log;
	int has_journal;
};

/* Report what is wrong with the store to the caller that opens it. Returns the error. */
__attribute__((format(printf, 3, 4))) int ww_store_files_refuse(
    const struct ww_jobs_config *config, int error, const char *format, ...);

/*
 * Make the folder if it is missing, and take it for this process until it is closed. Then look at it. Errors:
 * WW_EINUSE: another process has it. WW_ECORRUPT: it has other files. WW_EVERSION: a former kind of store.
 * WW_EDENIED: also a folder of weekwheel-sessiond. WW_EIO, WW_EINVAL.
 */
int ww_store_files_lock(struct store_files *files, const struct ww_jobs_config *config);
/* Look at it to read. WW_EDENIED: it has no store. */
int ww_store_files_look(struct store_files *files, const struct ww_jobs_config *config);
void ww_store_files_unlock(struct store_files *files);
/* Whether a process has the folder locked. */
int ww_store_files_used(const char *path);
/*
 * Whether a process copies it (copy.h). Then put off what the copy would have to begin anew for, as long as `bytes` are
 * few: fewer than STORE_PATIENCE or than the index has.
 */
int ww_store_files_copied(const char *path, uint64_t bytes);
/* Bytes of the index and the reserve. */
uint64_t ww_store_files_bytes(const char *path);

#endif
