#ifndef WEEKWHEEL_JOBS_H
#define WEEKWHEEL_JOBS_H

/*
 * Jobs that outlive the process: put now, delivered in a second or in six months, at least once.
 *
 * A store is one directory, an LMDB environment, written by one process at a time; or it is in Redis, shared by any
 * number of them: jobs_redis.h opens that kind, and says what of the following is otherwise there. All calls below are
 * the same for both.
 *
 * A *job* has a body, waits in a *tube* until it is due, and is then *ready*. Who reserves it gets a *lease*: the body,
 * a time to run, and a *token* that grows with every delivery of any job, so that whatever the job writes elsewhere can
 * be fenced against a slower delivery before it. Finishing the lease deletes the job. A lease that runs out, and a
 * release, bring it back, after a backoff if it has one; after its last attempt it is *buried*: kept, listed, and
 * delivered again only when kicked.
 *
 *     put           due          reserve
 *     ----> delayed ----> ready ---------> reserved ----> finished
 *              ^          ^  ^                |  |
 *              |          |  +--- time is up -+  |
 *              +----------+------ release -------+
 *                         |                      | bury, last attempt
 *                         +-- kick --- buried <--+
 *
 * Only jobs of the near future are in memory, in a driver's wheels; the others lie on disk in order of their due time,
 * and are brought in ahead. Neither the horizon nor the number of jobs far away costs memory.
 *
 * Time. A job's due time is on one of two clocks. *Elapsed* time is not moved by whoever sets the system's clock; it
 * goes on while the store is closed, and across a reboot by the difference of the system's clock. *Wall* time is Unix
 * time: the job is due when the system's clock says so. Nothing is delivered early on its clock; how late depends on
 * the driver's tick and on how soon somebody reserves. All times and delays are in ns.
 *
 * Durability is chosen when the store is opened; see enum ww_jobs_sync. Leases are not written: after a crash the jobs
 * that were reserved are ready again.
 *
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed, on disk or in memory.
 * In addition to those listed, each function that writes answers WW_EFULL if the disk is full, WW_EIO if writing fails,
 * WW_ENOMEM; and every function WW_EINVAL for a NULL where an object is needed and for a tube's name that is empty or
 * too long, and WW_ECORRUPT for a record that cannot be read.
 *
 * Fork: in a child of the process every call answers WW_ECLOSED.
 *
 * Threads: any, but for ww_jobs_open and ww_jobs_close. Writers that come while another one's write is under way share
 * the next sync. No function is a point of cancellation.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"
#include "weekwheel/driver.h"
#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WW_TUBE_MAX 200 /* bytes of a tube's name */
#define WW_JOB_KEY_MAX 200
#define WW_JOB_ERROR_MAX 255
#define WW_JOB_BODY_MAX (UINT32_C(1) << 30) /* what config.body_max may be at most */
#define WW_TUBE_DEFAULT "default"

struct ww_jobs;

/*
 * What has been acknowledged survives the end of this process in each of them, however it ends. Of power, and the
 * kernel:
 */
enum ww_jobs_sync {
	/* A call returns when its change is on stable storage. A power failure loses nothing. */
	WW_SYNC_ALWAYS,
	/* Synced every config.sync_ns. A power failure loses what came since, or, where the filesystem writes out of order, can
	 * damage the store: ww_jobs_open or fsck then says so. */
	WW_SYNC_INTERVAL,
	/*
	 * Synced when the operating system does, and when the store is closed. A power failure: as above, of the last
	 * half minute.
	 */
	WW_SYNC_SYSTEM
};

/*
 * Without a directory: everything is in memory, and gone when the store is closed. For tests, and for queues that may
 * be lost.
 */
#define WW_JOBS_MEMORY 1u
/* Nothing is written, and nothing is delivered; for looking at a store that another process has, but not this one. */
#define WW_JOBS_READONLY 2u

struct ww_jobs_config {
	const char *path;         /* the directory; made if its parent exists */
	struct ww_driver *driver; /* of elapsed time; must outlive the store */
	struct ww_driver *wall;   /* of wall time; NULL: jobs on wall time wait undelivered and cannot be put */
	const struct ww_allocator *allocator; /* NULL: the default */
	enum ww_jobs_sync sync;               /* WW_SYNC_ALWAYS */
	uint64_t sync_ns;                     /* 50 ms */
	uint64_t window;                      /* how far ahead jobs are brought into memory; 60 s */
	size_t window_jobs;                   /* and how many of them at most; 100,000 */
	size_t body_max;                      /* bytes of a body; 65,535 */
	uint32_t flags;                       /* WW_JOBS_* */
	/*
	 * Called when jobs of a tube may have become ready, by the thread that made them so, with the store locked: it
	 * may not call the store, only note what is to be done. NULL: not called.
	 */
	void (*ready)(const char *tube, void *context);
	void *context;
};

/* What becomes of a periodic job's times that passed while it could not be delivered. */
enum ww_missed {
	WW_MISSED_ONCE, /* one delivery stands for all that were missed */
	WW_MISSED_ALL,  /* each is delivered, one after the other */
	WW_MISSED_SKIP  /* those older than spec.skip are not delivered */
};

/* The due time is of the wall clock: spec.due is Unix time, and so stays if that clock is set. */
#define WW_JOB_WALL 1u
/* spec.due is a time of the job's clock (ww_jobs_now); otherwise it is a delay from now. */
#define WW_JOB_AT 2u
/* With WW_JOB_AT: a due time that is past is refused; without this, the job is due now. */
#define WW_JOB_FUTURE 4u

/* A job to put. Fill it with ww_job_spec_default, then set what differs. */
struct ww_job_spec {
	const char *tube;  /* 1 to WW_TUBE_MAX bytes, ended by NUL; "default" */
	const void *key;   /* unique in its tube; any bytes */
	size_t key_length; /* 0: no key; at most WW_JOB_KEY_MAX */
	const void *body;
	size_t body_length;
	uint64_t due;         /* a delay, or with WW_JOB_AT a time; at most WW_DRIVER_TIME_MAX from now; 0 */
	uint64_t run;         /* the time to run of a delivery; at least 1 s; 60 s */
	uint64_t period;      /* ns from one due time to the next, at least 1 ms; 0: once */
	uint64_t skip;        /* with WW_MISSED_SKIP */
	uint64_t backoff;     /* the delay after the first failed attempt; doubles with each; 0: none */
	uint64_t backoff_max; /* 1 h */
	uint64_t version;     /* with a key: what it must be for the job to be replaced; 0: any */
	uint32_t priority;    /* lower is delivered first; 1024 */
	uint32_t attempts;    /* deliveries until it is buried; 0: no limit */
	uint32_t flags;       /* WW_JOB_* */
	enum ww_missed missed;
};

/* Which job is meant: by id or, if that is 0, by key. */
struct ww_job_ref {
	uint64_t id;
	const char *tube; /* of the key */
	const void *key;
	size_t key_length;
	uint64_t version; /* that it must have; 0: any */
};

enum ww_job_state {
	WW_JOB_DELAYED = 1, /* not due yet */
	WW_JOB_READY,       /* due, and nobody has it */
	WW_JOB_RESERVED,    /* somebody has its lease */
	WW_JOB_BURIED       /* kept, and not delivered until it is kicked */
};

struct ww_job_info {
	uint64_t id;
	uint64_t version; /* 1 when put; grows by 1 whenever the job is replaced, moved, released, buried or kicked */
	enum ww_job_state state;
	uint32_t flags; /* WW_JOB_WALL */
	uint32_t priority;
	uint32_t attempts; /* the limit, or 0 */
	char tube[WW_TUBE_MAX + 1];
	unsigned char key[WW_JOB_KEY_MAX];
	size_t key_length;
	const void *body; /* NULL where only the rest was asked for; valid as the function says */
	size_t body_length;
	uint64_t created; /* Unix time */
	uint64_t due;     /* of the job's clock */
	uint64_t left;    /* until it is due; of a reserved job, until its lease ends; 0: past, or buried */
	uint64_t delay;   /* that it was put or released with last */
	uint64_t run;
	uint64_t period;
	uint64_t skip;
	uint64_t backoff;
	uint64_t backoff_max;
	enum ww_missed missed;
	uint64_t token; /* of the current lease; 0: none */
	uint32_t reserves;
	uint32_t timeouts;
	uint32_t releases;
	uint32_t buries;
	uint32_t kicks;
	char error[WW_JOB_ERROR_MAX + 1]; /* why it was buried or released last; "" if nobody said */
};

/* What was reserved. */
struct ww_lease {
	uint64_t id;
	uint64_t token;
	uint64_t ends;    /* of elapsed time (ww_jobs_now) */
	uint32_t attempt; /* 1 with the first delivery */
	uint64_t missed;  /* periods that this delivery stands for beside its own */
	void *body;       /* the caller's: ww_jobs_free; NULL if the body is empty */
	size_t body_length;
	uint64_t backoff; /* of the job's spec; 0: none */
	uint32_t priority;
	char tube[WW_TUBE_MAX + 1];
	unsigned char key[WW_JOB_KEY_MAX];
	size_t key_length; /* 0: it has none */
};

/* One job of those to put together. */
struct ww_job_put {
	const struct ww_job_spec *spec;
	int result; /* as ww_jobs_put returns it */
	uint64_t id;
	uint64_t version;
};

/* One lease of those to finish together. */
struct ww_job_end {
	uint64_t id;
	uint64_t token;
	int result; /* as ww_jobs_finish returns it */
};

struct ww_tube_stats {
	char name[WW_TUBE_MAX + 1];
	uint64_t delayed;
	uint64_t ready;
	uint64_t urgent; /* of the ready ones, those with a priority below 1024 */
	uint64_t reserved;
	uint64_t buried;
	uint64_t puts;     /* since the store was opened */
	uint64_t finished; /* jobs that were deleted, by whichever call */
	uint64_t pauses;
	uint64_t pause;      /* ns that it is paused for in all, or 0 */
	uint64_t pause_left; /* until the pause ends */
};

/*
 * Jobs are counted by how late they became ready: at most 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and later than that.
 */
#define WW_LATE_CLASSES 7

struct ww_jobs_stats {
	struct ww_tube_stats all; /* sums; name is "" */
	uint64_t tubes;
	uint64_t timeouts;              /* leases that ran out since the store was opened */
	uint64_t accepted;              /* jobs put since the store was made */
	uint64_t ended;                 /* jobs finished or cancelled since then: accepted - ended are in it */
	uint64_t loaded;                /* jobs in memory: delayed ones near enough, ready and reserved ones */
	uint64_t oldest;                /* ns that the first ready job has been due */
	uint64_t late[WW_LATE_CLASSES]; /* of the jobs that came due since the store was opened */
	uint64_t late_ns;               /* the sum of their lateness */
	uint64_t commits;
	uint64_t syncs;
	uint64_t sync_ns; /* spent in them */
	uint64_t bytes;   /* of memory */
	uint64_t disk;    /* bytes of the file */
};

/* ---- The store -------------------------------------------------------------------------------------------------- */

/* Fill *config with the defaults that the struct names. Errors: WW_EINVAL. */
WW_API int ww_jobs_config_default(struct ww_jobs_config *config);

/*
 * Open a store, make it if the directory is empty or missing, and store it in *jobs. config is copied, and what path
 * points to. Jobs that are due are ready when it returns, up to config.window_jobs of them, the others soon after.
 * Complexity: does not depend on how many jobs are stored.
 * Errors: WW_EINVAL: a member is out of range. WW_EINUSE: another process has it. WW_EDENIED: no permission, or a
 * read-only filesystem. WW_EVERSION: made by a later version. WW_ECORRUPT: it is damaged, or no store and not empty.
 * WW_EIO, WW_EFULL, WW_ENOMEM, WW_ESYSTEM.
 */
WW_API int ww_jobs_open(struct ww_jobs **jobs, const struct ww_jobs_config *config);

/*
 * Sync and close. Leases end, their jobs are ready when the store is opened again. NULL is harmless. No callback of the
 * driver runs for the store any more when it returns; with a driver without threads that asks for nothing.
 * Errors: WW_EIO, WW_EFULL: what the last sync said; it is closed nevertheless. WW_EBUSY: this thread has begun a
 * batch.
 */
WW_API int ww_jobs_close(struct ww_jobs *jobs);

/*
 * Between these two, what this thread does is one write: ww_jobs_commit syncs once for all, and until then nothing is
 * certain. If it fails, nothing has happened of anything since ww_jobs_begin: who was told about it must be told that.
 * Other threads wait.
 * Errors: WW_EBUSY: begun already; commit: not begun by this thread.
 */
WW_API int ww_jobs_begin(struct ww_jobs *jobs);
WW_API int ww_jobs_commit(struct ww_jobs *jobs);

/*
 * Store in *ns the time now: of elapsed time or, with WW_JOB_WALL, Unix time. Errors: WW_ESYSTEM: no driver of that
 * clock.
 */
WW_API int ww_jobs_now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns);

/* ---- Putting jobs ------------------------------------------------------------------------------------------------ */

WW_API int ww_job_spec_default(struct ww_job_spec *spec);

/*
 * Put a job. With a key that a job of the tube has, that one is replaced: it keeps its id, gets the next version, and
 * a lease that it may be in is worth nothing any more. Stores the id and the version, each unless NULL.
 * Returns 0 for a new job, 1 where one was replaced.
 * Complexity: O(log jobs). Errors: WW_EINVAL: a member of the spec is out of range. WW_ETOOBIG: the body is over
 * config.body_max. WW_EOVERFLOW: the due time is. WW_EBACKWARDS: it is past, and the job is WW_JOB_FUTURE. WW_ESTALE:
 * spec.version is not the job's, or there is none.
 */
WW_API int ww_jobs_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version);

/*
 * Put `count` jobs, one after the other, each as ww_jobs_put does, and write them together. Fills result and, unless
 * that is an error, id and version of each; one that is refused does not keep the others from being put. Between
 * ww_jobs_begin and ww_jobs_commit they are a part of that write.
 * Returns WW_OK if each was decided, whatever the results, or why the write failed: then nothing of any has happened,
 * and no result is a success. A store on other machines may have done some of them all the same: there the results hold
 * one by one.
 * Complexity: that of `count` puts. Errors: those of a write alone; what is wrong with one job is in its result.
 */
WW_API int ww_jobs_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count);

/*
 * Give a delayed or ready job another due time: `due` is a delay from now or, with WW_JOB_AT, a time of the job's
 * clock. Stores the new version unless NULL. Errors: WW_ENOTFOUND: no such job. WW_ESTALE: it has another version.
 * WW_EINUSE: it is reserved. WW_EINVAL: it is buried. WW_EOVERFLOW.
 */
WW_API int ww_jobs_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);

/*
 * Delete a job, whatever its state. Returns 1, or 0 if it is being delivered: then that delivery is the last.
 * Errors: WW_ENOTFOUND: no such job. WW_ESTALE: it has another version.
 */
WW_API int ww_jobs_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job);

/* ---- Delivering them --------------------------------------------------------------------------------------------- */

/*
 * Take the ready job of least priority, of these the least id, of `count` tubes, and lease it. Returns 1 and fills
 * *lease, or 0 if none is ready. Of a paused tube nothing is.
 * Ownership: lease->body is the caller's; give it back by ww_jobs_free. Complexity: O(count + log ready).
 */
WW_API int ww_jobs_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease);

/*
 * The same for up to `most` jobs (INT_MAX at most), in the order in which ww_jobs_reserve would give them. Returns how
 * many there were, and fills as many of leases; fewer than `most` if no more are ready, or if the next cannot be
 * leased: then another call says why. Complexity: O(most * (count + log ready)). Of Redis, jobs_redis.h says how often
 * it is asked, and when fewer are given.
 * Errors: those of ww_jobs_reserve, and nothing is leased then.
 */
WW_API int ww_jobs_reserve_many(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most);

/*
 * The same as ww_jobs_reserve, but wait for a job up to `timeout` ns of the driver's clock. The driver must have
 * threads, or another thread that dispatches it. Returns 0 when the time is up.
 * Errors: WW_ECLOSED: the driver was stopped; seen within 50 ms. WW_EBUSY: nothing is ready, and this thread has begun
 * a batch.
 */
WW_API int ww_jobs_wait(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease);

/* Lease a certain job that is delayed, ready or buried. Errors: WW_ENOTFOUND. WW_EINUSE: it is reserved. */
WW_API int ww_jobs_reserve_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease);

WW_API void ww_jobs_free(struct ww_jobs *jobs, void *body);

/*
 * The job is done: delete it or, if it is periodic, let it wait for its next time.
 * Errors, here and below: WW_ESTALE: that lease has ended, by whichever way.
 */
WW_API int ww_jobs_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token);

/*
 * Finish `count` leases, one after the other, each as ww_jobs_finish does, and write that together. Fills their
 * results. What it returns, and what holds of a failed write, is as with ww_jobs_put_many.
 */
WW_API int ww_jobs_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count);

/* What ww_jobs_release takes for "as long as the job's backoff says". */
#define WW_JOB_BACKOFF UINT64_MAX

/*
 * Give the lease back: the job is due again after `delay`; with WW_JOB_BACKOFF after the job's own, doubled with every
 * attempt and shortened at random by up to a quarter. After its last attempt it is buried, whatever the delay. error,
 * unless NULL, says why, and is cut off at WW_JOB_ERROR_MAX bytes. Returns 0, or 1 if the job is buried.
 */
WW_API int ww_jobs_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);

/*
 * Give the lease back as if it had not been: the job is ready again at once, and no attempt is counted. For who took
 * more than can be done, or has to go before it began.
 */
WW_API int ww_jobs_return(struct ww_jobs *jobs, uint64_t id, uint64_t token);

WW_API int ww_jobs_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error);

/* Let the lease last for the job's time to run from now. Stores its new end in *ends unless NULL. */
WW_API int ww_jobs_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends);

/*
 * Make up to `bound` buried jobs of a tube ready, those first that were buried first; or, if it has none, delayed ones.
 * Stores how many in *count.
 */
WW_API int ww_jobs_kick(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count);

/* Make a buried or delayed job ready. Errors: WW_ENOTFOUND: there is none in these states. */
WW_API int ww_jobs_kick_job(struct ww_jobs *jobs, uint64_t id);

/* Deliver nothing of a tube for so many ns; 0 ends a pause. It is forgotten when the store is closed.
 * The tube need not have jobs yet. */
WW_API int ww_jobs_pause(struct ww_jobs *jobs, const char *tube, uint64_t ns);

/* ---- Looking at them --------------------------------------------------------------------------------------------- */

/*
 * Fill *info. If `body` is not NULL, *body gets a copy of the body, the caller's (ww_jobs_free), at which info->body
 * points.
 * Errors: WW_ENOTFOUND. WW_ESTALE: it has another version.
 */
WW_API int ww_jobs_peek(struct ww_jobs *jobs, const struct ww_job_ref *job, struct ww_job_info *info, void **body);

/*
 * The same for the one that would be next in a tube: ready, delayed, or buried first. Errors: WW_ENOTFOUND: there is
 * none.
 */
WW_API int ww_jobs_peek_next(
    struct ww_jobs *jobs, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body);

/* The state of a job alone, without looking at its body. Errors: WW_ENOTFOUND. */
WW_API int ww_jobs_state(struct ww_jobs *jobs, uint64_t id, enum ww_job_state *state);

/* Which jobs a list has: those for which all holds. */
struct ww_job_filter {
	const char *tube;     /* NULL: of any */
	const void *prefix;   /* of the key */
	size_t prefix_length; /* 0: with or without a key */
	uint64_t from;        /* due then or later, of the job's clock */
	uint64_t to;          /* due before; 0: whenever. A buried job is due never, and listed if both are 0. */
	unsigned states;      /* 1u << WW_JOB_DELAYED and so on; 0: any */
	uint64_t after;       /* with an id greater than that */
};

/*
 * Called for each job of a list, in order of ids; info is valid during the call, info->body points into the store.
 * Other than 0 ends the list.
 */
typedef int ww_job_fn(const struct ww_job_info *info, void *context);

/*
 * Call fn for up to `limit` jobs and store the id from which to go on in *next, unless NULL; 0: that was the last. What
 * changes between pages may be in the list or not, and nothing is twice. fn runs with the store locked, and may not
 * call it. With `next` a call looks at some thousand records or 4 MiB at most, so that others do not wait for long, and
 * may find fewer than `limit`; without it at all of them. Returns what fn returned, or 0.
 */
WW_API int ww_jobs_list(struct ww_jobs *jobs, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
    void *context, uint64_t *next);

/*
 * Count the jobs that are due in each of `count` spans of `span` ns from now on; those that are due already count for
 * the first. tube NULL: of all. Complexity: O(jobs that are counted).
 */
WW_API int ww_jobs_forecast(struct ww_jobs *jobs, const char *tube, uint64_t span, uint64_t *counts, size_t count);

WW_API int ww_jobs_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats);
/* Errors: WW_ENOTFOUND: nothing is or, as far as is remembered, was in that tube since the store was opened. */
WW_API int ww_jobs_tube(struct ww_jobs *jobs, const char *tube, struct ww_tube_stats *stats);
/* Call fn for each tube that is not empty, as in ww_jobs_list. */
typedef int ww_tube_fn(const struct ww_tube_stats *tube, void *context);
WW_API int ww_jobs_tubes(struct ww_jobs *jobs, ww_tube_fn *fn, void *context);

/* Called by ww_jobs_check for each thing that is wrong, in a sentence. */
typedef void ww_jobs_problem_fn(const char *problem, void *context);

/*
 * Read every record and every index, compare them, and account for all jobs ever accepted. Returns 0 if all is well,
 * and the number of problems, up to INT_MAX, otherwise. Complexity: O(jobs).
 */
WW_API int ww_jobs_check(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context);

#ifdef __cplusplus
}
#endif

#endif
