#ifndef LIB_JOBS_STORE_WHOLE_H
#define LIB_JOBS_STORE_WHOLE_H

/* Whether a store has all its files, and what to do if not. SQLite by itself would make missing ones. */

#include "lib/jobs/store/files.h"
#include "lib/journal/fault.h"
#include "lib/journal/replay.h"

#define WHOLE_NO_LOG "%s/index.db-wal is missing: it had what was not in index.db yet"

/*
 * Before the index is opened. A new store gets its first journal, unless it is only read. Errors: WW_ECORRUPT: a file is
 * missing; WW_EDENIED: to be read, and nothing is there yet; those of ww_journal_turn.
 */
int ww_store_whole_before(
    const struct store_files *files, const struct ww_jobs_config *config, struct journal_fault *fault);
/* Say what to do about a damaged store. Returns the error. */
int ww_store_whole_advise(const struct ww_jobs_config *config, int error);

#endif
