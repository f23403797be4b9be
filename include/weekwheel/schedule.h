#ifndef WEEKWHEEL_SCHEDULE_H
#define WEEKWHEEL_SCHEDULE_H

/*
 * Schedules: each has a name and puts a job into a store of any kind (jobs.h) at each time of a calendar (calendar.h).
 *
 * A schedule is itself a job, in a tube of its own (WW_SCHEDULE_TUBE): its key is its target tube and its name, its
 * body is its definition, and it is due at its next time, on the wall clock. ww_schedule_work reserves the schedules
 * that are due, puts their jobs, and moves the schedules on. Schedules thus last, are backed up and are shared as jobs
 * are, and a million that wait cost nothing.
 *
 * The job of a time has the key NAME@TIME, with the time in UTC: "backup@2027-03-28T01:00:00Z". This key is unique for
 * ten minutes after the job has ended (WW_KEY_UNIQUE). Each time is thus one job, however many processes work on a
 * store and wherever one of them is killed: the process that goes on with its schedule finds the job of that time. The
 * job is put before its schedule moves on, so that no time is lost.
 *
 * Any process that has the store open may call ww_schedule_work; at least one must. If a process stops in the middle of
 * that work, another takes it over after five seconds; on a store of one process, that happens when it is opened.
 *
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. In addition to the errors that a
 * function names, it may return those of the store. On error nothing has changed. WW_EINVAL: an argument is NULL or out
 * of range.
 *
 * Threads: any.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"
#include "weekwheel/calendar.h"
#include "weekwheel/error.h"
#include "weekwheel/jobs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tube of all schedules. Clients of weekwheeld cannot name it. */
#define WW_SCHEDULE_TUBE "-schedules"
/* Bytes of a name. Name and tube together have at most 199. */
#define WW_SCHEDULE_NAME_MAX 150
/*
 * The most bytes that a schedule's definition takes in addition to the body of its jobs; together they may not exceed
 * config.body_max.
 */
#define WW_SCHEDULE_RECORD_MAX 1600

/* All schedules of a store. */
struct ww_schedule;

/* What happens if the job of a former time has not ended, but is delayed, ready or reserved. A buried one has ended. */
enum ww_overlap {
	WW_OVERLAP_ALLOW, /* the new job is put nevertheless */
	WW_OVERLAP_SKIP,  /* no job is put for this time */
	WW_OVERLAP_WAIT /* the job for this time is put when the former one has ended: within 1 s, later within 15 s */
};

/* A schedule. Fill it with ww_schedule_spec_default, then set what differs. */
struct ww_schedule_spec {
	const char *tube; /* of the jobs; "default" */
	const char *
	    name; /* unique in its tube; 1 to WW_SCHEDULE_NAME_MAX bytes, no control characters, U+0080 to U+009F included */
	const char *expression; /* as in calendar.h */
	const char *zone;       /* "UTC" */
	const void *body;       /* of the jobs */
	size_t body_length;
	/* Of the jobs, as in struct ww_job_spec. */
	const void *group; /* whose limits hold for the jobs, too */
	size_t group_length;
	uint64_t run;
	uint64_t backoff;
	uint64_t backoff_max;
	uint64_t keep;   /* how long the outcomes of their runs are kept: ww_jobs_history, prefix NAME@ */
	uint64_t expire; /* after each time, with its spread: a time that passed longer ago has no job */
	uint32_t priority;
	uint32_t attempts;
	uint32_t code;
	enum ww_expired expired;
	/*
	 * For times that passed while nothing worked: one job for the first of them, one for each, or none older than
	 * `skip`.
	 */
	enum ww_missed missed;
	uint64_t skip;
	enum ww_overlap overlap; /* WW_OVERLAP_ALLOW */
	uint64_t
	    spread; /* each job comes a part of this later, which its tube and name fix, in whole seconds; 0: none */
	uint64_t start; /* no time before this, Unix time; 0: no bound. Also an interval's anchor, otherwise now */
	uint64_t end;   /* no time after this; 0: no bound */
	int is_paused;
	int if_absent;    /* keep a schedule of that name instead of replacing it */
	uint64_t version; /* replace this version only; 0: any, or none */
};

/* A schedule as it is now. What it points to is valid as the function says. */
struct ww_schedule_info {
	struct ww_schedule_spec spec;
	uint64_t anchor;  /* of an interval */
	uint64_t next;    /* the next time, with the spread; 0: paused, or none is left */
	uint64_t delay;   /* how much later than its times its jobs come: its part of the spread */
	uint64_t last;    /* the last time that has a job, without the spread; 0: none */
	uint64_t made;    /* times that have got a job */
	uint64_t skipped; /* times that have none because of their overlap */
	uint64_t version; /* changes whenever the schedule does */
};

/* Open the schedules of a store, which must outlive them. allocator NULL: the default. Errors: WW_EINVAL, WW_ENOMEM. */
WW_API int ww_schedule_open(struct ww_schedule **schedule, struct ww_jobs *jobs, const struct ww_allocator *allocator);
/* Close them. NULL is harmless. */
WW_API void ww_schedule_close(struct ww_schedule *schedule);

/*
 * Decides whether there is room for a job: one that a schedule's time makes, or the one in WW_SCHEDULE_TUBE that keeps
 * a new schedule. Return 0, or the negative number that the call then returns. ww_schedule_work asks again after a
 * second: a time that was refused is late, and times that are missed meanwhile are made up for as the schedule says.
 */
typedef int ww_schedule_admit_fn(const struct ww_job_spec *spec, void *context);
/* Ask this before each such put; NULL: do not ask. Call it before other threads use the schedules. */
WW_API void ww_schedule_admit(struct ww_schedule *schedule, ww_schedule_admit_fn *admit, void *context);

/* Fill *spec with the defaults that the struct names, and those of jobs. Errors: WW_EINVAL: spec is NULL. */
WW_API int ww_schedule_spec_default(struct ww_schedule_spec *spec);

/*
 * Add a schedule, or replace the one of its tube and name. Store its next time in *next unless that is NULL; 0: none. A
 * replaced schedule keeps its counts and, if its expression, zone and start are the same, a time that is due. *problem,
 * which may be NULL, is filled if the expression or the zone is refused. Return WW_PUT_NEW, WW_PUT_REPLACED or
 * WW_PUT_KEPT.
 * Errors: WW_EINVAL: with an empty problem->reason, another member is out of range. WW_ETOOBIG: the body with the
 * definition is over config.body_max. WW_EAGAIN: others changed it ten times meanwhile. WW_ESTALE: spec->version is
 * given, and there is no schedule of that version.
 */
WW_API int ww_schedule_put(struct ww_schedule *schedule, const struct ww_schedule_spec *spec, uint64_t *next,
    struct ww_calendar_problem *problem);

/*
 * Called with a schedule; what info points to is valid during the call. Any result but 0 ends a list. It may not call
 * the store.
 */
typedef int ww_schedule_fn(const struct ww_schedule_info *info, void *context);

/* Call fn for one schedule. Return what fn returned. Errors: WW_ENOTFOUND. WW_EVERSION: made by a later version. */
WW_API int ww_schedule_peek(
    struct ww_schedule *schedule, const char *tube, const char *name, ww_schedule_fn *fn, void *context);

/*
 * Call fn for up to `limit` schedules of a tube, or of all for NULL, that come after *next, which is 0 at first and
 * becomes 0 at the end. Return what fn returned, or 0.
 */
WW_API int ww_schedule_list(
    struct ww_schedule *schedule, const char *tube, size_t limit, ww_schedule_fn *fn, void *context, uint64_t *next);

/*
 * Pause a schedule, or let it go on. Times that pass during a pause are not made up for. Return 1 if it was already so.
 * Errors: WW_ENOTFOUND. WW_EAGAIN: as ww_schedule_put.
 */
WW_API int ww_schedule_pause(struct ww_schedule *schedule, const char *tube, const char *name, int is_paused);

/*
 * Put a job of a schedule now, whatever its times, its pause and its overlap. Store its id unless id is NULL.
 * Errors: WW_ENOTFOUND.
 */
WW_API int ww_schedule_run(struct ww_schedule *schedule, const char *tube, const char *name, uint64_t *id);

/* Remove a schedule. Its jobs stay. Errors: WW_ENOTFOUND. */
WW_API int ww_schedule_remove(struct ww_schedule *schedule, const char *tube, const char *name);

/* The same for one version of it; 0: any. Errors: those of ww_schedule_remove. WW_ESTALE: it has another version. */
WW_API int ww_schedule_remove_version(
    struct ww_schedule *schedule, const char *tube, const char *name, uint64_t version);

/*
 * Work on up to `most` schedules that are due (1,000 at most). If none is due, wait up to `timeout` ns of the store's
 * clock (ww_jobs_wait); 0: do not wait. Return how many were due. Call it again if that was `most`, and otherwise when
 * the store reports that WW_SCHEDULE_TUBE is ready. Or call it with a timeout in a loop of its own thread.
 * Complexity: per schedule some calls of the store.
 */
WW_API int ww_schedule_work(struct ww_schedule *schedule, size_t most, uint64_t timeout);

/* What ww_schedule_work has done since ww_schedule_open. */
struct ww_schedule_stats {
	uint64_t made;      /* times that got a job */
	uint64_t skipped;   /* times without a job because of WW_OVERLAP_SKIP */
	uint64_t waits;     /* looks at a former job that had not ended, with WW_OVERLAP_WAIT */
	uint64_t set_aside; /* schedules that cannot be carried out, and were buried with the reason */
	uint64_t failures;  /* of the store; tried again after a second */
};

/* Fill *stats. */
WW_API int ww_schedule_stats(struct ww_schedule *schedule, struct ww_schedule_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
