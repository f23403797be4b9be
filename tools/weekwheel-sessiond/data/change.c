/* Changes entries, and notes each change for the journal. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/data/data_internal.h"

/* A thread may have to wait between two steps for long, but hardly for this. */
#define SURELY_THERE (10 * WW_SECOND)

struct value *data_value(const void *bytes, size_t size)
{
	struct value *value = malloc(sizeof *value + size);

	if (!value)
		return NULL;
	value->disk[0] = value->disk[1] = 0;
	value->size = (uint32_t)size;
	if (size > 0)
		memcpy(value->bytes, bytes, size);
	return value;
}

/* The calls to the map that give the entry these times. */
static struct ww_session_order make_order(
    const struct data *data, const struct data_key *key, size_t size, const struct data_times *times)
{
	int is_forever = times->ttl == DATA_NEVER;
	struct ww_session_order order = {.ttl = times->ttl, .deadline = times->deadline, .version = times->version};

	if (is_forever)
		order.deadline = DATA_FOREVER;
	else if (!times->deadline)
		order.deadline = data_now(data) + (times->ttl > DATA_LAST / 2 ? DATA_LAST / 2 : times->ttl);
	if (order.ttl >= WW_SESSION_TTL_MAX)
		order.ttl = is_forever ? WW_SESSION_TTL_MAX : WW_SESSION_TTL_MAX - WW_MICROSECOND;
	if (data->config.has_lifetimes) {
		if (times->end && times->end != DATA_NEVER)
			order.end = times->end;
		if (times->end || is_forever)
			order.lifetime = WW_SESSION_NO_END;
		if (!times->end && data->config.keeps_lifetimes && !times->is_anew)
			order.flags |= WW_SESSION_KEEP_END;
		if (!times->end)
			order.flags |= WW_SESSION_STAY_ENDED;
	}
	if (data->config.memory) {
		order.weight = DATA_ENTRY_BYTES + key->length + size;
		if (data->config.policy == DATA_NOEVICTION || (data->config.policy == DATA_VOLATILE_LRU && is_forever))
			order.flags |= WW_SESSION_PINNED;
	}
	return order;
}

/* Ask before the map changes: a group of changes must fit into one record. */
int data_takes(const struct data *data, size_t count, size_t bytes)
{
	return !data->keep || data->keep->takes(data->keep->context, count, bytes);
}

/* What the journal gets about an entry that is in the map. */
struct reporting {
	struct data *data;
	const struct data_key *key;
	const struct data_key *from; /* its name before, or NULL */
	int is_new;
	int is_touched; /* only its times change, and not the end of its lifetime */
	int keeps_disk; /* the deadline on disk stays as it is: otherwise each crash would add to it */
};

static int note(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	const struct reporting *reporting = context;
	const struct data_keep *keep = reporting->data->keep;
	struct value *value = found->value;
	struct data_entry entry;
	struct data_record record;

	data_entry_fill(&entry, found);
	record = (struct data_record){reporting->key->database, key, length, value->bytes, value->size, entry.ttl,
	    reporting->keeps_disk ? entry.disk : entry.deadline, entry.end, reporting->is_new};
	if (reporting->is_touched && !keep->touch(keep->context, &record, entry.disk))
		return 0;
	if (reporting->from)
		keep->rename(keep->context, &record, reporting->from->bytes, reporting->from->length);
	else if (!reporting->is_touched)
		keep->set(keep->context, &record);
	value_set_disk(value, record.deadline);
	return 0;
}

/*
 * The value cannot leave the map while keep notes it. If the value has already expired, only gone() journals it. Wait for
 * that before answering; otherwise a kill here loses the report. A value that was over from the beginning (`ttl` of a set)
 * has not lived, and nobody waits for a report of it.
 */
static void note_change(struct reporting *reporting, uint64_t ttl)
{
	struct data *data = reporting->data;
	const struct data_key *key = reporting->key;
	const struct data_key *from = reporting->from;

	if (ww_session_inspect(data_map(data, key->database), key->bytes, key->length, note, reporting) == 1)
		return;
	if (ttl > DATA_TTL_OVER)
		data_settle_expired(data, data_now(data));
	/* The journal may not know yet that what expired earlier has to be reported. */
	if (!reporting->is_new || ttl > DATA_TTL_OVER)
		data->keep->erase(data->keep->context, key->database, key->bytes, key->length);
	if (from)
		data->keep->erase(data->keep->context, from->database, from->bytes, from->length);
}

/*
 * A value that stays for long, with the deadline that was asked for: gone() cannot have journaled its end yet, so the
 * record is made of what was asked for and what the map has answered. Otherwise keep looks, while the value cannot leave.
 */
static void note_set(struct reporting *reporting, const void *bytes, size_t size, uint64_t ttl, uint64_t disk,
    const struct ww_session_found *found)
{
	const struct data_keep *keep = reporting->data->keep;
	const struct data_key *key = reporting->key;
	struct data_entry entry;

	data_entry_times(&entry, found);
	if (found->left < SURELY_THERE || (!reporting->keeps_disk && entry.deadline != disk)) {
		note_change(reporting, ttl);
		return;
	}
	keep->set(keep->context, &(struct data_record){key->database, key->bytes, key->length, bytes, size, entry.ttl,
	                             disk, entry.end, reporting->is_new});
}

int data_swap(struct data *data, const struct data_key *key, const void *bytes, size_t size,
    const struct data_times *times, struct value **former)
{
	struct ww_session *session = data_map(data, key->database);
	struct ww_session_order order = make_order(data, key, size, times);
	uint64_t disk = times->disk ? times->disk : order.deadline >= DATA_FOREVER ? DATA_NEVER : order.deadline;
	struct ww_session_found found;
	struct value *value;
	void *was = NULL;
	int error;

	*former = NULL;
	if (!data_takes(data, 1, key->length + size))
		return WW_EFULL;
	value = data_value(bytes, size);
	if (!value)
		return WW_ENOMEM;
	value_set_disk(value, disk);
	error = ww_session_put(session, key->bytes, key->length, value, &order, &found, &was);
	if (error != WW_OK) {
		free(value);
		return error;
	}
	*former = was;
	if (order.flags & WW_SESSION_KEEP_END && found.end_left == WW_SESSION_NO_END && data->config.lifetime &&
	    order.lifetime != WW_SESSION_NO_END) {
		/* What was there had no deadline, and so no lifetime to go on with. WW_ESTALE: this has expired already. */
		order.flags &= ~WW_SESSION_KEEP_END;
		order.version = found.version;
		(void)ww_session_put(session, key->bytes, key->length, value, &order, &found, &was);
	}
	if (data->keep)
		note_set(&(struct reporting){data, key, .is_new = !*former, .keeps_disk = times->disk != 0}, bytes,
		    size, times->ttl, disk, &found);
	return WW_OK;
}

int data_set(
    struct data *data, const struct data_key *key, const void *bytes, size_t size, const struct data_times *times)
{
	struct value *former;
	int error = data_swap(data, key, bytes, size, times, &former);

	free(former);
	return error;
}

void data_undo(struct data *data, const struct data_key *key, struct value *former, const struct data_entry *was)
{
	struct data_times times = {.ttl = was->ttl, .deadline = was->deadline, .end = was->end};
	struct ww_session_order order;
	void *made = NULL;

	if (!former) {
		(void)data_delete(data, key);
		return;
	}
	if (was->deadline == DATA_NEVER)
		times.deadline = 0;
	order = make_order(data, key, former->size, &times);
	order.flags |= WW_SESSION_BEYOND;
	order.flags &= ~(WW_SESSION_KEEP_END | WW_SESSION_STAY_ENDED);
	value_set_disk(former, was->disk);
	if (ww_session_put(data_map(data, key->database), key->bytes, key->length, former, &order, NULL, &made) !=
	    WW_OK) {
		free(former);
		(void)data_delete(data, key);
		return;
	}
	free(made);
	if (data->keep)
		note_change(&(struct reporting){data, key, .is_new = 0, .keeps_disk = 1}, DATA_NEVER);
}

int data_is_bounded(const struct data *data)
{
	return data->config.memory != 0;
}

int data_restore(struct data *data, const struct data_record *record, struct value *value)
{
	struct data_key key = {record->database, record->key, record->length};
	struct data_times times = {.ttl = record->ttl, .deadline = record->deadline, .end = record->end};
	struct ww_session_order order = make_order(data, &key, value->size, &times);
	void *former;
	int error;

	if (order.weight)
		order.flags |= WW_SESSION_BEYOND;
	error = ww_session_put(data_map(data, key.database), key.bytes, key.length, value, &order, NULL, &former);
	if (error != WW_OK)
		free(value);
	return error;
}

/* Ask the map only while the entry is there, so that its value stays. */
int data_touch(
    struct data *data, const struct data_key *key, const struct data_entry *entry, uint64_t ttl, uint64_t deadline)
{
	/* Nobody else sets the key, so an equal version proves that the pointer is this entry's. */
	uint64_t end = entry->end == DATA_NEVER && ttl != DATA_NEVER ? data_lifetime_end(data) : entry->end;
	struct data_times times = {.ttl = ttl, .deadline = deadline, .end = end, .version = entry->version};
	struct ww_session_order order = make_order(data, key, entry->size, &times);
	struct ww_session *session = data_map(data, key->database);
	void *value = NULL;
	void *former;
	int error;

	if (!data_takes(data, 1, key->length + (end == entry->end ? 0 : entry->size)))
		return WW_EFULL;
	if (ww_session_get(session, key->bytes, key->length, &value) != 1)
		return 0;
	error = ww_session_put(session, key->bytes, key->length, value, &order, NULL, &former);
	if (error != WW_OK)
		return error == WW_ESTALE ? 0 : error;
	if (data->keep)
		note_change(&(struct reporting){data, key, .is_touched = end == entry->end}, DATA_NEVER);
	return 1;
}

struct value *data_take(struct data *data, const struct data_key *key)
{
	void *value = NULL;

	if (ww_session_delete(data_map(data, key->database), key->bytes, key->length, &value) < 0)
		return NULL;
	/*
	 * Even if it has expired: a load after a crash would give it more time. But do not erase what has to be
	 * reported first.
	 */
	if (data->keep && (value || !data->keep->is_reporting))
		data->keep->erase(data->keep->context, key->database, key->bytes, key->length);
	return value;
}

int data_delete(struct data *data, const struct data_key *key)
{
	struct value *value = data_take(data, key);

	free(value);
	return value != NULL;
}

/*
 * The renamed entry's deadline on disk may have passed, as some touches are not written. If the report for the former
 * holder of the new name were journaled after it, a load would take that report for the renamed entry's.
 */
static void settle_former(struct data *data, uint64_t disk)
{
	uint64_t now = data_now(data);

	/* Signed: times before the driver's own carry the highest bit. */
	if (disk != DATA_NEVER && (int64_t)disk <= (int64_t)(now + WW_MILLISECOND))
		data_settle_expired(data, now);
}

int data_rename(struct data *data, const struct data_key *key, const struct data_key *to)
{
	struct ww_session_order order = {.flags = WW_SESSION_REPLACE | WW_SESSION_STAY_ENDED};
	struct data_entry entry;
	void *former = NULL;
	int error;

	if (data_inspect(data, key, &entry, NULL, NULL) != 1)
		return 0;
	if (!data_takes(data, 1, key->length + to->length + entry.size))
		return WW_EFULL;
	error = ww_session_rename(
	    data_map(data, key->database), key->bytes, key->length, to->bytes, to->length, &order, NULL, &former);
	if (error != WW_OK)
		return error == WW_ESTALE ? 0 : error;
	if (data->keep && !former)
		settle_former(data, entry.disk);
	if (data->keep)
		note_change(&(struct reporting){data, to, .from = key, .is_new = !former, .keeps_disk = 1}, DATA_NEVER);
	free(former);
	return 1;
}

static int drop(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	(void)key;
	(void)length;
	(void)context;
	free(found->value);
	return 0;
}

/* Clearing the map would also drop what has expired but was not reported yet. */
int data_clear(struct data *data, unsigned first, unsigned last)
{
	int error = WW_OK;

	for (unsigned i = first; i <= last && error == WW_OK; i++)
		if (data_map(data, i))
			error = ww_session_drain(data_map(data, i), drop, NULL, NULL);
	if (error != WW_OK || !data->keep)
		return error;
	/* A load could no longer report it once it has read that all keys are gone. */
	data_settle_expired(data, data_now(data));
	for (unsigned i = first; i <= last; i++)
		data->keep->clear(data->keep->context, i);
	return WW_OK;
}
