#ifndef LIB_JOBS_LOCAL_PORT_H
#define LIB_JOBS_LOCAL_PORT_H

/*
 * The engine of an embedded store on a storage outside this library: lib/postgres stands on it. The functions are
 * exported, but only for libraries of the same version of weekwheel.
 *
 *     lib/postgres: struct store ----> ww_jobs_port_open ----> struct ww_jobs: queue, batches, entries, limits, groups
 *                        ^------------------- put, remove, get, seek, commit ----------------------'
 *
 * What leads to a job (JOBS, KEYS) follows from its record. A storage may therefore keep the records alone, and have
 * the rest made anew when it is read.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/store/store.h"
#include "weekwheel/jobs.h"

/*
 * ww_jobs_open, on this store. `path` and the flags of the config are not used. The store is closed with the jobs, and
 * also if this fails.
 */
WW_API int ww_jobs_port_open(struct ww_jobs **jobs, const struct ww_jobs_config *config, const struct store *store);
/* Its store, which was passed. */
WW_API void *ww_jobs_port_store(struct ww_jobs *jobs);
/* Open a store in memory, which keeps the pairs of another one. */
WW_API int ww_jobs_port_memory(struct store *store, const struct ww_jobs_config *config);
/* Call pair for each pair of a table of a store in memory, in order, until it returns an error, which is the answer. */
WW_API int ww_jobs_port_each(const struct store *memory, enum store_table table, store_pair_fn *pair, void *context);
/* The seed of the hashes of keys, which META has. WW_ENOTFOUND: the store is new. WW_ECORRUPT, WW_EVERSION. */
WW_API int ww_jobs_port_secret(const struct store *store, uint64_t *secret);
/* Put into the store what leads by id, by key or by both to the job of a pair of DUE, WALL or BURIED. WW_ECORRUPT: it is no job. */
enum { PORT_BY_ID = 1, PORT_BY_KEY = 2 };
WW_API int ww_jobs_port_lead(const struct store *store, unsigned by, uint64_t secret, enum store_table table,
    struct store_bytes key, struct store_bytes value);
/* Where a job lies, from the value of its pair of JOBS. WW_ECORRUPT. */
WW_API int ww_jobs_port_place(
    uint64_t id, struct store_bytes value, enum store_table *table, unsigned char key[STORE_KEY_MAX], size_t *size);
/*
 * The range of tokens that leases have and will have: none is below *floor, and *next is at most that of the next one.
 * O(n) in the jobs in memory. For callers of the engine.
 */
WW_API void ww_jobs_port_tokens(struct ww_jobs *jobs, uint64_t *floor, uint64_t *next);
/* How a delivery, of this opening or a former one, was ended where the storage is (store_ops.revoke). */
enum port_how { PORT_FINISH, PORT_RELEASE, PORT_BURY };
struct port_end {
	enum port_how how;
	uint64_t id;
	uint64_t token;
	uint64_t delay;     /* of a release; WW_JOB_BACKOFF: the job's own */
	int keeps_priority; /* the job has its priority from now on, too */
	uint32_t priority;
	const char *error; /* why; or NULL */
};
/* It ends so here. WW_ESTALE: since then its lease has ended otherwise. Returns 1 if a release was the last attempt. */
WW_API int ww_jobs_port_end(struct ww_jobs *jobs, const struct port_end *end);
/* ww_changes_add and ww_changes_each of store/changes.h. */
struct changes;
WW_API int ww_jobs_port_change(struct changes *changes, const struct ww_allocator *allocator, enum store_table table,
    struct store_bytes key, int there, struct store_bytes value, struct store_bytes *kept);
WW_API int ww_jobs_port_changes(const unsigned char *bytes, size_t size,
    int (*fn)(void *context, enum store_table table, struct store_bytes key, struct store_bytes kept), void *context);

#endif
