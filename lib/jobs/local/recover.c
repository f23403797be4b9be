/* Saves what a damaged store still has into a new one. */
#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/base/report.h"
#include "lib/jobs/local/ended.h"
#include "lib/jobs/local/history.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/meta.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/rule.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"
#include "lib/jobs/store/files.h"
#include "lib/jobs/store/salvage.h"

/* Jobs that are written together. */
enum { BATCH = 1000 };
/* An epoch that no store reaches by being opened: tokens are greater than any that were given. */
#define LATE_EPOCH (UINT64_C(1) << 22)
/* Damaged or missing parts may have contained unknown ids: new ones begin this far beyond the last known one. */
#define LOST_IDS UINT64_C(1000000)

struct recovered_name {
	char text[WW_TUBE_MAX + 1];
};

struct recovery {
	struct ww_jobs *handle;
	struct jobs_local *jobs;
	struct meta meta; /* of the damaged store */
	int has_fixed, has_moving;
	int64_t shift;                /* what to add to its elapsed time */
	struct recovered_name *names; /* of tubes, by number */
	size_t room;
	uint64_t saved;
	uint64_t unread;
	uint64_t damages; /* reported while the files were read */
	ww_jobs_problem_fn *problem;
	void *context;
};

/* A pair, for a call. */
struct recovery_pair {
	struct recovery *recovery;
	enum store_table table;
	struct store_bytes key;
	struct store_bytes value;
};

__attribute__((format(printf, 2, 3))) static void report(const struct recovery *recovery, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_message(recovery->problem, recovery->context, format, arguments);
	va_end(arguments);
}

/* ---- What is known of all jobs */

/* Elapsed time began elsewhere. The wall clock is what both have in common. */
static void find_shift(struct recovery *recovery)
{
	const int64_t second = (int64_t)WW_SECOND;
	const struct meta *from = &recovery->meta;
	const struct meta *to = &recovery->jobs->meta;
	int64_t shift = (int64_t)(from->wall - from->elapsed) - (int64_t)(to->wall - to->elapsed);

	recovery->shift = shift > -second && shift < second ? 0 : shift;
}

/* What it has counted belongs to an epoch of the former store, thus counts no more. */
static int take_limit(const struct recovery *recovery, struct store_bytes key, struct store_bytes value)
{
	struct store *store = &recovery->jobs->store;
	int error = ww_jobs_writing(recovery->jobs);

	return error ? error : store->ops->put(store->self, STORE_META, key, value);
}

static int take_meta(struct recovery *recovery, struct store_bytes key, struct store_bytes value)
{
	int is_fixed = key.size == 4;

	if (ww_jobs_is_limit(key) || ww_jobs_is_run(key))
		return take_limit(recovery, key, value);
	if (ww_jobs_meta_take(&recovery->meta, key, value))
		return WW_OK;
	*(is_fixed ? &recovery->has_fixed : &recovery->has_moving) = 1;
	if (!is_fixed)
		find_shift(recovery);
	return WW_OK;
}

static int take_tube(struct recovery *recovery, struct store_bytes key, struct store_bytes value)
{
	uint32_t number = key.size == 4 ? store_read32(key.data) : UINT32_MAX;
	struct tube_value tube;

	if (number >= 1u << 20 || ww_jobs_tube_read(value, &tube))
		return WW_OK;
	if (number >= recovery->room) {
		size_t room = 2 * (size_t)number + 64;
		struct recovered_name *more =
		    ww_jobs_resize(recovery->jobs, recovery->names, recovery->room * sizeof *more, room * sizeof *more);
		if (!more)
			return WW_ENOMEM;
		recovery->names = more;
		recovery->room = room;
	}
	memcpy(recovery->names[number].text, tube.name, tube.length);
	return WW_OK;
}

static const char *name_of(struct recovery *recovery, uint64_t number, char made[WW_TUBE_MAX + 1])
{
	if (number < recovery->room && recovery->names[number].text[0])
		return recovery->names[number].text;
	(void)snprintf(made, WW_TUBE_MAX + 1, "recovered-%llu", (unsigned long long)number);
	return made;
}

/* ---- Jobs */

static uint64_t shifted(const struct recovery *recovery, uint64_t time)
{
	return recovery->shift < 0 && time < (uint64_t)-recovery->shift ? 0 : time + (uint64_t)recovery->shift;
}

/* It is in no index that is counted. */
static int save_ended(struct recovery *recovery, uint64_t id, struct job_record *record, struct tube *tube)
{
	struct jobs_local *jobs = recovery->jobs;
	int error = ww_jobs_tube_keep(jobs, tube, 1);

	record->due = record->base = shifted(recovery, record->due);
	record->ended = shifted(recovery, record->ended);
	if (id >= jobs->meta.next_id)
		jobs->meta.next_id = id + 1;
	if (!error)
		error = ww_jobs_write(jobs, id, NULL, record);
	if (!error)
		ww_jobs_plan_forget(jobs, record->ended);
	return error;
}

/* Where it is not known how much of the journal the index has, a job may come from both. The first one counts. */
static int save(struct recovery *recovery, uint64_t id, struct job_record *record)
{
	struct jobs_local *jobs = recovery->jobs;
	char made[WW_TUBE_MAX + 1];
	struct job_record old;
	struct tube *tube;
	int error = ww_jobs_read_any(jobs, id, &old);

	if (error != WW_ENOTFOUND)
		return error == WW_OK ? WW_OK : error;
	error = ww_jobs_writing(jobs);
	if (!error)
		error = ww_jobs_tube_get(jobs, name_of(recovery, record->tube, made), &tube);
	if (error)
		return ww_jobs_broken(jobs, error);
	record->tube = tube->number;
	if (record->ended)
		return save_ended(recovery, id, record, tube);
	if (!(record->flags & WW_JOB_WALL)) {
		record->due = shifted(recovery, record->due);
		record->base = shifted(recovery, record->base);
		record->first = record->first ? shifted(recovery, record->first) : 0;
		record->expires = record->expires ? shifted(recovery, record->expires) : 0;
	}
	if (id >= jobs->meta.next_id)
		jobs->meta.next_id = id + 1;
	if (record->buried > jobs->meta.burials)
		jobs->meta.burials = record->buried;
	jobs->meta.accepted++;
	error = ww_jobs_tube_count(jobs, tube, !record->buried, record->buried != 0, 0, 0);
	if (!error)
		error = ww_jobs_settle(jobs, id, NULL, record);
	recovery->saved += !error;
	return error;
}

static int save_pair(struct jobs_local *jobs, void *arguments)
{
	const struct recovery_pair *pair = arguments;
	struct recovery *recovery = pair->recovery;
	struct job_record record;
	uint64_t id;

	(void)jobs;
	if (ww_jobs_read_pair(pair->table, pair->key, pair->value, &id, &record)) {
		recovery->unread++;
		return WW_OK;
	}
	return save(recovery, id, &record);
}

static int take_job(struct recovery *recovery, struct recovery_pair *pair)
{
	int error = ww_jobs_submit(recovery->jobs, save_pair, pair);

	if (!error && recovery->saved % BATCH == 0) {
		error = ww_jobs_local_commit(recovery->handle);
		if (!error)
			error = ww_jobs_local_begin(recovery->handle);
	}
	return error;
}

static int take(void *context, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct recovery_pair pair = {context, table, key, value};

	if (table == STORE_META)
		return take_meta(context, key, value);
	if (table == STORE_TUBES)
		return take_tube(context, key, value);
	return take_job(context, &pair);
}

/* ---- The end */

static uint64_t expected(const struct recovery *recovery)
{
	return recovery->meta.accepted - recovery->meta.ended;
}

static int is_incomplete(const struct recovery *recovery)
{
	return recovery->damages || recovery->unread || !recovery->has_moving || expected(recovery) != recovery->saved;
}

/* Ids and tokens go on after those of the damaged store. */
static int save_meta(struct jobs_local *jobs, void *arguments)
{
	const struct recovery *recovery = arguments;
	const struct meta *meta = &recovery->meta;
	int error = ww_jobs_writing(jobs);

	/* The runs came before it was known by how much. */
	if (!error)
		error = ww_jobs_history_shift(jobs, recovery->shift);
	if (error)
		return error;
	if (meta->next_id > jobs->meta.next_id)
		jobs->meta.next_id = meta->next_id;
	if (is_incomplete(recovery))
		jobs->meta.next_id += LOST_IDS;
	if (meta->burials > jobs->meta.burials)
		jobs->meta.burials = meta->burials;
	jobs->meta.epoch += recovery->has_fixed ? meta->epoch : LATE_EPOCH;
	if (recovery->has_moving && meta->accepted > jobs->meta.accepted)
		jobs->meta.accepted = meta->accepted;
	jobs->meta.ended = jobs->meta.accepted - recovery->saved;
	return WW_OK;
}

static void tell_losses(const struct recovery *recovery)
{
	if (recovery->unread)
		report(recovery, "%llu jobs cannot be read", (unsigned long long)recovery->unread);
	if (!recovery->has_moving)
		report(recovery, "how many jobs there were is not known, nor which ids were given");
	else if (expected(recovery) != recovery->saved)
		report(recovery, "%llu jobs were accepted and had not ended, and %llu are saved",
		    (unsigned long long)expected(recovery), (unsigned long long)recovery->saved);
}

static void pass_on(const char *problem, void *context)
{
	struct recovery *recovery = context;

	recovery->damages++;
	report(recovery, "%s", problem);
}

static int read_and_save(struct recovery *recovery, const char *path)
{
	int error = ww_jobs_local_begin(recovery->handle);
	int committed;

	if (error)
		return error;
	error = ww_salvage_read(path, recovery->jobs->allocator, take, recovery, pass_on, recovery);
	if (!error)
		error = ww_jobs_submit(recovery->jobs, save_meta, recovery);
	committed = ww_jobs_local_commit(recovery->handle);
	return error ? error : committed;
}

/* Without a file of a store there is nothing to save, and no new one is made. */
static int look_for_store(const char *path, const struct ww_jobs_config *config)
{
	struct ww_jobs_config from = *config;
	struct store_files files;
	int error;

	from.path = path;
	error = ww_store_files_look(&files, &from);
	return files.has_log ? WW_OK : error;
}

int ww_jobs_recover(
    const char *path, const struct ww_jobs_config *config, uint64_t *saved, ww_jobs_problem_fn *problem, void *context)
{
	struct recovery recovery = {.problem = problem, .context = context};
	int error;
	int closed;

	if (!path || !config || !saved || (config->flags & (WW_JOBS_READONLY | WW_JOBS_MEMORY)))
		return WW_EINVAL;
	if (ww_store_files_used(path))
		return WW_EINUSE;
	error = look_for_store(path, config);
	if (!error)
		error = ww_jobs_open(&recovery.handle, config);
	if (error)
		return error;
	recovery.jobs = local_of(recovery.handle);
	error = recovery.jobs->meta.accepted ? WW_EINVAL : read_and_save(&recovery, path);
	ww_jobs_give(recovery.jobs, recovery.names, recovery.room * sizeof *recovery.names);
	closed = ww_jobs_close(recovery.handle);
	*saved = recovery.saved;
	if (!error)
		tell_losses(&recovery);
	return error ? error : closed;
}

int ww_jobs_examine(const char *path, ww_jobs_problem_fn *problem, void *context)
{
	return path ? ww_salvage_examine(path, problem, context) : WW_EINVAL;
}
