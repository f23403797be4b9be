#ifndef LIB_JOBS_STORE_WHOLE_H
#define LIB_JOBS_STORE_WHOLE_H

/* Whether a store has all its files, and what to do if not. SQLite alone would make those that are missing. */

#include "lib/jobs/store/fault.h"
#include "lib/jobs/store/files.h"
#include "lib/jobs/store/replay.h"

/*
 * Before the index is opened. A new store gets its first journal, unless it is only read. Errors: WW_ECORRUPT: a file is
 * missing; WW_EDENIED: to be read, and nothing is there yet; those of ww_journal_turn.
 */
int ww_store_whole_before(
    const struct store_files *files, const struct ww_jobs_config *config, struct store_fault *fault);
/* After the journal was read: whether there was a log, if the index needs one. WW_ECORRUPT. */
int ww_store_whole_after(
    const struct store_files *files, const struct ww_jobs_config *config, const struct replay *replay);
/* Say what to do about a damaged store. Returns the error. */
int ww_store_whole_advise(const struct ww_jobs_config *config, int error);

#endif
