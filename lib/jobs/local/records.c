/* Reads and writes jobs in the store: records, and the indices that lead to them. */
#include <string.h>

#include "lib/jobs/local/local_internal.h"

static const char magic[] = "weekwheel jobs";
#define META_FORMAT 2
enum { META_NUMBERS = 9, META_SIZE = sizeof magic + 4 + META_NUMBERS * 8 + 16 };

/* ---- The record of META */

int ww_jobs_meta_read(struct jobs_local *jobs, int *is_new)
{
	struct meta *meta = &jobs->meta;
	uint64_t *const numbers[META_NUMBERS] = {&meta->next_id, &meta->accepted, &meta->ended, &meta->epoch,
	    &meta->burials, &meta->offset, &meta->elapsed, &meta->wall, &meta->id_bound};
	struct store_bytes value;
	int error = jobs->store.ops->get(jobs->store.self, STORE_META, (struct store_bytes){"meta", 4}, &value);

	*is_new = error == WW_ENOTFOUND;
	if (*is_new) {
		meta->next_id = meta->id_bound = 1;
		return WW_OK;
	}
	if (error)
		return error;
	const char *at = value.data;
	if (value.size < sizeof magic + 4 || memcmp(at, magic, sizeof magic) != 0)
		return WW_ECORRUPT;
	if (store_read32(at + sizeof magic) != META_FORMAT)
		return WW_EVERSION;
	if (value.size != META_SIZE)
		return WW_ECORRUPT;
	at += sizeof magic + 4;
	for (int i = 0; i < META_NUMBERS; i++, at += 8)
		*numbers[i] = store_read64(at);
	memcpy(meta->boot_id, at, sizeof meta->boot_id);
	/* The last puts before the end may be lost, but not the ids that they were given. */
	meta->next_id = meta->id_bound;
	return WW_OK;
}

int ww_jobs_meta_write(struct jobs_local *jobs)
{
	struct meta *meta = &jobs->meta;
	unsigned char value[META_SIZE];
	unsigned char *at = value + sizeof magic + 4;

	ww_jobs_time_save(jobs);
	if (jobs->config.sync == WW_SYNC_ALWAYS || jobs->ending)
		meta->id_bound = meta->next_id;
	else if (meta->id_bound <= meta->next_id) {
		meta->id_bound = meta->next_id + IDS_AHEAD;
		jobs->must_sync = 1;
	}
	const uint64_t numbers[META_NUMBERS] = {meta->next_id, meta->accepted, meta->ended, meta->epoch, meta->burials,
	    meta->offset, meta->elapsed, meta->wall, meta->id_bound};
	memcpy(value, magic, sizeof magic);
	store_write32(value + sizeof magic, META_FORMAT);
	for (int i = 0; i < META_NUMBERS; i++, at += 8)
		store_write64(at, numbers[i]);
	memcpy(at, meta->boot_id, sizeof meta->boot_id);
	return jobs->store.ops->put(
	    jobs->store.self, STORE_META, (struct store_bytes){"meta", 4}, (struct store_bytes){value, sizeof value});
}

/* ---- Keys of the indices */

static struct store_bytes id_key(unsigned char key[8], uint64_t id)
{
	store_write64(key, id);
	return (struct store_bytes){key, 8};
}

static struct store_bytes due_key(unsigned char key[16], uint64_t due, uint64_t id)
{
	store_write64(key, due);
	store_write64(key + 8, id);
	return (struct store_bytes){key, 16};
}

static struct store_bytes buried_key(unsigned char key[20], const struct job_record *record, uint64_t id)
{
	store_write32(key, (uint32_t)record->tube);
	store_write64(key + 4, record->buried);
	store_write64(key + 12, id);
	return (struct store_bytes){key, 20};
}

static struct store_bytes key_key(unsigned char key[STORE_KEY_MAX], uint64_t tube, struct store_bytes bytes)
{
	store_write32(key, (uint32_t)tube);
	memcpy(key + 4, bytes.data, bytes.size);
	return (struct store_bytes){key, 4 + bytes.size};
}

static enum store_table due_table(const struct job_record *record)
{
	return record->flags & WW_JOB_WALL ? STORE_WALL : STORE_DUE;
}

/* ---- Indices */

static int index_in(struct jobs_local *jobs, uint64_t id, const struct job_record *record)
{
	unsigned char key[20];
	unsigned char value[8];

	if (record->buried)
		return jobs->store.ops->put(
		    jobs->store.self, STORE_BURIED, buried_key(key, record, id), (struct store_bytes){"", 0});
	store_write32(value, (uint32_t)record->tube);
	store_write32(value + 4, (uint32_t)record->priority);
	return jobs->store.ops->put(jobs->store.self, due_table(record), due_key(key, record->due, id),
	    (struct store_bytes){value, sizeof value});
}

static int index_out(struct jobs_local *jobs, uint64_t id, const struct job_record *record)
{
	unsigned char key[20];

	if (record->buried)
		return jobs->store.ops->remove(jobs->store.self, STORE_BURIED, buried_key(key, record, id));
	return jobs->store.ops->remove(jobs->store.self, due_table(record), due_key(key, record->due, id));
}

static int is_indexed_alike(const struct job_record *one, const struct job_record *other)
{
	return one->buried == other->buried && one->due == other->due && one->priority == other->priority &&
	       due_table(one) == due_table(other);
}

/* ---- Jobs */

int ww_jobs_read(struct jobs_local *jobs, uint64_t id, struct job_record *record)
{
	unsigned char key[8];
	struct store_bytes value;
	int error = jobs->store.ops->get(jobs->store.self, STORE_JOBS, id_key(key, id), &value);

	return error ? error : ww_job_record_read(record, id, value);
}

int ww_jobs_key(struct jobs_local *jobs, const struct tube *tube, struct store_bytes key, uint64_t *id)
{
	unsigned char bytes[STORE_KEY_MAX];
	struct store_bytes value;
	int error = jobs->store.ops->get(jobs->store.self, STORE_KEYS, key_key(bytes, tube->number, key), &value);

	if (error)
		return error;
	if (value.size != 8)
		return WW_ECORRUPT;
	*id = store_read64(value.data);
	return WW_OK;
}

int ww_jobs_refer(struct jobs_local *jobs, const struct ww_job_ref *ref, uint64_t *id, struct job_record *record)
{
	int error;

	*id = ref->id;
	if (!ref->id) {
		const struct tube *tube = ww_jobs_tube_find(jobs, ref->tube);
		if (!tube)
			return WW_ENOTFOUND;
		error = ww_jobs_key(jobs, tube, (struct store_bytes){ref->key, ref->key_length}, id);
		if (error)
			return error;
	}
	error = ww_jobs_read(jobs, *id, record);
	if (error)
		return error;
	return ref->version && ref->version != record->version ? WW_ESTALE : WW_OK;
}

static int room_for(struct jobs_local *jobs, size_t size)
{
	unsigned char *more;

	if (size <= jobs->buffer_size)
		return WW_OK;
	size += size / 2;
	more = ww_jobs_allocate(jobs, size);
	if (!more)
		return WW_ENOMEM;
	ww_jobs_give(jobs, jobs->buffer, jobs->buffer_size);
	jobs->buffer = more;
	jobs->buffer_size = size;
	return WW_OK;
}

static int put_key(struct jobs_local *jobs, uint64_t id, const struct job_record *record)
{
	unsigned char key[STORE_KEY_MAX];
	unsigned char value[8];

	return jobs->store.ops->put(
	    jobs->store.self, STORE_KEYS, key_key(key, record->tube, record->key), id_key(value, id));
}

int ww_jobs_write(struct jobs_local *jobs, uint64_t id, const struct job_record *before, struct job_record *after)
{
	unsigned char key[8];
	size_t size;
	int error = ww_jobs_writing(jobs);

	if (!error)
		error = room_for(jobs, ww_job_record_size(after));
	/* Counts may have changed already, thus the batch fails. */
	if (error)
		return ww_jobs_broken(jobs, error);
	/* Copy the bytes first: they may lie where the store writes next. */
	size = ww_job_record_write(after, id, jobs->buffer);
	if (!before && after->key.size)
		error = put_key(jobs, id, after);
	if (!error && before && !is_indexed_alike(before, after))
		error = index_out(jobs, id, before);
	if (!error && (!before || !is_indexed_alike(before, after)))
		error = index_in(jobs, id, after);
	if (!error)
		error = jobs->store.ops->put(
		    jobs->store.self, STORE_JOBS, id_key(key, id), (struct store_bytes){jobs->buffer, size});
	if (!error && !after->buried) {
		struct timeline *line = ww_jobs_timeline(jobs, (after->flags & WW_JOB_WALL) != 0);
		if (!ww_jobs_is_near(line, after->due, id))
			ww_jobs_plan(line, after->due);
	}
	return ww_jobs_broken(jobs, error);
}

int ww_jobs_erase(struct jobs_local *jobs, uint64_t id, const struct job_record *before)
{
	unsigned char key[STORE_KEY_MAX];
	int error = ww_jobs_writing(jobs);

	if (error)
		return ww_jobs_broken(jobs, error);
	/* Remove the key first: its bytes lie in the record. */
	if (before->key.size)
		error = jobs->store.ops->remove(jobs->store.self, STORE_KEYS, key_key(key, before->tube, before->key));
	if (!error)
		error = index_out(jobs, id, before);
	if (!error)
		error = jobs->store.ops->remove(jobs->store.self, STORE_JOBS, id_key(key, id));
	return ww_jobs_broken(jobs, error);
}

struct image ww_jobs_image(struct jobs_local *jobs, const struct job_record *record)
{
	struct image image = {0};

	image.tube = ww_jobs_tube_number(jobs, record->tube);
	image.due = record->due;
	image.priority = (uint32_t)record->priority;
	image.wall = (record->flags & WW_JOB_WALL) != 0;
	if (record->buried)
		image.state = WW_JOB_BURIED;
	else
		image.state =
		    record->due <= ww_jobs_time(ww_jobs_timeline(jobs, image.wall)) ? WW_JOB_READY : WW_JOB_DELAYED;
	return image;
}

void ww_jobs_merge(struct job_record *record, const struct entry *entry)
{
	if (!entry)
		return;
	record->reserves += entry->is.reserves;
	record->timeouts += entry->is.timeouts;
	record->tries += entry->is.tries;
}

int ww_jobs_settle(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	int error = ww_jobs_write(jobs, id, old, record);

	if (error)
		return error;
	struct image image = ww_jobs_image(jobs, record);
	return ww_jobs_place(jobs, id, &image);
}
