/* Adding, listing and changing schedules. Each change is a put of the schedule's job with the version that was read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/memory.h"
#include "lib/schedule/schedule_internal.h"

enum { TRIES = 10 };

/* How long a scheduler may take before another one takes over. */
#define LEASE (5 * WW_SECOND)
/* A schedule without a time, or with one that is far away, is looked at so often. */
#define LOOK (UINT64_C(30) * 24 * 3600 * WW_SECOND)
/* How long the key of a job is known after the job: much longer than LEASE, and than any network holds up a call. */
#define UNIQUE (600 * WW_SECOND)

int ww_schedule_open(struct ww_schedule **schedule, struct ww_jobs *jobs, const struct ww_allocator *allocator)
{
	struct ww_schedule *made;

	if (!schedule || !jobs)
		return WW_EINVAL;
	allocator = allocator ? allocator : ww_allocator_default();
	made = memory_take_zeroed(allocator, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	made->jobs = jobs;
	made->allocator = allocator;
	if (pthread_mutex_init(&made->lock, NULL) != 0) {
		memory_give(allocator, made, sizeof *made);
		return WW_ENOMEM;
	}
	*schedule = made;
	return WW_OK;
}

void ww_schedule_close(struct ww_schedule *schedule)
{
	if (!schedule)
		return;
	for (int i = 0; i < ZONES_KEPT; i++)
		ww_calendar_close(schedule->zones[i].calendar);
	pthread_mutex_destroy(&schedule->lock);
	memory_give(schedule->allocator, schedule, sizeof *schedule);
}

int ww_schedule_spec_default(struct ww_schedule_spec *spec)
{
	struct ww_job_spec job;

	if (!spec)
		return WW_EINVAL;
	(void)ww_job_spec_default(&job);
	*spec = (struct ww_schedule_spec){.tube = WW_TUBE_DEFAULT, .zone = "UTC"};
	ww_schedule_of_job(spec, &job);
	return WW_OK;
}

int ww_schedule_stats(struct ww_schedule *schedule, struct ww_schedule_stats *stats)
{
	if (!schedule || !stats)
		return WW_EINVAL;
	pthread_mutex_lock(&schedule->lock);
	*stats = schedule->stats;
	pthread_mutex_unlock(&schedule->lock);
	return WW_OK;
}

void ww_schedule_count(struct ww_schedule *schedule, uint64_t *number)
{
	pthread_mutex_lock(&schedule->lock);
	(*number)++;
	pthread_mutex_unlock(&schedule->lock);
}

/* ---- Calendars */

/* Keep a zone in memory, which a calendar of it then finds there. Without memory it is read again. */
static void keep_zone(struct ww_schedule *schedule, const char *zone)
{
	struct ww_calendar_spec spec = {.expression = "@daily", .zone = zone, .allocator = schedule->allocator};
	struct ww_calendar *calendar;
	unsigned i = 0;

	pthread_mutex_lock(&schedule->lock);
	while (i < ZONES_KEPT && strcmp(schedule->zones[i].name, zone) != 0)
		i++;
	if (i == ZONES_KEPT && ww_calendar_open(&calendar, &spec, NULL) == WW_OK) {
		i = schedule->next_zone++ % ZONES_KEPT;
		ww_calendar_close(schedule->zones[i].calendar);
		schedule->zones[i].calendar = calendar;
		snprintf(schedule->zones[i].name, sizeof schedule->zones[i].name, "%s", zone);
	}
	pthread_mutex_unlock(&schedule->lock);
}

int ww_schedule_calendar(struct ww_schedule *schedule, const struct schedule_record *record,
    struct ww_calendar **calendar, struct ww_calendar_problem *problem)
{
	struct ww_calendar_spec spec = {.expression = record->spec.expression,
	    .zone = record->spec.zone,
	    .anchor = record->anchor,
	    .allocator = schedule->allocator};
	int error = ww_calendar_open(calendar, &spec, problem);

	if (!error)
		keep_zone(schedule, record->spec.zone);
	return error;
}

uint64_t ww_schedule_next(const struct ww_calendar *calendar, const struct ww_schedule_spec *spec, uint64_t after)
{
	uint64_t time;

	if (spec->start && after < spec->start)
		after = spec->start - 1;
	if (ww_calendar_next(calendar, after, &time) || (spec->end && time > spec->end))
		return 0;
	return time;
}

/* ---- The schedule's job */

static uint64_t due_of(const struct schedule_record *record, uint64_t now)
{
	uint64_t due = record->next + ww_schedule_delay(&record->spec);

	return record->spec.is_paused || !record->next || due > now + LOOK ? now + LOOK : due;
}

/* What only moves on needs no new place. */
static int put_job(struct ww_schedule *schedule, const struct ww_job_spec *spec, uint64_t *id)
{
	int refused = schedule->admit && !spec->version ? schedule->admit(spec, schedule->admit_context) : 0;

	return refused ? refused : ww_jobs_put(schedule->jobs, spec, id, NULL);
}

int ww_schedule_store(struct ww_schedule *schedule, const struct schedule_record *record, uint64_t version)
{
	size_t room = WW_SCHEDULE_RECORD_MAX + record->spec.body_length;
	char *body = memory_take(schedule->allocator, room);
	struct schedule_key key;
	struct ww_job_spec spec;
	uint64_t now = 0;
	int result;

	if (!body)
		return WW_ENOMEM;
	(void)ww_job_spec_default(&spec);
	result = ww_schedule_key(record->spec.tube, record->spec.name, &key);
	if (!result)
		result = ww_jobs_now(schedule->jobs, WW_JOB_WALL, &now);
	if (!result) {
		spec.tube = WW_SCHEDULE_TUBE;
		spec.key = key.bytes;
		spec.key_length = key.length;
		spec.body = body;
		spec.body_length = ww_schedule_write(record, body);
		if (record->spec.body_length)
			memcpy(body + spec.body_length, record->spec.body, record->spec.body_length);
		spec.body_length += record->spec.body_length;
		spec.due = due_of(record, now);
		spec.flags = WW_JOB_WALL | WW_JOB_AT;
		spec.run = LEASE;
		spec.version = version;
		spec.key_mode = version ? WW_KEY_REPLACE : WW_KEY_IF_ABSENT;
		result = put_job(schedule, &spec, NULL);
	}
	memory_give(schedule->allocator, body, room);
	return result;
}

size_t ww_schedule_job_key(const char *name, uint64_t time, char *text)
{
	time_t seconds = (time_t)(time / WW_SECOND);
	unsigned ms = (unsigned)(time % WW_SECOND / WW_MILLISECOND);
	char when[40];
	struct tm tm = {0};
	int length;

	(void)gmtime_r(&seconds, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	length = ms ? snprintf(text, WW_JOB_KEY_MAX + 1, "%s@%s.%03uZ", name, when, ms)
	            : snprintf(text, WW_JOB_KEY_MAX + 1, "%s@%sZ", name, when);
	return (size_t)length;
}

/* The job is put now, and expires after its time. Later than that, leave_out has found no time for a job. */
static int shorten(struct ww_schedule *schedule, const struct schedule_record *record, uint64_t time, uint64_t *expire)
{
	uint64_t due = time + ww_schedule_delay(&record->spec);
	uint64_t now;
	int error = *expire ? ww_jobs_now(schedule->jobs, WW_JOB_WALL, &now) : WW_OK;

	if (!error && *expire && now > due)
		*expire = now - due < *expire ? *expire - (now - due) : 1;
	return error;
}

int ww_schedule_make(struct ww_schedule *schedule, const struct schedule_record *record, uint64_t time, uint64_t *id)
{
	char key[WW_JOB_KEY_MAX + 1];
	struct ww_job_spec spec;
	int error;

	(void)ww_job_spec_default(&spec);
	spec.tube = record->spec.tube;
	spec.key = key;
	spec.key_length = ww_schedule_job_key(record->spec.name, time, key);
	spec.key_mode = WW_KEY_UNIQUE;
	spec.key_span = UNIQUE;
	spec.body = record->spec.body;
	spec.body_length = record->spec.body_length;
	ww_schedule_to_job(&record->spec, &spec);
	spec.group = record->spec.group;
	spec.group_length = record->spec.group_length;
	error = shorten(schedule, record, time, &spec.expire);
	return error ? error : put_job(schedule, &spec, id);
}

/* ---- Reading */

static void fill_info(const struct schedule_record *record, uint64_t version, struct ww_schedule_info *info)
{
	*info = (struct ww_schedule_info){.spec = record->spec,
	    .anchor = record->anchor,
	    .delay = ww_schedule_delay(&record->spec),
	    .last = record->last,
	    .made = record->made,
	    .skipped = record->skipped,
	    .version = version};
	if (record->next && !record->spec.is_paused)
		info->next = record->next + info->delay;
}

/* A schedule that was read, with the body that contains it. */
struct schedule_reading {
	struct schedule_record record;
	uint64_t version;
	void *body; /* ww_jobs_free */
};

static int read_schedule(
    struct ww_schedule *schedule, const char *tube, const char *name, struct schedule_reading *reading)
{
	struct schedule_key key;
	struct ww_job_ref ref = {.tube = WW_SCHEDULE_TUBE};
	struct ww_job_info info;
	int error = schedule ? ww_schedule_key(tube, name, &key) : WW_EINVAL;

	if (error)
		return error;
	ref.key = key.bytes;
	ref.key_length = key.length;
	error = ww_jobs_peek(schedule->jobs, &ref, &info, &reading->body);
	if (error)
		return error;
	reading->version = info.version;
	error = ww_schedule_read(info.body, info.body_length, key.bytes, key.length, &reading->record);
	if (error)
		ww_jobs_free(schedule->jobs, reading->body);
	return error;
}

int ww_schedule_peek(
    struct ww_schedule *schedule, const char *tube, const char *name, ww_schedule_fn *fn, void *context)
{
	struct schedule_reading reading;
	struct ww_schedule_info info;
	int result = fn ? read_schedule(schedule, tube, name, &reading) : WW_EINVAL;

	if (result)
		return result;
	fill_info(&reading.record, reading.version, &info);
	result = fn(&info, context);
	ww_jobs_free(schedule->jobs, reading.body);
	return result;
}

struct schedule_listing {
	ww_schedule_fn *fn;
	void *context;
};

/* What cannot be read, and a request, are left out: they are in the list of jobs. */
static int list_one(const struct ww_job_info *job, void *context)
{
	const struct schedule_listing *listing = context;
	struct schedule_record record;
	struct ww_schedule_info info;

	if (ww_schedule_read(job->body, job->body_length, job->key, job->key_length, &record) || record.request)
		return 0;
	fill_info(&record, job->version, &info);
	return listing->fn(&info, listing->context);
}

int ww_schedule_list(
    struct ww_schedule *schedule, const char *tube, size_t limit, ww_schedule_fn *fn, void *context, uint64_t *next)
{
	struct schedule_listing listing = {fn, context};
	struct ww_job_filter filter = {.tube = WW_SCHEDULE_TUBE};

	if (!schedule || !fn || !next || (tube && (!*tube || strnlen(tube, WW_TUBE_MAX + 1) > WW_TUBE_MAX)))
		return WW_EINVAL;
	filter.prefix = tube;
	filter.prefix_length = tube ? strlen(tube) + 1 : 0;
	filter.after = *next;
	if (filter.prefix_length > WW_JOB_KEY_MAX) {
		*next = 0;
		return WW_OK;
	}
	return ww_jobs_list(schedule->jobs, &filter, limit, list_one, &listing, next);
}

/* ---- Changing */

/*
 * The controls beyond ASCII, U+0080 to U+009F: a terminal obeys them, too. A key may have them, so that a schedule
 * that has one from before can be removed.
 */
static int has_control(const char *name)
{
	for (const unsigned char *at = (const unsigned char *)name; *at; at++)
		if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
			return 1;
	return 0;
}

static int check_spec(const struct ww_schedule_spec *spec)
{
	struct schedule_key key;

	if (!spec->expression || !spec->zone || (!spec->body && spec->body_length) ||
	    (!spec->group && spec->group_length) || spec->group_length > WW_JOB_GROUP_MAX ||
	    spec->body_length > WW_JOB_BODY_MAX || (unsigned)spec->missed > WW_MISSED_SKIP ||
	    (unsigned)spec->overlap > WW_OVERLAP_WAIT || (unsigned)spec->expired > WW_EXPIRED_BURY ||
	    spec->code > WW_JOB_CODE_MAX || spec->run < WW_SECOND || strpbrk(spec->expression, "\n\r"))
		return WW_EINVAL;
	if (!ww_schedule_is_in_range(spec) || !spec->name || has_control(spec->name))
		return WW_EINVAL;
	return ww_schedule_key(spec->tube, spec->name, &key);
}

/* Take over from the former one what a replacement keeps. */
static void keep_former(struct schedule_record *record, const struct schedule_record *former)
{
	const struct ww_schedule_spec *now = &record->spec;
	const struct ww_schedule_spec *then = &former->spec;

	record->last = former->last;
	record->made = former->made;
	record->skipped = former->skipped;
	if (strcmp(now->expression, then->expression) != 0 || strcmp(now->zone, then->zone) != 0 ||
	    now->start != then->start)
		return;
	record->anchor = former->anchor;
	if (former->next && former->next < record->next && !then->is_paused)
		record->next = former->next;
}

/* One try. WW_ESTALE: another one was faster. */
static int put_once(struct ww_schedule *schedule, struct schedule_record *record, struct ww_calendar_problem *problem)
{
	struct ww_schedule_spec *spec = &record->spec;
	struct schedule_reading former = {.version = 0};
	struct ww_calendar *calendar = NULL;
	uint64_t now;
	int found = read_schedule(schedule, spec->tube, spec->name, &former);
	int result = ww_jobs_now(schedule->jobs, WW_JOB_WALL, &now);

	/* One that cannot be read is replaced. */
	if (found && found != WW_ENOTFOUND)
		return found;
	if (spec->version && former.version != spec->version)
		result = WW_ESTALE;
	record->anchor = spec->start ? spec->start : now;
	if (!found && strcmp(spec->expression, former.record.expression) == 0)
		record->anchor = former.record.anchor;
	if (!result)
		result = ww_schedule_calendar(schedule, record, &calendar, problem);
	if (!result) {
		record->next = ww_schedule_next(calendar, spec, now);
		ww_calendar_close(calendar);
		if (!found)
			keep_former(record, &former.record);
		result = !found && spec->if_absent ? WW_PUT_KEPT : ww_schedule_store(schedule, record, former.version);
		if (result == WW_PUT_KEPT && found)
			result = spec->if_absent ? WW_PUT_KEPT : WW_ESTALE;
	}
	if (!found)
		ww_jobs_free(schedule->jobs, former.body);
	return result;
}

void ww_schedule_admit(struct ww_schedule *schedule, ww_schedule_admit_fn *admit, void *context)
{
	schedule->admit = admit;
	schedule->admit_context = context;
}

int ww_schedule_put(struct ww_schedule *schedule, const struct ww_schedule_spec *spec, uint64_t *next,
    struct ww_calendar_problem *problem)
{
	struct ww_calendar_problem own;
	struct schedule_record record = {.next = 0};
	int result = schedule && spec ? check_spec(spec) : WW_EINVAL;

	problem = problem ? problem : &own;
	memset(problem, 0, sizeof *problem);
	if (result)
		return result;
	for (int i = 0; i < TRIES; i++) {
		record = (struct schedule_record){.spec = *spec};
		result = put_once(schedule, &record, problem);
		if (result != WW_ESTALE || spec->version)
			break;
	}
	if (result >= 0 && next)
		*next = record.next && !spec->is_paused ? record.next + ww_schedule_delay(spec) : 0;
	return result == WW_ESTALE && !spec->version ? WW_EAGAIN : result;
}

static int pause_once(struct ww_schedule *schedule, const char *tube, const char *name, int is_paused)
{
	struct schedule_reading reading;
	struct ww_calendar *calendar;
	uint64_t now;
	int result = read_schedule(schedule, tube, name, &reading);

	if (result)
		return result;
	if (reading.record.spec.is_paused == !!is_paused) {
		ww_jobs_free(schedule->jobs, reading.body);
		return 1;
	}
	reading.record.spec.is_paused = !!is_paused;
	result = is_paused ? WW_OK : ww_jobs_now(schedule->jobs, WW_JOB_WALL, &now);
	if (!result && !is_paused)
		result = ww_schedule_calendar(schedule, &reading.record, &calendar, NULL);
	if (!result && !is_paused) {
		reading.record.next = ww_schedule_next(calendar, &reading.record.spec, now);
		ww_calendar_close(calendar);
	}
	if (!result)
		result = ww_schedule_store(schedule, &reading.record, reading.version);
	ww_jobs_free(schedule->jobs, reading.body);
	return result < 0 ? result : WW_OK;
}

int ww_schedule_pause(struct ww_schedule *schedule, const char *tube, const char *name, int is_paused)
{
	int result = WW_ESTALE;

	for (int i = 0; i < TRIES && result == WW_ESTALE; i++)
		result = pause_once(schedule, tube, name, is_paused);
	return result == WW_ESTALE ? WW_EAGAIN : result;
}

int ww_schedule_run(struct ww_schedule *schedule, const char *tube, const char *name, uint64_t *id)
{
	struct schedule_reading reading;
	uint64_t now;
	int result = read_schedule(schedule, tube, name, &reading);

	if (result)
		return result;
	result = ww_jobs_now(schedule->jobs, WW_JOB_WALL, &now);
	/* Beside the jobs of its times, which have whole seconds. */
	if (!result && now % WW_SECOND < WW_MILLISECOND)
		now += WW_MILLISECOND;
	if (!result)
		result = ww_schedule_make(schedule, &reading.record, now, id);
	ww_jobs_free(schedule->jobs, reading.body);
	return result < 0 ? result : WW_OK;
}

int ww_schedule_remove_version(struct ww_schedule *schedule, const char *tube, const char *name, uint64_t version)
{
	struct schedule_key key;
	struct ww_job_ref ref = {.tube = WW_SCHEDULE_TUBE, .version = version};
	int result = schedule ? ww_schedule_key(tube, name, &key) : WW_EINVAL;

	if (result)
		return result;
	ref.key = key.bytes;
	ref.key_length = key.length;
	result = ww_jobs_cancel(schedule->jobs, &ref);
	return result < 0 ? result : WW_OK;
}

int ww_schedule_remove(struct ww_schedule *schedule, const char *tube, const char *name)
{
	return ww_schedule_remove_version(schedule, tube, name, 0);
}
