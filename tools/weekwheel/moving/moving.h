#ifndef TOOLS_WEEKWHEEL_MOVING_MOVING_H
#define TOOLS_WEEKWHEEL_MOVING_MOVING_H

/*
 * Jobs that move from another server, the source, to weekwheeld, the target, while both are in use. A batch goes in
 * three steps:
 *
 *     source: take  -------->  target: put, acknowledged  -------->  source: drop
 *
 * A job is thus at one of them at any time, and at both between the last two steps. Its key at the target names the
 * job at the source, and stays taken for a day after its end. An import that was killed and is begun again therefore
 * puts nothing twice.
 *
 * A job that the target cannot have stays at the source. It is named once, with the reason, and the others move.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/weekwheel/input/keys.h"
#include "tools/weekwheel/jobs/jobs.h"

enum {
	MOVING_BATCH = 128,
	MOVING_MARK = 40,
	MOVING_ID = 200,
	MOVING_NAME = 700,
	MOVING_SCHEDULE = 1200,
	MOVING_WORDS = 80
};

/* What has become of a job at the target. */
enum moving_result {
	MOVING_REFUSED, /* nothing is known to be there */
	MOVING_PUT,
	MOVING_KEPT, /* an earlier import had put it */
	MOVING_ENDED /* the same, and it has been done */
};

struct moving_job {
	uint64_t id; /* at the source, which may use this and the mark as it likes */
	char mark[MOVING_MARK + 1];
	char name[MOVING_ID + 1]; /* the id that a library in Redis has given it */
	char tube[WW_TUBE_MAX + 1];
	char key[JOBS_KEY_TEXT];        /* percent-encoded */
	char schedule[MOVING_SCHEDULE]; /* if not "", it is a schedule with these words, and the key is its name */
	char words[MOVING_WORDS];       /* of its put: "", or each behind a space */
	uint64_t priority;
	uint64_t run; /* ns */
	uint64_t due; /* ns: Unix time if is_wall, otherwise of CLOCK_MONOTONIC; 0: now */
	int is_wall, is_buried;
	int is_held; /* while it stays at the source, this import has it reserved there */
	char *body;
	size_t size, room;
	enum moving_result result;
	uint64_t target; /* its id there; 0: not known */
};

/* What the source still has: jobs that can be moved, and those that its workers run. */
struct moving_left {
	uint64_t waiting, reserved;
};

struct moving {
	struct jobs jobs; /* the target; its tube is the source's, or the one for all jobs of a sorted set */
	const char *from;
	int wait, follow, dry_run;
	int dead, has_unit, is_ms; /* of sorted sets */
	uint64_t run;              /* ns; of sorted sets: 0: not given */
	const char *zone;          /* of BullMQ's job schedulers that have none; or NULL */
	const struct moving_source *source;
	void *state; /* the source's */
	struct moving_job *batch;
	size_t count;                                     /* in the batch */
	uint64_t largest;                                 /* how many bytes the target takes in a body */
	struct keys *odd;                                 /* the keys of jobs that stay at the source */
	uint64_t held;                                    /* of those: are reserved there by this import */
	uint64_t scheduled;                               /* schedules put */
	uint64_t read, put, kept, dropped, back, doubled; /* jobs so far; back: taken back from the target */
};

/* A kind of source. Each function returns 0, or -1 after a message. */
struct moving_source {
	const char *scheme; /* of its URL */
	/* Connect, and check that moving->from is what its scheme says, and that no other import is at work there. */
	int (*open)(struct moving *moving);
	/* Fill the batch with the next jobs, as many as come easily. moving->count remains 0 if there are none now. */
	int (*take)(struct moving *moving);
	/* Remove the jobs of the batch that the target has, and count what has become of them. */
	int (*drop)(struct moving *moving);
	int (*left)(struct moving *moving, struct moving_left *left);
	/* Show what would be moved. */
	int (*show)(struct moving *moving);
	/* Say where a job is, for a message. */
	void (*name)(const struct moving *moving, const struct moving_job *job, char text[MOVING_NAME]);
	void (*close)(struct moving *moving);
};

extern const struct moving_source moving_beanstalkd, moving_redis, moving_sidekiq, moving_bullmq, moving_celery,
    moving_laravel, moving_resque;

/* Add a job to the batch, which has room for it, and copy the body. */
struct moving_job *moving_add(struct moving *moving, const void *body, size_t size);
void moving_body(struct moving_job *job, const void *body, size_t size);

/* Whether a job stays at the source; let it stay there, and say why and what to do. */
int moving_is_odd(const struct moving *moving, const struct moving_job *job);
void moving_stays(struct moving *moving, const struct moving_job *job, const char *reason);

/* How many jobs stay at the source. */
uint64_t moving_odd(const struct moving *moving);

/* ---- target.c */

/* Connect to the target and check that it can do what is needed. `id` gets what names the server. */
int target_open(struct moving *moving, char *id, size_t room);

/*
 * Put the batch, and bury its buried jobs. Sets the result of each job, also if it fails for some; one that the target
 * refuses for what it is stays at the source. Returns 0, or -1 after a message.
 */
int target_put(struct moving *moving);

/* Delete a job again that the source has kept. If a worker has it or it has ended, it is counted as doubled. */
int target_take_back(struct moving *moving, const struct moving_job *job);

/* Pause a tube for this many seconds, and keep it while the connection lasts. */
int target_pause(struct moving *moving, const char *tube, uint64_t seconds);

/* Store how many jobs were ever put, 0 if the token may not ask. */
int target_total(struct moving *moving, uint64_t *total);

#endif
