#ifndef TOOLS_JOB_JOB_H
#define TOOLS_JOB_JOB_H

/*
 * A job's fields, once: put, move, release, schedules and limits over HTTP read them from it, and list, peek, export, import,
 * /v1 and its description write and read jobs by it. So do they with leases, runs, limits and schedules.
 */

#include "tools/job/field.h"
#include "weekwheel/jobs.h"
#include "weekwheel/schedule.h"

/* The objects that have a field of a job. */
enum {
	JOB_PUT = 1,
	JOB_MOVE = 2,
	JOB_RELEASE = 8,
	JOB_LIMIT = 128,
	JOB_SCHEDULE = 256,
	JOB_REPORT = 1024,
	JOB_WORD = 1 << 28,  /* not an object: a word NAME=VALUE of the protocol says it */
	JOB_SHOWN = 1 << 29, /* the job itself, wherever it is listed or exported */
	JOB_BODY = 1 << 30   /* with its body */
};

/* What a request fills. The texts and bytes of the spec lie in the room of field_take. */
struct job_request {
	struct ww_job_spec spec;
	uint64_t spread; /* of its due time: ww_job_spread */
	char error[WW_JOB_ERROR_MAX + 1];
};

/* In a struct job_request, and out of a struct ww_job_info. */
extern const struct field job_fields[];
/* Of struct ww_lease, struct ww_job_run and struct ww_limit_info. */
extern const struct field job_lease_fields[];
extern const struct field job_run_fields[];
extern const struct field job_limit_fields[];
/* Of struct ww_schedule_info: the first are its definition and counts, the others change at each of its times. */
extern const struct field job_schedule_fields[];
extern const struct field job_schedule_times[];

/* Words, by the enums of jobs.h and, the overlaps, of schedule.h. */
extern const char *const job_states[];
extern const char *const job_missed[];
extern const char *const job_expired[];
extern const char *const job_modes[];
extern const char *const job_overlaps[];
extern const char *const job_events[];

/* ---- then.c: a job that another one has as its follow-up, in every form the object that a put takes */

enum { JOB_PROBLEM = 300 };

/*
 * Take one as field_take does: *bytes, in the room, are what ww_job_then_write writes. Return 0, or -1 if it is none, and say
 * why in `problem`, a sentence without a full stop. The names of tubes are not checked.
 */
int job_then_take(struct json_value value, char **room, const void **bytes, size_t *length, char problem[JOB_PROBLEM]);
/* Write it. Not 0: there is no memory, or these bytes are none. */
int job_then_write(struct buffer *out, const void *bytes, size_t length);
/*
 * Finish a put of which these members were seen, a bit for each row of job_fields: its flags and the mode of its key. Return 0,
 * or -1 if two of them say the same, and store their names.
 */
int job_put_settle(struct job_request *job, uint64_t seen, const char *pair[2]);

/* ---- copy.c */

/* Return the field of these objects whose option has this name, as in "backoff-max", or NULL. */
const struct field *job_option(const char *name, size_t size, uint32_t where);
/* Copy the numbers that both a put and a list have. */
void job_spec_from_info(struct ww_job_spec *spec, const struct ww_job_info *info);
void job_info_from_spec(struct ww_job_info *info, const struct ww_job_spec *spec);
/* Copy what a schedule has of its jobs. Texts and bytes stay where they are. */
void job_schedule_from_spec(struct ww_schedule_spec *schedule, const struct ww_job_spec *spec);

#endif
