/* Works on due schedules: puts the jobs of their times, then moves the schedules on. */

#include "lib/schedule/schedule_internal.h"

enum {
	LEASES_MAX = 64, /* at once */
	MAKES_MAX = 64,  /* missed times that one look at a schedule makes up for */
	WORK_MAX = 1000
};

/* How long WW_OVERLAP_WAIT waits between looks: longer, the longer it has waited. */
#define WAIT_LEAST (100 * WW_MILLISECOND)
#define WAIT_MOST (15 * WW_SECOND)

/* Returns 1 if the job of the last time has not ended, 0, or a WW_E*. */
static int is_overlapping(struct ww_schedule *schedule, const struct schedule_record *record)
{
	char key[WW_JOB_KEY_MAX + 1];
	struct ww_job_ref ref = {.tube = record->spec.tube, .key = key};
	struct ww_job_info info;
	int error;

	if (record->spec.overlap == WW_OVERLAP_ALLOW || !record->last)
		return 0;
	ref.key_length = ww_schedule_job_key(record->spec.name, record->last, key);
	error = ww_jobs_peek(schedule->jobs, &ref, &info, NULL);
	if (error)
		return error == WW_ENOTFOUND ? 0 : error;
	return info.state == WW_JOB_DELAYED || info.state == WW_JOB_READY || info.state == WW_JOB_RESERVED;
}

/* Times that are too old have no job, nor have those whose jobs would have expired. */
static void leave_out(struct schedule_record *record, const struct ww_calendar *calendar, uint64_t now)
{
	const struct ww_schedule_spec *spec = &record->spec;
	uint64_t oldest = spec->missed == WW_MISSED_SKIP && now > spec->skip ? now - spec->skip : 0;

	if (spec->expire && now > spec->expire && oldest <= now - spec->expire)
		oldest = now - spec->expire + 1;
	if (record->next && record->next < oldest)
		record->next = ww_schedule_next(calendar, &record->spec, oldest - 1);
}

/*
 * Make what is due by `now`, without the spread. A time gets its job before the record moves on: a scheduler that
 * finds the old record makes the same job again, and finds the job's key taken.
 */
static int make_due(
    struct ww_schedule *schedule, struct schedule_record *record, const struct ww_calendar *calendar, uint64_t now)
{
	int most = record->spec.missed == WW_MISSED_ALL && record->spec.overlap == WW_OVERLAP_ALLOW ? MAKES_MAX : 1;

	for (int i = 0; i < most && record->next && record->next <= now; i++) {
		uint64_t time = record->next;
		int result = is_overlapping(schedule, record);

		if (result < 0 || (result && record->spec.overlap == WW_OVERLAP_WAIT))
			return result;
		if (result) {
			record->skipped++;
			ww_schedule_count(schedule, &schedule->stats.skipped);
		} else {
			result = ww_schedule_make(schedule, record, time, NULL);
			if (result < 0)
				return result;
			record->last = time;
			record->made++;
			ww_schedule_count(schedule, &schedule->stats.made);
		}
		record->next = ww_schedule_next(
		    calendar, &record->spec, record->spec.missed == WW_MISSED_ONCE && now > time ? now : time);
	}
	return WW_OK;
}

/* Look again when the former job may have ended. */
static void wait_for_former(struct ww_schedule *schedule, const struct ww_lease *lease, uint64_t waited)
{
	uint64_t delay = waited / 8;

	ww_schedule_count(schedule, &schedule->stats.waits);
	delay = delay < WAIT_LEAST ? WAIT_LEAST : delay > WAIT_MOST ? WAIT_MOST : delay;
	(void)ww_jobs_return_after(schedule->jobs, lease->id, lease->token, delay);
}

/* It cannot be read, or its zone is gone: it is kept for a person to look at. */
static void set_aside(struct ww_schedule *schedule, const struct ww_lease *lease, const char *why)
{
	ww_schedule_count(schedule, &schedule->stats.set_aside);
	(void)ww_jobs_bury(schedule->jobs, lease->id, lease->token, lease->priority, why);
}

/* The version of the leased schedule. If it has changed meanwhile, another scheduler continues with it. */
static int find_version(struct ww_schedule *schedule, const struct ww_lease *lease, uint64_t *version)
{
	struct ww_job_ref ref = {.id = lease->id};
	struct ww_job_info info;
	int error = ww_jobs_peek(schedule->jobs, &ref, &info, NULL);

	if (!error && (info.state != WW_JOB_RESERVED || info.token != lease->token))
		error = WW_ESTALE;
	if (!error)
		*version = info.version;
	return error;
}

static int advance(struct ww_schedule *schedule, const struct ww_lease *lease, struct schedule_record *record,
    const struct ww_calendar *calendar)
{
	uint64_t delay = ww_schedule_delay(&record->spec);
	uint64_t now, version;
	int result = ww_jobs_now(schedule->jobs, WW_JOB_WALL, &now);

	if (!result)
		result = find_version(schedule, lease, &version);
	if (result)
		return result;
	now = now > delay ? now - delay : 0;
	if (!record->spec.is_paused) {
		leave_out(record, calendar, now);
		result = make_due(schedule, record, calendar, now);
	}
	if (result > 0) {
		wait_for_former(schedule, lease, now - record->next);
		return WW_OK;
	}
	if (!result)
		result = ww_schedule_store(schedule, record, version);
	return result < 0 ? result : WW_OK;
}

/* Do what a request asks, in the same write as its end. */
static int carry_out(struct ww_schedule *schedule, const struct ww_lease *lease, const struct schedule_record *record,
    struct ww_calendar_problem *problem)
{
	int result = record->request == SCHEDULE_REMOVE
	                 ? ww_schedule_remove(schedule, record->spec.tube, record->spec.name)
	                 : ww_schedule_put(schedule, &record->spec, NULL, problem);

	return result >= 0 || result == WW_ENOTFOUND ? ww_jobs_finish(schedule->jobs, lease->id, lease->token) : result;
}

/* On an error of the store, the lease runs out or is given back, and it is tried again. */
static void settle(struct ww_schedule *schedule, const struct ww_lease *lease, int error, const char *reason)
{
	/* What is wrong with the job itself, such as a limit of the server, is no better in a second. */
	if (error == WW_EINVAL || error == WW_ETOOBIG)
		set_aside(schedule, lease, *reason ? reason : ww_strerror(error));
	else if (error && error != WW_ESTALE && error != WW_ENOTFOUND) {
		ww_schedule_count(schedule, &schedule->stats.failures);
		(void)ww_jobs_return_after(schedule->jobs, lease->id, lease->token, WW_SECOND);
	}
}

static void work_one(struct ww_schedule *schedule, const struct ww_lease *lease)
{
	struct schedule_record record;
	struct ww_calendar *calendar;
	struct ww_calendar_problem problem = {.reason = ""};
	int error = ww_schedule_read(lease->body, lease->body_length, lease->key, lease->key_length, &record);

	if (error) {
		set_aside(schedule, lease,
		    error == WW_EVERSION ? "made by a later version" : "the definition cannot be read");
		return;
	}
	if (record.request) {
		settle(schedule, lease, carry_out(schedule, lease, &record, &problem), problem.reason);
		return;
	}
	error = ww_schedule_calendar(schedule, &record, &calendar, &problem);
	if (error == WW_EINVAL || error == WW_ECORRUPT) {
		set_aside(schedule, lease, error == WW_EINVAL ? problem.reason : "its zone cannot be read");
		return;
	}
	if (!error) {
		error = advance(schedule, lease, &record, calendar);
		ww_calendar_close(calendar);
	}
	settle(schedule, lease, error, "");
}

int ww_schedule_work(struct ww_schedule *schedule, size_t most, uint64_t timeout)
{
	static const char *const tubes[] = {WW_SCHEDULE_TUBE};
	struct ww_lease leases[LEASES_MAX];
	size_t worked = 0;
	int count;

	if (!schedule || most == 0 || most > WORK_MAX)
		return WW_EINVAL;
	do {
		size_t wanted = most - worked < LEASES_MAX ? most - worked : LEASES_MAX;

		count = ww_jobs_reserve_many(schedule->jobs, tubes, 1, leases, wanted);
		if (count == 0 && worked == 0 && timeout)
			count = ww_jobs_wait(schedule->jobs, tubes, 1, timeout, leases);
		for (int i = 0; i < count; i++) {
			work_one(schedule, &leases[i]);
			ww_jobs_free(schedule->jobs, leases[i].body);
		}
		worked += count > 0 ? (size_t)count : 0;
	} while (count > 0 && worked < most);
	return worked ? (int)worked : count;
}
