/* Opens a store of jobs, explains errors, and reads every job. */
#include "tools/weekwheel/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/message.h"

static int make_driver(struct ww_driver **driver, struct ww_clock *clock)
{
	struct ww_driver_config config;

	(void)ww_driver_config_default(&config);
	config.clock = clock;
	config.flags = WW_DRIVER_THREADLESS;
	return ww_driver_create(driver, &config);
}

/* What the library said when it refused a store. */
static char said[8192];

static void note_problem(const char *problem, void *unused)
{
	size_t length = strlen(said);

	(void)unused;
	snprintf(said + length, sizeof said - length, "%s%s", length ? "\n" : "", problem);
}

const char *store_complaint(void)
{
	return said;
}

static int configure(struct opened_store *store, const char *path, uint32_t flags, struct ww_jobs_config *result)
{
	struct ww_jobs_config config;
	int error;

	error = make_driver(&store->elapsed, ww_clock_elapsed());
	if (!error)
		error = make_driver(&store->wall, ww_clock_wall());
	(void)ww_jobs_config_default(&config);
	config.path = path;
	config.driver = store->elapsed;
	config.wall = store->wall;
	config.flags = flags;
	/* The limit of its server applied when the jobs were put. */
	config.body_max = WW_JOB_BODY_MAX;
	config.problem = note_problem;
	said[0] = 0;
	*result = config;
	return error;
}

static int open_directory(struct opened_store *store, const char *path, uint32_t flags)
{
	struct ww_jobs_config config;
	int error = configure(store, path, flags, &config);

	return error ? error : ww_jobs_open(&store->jobs, &config);
}

int store_recover(const char *from, const char *to, uint64_t *saved, ww_jobs_problem_fn *problem, void *context)
{
	struct opened_store store = {.jobs = NULL};
	struct ww_jobs_config config;
	int error = configure(&store, to, 0, &config);

	/* Stable when it is closed. */
	config.sync = WW_SYNC_SYSTEM;
	if (!error)
		error = ww_jobs_recover(from, &config, saved, problem, context);
	(void)store_close(&store);
	return error;
}

int store_open(struct opened_store *store, const struct store_place *place, uint32_t flags)
{
	int error;

	memset(store, 0, sizeof *store);
	store->is_shared = !place->path;
	error = place->path ? open_directory(store, place->path, flags) : store_redis_open(store, place, flags);
	if (error) {
		store->jobs = NULL;
		(void)store_close(store);
	}
	return error;
}

int store_close(struct opened_store *store)
{
	int error = ww_jobs_close(store->jobs);

	(void)ww_driver_destroy(store->wall);
	(void)ww_driver_destroy(store->elapsed);
	memset(store, 0, sizeof *store);
	return error;
}

/* Whether a file of a store is none. */
static int has_others(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	struct stat status;
	int others = 0;

	while (folder && (entry = readdir(folder)))
		others += (strncmp(entry->d_name, "index.db", 8) == 0 || strncmp(entry->d_name, "journal.", 8) == 0) &&
		          fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		          !S_ISREG(status.st_mode);
	if (folder)
		closedir(folder);
	return others;
}

/* The library has one error for several causes, which a person would fix in different ways. */
static const char *denied(const char *path)
{
	char name[4096];
	struct stat status;

	if (stat(path, &status))
		return errno == ENOENT ? "there is no such directory" : strerror(errno);
	if (!S_ISDIR(status.st_mode))
		return "is not a directory; name the one that weekwheeld has as --data";
	snprintf(name, sizeof name, "%s/index.db", path);
	if (stat(name, &status) && errno == ENOENT && lstat(name, &status))
		return "has no jobs in it; name the directory that weekwheeld has as --data";
	if (has_others(path))
		return "has a link, or what is no plain file, for a file of its own; put the file itself there";
	/* SQLite makes a log even to read. */
	if (access(path, W_OK) && errno == EROFS)
		return "its file system is mounted read-only; copy it with 'weekwheel backup', and use the copy";
	return "no permission; run this as the user whose directory it is";
}

const char *store_reason(char *text, size_t room, const struct store_place *place, int error)
{
	const char *why = ww_strerror(error);

	if (!place->path)
		return store_redis_reason(text, room, place, error);
	if (error == WW_EDENIED)
		why = denied(place->path);
	else if (error == WW_EINUSE)
		why = "a server has it open; end that one first, or give it the jobs with 'weekwheel put'";
	else if (error == WW_ECORRUPT)
		why = "is damaged; put back a copy, or save what can be read with 'weekwheel recover'";
	else if (error == WW_EVERSION)
		why = "was written by another version of weekwheel; use that one, or carry the jobs over with its "
		      "'weekwheel export' and the 'weekwheel import' of this one";
	else if (error == WW_EFULL)
		why = "the disk is full; make room";
	if (said[0] && (error == WW_ECORRUPT || strstr(said, "has format") || strstr(said, "not followed") ||
	                   strstr(said, "weekwheel-sessiond")))
		snprintf(text, room, "%s", said);
	else
		snprintf(text, room, "%s: %s", place->path, why);
	return text;
}

int store_refused(const struct store_place *place, int error)
{
	char text[STORE_REASON];

	message_error("%s", store_reason(text, sizeof text, place, error));
	return STATUS_FAILED;
}

int64_t store_shift(const struct opened_store *store)
{
	const int64_t second = (int64_t)WW_SECOND;
	uint64_t elapsed = 0;
	uint64_t wall = 0;
	int64_t shift;

	(void)ww_jobs_now(store->jobs, 0, &elapsed);
	(void)ww_jobs_now(store->jobs, WW_JOB_WALL, &wall);
	shift = (int64_t)(wall - elapsed);
	return shift > -second && shift < second ? 0 : shift;
}

/* ---- Every job */

/*
 * After this many ids in a row without a readable record the steps become larger and larger: the count of all jobs may
 * be damaged, too.
 */
enum { ONE_BY_ONE = 1 << 20 };

struct store_walk {
	ww_job_fn *fn;
	void *context;
	uint64_t last;   /* the last id that was read */
	uint64_t passed; /* tries since then that read nothing */
	uint64_t step;   /* of the last of them */
};

static int walk_one(const struct ww_job_info *info, void *context)
{
	struct store_walk *walk = context;

	walk->last = info->id;
	walk->passed = 0;
	walk->step = 1;
	return walk->fn(info, walk->context);
}

/*
 * The library does not give the id of an unreadable record: skip the ids that it may have, one by one. Returns 0 if no
 * record can follow.
 */
static int pass(struct store_walk *walk, struct ww_job_filter *filter, uint64_t last)
{
	uint64_t after = walk->last > filter->after ? walk->last : filter->after;

	if (walk->passed++ >= ONE_BY_ONE)
		walk->step *= 2;
	if (after >= last || walk->step >= last - after)
		return 0;
	filter->after = after + walk->step;
	return 1;
}

int store_each(const struct opened_store *store, unsigned states, ww_job_fn *fn, void *context)
{
	struct ww_job_filter filter = {.states = states};
	struct store_walk walk = {.fn = fn, .context = context, .step = 1};
	struct ww_jobs_stats stats;
	int damaged = WW_OK;
	int error;

	if (store->is_shared)
		return store_redis_each(store, states, fn, context);
	error = ww_jobs_stats(store->jobs, &stats);
	/* Everything read between begin and commit is of one moment. */
	if (!error)
		error = ww_jobs_begin(store->jobs);
	if (error)
		return error;
	for (;;) {
		error = ww_jobs_list(store->jobs, &filter, SIZE_MAX, walk_one, &walk, NULL);
		if (error != WW_ECORRUPT)
			break;
		damaged = error;
		error = WW_OK;
		if (!pass(&walk, &filter, stats.last_id > stats.accepted ? stats.last_id : stats.accepted))
			break;
	}
	(void)ww_jobs_commit(store->jobs);
	return error ? error : damaged;
}
