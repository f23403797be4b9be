#ifndef LIB_SCHEDULE_SCHEDULE_INTERNAL_H
#define LIB_SCHEDULE_SCHEDULE_INTERNAL_H

/* Schedules: what the files of this folder share. */

#include <pthread.h>
#include <stdint.h>

#include "weekwheel/driver.h"
#include "weekwheel/schedule.h"

enum { ZONES_KEPT = 64 };

struct ww_schedule {
	struct ww_jobs *jobs;
	const struct ww_allocator *allocator;
	ww_schedule_admit_fn *admit;
	void *admit_context;
	pthread_mutex_t lock;
	/* Calendars that keep their zones from being read from the disk again. */
	struct {
		char name[WW_CALENDAR_MAX + 1];
		struct ww_calendar *calendar;
	} zones[ZONES_KEPT];
	unsigned next_zone;
	struct ww_schedule_stats stats; /* under the lock */
};

/* A schedule's key: the target tube, 0, the name. */
struct schedule_key {
	unsigned char bytes[WW_JOB_KEY_MAX];
	size_t length;
};

/*
 * What a job of WW_SCHEDULE_TUBE without a key asks for: whoever cannot call this library, such as SQL, puts one, and
 * ww_schedule_work carries it out.
 */
enum schedule_request { SCHEDULE_NO_REQUEST, SCHEDULE_PUT, SCHEDULE_ADD, SCHEDULE_REMOVE };

/* The content of the body of a schedule's job, or of a request's. The texts are in that body, or belong to the caller. */
struct schedule_record {
	struct ww_schedule_spec spec;
	uint64_t anchor;
	uint64_t next; /* the next time without the spread; 0: none is left */
	uint64_t last, made, skipped;
	char expression[WW_CALENDAR_MAX + 1], zone[WW_CALENDAR_MAX + 1];
	char tube[WW_TUBE_MAX + 1], name[WW_SCHEDULE_NAME_MAX + 1];
	unsigned char group[WW_JOB_GROUP_MAX];
	enum schedule_request request;
};

/* ---- record.c */

/* Make the key. Returns 0 or WW_EINVAL. */
int ww_schedule_key(const char *tube, const char *name, struct schedule_key *key);

/* Copy the numbers that a schedule and its jobs share. */
void ww_schedule_to_job(const struct ww_schedule_spec *schedule, struct ww_job_spec *job);
void ww_schedule_of_job(struct ww_schedule_spec *schedule, const struct ww_job_spec *job);
/* Whether each number is one that the driver's clock can have. */
int ww_schedule_is_in_range(const struct ww_schedule_spec *spec);

/* Write the definition to text[0 .. WW_SCHEDULE_RECORD_MAX-1]. The body follows it. Returns its length. */
size_t ww_schedule_write(const struct schedule_record *record, char *text);

/* Read a job of WW_SCHEDULE_TUBE; without a key it is a request. Returns 0, WW_EVERSION or WW_ECORRUPT. */
int ww_schedule_read(
    const void *body, size_t length, const void *key, size_t key_length, struct schedule_record *record);

/* How much later than its times a schedule's jobs come, in ns. */
uint64_t ww_schedule_delay(const struct ww_schedule_spec *spec);

/* ---- schedule.c */

/* Count one more. */
void ww_schedule_count(struct ww_schedule *schedule, uint64_t *number);

/* Open the calendar of a schedule. Returns 0 or a WW_E*. */
int ww_schedule_calendar(struct ww_schedule *schedule, const struct schedule_record *record,
    struct ww_calendar **calendar, struct ww_calendar_problem *problem);

/* Return the next time after another within start and end, or 0. */
uint64_t ww_schedule_next(const struct ww_calendar *calendar, const struct ww_schedule_spec *spec, uint64_t after);

/* Put the schedule's job with that version, or with 0 if there is none. Returns as ww_jobs_put. */
int ww_schedule_store(struct ww_schedule *schedule, const struct schedule_record *record, uint64_t version);

/* Put the job of a time. Returns as ww_jobs_put. */
int ww_schedule_make(struct ww_schedule *schedule, const struct schedule_record *record, uint64_t time, uint64_t *id);

/* Write the key of the job of a time to text[0 .. WW_JOB_KEY_MAX], and return its length. */
size_t ww_schedule_job_key(const char *name, uint64_t time, char *text);

#endif
