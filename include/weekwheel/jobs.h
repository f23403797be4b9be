#ifndef WEEKWHEEL_JOBS_H
#define WEEKWHEEL_JOBS_H

/*
 * Jobs that outlive the process: put now, delivered in a second or in six months, at least once.
 *
 * A store is one directory with a journal and an SQLite database, and one process at a time writes it. Or a store is in
 * Redis, and any number of processes share it; jobs_redis.h opens that kind and lists the differences. All calls below
 * work on both.
 *
 * A *job* has a body, waits in a *tube* until it is due, and is then *ready*. The caller that reserves it gets a
 * *lease*: the body, a time to run, and a *token*. Tokens grow with every delivery of any job. Whatever the job writes
 * elsewhere can be fenced by its token against a slower, earlier delivery. Finishing the lease deletes the job. A lease
 * that expires, or is released, makes the job ready again, after a backoff if it has one. After its last attempt the
 * job is *buried*: kept, listed, and delivered again only when kicked.
 *
 *     put           due          reserve
 *     ----> delayed ----> ready ---------> reserved ----> finished
 *              ^          ^  ^                |  |
 *              |          |  +--- time is up -+  |
 *              +----------+------ release -------+
 *                         |                      | bury, last attempt
 *                         +-- kick --- buried <--+
 *
 * A job may *expire*: if no caller has leased it by then, it is dropped or buried instead of being delivered.
 *
 * Only jobs of the near future are in memory, in a driver's wheels. The others are on disk, in order of their due
 * times, and are loaded ahead of time. Neither a far horizon nor the number of distant jobs costs memory.
 *
 * Time. A job's due time is on one of two clocks. The clock of *elapsed* time ignores changes of the system's clock. It
 * goes on while the store is closed. Across a reboot only the system's clock, as it stands when the store is opened,
 * shows for how long. If that time is negative or more than config.downtime_max, the system's clock is or was wrong,
 * and no time is counted: jobs are late by the time that the machine was off, and none is early or lost. A smaller
 * error of that clock cannot be detected: open the store only after the clock has been set. Later changes of it do not
 * count.
 * The clock of *wall* time is Unix time: the job is due when the system's clock says so. No job is delivered early on
 * its clock. How late it is delivered depends on the driver's tick and on how soon a caller reserves it. All times and
 * delays are in ns.
 *
 * Durability is chosen when the store is opened; see enum ww_jobs_sync. Leases are not written: after a crash, jobs
 * that were reserved are ready again.
 *
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed, on
 * disk or in memory. The descriptions of functions do not repeat the following. Every function that writes answers
 * WW_EFULL if the disk is full, WW_EIO if writing fails, and WW_ENOMEM. Every function answers WW_EINVAL to NULL where
 * it needs an object and to a tube's name that is empty or too long, and WW_ECORRUPT to a record that cannot be read.
 *
 * Fork: in a child of the process every call answers WW_ECLOSED, except those that do not need the store: the defaults,
 * ww_jobs_free and ww_jobs_listen.
 *
 * Threads: any, except for ww_jobs_open and ww_jobs_close. Threads that write while another thread's write is under way
 * share the next sync. No function is a point of cancellation.
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
#define WW_JOB_GROUP_MAX 200
#define WW_JOB_ERROR_MAX 255
#define WW_JOB_BODY_MAX (UINT32_C(1) << 30) /* the most that config.body_max may be */
#define WW_TUBE_DEFAULT "default"
#define WW_JOB_HEADERS 16       /* the most headers of a job */
#define WW_JOB_HEADERS_MAX 4096 /* bytes of all of them */
#define WW_JOB_CODE_MAX 2147483647
#define WW_JOB_CHAIN 16 /* the most follow-ups of a job, each that of the one before */

struct ww_jobs;

/*
 * When a change is on stable storage. In each mode, an acknowledged change survives the end of this process, however it
 * ends. The modes differ in what survives a failure of the power or the kernel:
 */
enum ww_jobs_sync {
	/* A call returns when its change is on stable storage. A power failure loses nothing. */
	WW_SYNC_ALWAYS,
	/*
	 * Synced every config.sync_ns. A power failure loses at most the changes of that interval and of the sync that
	 * was under way. It loses nothing older and damages nothing.
	 */
	WW_SYNC_INTERVAL,
	/*
	 * Synced when the operating system does, after about half a minute, and when the store is closed. A power
	 * failure loses at most the changes since then and damages nothing.
	 */
	WW_SYNC_SYSTEM
};

/*
 * No directory: everything is in memory, and lost when the store is closed. For tests, and for queues that may be lost.
 */
#define WW_JOBS_MEMORY 1u
/*
 * Change nothing and deliver nothing: calls that would answer WW_EDENIED. For looking at a store that may be open in
 * another process, but not in this one. SQLite makes index.db-shm and an empty index.db-wal in a closed store, if it
 * may.
 */
#define WW_JOBS_READONLY 2u

/* Called for each problem of a store, with a sentence that describes it. */
typedef void ww_jobs_problem_fn(const char *problem, void *context);

/* The least limit of a store's files. */
#define WW_JOBS_DISK_LEAST (UINT64_C(64) << 20)

struct ww_jobs_config {
	const char *path;         /* the directory; made if its parent exists */
	struct ww_driver *driver; /* of elapsed time; must outlive the store */
	struct ww_driver *wall;   /* of wall time; NULL: jobs on wall time wait undelivered, and none can be put */
	const struct ww_allocator *allocator; /* NULL: the default */
	enum ww_jobs_sync sync;               /* WW_SYNC_ALWAYS */
	uint64_t sync_ns;                     /* at least 1 ms; 50 ms */
	uint64_t window;    /* how far ahead jobs are loaded into memory, 1 ns to WW_DRIVER_TIME_MAX; 60 s */
	size_t window_jobs; /* how many of them at most, 1 to 2^24; 100,000 */
	size_t body_max;    /* bytes of a body and a follow-up, without headers, at most WW_JOB_BODY_MAX; 65,535 */
	/*
	 * Bytes that the files may take, 0 or at least WW_JOBS_DISK_LEAST. At this size new jobs are refused with
	 * WW_EFULL, as on a full disk. Work of the index under way may take some MiB more for a while. 0: as the disk
	 * allows
	 */
	uint64_t max_disk;
	uint64_t downtime_max; /* the longest time off between two boots that is believed, to INT64_MAX; 30 days */
	/*
	 * The most ended jobs that are kept for their keys; 1,000,000. Beyond that number, those whose time is over
	 * first are forgotten early: their keys are free again.
	 */
	uint64_t ended_max;
	/*
	 * The most runs that are kept in all (ww_jobs_history); 10,000; 0: none. Beyond that number, the oldest are
	 * forgotten before their time. Each takes some 100 bytes, and its report.
	 */
	uint64_t history_max;
	uint32_t flags; /* WW_JOBS_* */
	/*
	 * Called when jobs of a tube may have become ready. The thread that made them ready calls this with the store
	 * locked: it may not call the store, but only note what to do. NULL: no calls.
	 */
	void (*ready)(const char *tube, void *context);
	void *context;
	/*
	 * Called when a store is refused, with a sentence: which file, what is wrong with it, what to do. The thread
	 * that opens the store makes the call; the text is valid until it returns. NULL: no calls. ww_jobs_open still
	 * returns the error.
	 */
	ww_jobs_problem_fn *problem;
};

/* What happens to the due times of a periodic job that passed while it could not be delivered. */
enum ww_missed {
	WW_MISSED_ONCE, /* one delivery stands for all that were missed */
	WW_MISSED_ALL,  /* each is delivered, one after the other */
	WW_MISSED_SKIP  /* due times older than spec.skip are not delivered */
};

/* What becomes of a job that has expired (spec.expire). */
enum ww_expired {
	WW_EXPIRED_DROP, /* it ends, as if it were finished; if it is periodic, it waits for its next due time */
	WW_EXPIRED_BURY  /* it is buried */
};

/* The due time is on the wall clock: spec.due is Unix time, and stays so if that clock is set. */
#define WW_JOB_WALL 1u
/* spec.due is a time of the job's clock (ww_jobs_now). Without this flag it is a delay from now. */
#define WW_JOB_AT 2u
/* With WW_JOB_AT: refuse a due time that has passed. Without this flag the job is due now. */
#define WW_JOB_FUTURE 4u

/* What a put does if its tube has a job of the same key. */
enum ww_key_mode {
	WW_KEY_REPLACE, /* replace it */
	/*
	 * Keep it, whatever its state: an idempotent put. A job that has ended is put again; WW_KEY_UNIQUE remembers it
	 * for a time.
	 */
	WW_KEY_IF_ABSENT,
	/*
	 * Of two due times, keep the earlier or the later one: a delayed or ready job stays as it is if it is the one
	 * to keep, or if both are equal. Otherwise this job replaces it. This job also replaces one that is being
	 * delivered or is buried: that one may have missed what this one stands for.
	 */
	WW_KEY_KEEP_EARLIER,
	WW_KEY_KEEP_LATER,
	/*
	 * Debounce: each put replaces the job, and thus moves it, but not beyond spec.key_span after the first put. The
	 * first put counts until the job is leased or buried: a put during or after a delivery is a first put again.
	 */
	WW_KEY_DEBOUNCE,
	/*
	 * Unique: keep it. When this job is finished, its key stays taken for spec.key_span: until then every put of
	 * the key, in whichever mode, only stores the id of the job that had it. If the job is cancelled, its key is
	 * free at once.
	 */
	WW_KEY_UNIQUE
};

/* A job to put. Fill it with ww_job_spec_default, then set what differs. */
struct ww_job_spec {
	const char *tube;    /* 1 to WW_TUBE_MAX bytes, ended by NUL; "default" */
	const void *key;     /* unique in its tube; any bytes */
	size_t key_length;   /* 0: no key; at most WW_JOB_KEY_MAX */
	const void *group;   /* jobs of a tube are delivered from each of its groups in turn, see "Limits"; any bytes */
	size_t group_length; /* 0: none; at most WW_JOB_GROUP_MAX */
	const void *body;
	size_t body_length;
	const char *headers;   /* names and values beside the body, as ww_job_headers_add writes them */
	size_t headers_length; /* 0: none; at most WW_JOB_HEADERS_MAX */
	const void *then;      /* the job to put when this one is finished, as ww_job_then_write writes it */
	size_t then_length;    /* 0: none; counts for config.body_max, with all that it has in it */
	/*
	 * A delay, or a time with WW_JOB_AT; 0. WW_EOVERFLOW: it is over WW_DRIVER_TIME_MAX on the driver's clock, so a
	 * delay is at most that less the driver's time. No other time or delay here is over WW_DRIVER_TIME_MAX, except
	 * `skip`: WW_EINVAL.
	 */
	uint64_t due;
	uint64_t run;         /* time to run of a delivery; at least 1 s; 60 s */
	uint64_t period;      /* ns from one due time to the next, at least 1 ms; 0: once */
	uint64_t skip;        /* with WW_MISSED_SKIP */
	uint64_t backoff;     /* delay after the first failed attempt; doubles with each; 0: none */
	uint64_t backoff_max; /* 1 h */
	uint64_t version;     /* with a key and WW_KEY_REPLACE: replace only this version, put no new job; 0: any */
	uint64_t keep;        /* how long the outcomes of its runs are kept (ww_jobs_history); 0: not at all */
	/*
	 * How long after its due time it expires, on the same clock; 0: never. That moment is fixed by the put, and by each
	 * due time of a periodic job. A move to another due time takes it along. A delay after a failed attempt does not:
	 * it ends then at the latest. At that moment, whether its tube is paused or limited, a job without a lease becomes
	 * what `expired` says; it is never leased from then on. A lease goes on: its holder may finish the job. When the
	 * lease ends otherwise, the job has expired, unless it was its last attempt. A buried job does not expire, nor does
	 * one that was kicked or reserved after that; a periodic one does again from its next due time. After the end of a WW_KEY_UNIQUE job its key stays
	 * taken as after a finish.
	 */
	uint64_t expire;
	uint64_t key_span; /* with WW_KEY_DEBOUNCE and WW_KEY_UNIQUE, at least 1 ms; otherwise 0 */
	uint32_t priority; /* lower is delivered first; 1024 */
	uint32_t attempts; /* deliveries until it is buried; 0: no limit */
	/*
	 * The version of the code that can do it, as its producer counts: up to WW_JOB_CODE_MAX. A caller that says which code
	 * it knows (struct ww_reserve) gets jobs up to that one: the others stay ready for those who know more. 0: any
	 * caller can do it
	 */
	uint32_t code;
	uint32_t flags; /* WW_JOB_* */
	enum ww_missed missed;
	enum ww_expired expired;   /* WW_EXPIRED_DROP */
	enum ww_key_mode key_mode; /* all but WW_KEY_REPLACE need a key. WW_KEY_DEBOUNCE and _UNIQUE: not periodic */
};

/* Selects a job: by id or, if that is 0, by key. */
struct ww_job_ref {
	uint64_t id;
	const char *tube; /* the tube of the key */
	const void *key;
	size_t key_length;
	uint64_t version; /* the version that the job must have; 0: any */
};

enum ww_job_state {
	WW_JOB_DELAYED = 1, /* not due yet */
	WW_JOB_READY,       /* due, and not reserved */
	WW_JOB_RESERVED,    /* leased */
	WW_JOB_BURIED,      /* kept, and not delivered until it is kicked */
	WW_JOB_ENDED        /* finished; its key is taken for a time. Only ww_jobs_list finds it, if asked to. */
};

struct ww_job_info {
	uint64_t id;
	/*
	 * 1 when put. Grows by 1 whenever the job is replaced, moved, released, returned with a delay, buried or
	 * kicked, and when a periodic job is finished or expires. A lease that expires counts only if the job has
	 * attempts, a backoff or keep.
	 */
	uint64_t version;
	enum ww_job_state state;
	uint32_t flags; /* WW_JOB_WALL */
	uint32_t priority;
	uint32_t attempts; /* the limit, or 0 */
	uint32_t code;     /* 0: any caller may take it */
	char tube[WW_TUBE_MAX + 1];
	unsigned char key[WW_JOB_KEY_MAX];
	size_t key_length;
	unsigned char group[WW_JOB_GROUP_MAX];
	size_t group_length; /* 0: none */
	const void *body;    /* NULL if the body was not asked for; valid as the function says */
	size_t body_length;
	const char *headers;   /* valid as long as the body */
	size_t headers_length; /* 0: none, or the body was not asked for */
	const void *then;      /* its follow-up, for ww_job_then_read; valid as long as the body */
	size_t then_length;    /* 0: none, or the body was not asked for */
	uint64_t created;      /* Unix time */
	uint64_t due;          /* of the job's clock; WW_JOB_ENDED: when it was finished, in elapsed time */
	uint64_t left;  /* time until it is due, until its lease ends, or until its key is free; 0: past, or buried */
	uint64_t delay; /* the delay of the last put or release */
	uint64_t run;
	uint64_t period;
	uint64_t skip;
	uint64_t backoff;
	uint64_t backoff_max;
	uint64_t hold;     /* how long its key stays taken after its end (WW_KEY_UNIQUE); 0: not at all */
	uint64_t keep;     /* how long the outcomes of its runs are kept */
	uint64_t expire;   /* how long after its due time it expires; 0: never */
	uint64_t expires;  /* when it expires, on its clock; 0: never */
	uint64_t debounce; /* the time since its first put (WW_KEY_DEBOUNCE); 0: not debounced */
	enum ww_missed missed;
	enum ww_expired expired;
	uint64_t token; /* of the current lease; 0: none */
	uint32_t reserves;
	uint32_t timeouts;
	uint32_t releases;
	uint32_t buries;
	uint32_t kicks;
	uint32_t tries; /* failed deliveries since it was put, kicked or, if periodic, finished: up to attempts */
	char error[WW_JOB_ERROR_MAX + 1]; /* why it was last buried or released; "" if no reason was given */
};

/* A lease: the result of a reserve. */
struct ww_lease {
	uint64_t id;
	uint64_t token;
	uint64_t ends;    /* on the clock of elapsed time (ww_jobs_now) */
	uint32_t attempt; /* 1 with the first delivery */
	uint64_t missed;  /* further periods that this delivery stands for */
	uint64_t late;    /* ns since the job became due; 0: it was leased before that */
	void *body;       /* owned by the caller: ww_jobs_free; NULL if body and headers are empty */
	size_t body_length;
	const char *headers;   /* valid until the body is given back */
	size_t headers_length; /* 0: none */
	uint64_t backoff;      /* of the job's spec; 0: none */
	uint64_t created;      /* when it was put or last replaced, Unix time */
	uint64_t scheduled; /* a periodic job's due time by its schedule, the same in all attempts of a run; else 0 */
	uint32_t attempts;  /* of the job's spec; 0: no limit */
	uint32_t kicks;
	uint32_t priority;
	char tube[WW_TUBE_MAX + 1];
	unsigned char key[WW_JOB_KEY_MAX];
	size_t key_length; /* 0: no key */
};

/* One job of several that ww_jobs_put_many puts. */
struct ww_job_put {
	const struct ww_job_spec *spec;
	int result; /* as ww_jobs_put returns it */
	uint64_t id;
	uint64_t version;
};

/* One lease of several that ww_jobs_finish_many finishes. */
struct ww_job_end {
	uint64_t id;
	uint64_t token;
	int result; /* as ww_jobs_finish returns it */
};

struct ww_tube_stats {
	char name[WW_TUBE_MAX + 1];
	uint64_t delayed;
	uint64_t ready;
	uint64_t urgent; /* ready jobs with a priority below 1024 */
	uint64_t coded;  /* ready jobs that have a code; only of one tube */
	uint64_t reserved;
	uint64_t buried;
	uint64_t puts;     /* since the store was opened */
	uint64_t finished; /* jobs deleted, by whichever call */
	uint64_t pauses;
	uint64_t pause;      /* length of the current pause in ns, or 0 */
	uint64_t pause_left; /* time until the pause ends */
	uint64_t held;       /* ready jobs that a limit does not let start; of groups, those asked for */
	int is_limited;      /* it has a limit */
};

/*
 * Classes of lateness, by how late a job became ready: at most 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and later than
 * that.
 */
#define WW_LATE_CLASSES 7

/* Bytes of a sentence about a fault, with its NUL. */
#define WW_FAULT_MAX 256

struct ww_jobs_stats {
	struct ww_tube_stats all; /* sums; name is "" */
	uint64_t tubes;
	uint64_t timeouts;              /* leases that expired since the store was opened */
	uint64_t expired;               /* jobs that did (spec.expire), since then: dropped, passed over or buried */
	uint64_t accepted;              /* jobs put since the store was made */
	uint64_t kept;                  /* of those that ended, how many are known for their keys (WW_KEY_UNIQUE) */
	uint64_t runs;                  /* that are kept (ww_jobs_history), with some whose time is over */
	uint64_t ended;                 /* jobs finished or cancelled since then; accepted - ended are in the store */
	uint64_t last_id;               /* the greatest that was given; 0: none, or in Redis, where ids have no order */
	uint64_t loaded;                /* jobs in memory: delayed ones of the near future, ready and reserved ones */
	uint64_t oldest;                /* ns since the first ready job became due */
	uint64_t late[WW_LATE_CLASSES]; /* jobs that came due since the store was opened, by class of lateness */
	uint64_t late_ns;               /* the sum of their lateness */
	uint64_t commits;
	uint64_t syncs;
	uint64_t sync_ns; /* ns spent in syncs */
	uint64_t bytes;   /* of memory */
	uint64_t disk;    /* bytes of the files */
	/*
	 * Why the store cannot write. WW_OK: it can. WW_EFULL: new jobs are refused until there is room. WW_EIO: a sync
	 * has failed, and every change is refused until the store is opened again. WW_ECORRUPT: a page of the index is
	 * damaged; changes and deliveries are refused, and reads still return what can be read. The text names the file
	 * and the system's error.
	 */
	int fault;
	char fault_text[WW_FAULT_MAX];
	/*
	 * If the store was last written in another boot: the time since then, by the system's clock. It was counted if
	 * it is 0 to config.downtime_max.
	 */
	int64_t downtime;
};

/* ---- The store -------------------------------------------------------------------------------------------------- */

/* Fill *config with the defaults that the struct names. Errors: WW_EINVAL: config is NULL. */
WW_API int ww_jobs_config_default(struct ww_jobs_config *config);

/*
 * Open a store and store it in *jobs. Make the store if the directory is empty or missing. The call copies config and
 * the string at path. When it returns, due jobs are ready, up to config.window_jobs of them; the others follow soon.
 * Complexity: does not depend on how many jobs are stored.
 * Errors: WW_EINVAL: a member is out of range. WW_EINUSE: another process has the store. WW_EDENIED: no permission, a
 * read-only filesystem, or a directory in which weekwheel-sessiond keeps its sessions. WW_EVERSION: made by a later
 * version, or by a former one that kept jobs in LMDB: export them with that version and import them with this one.
 * WW_ECORRUPT: the store is damaged, one of its files is missing, or the directory is not empty and has no store.
 * WW_EIO, WW_EFULL, WW_ENOMEM, WW_ESYSTEM.
 */
WW_API int ww_jobs_open(struct ww_jobs **jobs, const struct ww_jobs_config *config);

/*
 * Sync and close the store. Its leases end; their jobs are ready when the store is opened again. NULL is harmless. When
 * the call returns, no callback of the driver runs for the store any more. A driver without threads needs no dispatch
 * for that.
 * Errors: WW_EIO, WW_EFULL: the last sync failed; the store is closed nevertheless. WW_EBUSY: this thread has begun a
 * batch.
 */
WW_API int ww_jobs_close(struct ww_jobs *jobs);

/*
 * Copy the store in the directory `path` to `target`, a directory that is empty or missing. Another process may have
 * the store open, and goes on. When the call returns, the copy is on stable storage. It is the store as it was at one
 * moment of the call, and has all that was acknowledged before the call. To look into it, open the copy. While the call
 * runs, or if it stalls, the store's files grow by 130 MiB at most, or by 64 MiB and as much as the index has.
 * Opening the copy for writing makes it a store of its own: its ids and tokens go on from that moment, as do those of
 * the first one.
 * Complexity: O(bytes of the store). Errors: on each of them `target` is as it was. WW_EDENIED: there is no store in
 * `path`, or no permission. WW_EINUSE: `target` is not empty. WW_EINVAL: `target` lies in `path`. WW_ECORRUPT: the
 * store is damaged, as the sums of the copy show. WW_EAGAIN: the copy had to begin anew twenty times in a row, because
 * so much was written. WW_EFULL, WW_EIO, WW_ENOMEM.
 */
WW_API int ww_jobs_backup(const char *path, const char *target);

/*
 * Begin and commit a batch: everything that this thread does between these two calls is one write. ww_jobs_commit syncs
 * once for all of it; until then nothing is certain. If the commit fails, nothing since ww_jobs_begin has happened:
 * notify everyone to whom you reported a success. Other threads wait meanwhile.
 * Errors: WW_EBUSY: ww_jobs_begin: this thread has already begun a batch. ww_jobs_commit: this thread has begun none.
 */
WW_API int ww_jobs_begin(struct ww_jobs *jobs);
WW_API int ww_jobs_commit(struct ww_jobs *jobs);

/*
 * Store the time now in *ns: elapsed time or, with WW_JOB_WALL, Unix time.
 * Errors: WW_EINVAL: another flag. WW_ESYSTEM: the store has no driver of that clock.
 */
WW_API int ww_jobs_now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns);

/* ---- Putting jobs ------------------------------------------------------------------------------------------------ */

/*
 * Headers travel with a job beside its body: a trace, a tenant, a type of content. They are text with a line for each, such as
 * "tenant: acme\ntraceparent: 00-4bf9...-01\n". A name is a token of RFC 9110 in lower case, and has one value. A value has
 * visible characters of ASCII, and spaces that are not at its ends; it may be empty. So nothing in it can end a line of
 * HTTP or of a log. Encode other characters, for instance as RFC 3986 does.
 */
struct ww_job_header {
	const char *name;
	size_t name_length;
	const char *value;
	size_t value_length;
};

/*
 * Append a header to the *length bytes at `headers`, which has room for WW_JOB_HEADERS_MAX, and add its bytes to *length.
 * The name may have capitals, which become small letters.
 * Errors: WW_EINVAL: the name or the value is none, or the name is there already. WW_ETOOBIG: there would be more than
 * WW_JOB_HEADERS, or more than WW_JOB_HEADERS_MAX bytes.
 */
WW_API int ww_job_headers_add(char *headers, size_t *length, const struct ww_job_header *header);

/*
 * Fill *header with the one that begins at headers[*at], and move *at behind it; it is 0 at first. Its texts lie in
 * `headers`, without a NUL. Return 1, or 0 after the last one or where there is no header.
 */
WW_API int ww_job_headers_next(const char *headers, size_t length, size_t *at, struct ww_job_header *header);

/* Fill *header with the one of this name, whatever its capitals. Errors: WW_ENOTFOUND: there is none. */
WW_API int ww_job_headers_find(const char *headers, size_t length, const char *name, struct ww_job_header *header);

/* Fill *spec with the defaults that the struct names. Errors: WW_EINVAL: spec is NULL. */
WW_API int ww_job_spec_default(struct ww_job_spec *spec);

/*
 * A job may have a *follow-up* (spec.then): a job that is put when this one is finished. The end and the put are one write:
 * a crash leaves both or neither. So a chain needs no second system, and no worker that does both.
 *
 * The follow-up is put as ww_jobs_put does at that time. Its delay counts from the finish, and a time that has passed is now.
 * If there is a job of its key, its key_mode decides; what that keeps is not put, and the finish succeeds. A full store takes
 * it: it was accepted with its job, and takes no more room. If the write fails, the finish fails, and the lease goes on.
 *
 * Only a finish puts it: ww_jobs_finish, ww_jobs_finish_many, and weekwheel.finish in PostgreSQL. A job that is
 * cancelled, replaced, or dropped as it expires takes its follow-up along. One that is released, moved or buried keeps it.
 *
 * A follow-up may have one itself, up to WW_JOB_CHAIN in all. A periodic job has none. Its flags are 0 or WW_JOB_WALL | WW_JOB_AT, and its version is 0.
 * It may not have the tube and key of a WW_KEY_UNIQUE job that it follows, which keeps its key. Redis: WW_EINVAL.
 */

/*
 * Write a follow-up for ww_job_spec.then. *length is the room at `bytes`, and becomes the number of bytes that it needs; bytes
 * NULL only counts them. The spec is checked by the put of the job that gets it.
 * Errors: WW_EINVAL: an object is missing, or a member has a length and no bytes. WW_ETOOBIG: the room is too small, or bytes
 * is NULL; *length says how much is needed.
 */
WW_API int ww_job_then_write(void *bytes, size_t *length, const struct ww_job_spec *spec);

/*
 * Read one into *spec, whose texts and bytes then lie in `bytes`. Errors: WW_EINVAL: these bytes are none, or of a later
 * version; *spec is as it was.
 */
WW_API int ww_job_then_read(struct ww_job_spec *spec, const void *bytes, size_t length);

/*
 * Add a part of `span` to spec->due, so that jobs of one due time do not come at once. The part is less than the span, in whole
 * milliseconds. Tube and key fix it, or tube and body if there is no key: a put that is repeated, or replaces the job,
 * adds the same. The due time of a periodic job is its first. Call it last, when these members are set.
 * Errors: WW_EINVAL: the tube is out of range, a key or a body has a length and no bytes, or span is over WW_DRIVER_TIME_MAX.
 */
WW_API int ww_job_spread(struct ww_job_spec *spec, uint64_t span);

/* What ww_jobs_put has done. Each but the first is about the job that has the key. */
#define WW_PUT_NEW 0
#define WW_PUT_REPLACED 1 /* it keeps its id and gets the next version; a lease on it becomes invalid */
#define WW_PUT_KEPT 2     /* it stays as it was, and nothing was put */
#define WW_PUT_ENDED 3    /* it has ended, but its key is not free yet: nothing was put */

/*
 * Put a job. If a job of the tube has the same key, spec.key_mode decides what happens. Store the job's present id and
 * version, each unless its pointer is NULL. Return one of WW_PUT_*. A put that keeps a job writes nothing.
 * Complexity: O(log jobs). Errors: WW_EINVAL: a member of the spec is out of range, also of a follow-up. WW_ETOOBIG: the
 * body and the follow-up are over config.body_max. WW_EOVERFLOW: the due time is too far away. WW_EBACKWARDS: the due time has passed, and the job is
 * WW_JOB_FUTURE. WW_ESTALE: spec.version is not the job's, or there is no job of that key.
 */
WW_API int ww_jobs_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version);

/*
 * Put `count` jobs, one after the other, each as ww_jobs_put does, and write them together. Fill the result of each,
 * and its id and version unless the result is an error. A refused job does not keep the others from being put. Between
 * ww_jobs_begin and ww_jobs_commit the jobs are part of that batch.
 * Return WW_OK if each job has a result, whatever the results. If the write failed, return its error: then no job was
 * put, and no result is a success. A store on other machines may nevertheless have put some of them: there each result
 * holds by itself.
 * Complexity: that of `count` puts. Errors: only those of a write. An error of one job is in its result.
 */
WW_API int ww_jobs_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count);

/*
 * Put jobs as ww_jobs_list showed them in another store: each as ww_jobs_put_many does, but was[i] says what became of
 * it there, unless it is NULL. What counts of that is its state (a reserved one waits), error, version (below 2^53),
 * created and delay (unless created is 0), left, debounce, expires, and the counts from `reserves` on. With WW_JOB_AT, spec.due
 * stays as it is if it has passed, even with WW_JOB_FUTURE. WW_JOB_ENDED needs WW_KEY_UNIQUE: the key is free
 * spec.key_span after spec.due or, without WW_JOB_AT, after `left`. No run is kept of what became of it, and no attempt
 * counted. A job that is replaced gives the version, as usual. spec.key_mode decides by spec.due, where what has passed
 * is now.
 * Errors: those of ww_jobs_put_many. WW_EINVAL, in the result: was[i] is not such a job.
 */
WW_API int ww_jobs_put_again(
    struct ww_jobs *jobs, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count);

/*
 * Give a delayed or ready job another due time: `due` is a delay from now or, with WW_JOB_AT, a time of the job's
 * clock. Store the new version in *version unless that is NULL.
 * Errors: WW_ENOTFOUND: no such job. WW_ESTALE: it has another version. WW_EINUSE: it is reserved. WW_EINVAL: it is
 * buried, or another flag is set. WW_EOVERFLOW: the due time is too far away.
 */
WW_API int ww_jobs_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);

/*
 * Delete a job, whatever its state. Return 1, or 0 if the job is being delivered: that delivery is then the last. If
 * the job of a key has ended and the key is still taken, free the key and return 1.
 * Errors: WW_ENOTFOUND: no such job. WW_ESTALE: it has another version.
 */
WW_API int ww_jobs_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job);

/* ---- Delivering jobs --------------------------------------------------------------------------------------------- */

/*
 * Lease the ready job with the lowest priority number of `count` tubes; of equal priorities, the lowest id. In a tube
 * with groups, only the first job of the group whose turn it is counts. Return 1 and fill *lease, or return 0 if no job
 * may start. A paused tube has no ready jobs.
 * Ownership: lease->body belongs to the caller; give it back by ww_jobs_free.
 * Complexity: O(count + log ready).
 */
WW_API int ww_jobs_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease);

/*
 * Lease up to `most` jobs (INT_MAX at most), in the order in which ww_jobs_reserve would give them. Return how many
 * there were, and fill that many of leases. There are fewer than `most` if no more jobs are ready, or if the next one
 * cannot be leased: another call then returns the error. jobs_redis.h says how often this asks a store in Redis, and
 * when that returns fewer.
 * Ownership: as ww_jobs_reserve.
 * Complexity: O(most * (count + log ready)). Errors: those of ww_jobs_reserve; nothing is leased then.
 */
WW_API int ww_jobs_reserve_many(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most);

/* What a caller takes, of which tubes. */
struct ww_reserve {
	const char *const *tubes;
	size_t count;
	uint32_t
	    code; /* jobs up to this code (ww_job_spec.code): the caller knows no later one. WW_JOB_CODE_MAX: all jobs */
};

/*
 * Lease up to `most` jobs as ww_jobs_reserve_many does, but only those whose code the caller knows. Among these the order is
 * the same: jobs that it may not take are passed over as if they were not there, however many they are. A group's turn is
 * that of the group whose jobs, of those that the caller may take, have waited longest for one. The other calls take all.
 * Complexity: O(most * (count + log ready)). Errors: those of ww_jobs_reserve_many. WW_EINVAL: code is over WW_JOB_CODE_MAX.
 */
WW_API int ww_jobs_reserve_known(
    struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *leases, size_t most);

/*
 * Reserve as ww_jobs_reserve does, but wait for a job up to `timeout` ns of the driver's clock. The driver must have
 * threads, or another thread must dispatch it. Return 0 when the time is up.
 * Errors: WW_ECLOSED: the driver was stopped; the call notices within 50 ms. WW_EBUSY: nothing is ready, and this
 * thread has begun a batch.
 */
WW_API int ww_jobs_wait(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease);

/* The same for jobs whose code the caller knows. */
WW_API int ww_jobs_wait_known(
    struct ww_jobs *jobs, const struct ww_reserve *what, uint64_t timeout, struct ww_lease *lease);

/*
 * Lease a certain job that is delayed, ready or buried, whatever its code.
 * Errors: WW_ENOTFOUND: no such job. WW_EINUSE: it is reserved.
 */
WW_API int ww_jobs_reserve_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease);

/* Free a body that came from a lease or a peek. NULL is harmless. */
WW_API void ww_jobs_free(struct ww_jobs *jobs, void *body);

/*
 * Report that the job is done: delete it or, if it is periodic, let it wait for its next due time. If it has a follow-up
 * (ww_job_spec.then), put that with the same write.
 * Errors, here and below: WW_ESTALE: that lease has ended, for whatever reason.
 */
WW_API int ww_jobs_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token);

/*
 * Finish `count` leases, one after the other, each as ww_jobs_finish does, and write them together. Fill their results.
 * The return value, and the meaning of a failed write, are those of ww_jobs_put_many.
 */
WW_API int ww_jobs_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count);

/* A delay for ww_jobs_release: as long as the job's backoff says. */
#define WW_JOB_BACKOFF UINT64_MAX

/*
 * Give the lease back: the job is due again after `delay`, with this priority. With WW_JOB_BACKOFF the delay is the
 * job's own backoff, doubled with every attempt and shortened at random by up to a quarter. After its last attempt the
 * job is buried, whatever the delay. error, unless NULL, says why; it is cut off at WW_JOB_ERROR_MAX bytes. Without
 * it the former reason stays. Return 0, or 1 if the job is buried.
 * Range: delay is at most WW_DRIVER_TIME_MAX, or WW_JOB_BACKOFF. Errors: WW_EINVAL: it is out of range.
 */
WW_API int ww_jobs_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);

/*
 * Give the lease back as if it had never been: the job is ready again at once, and no attempt is counted. For a caller
 * that took more jobs than it can do, or that must end before it has begun.
 */
WW_API int ww_jobs_return(struct ww_jobs *jobs, uint64_t id, uint64_t token);

/*
 * The same, but the job is ready after `delay` ns, and has the next version. For a caller that cannot do this job now,
 * but can do others after it.
 * Range: delay is at most WW_DRIVER_TIME_MAX; 0 is ww_jobs_return.
 */
WW_API int ww_jobs_return_after(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t delay);

/* End the lease and bury the job, with this priority. error is as for ww_jobs_release. */
WW_API int ww_jobs_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error);

/*
 * Extend the lease: it ends after the job's time to run, counted from now. Store its new end in *ends unless that is
 * NULL.
 */
WW_API int ww_jobs_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends);

/*
 * Make up to `bound` buried jobs of a tube ready, in the order in which they were buried. If the tube has none, make
 * delayed jobs ready instead. Store how many in *count. Buried jobs do not expire any more (spec.expire).
 */
WW_API int ww_jobs_kick(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count);

/* Make a buried or delayed job ready. Errors: WW_ENOTFOUND: no job of that id is in these states. */
WW_API int ww_jobs_kick_job(struct ww_jobs *jobs, uint64_t id);

/*
 * Deliver nothing of a tube for ns nanoseconds, at most WW_DRIVER_TIME_MAX; 0 ends a pause. The tube need not have jobs
 * yet. Closing the store ends all pauses.
 */
WW_API int ww_jobs_pause(struct ww_jobs *jobs, const char *tube, uint64_t ns);

/* ---- Listening --------------------------------------------------------------------------------------------------- */

/* The events of a job. */
enum ww_event_kind {
	WW_EVENT_PUT,       /* it is new, or has replaced a job of its key and has a version over 1 */
	WW_EVENT_MOVED,     /* it has another due time */
	WW_EVENT_CANCELLED, /* it is gone, without being done */
	WW_EVENT_DUE,       /* it waited, and is ready now */
	WW_EVENT_STARTED,   /* it has a lease */
	WW_EVENT_FINISHED,  /* done: it is gone or, if it is periodic, waits again */
	WW_EVENT_RELEASED,  /* the attempt has failed, and it waits again */
	WW_EVENT_TIMED_OUT, /* the same, because its time to run was up */
	WW_EVENT_RETURNED,  /* it is as if it had not been reserved */
	WW_EVENT_BURIED,    /* at once, after its last attempt, or because it has expired */
	WW_EVENT_KICKED,
	WW_EVENT_LOST,   /* of no job: other events could not be reported for lack of memory */
	WW_EVENT_EXPIRED /* nobody leased it in time: it is gone or, if it is periodic, waits again */
};

/* No number. */
#define WW_EVENT_UNKNOWN UINT64_MAX

/* All pointers are valid during the call. */
struct ww_job_event {
	enum ww_event_kind kind;
	uint64_t id;      /* 0: several jobs of the tube, or that of the key */
	uint64_t version; /* that it has now, or had; 0: unknown */
	uint64_t left;    /* ns until it is due, if it waits now; or WW_EVENT_UNKNOWN */
	const char *tube; /* "": unknown */
	const void *key;
	size_t key_length; /* 0: none, or unknown */
	uint32_t attempt;  /* the delivery that began or ended; 0: none, or unknown */
	const char *error; /* why it was released, timed out or buried; NULL: no reason given, or another event */
};

/* Called for an event. It may not call the store, which may be locked, but only note what to do. */
typedef void ww_jobs_listen_fn(const struct ww_job_event *event, void *context);

/*
 * Call fn with context for every event of a job from now on; NULL ends that. A store has one listener: end it before
 * another begins. Calls under way may still report events after that.
 *
 * The embedded store reports every event, in order, after it has been written, and none of a call that failed. A store
 * in Redis reports what calls on this handle have done, each in the thread of the call. It does not report that jobs
 * become due or time out; and of a job that is ended by its id it reports neither tube nor key.
 * Complexity: with a listener, some hundred ns an event, and a peek for WW_EVENT_DUE and WW_EVENT_RETURNED; without
 * one, nothing.
 */
WW_API int ww_jobs_listen(struct ww_jobs *jobs, ww_jobs_listen_fn *fn, void *context);

/* ---- History ----------------------------------------------------------------------------------------------------- */

/*
 * The outcome of a run, kept for jobs that ask for it (spec.keep). A run begins and ends with a lease: each attempt is
 * one, and so is each delivery of a periodic job. A lease that is returned does not count as a run. The end of a job that
 * expired does.
 */
struct ww_job_run {
	uint64_t number;            /* grows with each run of the store */
	uint64_t job;               /* its id, even if the job is gone */
	enum ww_event_kind outcome; /* WW_EVENT_FINISHED, _RELEASED, _TIMED_OUT, _BURIED or _EXPIRED */
	uint32_t attempt;           /* 1 with the first; of a job that expired, how many there were: 0 if none */
	uint64_t ended;             /* Unix time */
	const char *tube;
	const void *key;
	size_t key_length;  /* 0: none */
	const char *error;  /* why it was released, timed out or buried; "" */
	const void *report; /* what the worker reported */
	size_t report_length;
};

/* The most bytes of a report. */
#define WW_JOB_REPORT_MAX 4096

/*
 * Attach a report to the run under way, such as its result or the end of its output. It may be any bytes. It is kept
 * with the run when that ends, however it ends; another report replaces it. Until then it is in memory, and it is not
 * kept at all for a job without spec.keep.
 * Complexity: O(length). Errors: WW_EINVAL: length is over WW_JOB_REPORT_MAX. WW_ESTALE: there is no such lease.
 * WW_ENOMEM.
 */
WW_API int ww_jobs_report(struct ww_jobs *jobs, uint64_t id, uint64_t token, const void *report, size_t length);

/* Which runs to list. All zero: all. */
struct ww_run_filter {
	const char *tube;   /* NULL: any tube */
	uint64_t job;       /* 0: any job */
	const void *prefix; /* of the key: the runs of a schedule have its name and '@' */
	size_t prefix_length;
	uint64_t before; /* only runs with lower numbers; 0: all */
};

/* Return 0 to go on. Any other number ends the call, which returns it. The store is locked: do not call it. */
typedef int ww_run_fn(const struct ww_job_run *run, void *context);

/*
 * Call fn for up to `limit` kept runs, the last one first. filter NULL means all. Store in *next, unless that is NULL,
 * the `before` with which the next call goes on, or 0 after the oldest. A call looks at 1,000 runs, or in Redis at all
 * of them, so it may list fewer than `limit` although there are more. A run that cannot be read is left out. In a batch
 * (ww_jobs_begin), runs that ended in it are not listed yet.
 * Kept runs are not part of the promises about a job: if the disk is full or there is no memory, a run is not kept.
 * Complexity: O(runs that it looks at). Errors: WW_EINVAL: fn is NULL or limit is 0.
 */
WW_API int ww_jobs_history(struct ww_jobs *jobs, const struct ww_run_filter *filter, size_t limit, ww_run_fn *fn,
    void *context, uint64_t *next);

/* ---- Limits ------------------------------------------------------------------------------------------------------ */

/*
 * How many jobs may run at once, and how often one may start. A job runs while it has a lease, and starts when it gets
 * one. A job that may not start stays ready, in its order, and costs nothing. When the next one may start, waiting
 * callers are notified as of a job that came due (ww_jobs_wait, config.ready).
 *
 * The rate is kept by the generic cell rate algorithm of ATM (ITU-T I.371): starts are per / starts apart, and after a
 * rest `burst` of them may come at once. Any span of `per` thus has at most starts + burst - 1 of them, and 1 % more
 * while lost time is made up. Lost time is made up while jobs wait: a start that is late by up to 10 ms, because of the
 * driver's tick or a busy caller, does not make the next one late. If starts are at most 50 ms apart, up to 100 ms of
 * lateness, but no more than `per`, is made up at twice the pace.
 *
 * A lease that is returned (ww_jobs_return) does not count as a start. A limit never holds ww_jobs_reserve_job back,
 * but its leases count. That call is for a person or a tool that needs one certain job, for instance to bury it;
 * workers have no use for it.
 *
 * A weight says how many turns a group gets where one of weight 1 gets one (see ww_limit_ref). It limits nothing: a group with
 * a weight alone keeps to the limit of each group. Only a limit of a single group may have one. Not in Redis: WW_EINVAL.
 */
struct ww_limit {
	uint64_t running; /* leases at once; 0: any number */
	uint64_t starts;  /* in each `per`; at most a million a second; 0: any number */
	uint64_t per;     /* ns, from 1 ms to WW_LIMIT_PER_MAX; 1 s */
	uint64_t burst;   /* 1 to 1,000,000; 1 */
	uint64_t weight;  /* 1 to WW_LIMIT_WEIGHT_MAX; 1, also for 0 */
};

#define WW_LIMIT_PER_MAX (UINT64_C(7) * 24 * 3600 * 1000000000)
#define WW_LIMIT_BURST_MAX 1000000
#define WW_LIMIT_WEIGHT_MAX 1000

/*
 * Selects a limit: of a tube as a whole, of one group of its jobs (ww_job_spec.group), or of each group that has no
 * limit of its own. A job may start if the limits of both its group and its tube allow it.
 *
 * Groups take turns: in a tube whose jobs name groups, each delivery is from another group, among those that have ready
 * jobs and are not held. The jobs that name no group form one more group, of weight 1. Within a group, jobs come in order
 * of priority and id.
 *
 * Weights are kept by stride scheduling (Waldspurger and Weihl, MIT/LCS/TM-528, 1995): a tube has a time, and the group of
 * the least turn starts a job; of equal turns, the one that was given first. That turn becomes the tube's time, and the
 * group's next turn is this time plus 1 / weight. So does a group begin that gets ready jobs, or is not held any more: rest
 * earns it no credit, and however many come after it, none starts more than its weight's share before it. With equal
 * weights the groups stand in a row, and each one that has started a job goes to its end. 1 / weight is exact up to 16, and
 * to 0.14 % above. A changed weight counts from the group's next turn but one. Complexity of a turn: O(log groups).
 */
struct ww_limit_ref {
	const char *tube; /* NULL: the default tube */
	const void *group;
	size_t group_length; /* 0: of no single group */
	int each;            /* of each group that names one and has no limit of its own; without a group */
};

struct ww_limit_info {
	struct ww_limit_ref ref;
	struct ww_limit limit;
	uint64_t running; /* leases now */
	uint64_t held;    /* ready jobs that it does not let start now */
	uint64_t left;    /* ns until its rate lets the next one start; 0: now */
	                  /* These three are 0 in a limit of each group. */
};

/* Fill *limit with the defaults that the struct names. Errors: WW_EINVAL: limit is NULL. */
WW_API int ww_jobs_limit_default(struct ww_limit *limit);

/*
 * Set a limit, in place of the former one. It is stored as a job is, and holds from now on: leases above it go on. The
 * tube need not have jobs. If both `running` and `starts` are 0, and `weight` is 0 or 1, the limit is removed, whatever `per`
 * and `burst` are. If only the weight changes, the counts stay.
 * Restarts: a store that was closed knows how many jobs started lately. After a crash, and if the rate was changed, it
 * takes the burst as used up, so that never too many start. For the limit of each group it always does so.
 * Complexity: O(1). Errors: WW_EINVAL: a member is out of range.
 */
WW_API int ww_jobs_limit_set(struct ww_jobs *jobs, const struct ww_limit_ref *ref, const struct ww_limit *limit);

/* Fill *info; info->ref is as in *ref. Errors: WW_ENOTFOUND: there is no such limit. */
WW_API int ww_jobs_limit_get(struct ww_jobs *jobs, const struct ww_limit_ref *ref, struct ww_limit_info *info);

/* Called for each limit, under the same rules as the fn of ww_jobs_list. */
typedef int ww_limit_fn(const struct ww_limit_info *info, void *context);
/* Call fn for each limit of a tube, or of all if tube is NULL. Return what fn returned, or 0. */
WW_API int ww_jobs_limit_list(struct ww_jobs *jobs, const char *tube, ww_limit_fn *fn, void *context);

/* ---- Looking at jobs --------------------------------------------------------------------------------------------- */

/*
 * Fill *info. Unless `body` is NULL, store in *body a copy of the body, at which info->body then points.
 * Ownership: *body belongs to the caller; give it back by ww_jobs_free.
 * Errors: WW_ENOTFOUND: no such job. WW_ESTALE: it has another version.
 */
WW_API int ww_jobs_peek(struct ww_jobs *jobs, const struct ww_job_ref *job, struct ww_job_info *info, void **body);

/*
 * The same for the next job of a tube in a state: ready, delayed, or first buried. No reserved job is the next one.
 * Errors: WW_EINVAL: a job in the store has no such state, or has ended. WW_ENOTFOUND: there is none.
 */
WW_API int ww_jobs_peek_next(
    struct ww_jobs *jobs, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body);

/* Store the state of a job, without reading its body. Errors: WW_ENOTFOUND: no such job. */
WW_API int ww_jobs_state(struct ww_jobs *jobs, uint64_t id, enum ww_job_state *state);

/* The jobs that a list contains: those that match all members. */
struct ww_job_filter {
	const char *tube;     /* NULL: any tube */
	const void *prefix;   /* of the key */
	size_t prefix_length; /* 0: with or without a key */
	uint64_t from;        /* due then or later, on the job's clock */
	uint64_t to;          /* due before then; 0: no bound. A buried job is never due, and listed if both are 0. */
	unsigned states;      /* 1u << WW_JOB_DELAYED and so on; 0: any but WW_JOB_ENDED */
	uint64_t after;       /* with a greater id than this */
};

/*
 * Called for each job of a list, in order of ids. info is valid during the call; info->body points into the store. Any
 * result but 0 ends the list.
 */
typedef int ww_job_fn(const struct ww_job_info *info, void *context);

/*
 * Call fn for up to `limit` jobs. Store in *next, unless NULL, the id from which to go on, or 0 after the last job.
 * Return what fn returned, or 0. A job that changes between pages may or may not be listed; no job is listed twice. fn
 * runs with the store locked and may not call it.
 * Complexity: if `next` is given, a call reads some thousand records or 4 MiB at most, so that others do not wait for
 * long, and it may find fewer than `limit` jobs. If `next` is NULL, it reads all. Errors: WW_EINVAL: limit is 0.
 */
WW_API int ww_jobs_list(struct ww_jobs *jobs, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
    void *context, uint64_t *next);

/*
 * Count the jobs that are due in each of `count` spans of `span` ns from now on. Jobs that are already due count for
 * the first span. tube NULL means all tubes.
 * Precision: exact in Redis. The embedded store counts jobs by hours of Unix time, exactly if an hour lies in one span.
 * In hours that spans divide, it counts the first 500 jobs one by one, and takes the others as spread evenly.
 * In PostgreSQL, those of hours after the next one are all taken as spread.
 * Complexity: O(count + hours that have jobs), and at most 500 jobs are read. In Redis O(jobs that are counted).
 * Errors: WW_EINVAL: span is 0.
 */
WW_API int ww_jobs_forecast(struct ww_jobs *jobs, const char *tube, uint64_t span, uint64_t *counts, size_t count);

/* Fill *stats. */
WW_API int ww_jobs_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats);
/*
 * Fill *stats for one tube. Errors: WW_ENOTFOUND: the tube has no jobs and, as far as remembered, had none since the
 * store was opened.
 */
WW_API int ww_jobs_tube(struct ww_jobs *jobs, const char *tube, struct ww_tube_stats *stats);
/* Called for each tube that is not empty, under the same rules as the fn of ww_jobs_list. */
typedef int ww_tube_fn(const struct ww_tube_stats *tube, void *context);
/* Call fn for each tube that is not empty. Return what fn returned, or 0. */
WW_API int ww_jobs_tubes(struct ww_jobs *jobs, ww_tube_fn *fn, void *context);

/*
 * Store in *count how many ready jobs of a tube have a code above `code`: if no caller knows a later one, they wait for one
 * that does. Store in *lowest, unless there are none, the lowest of their codes. Jobs in Redis have no codes.
 * Complexity: O(log codes). Errors: WW_ENOTFOUND: as ww_jobs_tube.
 */
WW_API int ww_jobs_above(struct ww_jobs *jobs, const char *tube, uint32_t code, uint64_t *count, uint32_t *lowest);

/*
 * Read every record and every index, compare them, and account for all jobs ever accepted. Return 0 if all is well,
 * otherwise the number of problems, up to INT_MAX.
 * Complexity: O(jobs).
 */
WW_API int ww_jobs_check(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context);

/*
 * Examine the files of the store in the directory `path`: the checksum of each page of the index, of its log, and of
 * each record of the journal. Call problem with a sentence for each that is damaged or missing. Another process may
 * have the store open; this process may not. What the other process writes meanwhile may look damaged, or end the call
 * with WW_EIO. Examine the store again, and believe what two examinations in a row report. O(bytes of the files).
 * Returns the number of problems, up to INT_MAX. Errors: WW_EDENIED, WW_EIO: a file cannot be read. WW_ENOMEM.
 */
WW_API int ww_jobs_examine(const char *path, ww_jobs_problem_fn *problem, void *context);

/*
 * Save what can be read of the store in the directory `path`, however damaged it is, into a new store that `config`
 * describes: jobs with their ids, and the numbers that make new ids and tokens greater than any that were given. Store
 * the number of jobs in *saved. Call problem with a sentence for each thing that is damaged, missing or not saved. New
 * ids are then greater by a million than the greatest known one, because others may have been given. The store in
 * `path` is not changed. No process may have it open. O(bytes of the files); memory: 16 bytes for each job that was
 * cancelled or moved in its slot.
 * Errors: WW_EDENIED, WW_ECORRUPT, WW_EVERSION: there is no store in `path`, or one of a former kind; nothing is made.
 * WW_EINUSE: a process has one of them open. WW_EINVAL: config has a store with jobs, is READONLY or MEMORY;
 * and those of ww_jobs_open for config. WW_EIO, WW_EDENIED, WW_EFULL, WW_ENOMEM.
 */
WW_API int ww_jobs_recover(
    const char *path, const struct ww_jobs_config *config, uint64_t *saved, ww_jobs_problem_fn *problem, void *context);

#ifdef __cplusplus
}
#endif

#endif
