#ifndef WEEKWHEEL_JOBS_POSTGRES_H
#define WEEKWHEEL_JOBS_POSTGRES_H

/*
 * Jobs in PostgreSQL 15: anybody puts them by SQL, in the transaction that writes his own data. One process at a time, the
 * *owner*, delivers them.
 *
 *     application                   PostgreSQL                  owner
 *     BEGIN;                        +-------------+             +-----------+
 *       INSERT INTO orders ...      | inbox       | --reads-->  | engine of |
 *       SELECT weekwheel.put(...)-> |             |             | a store   |
 *     COMMIT;                       | turns, jobs | <--writes-- | on disk   |
 *                                   +-------------+             +-----------+
 *
 * This header makes the tables and functions in a database, and opens a struct ww_jobs on them. Every call of jobs.h works
 * on it as jobs.h says of an embedded store. weekwheel-postgres(7) has the functions for SQL.
 *
 * Whoever opens the store holds a lock in the database until it is closed or its connection ends; others answer WW_EINUSE
 * meanwhile. A batch of calls is one row, written in one round trip, and its answers come after the commit. Jobs are read
 * from the inbox by snapshots: at most some ms after their transaction has committed, in no order of ids. No row is ever
 * updated or deleted: tables are emptied by TRUNCATE when all that is in them has been written on or has ended. A long
 * report, which holds a snapshot, therefore costs the queue nothing.
 *
 * What differs from a store on disk:
 * - Ids are even for jobs that were put by calls of jobs.h, and odd for those that were put by SQL.
 * - Delays are of PostgreSQL's clock. The process estimates it from below, so that no such job is early by the clock of
 *   the database. Times of day (WW_JOB_WALL) are those of the owner's machine: keep both clocks in step. A put that
 *   commits after its due time is delivered when it commits.
 * - All jobs are also in memory, some 300 bytes and the body each.
 * - SQL may put bodies of up to 256 MiB, whatever body_max is.
 * - max_disk, path and WW_JOBS_MEMORY, WW_JOBS_READONLY of struct ww_jobs_config are not used. WW_SYNC_ALWAYS
 *   asks for synchronous_commit=on, the others for off.
 *
 * Errors, of every call: WW_EIO: PostgreSQL refuses for a reason that has no code here, or the connection was lost. After
 * that the store answers only this, and the last call may or may not have taken effect. Close it and open it again: another
 * process may own it meanwhile. WW_EFULL: PostgreSQL has no room. WW_EDENIED: it takes no writes.
 *
 * Threads: any, as jobs.h says. Fork: in a child every call answers WW_ECLOSED.
 */

#include <stdint.h>

#include "weekwheel/jobs.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WW_JOBS_POSTGRES_ADVERTISE_MAX 53

struct ww_jobs_postgres_config {
	/*
	 * What libpq takes: postgresql://[user@][host][:port][,...][/database][?...], or "host=... dbname=...", or
	 * "service=NAME". A password belongs into the password file or a service file.
	 */
	const char *url;
	struct ww_jobs_config jobs; /* as for ww_jobs_open; `driver` is needed, and `wall` for `at` of SQL */
	uint64_t ring;  /* ns after which another part of the ring takes what is written; 1 ms to 1 h; 30 s */
	int is_virtual; /* for tests: the drivers have the time, whatever PostgreSQL's clock says */
	/*
	 * What the others learn of this process while it owns the store, such as its address: up to
	 * WW_JOBS_POSTGRES_ADVERTISE_MAX bytes of printable ASCII; NULL: nothing. A '*' at its beginning becomes the address
	 * of this process as PostgreSQL sees it. Every role of the database can read it, in pg_stat_activity.
	 */
	const char *advertise;
	/*
	 * How many standbys of PostgreSQL must have a job on disk before its put is answered; 0: any. Opening the store checks
	 * that PostgreSQL is set to wait for as many: synchronous_commit is on by default in this database, not remote_apply,
	 * under which a report on a standby holds up each put; and synchronous_standby_names asks for as many. It needs
	 * WW_SYNC_ALWAYS. A put by SQL can still turn synchronous_commit off in its session or transaction.
	 */
	uint32_t replicas;
	/*
	 * Called while another process owns the store, with what that one advertises, or "" if it does not, or not yet. It
	 * waits, for some 50 ms: between two calls the store is tried. 0: go on. NULL, or another answer: the call answers
	 * WW_EINUSE. An owner that hangs for 3 s loses its connection.
	 */
	int (*waits)(const char *owner, void *context);
	/* Called once, by any thread, when the connection is lost: the store answers only WW_EIO from now on. NULL: no call. */
	void (*lost)(void *context);
	/* Called by any thread with a sentence that a person should read. NULL: no calls. `jobs.context` is passed to all. */
	void (*report)(const char *sentence, void *context);
};

/* Fill *config with the defaults that the structs name; url and driver have none. Errors: WW_EINVAL: config is NULL. */
WW_API int ww_jobs_postgres_config_default(struct ww_jobs_postgres_config *config);

/*
 * Open the store in a database that ww_jobs_postgres_setup has prepared, and become its owner. The call copies config and
 * what it points to, except drivers, allocator and context, which must outlive the store. It reads all jobs.
 * Threads: any. O(jobs).
 * Errors: WW_EINVAL: a member is out of range, the url is none or leads to a pool, or PostgreSQL waits for fewer replicas.
 * WW_EINUSE: another process owns the store. WW_ENOTFOUND: the database has no tables of weekwheel. WW_EVERSION: another version made them. WW_ECORRUPT: what
 * they have makes no sense. WW_EDENIED: the role has no right, or the server is a standby. WW_EFULL, WW_EIO, WW_ENOMEM,
 * WW_ESYSTEM. `report` says more.
 */
WW_API int ww_jobs_postgres_open(struct ww_jobs **jobs, const struct ww_jobs_postgres_config *config);

/* ---- Tables and functions ---------------------------------------------------------------------------------------- */

/*
 * Errors of the following calls, each of which is one transaction that changes nothing if it fails: WW_EIO: the server
 * cannot be reached, or the connection was lost. WW_EDENIED: the role may not do it, the database is missing, or the
 * server is a standby. WW_EAGAIN: it starts or stops, has no connection left, or a lock was not to be had in 10 s.
 * WW_EVERSION: the tables are of another version, or PostgreSQL is older than 15. WW_EFULL, WW_ENOMEM, WW_ESYSTEM:
 * PostgreSQL refuses something else. WW_EINVAL: url is NULL or none. `report` gets a sentence for each error that says
 * what to do; NULL: no calls.
 */

/*
 * Make the schema weekwheel with its tables, unless it is there, and its functions anew. The role becomes the owner; it
 * needs the right CREATE on the database the first time, and need not be a superuser. A store may be open meanwhile.
 * Tables that a dump has brought from another cluster are taken over.
 * Errors: WW_EINUSE: a store is open on such tables.
 */
WW_API int ww_jobs_postgres_setup(const char *url, ww_jobs_problem_fn *report, void *context);

#define WW_JOBS_POSTGRES_PARTS 4 /* of the ring */

struct ww_jobs_postgres_facts {
	uint32_t version; /* of the tables */
	uint64_t cluster; /* the identifier of PostgreSQL's data folder, in which they were made */
	int is_owned;     /* a store is open on them */
	uint32_t part;    /* of the ring: the current one */
	uint64_t inbox[WW_JOBS_POSTGRES_PARTS]; /* rows of each part that were put by SQL */
	uint64_t turns[WW_JOBS_POSTGRES_PARTS]; /* and that the owner has written */
	uint64_t bytes;                         /* on disk, with indices */
	uint32_t writers;                       /* transactions under way that have put jobs */
	char sync[16];                          /* synchronous_commit */
};

/*
 * Compare the tables and settings with what they should be, without a change. Fill *facts unless it is NULL. `report`
 * gets a sentence for each problem. O(rows of the ring). The role must be the owner of the schema; others see no
 * transactions of other users.
 * Returns the number of problems. Errors: WW_ENOTFOUND: there are no tables.
 */
WW_API int ww_jobs_postgres_check(
    const char *url, struct ww_jobs_postgres_facts *facts, ww_jobs_problem_fn *report, void *context);

/*
 * Remove the tables and functions, with_jobs: even if there may be jobs in them. What others have built on them stays,
 * and then nothing is removed.
 * Errors: WW_ENOTFOUND: there are no tables. WW_EINUSE: a store is open on them. WW_EBUSY: there may be jobs, or
 * something else in the database uses the functions.
 */
WW_API int ww_jobs_postgres_remove(const char *url, int with_jobs, ww_jobs_problem_fn *report, void *context);

#ifdef __cplusplus
}
#endif

#endif
