/*
 * META's two records about the whole store: one that seldom changes, and one that every write changes, thus it is
 * short.
 *
 *     "meta"   magic, format, 4 | epoch, burials, offset, secret | boot id, 16
 *     "now"    id_bound, accepted, ended, elapsed, wall
 */
#include "lib/jobs/local/meta.h"

#include <string.h>

#include "lib/base/random.h"
#include "lib/jobs/local/clock.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/store/files.h"

static const char magic[] = "weekwheel jobs";
#define META_FORMAT 3
enum { FIXED_NUMBERS = 4, FIXED_SIZE = sizeof magic + 4 + FIXED_NUMBERS * 8 + 16, MOVING_NUMBERS = 5 };

/*
 * Unless each answer is durable, this many ids are reserved at a time, and that is synced: no id is given twice, even
 * after a power failure.
 */
#define IDS_AHEAD 10000u

static const struct store_bytes fixed_key = {"meta", 4};
static const struct store_bytes moving_key = {"now", 3};

static int read_fixed(struct meta *meta, struct store_bytes value)
{
	uint64_t *const numbers[FIXED_NUMBERS] = {&meta->epoch, &meta->burials, &meta->offset, &meta->secret};
	const char *at = value.data;

	if (value.size < sizeof magic + 4 || memcmp(at, magic, sizeof magic) != 0)
		return WW_ECORRUPT;
	if (store_read32(at + sizeof magic) != META_FORMAT)
		return WW_EVERSION;
	if (value.size != FIXED_SIZE)
		return WW_ECORRUPT;
	at += sizeof magic + 4;
	for (int i = 0; i < FIXED_NUMBERS; i++, at += 8)
		*numbers[i] = store_read64(at);
	memcpy(meta->boot_id, at, sizeof meta->boot_id);
	return WW_OK;
}

static int read_moving(struct meta *meta, struct store_bytes value)
{
	uint64_t *const numbers[MOVING_NUMBERS] = {
	    &meta->id_bound, &meta->accepted, &meta->ended, &meta->elapsed, &meta->wall};

	if (value.size != MOVING_NUMBERS * 8)
		return WW_ECORRUPT;
	for (int i = 0; i < MOVING_NUMBERS; i++)
		*numbers[i] = store_read64((const char *)value.data + 8 * i);
	/* The last puts before the end may be lost, but not the ids that they were given. */
	meta->next_id = meta->id_bound;
	return WW_OK;
}

int ww_jobs_meta_take(struct meta *meta, struct store_bytes key, struct store_bytes value)
{
	return store_compare(key, fixed_key) == 0 ? read_fixed(meta, value) : read_moving(meta, value);
}

int ww_jobs_meta_read(struct jobs_local *jobs, int *is_new)
{
	const struct store_ops *ops = jobs->store.ops;
	struct meta *meta = &jobs->meta;
	struct store_bytes value;
	int error = ops->get(jobs->store.self, STORE_META, fixed_key, &value);

	*is_new = error == WW_ENOTFOUND;
	if (*is_new) {
		/* Without the epoch tokens would begin anew. */
		error = ops->get(jobs->store.self, STORE_META, moving_key, &value);
		if (error != WW_ENOTFOUND)
			return error ? error : WW_ECORRUPT;
		meta->next_id = meta->id_bound = 1;
		meta->secret = random_next(&jobs->random);
		return WW_OK;
	}
	if (!error)
		error = read_fixed(meta, value);
	if (error == WW_EVERSION)
		return ww_store_files_refuse(&jobs->config, error,
		    "the store has format %u, and this weekwheel knows %d; use the one that wrote it",
		    (unsigned)store_read32((const char *)value.data + sizeof magic), META_FORMAT);
	if (error)
		return error;
	error = ops->get(jobs->store.self, STORE_META, moving_key, &value);
	return error == WW_ENOTFOUND ? WW_ECORRUPT : error ? error : read_moving(meta, value);
}

uint64_t ww_jobs_meta_new_id(struct jobs_local *jobs)
{
	const struct store *store = &jobs->store;
	uint64_t id = jobs->meta.next_id;

	if (store->ops->id)
		id = store->ops->id(store->self, id);
	/* One that the store gives may be less than those before. */
	if (id >= jobs->meta.next_id)
		jobs->meta.next_id = id + 1;
	return id;
}

static int write_fixed(struct jobs_local *jobs)
{
	const struct meta *meta = &jobs->meta;
	const struct meta *before = &jobs->meta_before;
	const uint64_t numbers[FIXED_NUMBERS] = {meta->epoch, meta->burials, meta->offset, meta->secret};
	unsigned char value[FIXED_SIZE];
	unsigned char *at = value + sizeof magic + 4;

	/* The first write after the opening has another epoch, thus it writes all. */
	if (meta->epoch == before->epoch && meta->burials == before->burials)
		return WW_OK;
	memcpy(value, magic, sizeof magic);
	store_write32(value + sizeof magic, META_FORMAT);
	for (int i = 0; i < FIXED_NUMBERS; i++, at += 8)
		store_write64(at, numbers[i]);
	memcpy(at, meta->boot_id, sizeof meta->boot_id);
	return jobs->store.ops->put(jobs->store.self, STORE_META, fixed_key, (struct store_bytes){value, sizeof value});
}

int ww_jobs_meta_write(struct jobs_local *jobs)
{
	struct meta *meta = &jobs->meta;
	unsigned char value[MOVING_NUMBERS * 8];
	int error = write_fixed(jobs);

	if (error)
		return error;
	ww_jobs_clock_save(jobs);
	if (jobs->config.sync == WW_SYNC_ALWAYS || jobs->ending)
		meta->id_bound = meta->next_id;
	else if (meta->id_bound <= meta->next_id) {
		meta->id_bound = meta->next_id + IDS_AHEAD;
		jobs->must_sync = 1;
	}
	const uint64_t numbers[MOVING_NUMBERS] = {
	    meta->id_bound, meta->accepted, meta->ended, meta->elapsed, meta->wall};
	for (int i = 0; i < MOVING_NUMBERS; i++)
		store_write64(value + 8 * i, numbers[i]);
	return jobs->store.ops->put(
	    jobs->store.self, STORE_META, moving_key, (struct store_bytes){value, sizeof value});
}
