/* Whether a store has all its files. */

#include "lib/jobs/store/whole.h"

#include "lib/journal/format.h"
#include "lib/journal/journal.h"

int ww_store_whole_advise(const struct ww_jobs_config *config, int error)
{
	if (error != WW_ECORRUPT)
		return error;
	return ww_store_files_refuse(config, error,
	    "%s: is damaged, and nothing was changed. Put back all files of one backup, or save what can be read: "
	    "weekwheel recover %s NEW",
	    config->path, config->path);
}

static int ignore(void *context, const unsigned char *bytes, size_t size)
{
	(void)context;
	(void)bytes;
	(void)size;
	return WW_OK;
}

/* Whether making the store was cut short before it had anything. */
static int is_unmade(const struct ww_jobs_config *config)
{
	struct replay replay = {.folder = config->path, .record = 1, .read = ignore};

	return ww_replay(&replay) == WW_OK && replay.is_empty;
}

/* The journal comes first, so that an index without one is known to have lost it. */
static int make_journal(const struct ww_jobs_config *config, struct journal_fault *fault)
{
	struct journal journal;
	int error;

	ww_journal_open(&journal, config->path, fault, 0, 1);
	journal.kind = JOURNAL_JOBS;
	error = ww_journal_turn(&journal, 0);
	ww_journal_close(&journal);
	return error;
}

/* SQLite would make a new log, or say only that it cannot open one. */
static int check_log(const struct store_files *files, const struct ww_jobs_config *config)
{
	struct replay replay = {.folder = config->path, .cut = UINT64_MAX, .read = ignore};

	if (files->has_log || ww_replay(&replay) != WW_OK || replay.is_closed || replay.is_empty)
		return WW_OK;
	return ww_store_whole_advise(config, ww_store_files_refuse(config, WW_ECORRUPT, WHOLE_NO_LOG, config->path));
}

int ww_store_whole_before(
    const struct store_files *files, const struct ww_jobs_config *config, struct journal_fault *fault)
{
	const char *missing = files->has_index ? "its journal is missing" : "index.db is missing or cut off";

	if (files->has_index && files->has_journal)
		return check_log(files, config);
	if (!files->has_index && !files->has_journal && !(config->flags & WW_JOBS_READONLY))
		return make_journal(config, fault);
	if (files->has_index || !is_unmade(config))
		return ww_store_whole_advise(
		    config, ww_store_files_refuse(config, WW_ECORRUPT, "%s: %s", config->path, missing));
	if (config->flags & WW_JOBS_READONLY)
		return ww_store_files_refuse(config, WW_EDENIED, "%s: has no jobs yet", config->path);
	return WW_OK;
}
