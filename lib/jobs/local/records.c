/* Reads and writes jobs in the store: records, and the indices that lead to them. */
#include "lib/jobs/local/records.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/port.h"
#include "lib/jobs/local/record.h"
#include "lib/jobs/local/soonest.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

/* ---- Where things lie */

/* The place of a job: a table and its key there, which ends with the id. */
struct place {
	enum store_table table;
	unsigned char key[STORE_KEY_MAX];
	size_t size;
};

static struct store_bytes id_key(unsigned char key[8], uint64_t id)
{
	store_write64(key, id);
	return (struct store_bytes){key, 8};
}

static struct store_bytes key_of(const struct place *place)
{
	return (struct store_bytes){place->key, place->size};
}

static struct place due_place(int wall, uint64_t due, uint64_t id)
{
	struct place place = {.table = wall ? STORE_WALL : STORE_DUE, .size = 16};

	store_write64(place.key, due);
	store_write64(place.key + 8, id);
	return place;
}

/* Jobs that have ended lie behind the buried ones of all tubes, in the order in which they are forgotten. */
static struct place place_of(uint64_t id, const struct job_record *record)
{
	struct place place = {.table = STORE_BURIED, .size = 20};

	if (job_record_waits(record))
		return due_place((record->flags & WW_JOB_WALL) != 0, record->due, id);
	store_write32(place.key, record->ended ? ALL_TUBES : (uint32_t)record->tube);
	store_write64(place.key + 4, record->ended ? record->ended : record->buried);
	store_write64(place.key + 12, id);
	return place;
}

static int is_same_place(const struct place *one, const struct place *other)
{
	return one->table == other->table && store_compare(key_of(one), key_of(other)) == 0;
}

static int read_place(uint64_t id, struct store_bytes value, struct place *place)
{
	const unsigned char *bytes = value.data;

	if (value.size != 9 && value.size != 13)
		return WW_ECORRUPT;
	*place = (struct place){.table = (enum store_table)bytes[0], .size = value.size - 1 + 8};
	if (place->table != (value.size == 13 ? STORE_BURIED : STORE_DUE) && place->table != STORE_WALL)
		return WW_ECORRUPT;
	memcpy(place->key, bytes + 1, value.size - 1);
	store_write64(place->key + value.size - 1, id);
	return WW_OK;
}

static int find_place(struct jobs_local *jobs, uint64_t id, struct place *place)
{
	const struct entry *entry = ww_jobs_find(jobs, id);
	struct store_bytes value;
	unsigned char key[8];

	if (entry) {
		*place = due_place(entry->is.wall, entry->is.due, id);
		return WW_OK;
	}
	int error = jobs->store.ops->get(jobs->store.self, STORE_JOBS, id_key(key, id), &value);
	return error ? error : read_place(id, value, place);
}

static int put_place(const struct store *store, uint64_t id, const struct place *place)
{
	unsigned char key[8];
	unsigned char value[1 + STORE_KEY_MAX];

	value[0] = (unsigned char)place->table;
	memcpy(value + 1, place->key, place->size - 8);
	return store->ops->put(
	    store->self, STORE_JOBS, id_key(key, id), (struct store_bytes){value, 1 + place->size - 8});
}

/* ---- Jobs */

int ww_jobs_read_pair(
    enum store_table table, struct store_bytes key, struct store_bytes value, uint64_t *id, struct job_record *record)
{
	uint64_t due;

	if (key.size != (table == STORE_BURIED ? 20 : 16))
		return WW_ECORRUPT;
	*id = store_read64((const char *)key.data + key.size - 8);
	due = store_read64(key.data);
	return ww_job_record_read(record, *id, table == STORE_BURIED ? NULL : &due, value);
}

int ww_jobs_is_place(uint64_t id, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct place place;

	return read_place(id, value, &place) == WW_OK && place.table == table &&
	       store_compare(key_of(&place), key) == 0;
}

int ww_jobs_read_any(struct jobs_local *jobs, uint64_t id, struct job_record *record)
{
	struct place place;
	struct store_bytes value;
	int error = find_place(jobs, id, &place);

	if (error)
		return error;
	error = jobs->store.ops->get(jobs->store.self, place.table, key_of(&place), &value);
	if (error)
		return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
	return ww_jobs_read_pair(place.table, key_of(&place), value, &id, record);
}

int ww_jobs_read(struct jobs_local *jobs, uint64_t id, struct job_record *record)
{
	int error = ww_jobs_read_any(jobs, id, record);

	return !error && record->ended ? WW_ENOTFOUND : error;
}

int ww_jobs_read_to_write(struct jobs_local *jobs, uint64_t id, struct job_record *record)
{
	int error = ww_jobs_writing(jobs);

	return error ? error : ww_jobs_read(jobs, id, record);
}

/* ---- Keys */

static struct store_bytes key_key(
    uint64_t secret, unsigned char key[16], uint64_t tube, struct store_bytes bytes, uint64_t id)
{
	uint64_t seed = secret ^ tube * UINT64_C(0x9e3779b97f4a7c15);

	store_write64(key, XXH3_64bits_withSeed(bytes.data, bytes.size, seed));
	store_write64(key + 8, id);
	return (struct store_bytes){key, 16};
}

/* Several keys may have one hash: the jobs' own keys decide. */
int ww_jobs_key(
    struct jobs_local *jobs, const struct tube *tube, struct store_bytes key, uint64_t *id, struct job_record *record)
{
	unsigned char bytes[16];
	struct store_bytes from = key_key(jobs->meta.secret, bytes, tube->number, key, 0);
	struct store_bytes found, value;
	int error = jobs->store.ops->seek(jobs->store.self, STORE_KEYS, from, &found, &value);

	for (; !error; error = jobs->store.ops->next(jobs->store.self, STORE_KEYS, &found, &value)) {
		if (found.size != 16)
			return WW_ECORRUPT;
		if (memcmp(found.data, bytes, 8) != 0)
			return WW_ENOTFOUND;
		*id = store_read64((const char *)found.data + 8);
		error = ww_jobs_read_any(jobs, *id, record);
		if (error)
			return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
		if (record->tube == tube->number && store_compare(record->key, key) == 0)
			return WW_OK;
	}
	return error;
}

int ww_jobs_refer(struct jobs_local *jobs, const struct ww_job_ref *ref, uint64_t *id, struct job_record *record)
{
	int error;

	*id = ref->id;
	if (!ref->id) {
		const struct tube *tube = ww_jobs_tube_find(jobs, ref->tube);
		if (!tube)
			return WW_ENOTFOUND;
		error = ww_jobs_key(jobs, tube, (struct store_bytes){ref->key, ref->key_length}, id, record);
	} else
		error = ww_jobs_read(jobs, *id, record);
	if (!error && record->ended)
		error = WW_ENOTFOUND;
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

/* A job does not wait any more where it did. */
static int count_off(struct jobs_local *jobs, uint64_t id, const struct job_record *before)
{
	struct tube *tube = ww_jobs_tube_number(jobs, before->tube);

	if (!job_record_waits(before))
		return WW_OK;
	if (tube)
		ww_jobs_soonest_remove(tube, (before->flags & WW_JOB_WALL) != 0, before->due, id);
	return ww_jobs_counts_change(jobs, id, before, -1);
}

int ww_jobs_write(struct jobs_local *jobs, uint64_t id, const struct job_record *before, struct job_record *after)
{
	const struct store_ops *ops = jobs->store.ops;
	struct place place = place_of(id, after);
	struct place was = before ? place_of(id, before) : place;
	int moves = !before || !is_same_place(&was, &place);
	unsigned char key[16];
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
		error = ops->put(jobs->store.self, STORE_KEYS,
		    key_key(jobs->meta.secret, key, after->tube, after->key, id), (struct store_bytes){"", 0});
	if (!error && before && moves)
		error = ops->remove(jobs->store.self, was.table, key_of(&was));
	if (!error && before && moves)
		error = count_off(jobs, id, before);
	if (!error && moves && job_record_waits(after))
		error = ww_jobs_counts_change(jobs, id, after, 1);
	if (!error)
		error =
		    ops->put(jobs->store.self, place.table, key_of(&place), (struct store_bytes){jobs->buffer, size});
	if (!error && moves)
		error = put_place(&jobs->store, id, &place);
	if (!error && job_record_waits(after)) {
		struct timeline *line = ww_jobs_timeline(jobs, place.table == STORE_WALL);
		if (after->due < line->first)
			line->first = after->due;
		if (!ww_jobs_is_near(line, after->due, id))
			ww_jobs_plan(line, after->due);
	}
	return ww_jobs_broken(jobs, error);
}

int ww_jobs_erase(struct jobs_local *jobs, uint64_t id, const struct job_record *before)
{
	const struct store_ops *ops = jobs->store.ops;
	struct place place = place_of(id, before);
	unsigned char key[16];
	int error = ww_jobs_writing(jobs);

	if (error)
		return ww_jobs_broken(jobs, error);
	/* Remove the key first: its bytes lie in the record. */
	if (before->key.size)
		error = ops->remove(
		    jobs->store.self, STORE_KEYS, key_key(jobs->meta.secret, key, before->tube, before->key, id));
	if (!error)
		error = ops->remove(jobs->store.self, place.table, key_of(&place));
	if (!error)
		error = count_off(jobs, id, before);
	if (!error)
		error = ops->remove(jobs->store.self, STORE_JOBS, id_key(key, id));
	return ww_jobs_broken(jobs, error);
}

/* ---- For stores outside this library (port.h) */

int ww_jobs_port_lead(const struct store *store, unsigned by, uint64_t secret, enum store_table table,
    struct store_bytes key, struct store_bytes value)
{
	struct place place = {.table = table, .size = key.size};
	struct job_record record;
	unsigned char bytes[16];
	uint64_t id;
	int error = ww_jobs_read_pair(table, key, value, &id, &record);

	if (error)
		return error;
	memcpy(place.key, key.data, key.size);
	if (by & PORT_BY_ID)
		error = put_place(store, id, &place);
	if (!error && by & PORT_BY_KEY && record.key.size)
		error = store->ops->put(store->self, STORE_KEYS, key_key(secret, bytes, record.tube, record.key, id),
		    (struct store_bytes){"", 0});
	return error;
}

int ww_jobs_port_place(
    uint64_t id, struct store_bytes value, enum store_table *table, unsigned char key[STORE_KEY_MAX], size_t *size)
{
	struct place place;
	int error = read_place(id, value, &place);

	if (error)
		return error;
	*table = place.table;
	memcpy(key, place.key, place.size);
	*size = place.size;
	return WW_OK;
}

struct image ww_jobs_image(struct jobs_local *jobs, const struct job_record *record)
{
	struct image image = {0};

	image.tube = ww_jobs_tube_number(jobs, record->tube);
	image.due = record->due;
	image.expires = record->expires;
	image.priority = (uint32_t)record->priority;
	image.code = (uint32_t)record->code;
	image.wall = (record->flags & WW_JOB_WALL) != 0;
	if (record->ended)
		image.state = WW_JOB_ENDED;
	else if (record->buried)
		image.state = WW_JOB_BURIED;
	else
		image.state =
		    record->due <= ww_jobs_time(ww_jobs_timeline(jobs, image.wall)) ? WW_JOB_READY : WW_JOB_DELAYED;
	return image;
}

uint64_t ww_jobs_fence(const struct jobs_local *jobs, const struct job_record *record, const struct entry *entry)
{
	return jobs->store.ops->revoke && entry && entry->is.token ? entry->is.token : record->fence;
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
	error = ww_jobs_group_get(image.tube, record->group, &image.group);
	return error ? ww_jobs_broken(jobs, error) : ww_jobs_place(jobs, id, &image);
}
