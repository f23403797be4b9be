/* Changes entries, and notes each change for the journal. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/data/data_internal.h"

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

/* What the map is to do, so that the entry has these times. */
static struct ww_session_order make_order(
    const struct data *data, const struct data_key *key, size_t size, const struct data_times *times)
{
	int is_forever = times->ttl == DATA_NEVER;
	struct ww_session_order order = {.ttl = times->ttl, .deadline = times->deadline, .version = times->version};

	if (is_forever)
		order.deadline = DATA_FOREVER;
	else if (times->ttl >= WW_SESSION_TTL_MAX && !times->deadline)
		order.deadline = data_now(data) + (times->ttl > DATA_LAST / 2 ? DATA_LAST / 2 : times->ttl);
	if (order.ttl >= WW_SESSION_TTL_MAX)
		order.ttl = is_forever ? WW_SESSION_TTL_MAX : WW_SESSION_TTL_MAX - WW_MICROSECOND;
	if (data->config.has_lifetimes) {
		if (times->end && times->end != DATA_NEVER)
			order.end = times->end;
		if (times->end || is_forever)
			order.lifetime = WW_SESSION_NO_END;
		else if (data->config.keeps_lifetimes)
			order.flags |= WW_SESSION_KEEP_END;
	}
	if (data->config.memory) {
		order.weight = DATA_ENTRY_BYTES + key->length + size;
		if (data->config.policy == DATA_NOEVICTION || (data->config.policy == DATA_VOLATILE_LRU && is_forever))
			order.flags |= WW_SESSION_PINNED;
	}
	return order;
}

/* What the journal gets of an entry. */
struct telling {
	struct data *data;
	const struct data_key *key;
	const struct data_key *from; /* its name before, or NULL */
	int is_new;
	void (*tell)(void *context, const struct data_record *record);
};

static int tell(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct telling *telling = context;
	const struct data_keep *keep = telling->data->keep;
	struct data_entry entry;
	struct data_record record;

	data_entry_fill(&entry, found);
	record = (struct data_record){
	    telling->key->database, key, length, found->value, entry.ttl, entry.deadline, entry.end, telling->is_new};
	if (telling->from)
		keep->rename(keep->context, &record, telling->from->bytes, telling->from->length);
	else
		telling->tell(keep->context, &record);
	return 0;
}

/*
 * The value cannot leave the map while keep notes it. If the value has already expired, only gone() journals it. Wait for
 * that before answering; otherwise a kill here loses the report. A value that was over from the beginning (`ttl` of a set)
 * has not lived, and nobody waits for a report of it.
 */
static void tell_keep(struct data *data, const struct data_key *key, const struct data_key *from, uint64_t ttl,
    int is_new, void (*how)(void *context, const struct data_record *record))
{
	struct telling telling = {.data = data, .key = key, .from = from, .is_new = is_new, .tell = how};

	if (ww_session_inspect(data_map(data, key->database), key->bytes, key->length, tell, &telling) == 1)
		return;
	if (ttl > DATA_TTL_OVER)
		data_settle_expired(data, data_now(data));
	/* Of what had expired before, the journal may not have heard yet that it is to be told. */
	if (!is_new || ttl > DATA_TTL_OVER)
		data->keep->erase(data->keep->context, key->database, key->bytes, key->length);
	if (from)
		data->keep->erase(data->keep->context, from->database, from->bytes, from->length);
}

static int put(struct data *data, const struct data_key *key, struct value *value, const struct ww_session_order *order,
    struct ww_session_found *found, void **former)
{
	struct ww_session *session = data_map(data, key->database);

	*former = NULL;
	return session ? ww_session_put(session, key->bytes, key->length, value, order, found, former) : WW_ENOMEM;
}

static int set(
    struct data *data, const struct data_key *key, struct value *value, const struct data_times *times, void **former)
{
	struct ww_session_order order = make_order(data, key, value->size, times);
	struct ww_session_found found;
	int error = put(data, key, value, &order, &found, former);

	if (error != WW_OK) {
		free(value);
		return error;
	}
	if (order.flags & WW_SESSION_KEEP_END && found.end_left == WW_SESSION_NO_END && data->config.lifetime) {
		/* What was there had no deadline, and so no lifetime to go on with. WW_ESTALE: this has expired already. */
		void *same;
		order.flags &= ~WW_SESSION_KEEP_END;
		order.version = found.version;
		(void)put(data, key, value, &order, NULL, &same);
	}
	return WW_OK;
}

int data_swap(struct data *data, const struct data_key *key, const void *bytes, size_t size,
    const struct data_times *times, struct value **former)
{
	struct value *value = data_value(bytes, size);
	void *was = NULL;
	int error;

	if (value)
		value_set_disk(value, times->disk);
	error = value ? set(data, key, value, times, &was) : WW_ENOMEM;
	if (error == WW_OK && data->keep)
		tell_keep(data, key, NULL, times->ttl, !was, data->keep->set);
	*former = was;
	return error;
}

int data_set(
    struct data *data, const struct data_key *key, const void *bytes, size_t size, const struct data_times *times)
{
	struct value *former;
	int error = data_swap(data, key, bytes, size, times, &former);

	free(former);
	return error;
}

int data_restore(struct data *data, const struct data_record *record)
{
	struct data_key key = {record->database, record->key, record->length};
	struct data_times times = {.ttl = record->ttl, .deadline = record->deadline, .end = record->end};
	struct ww_session_order order = make_order(data, &key, record->value->size, &times);
	void *former;
	int error;

	if (order.weight)
		order.flags |= WW_SESSION_BEYOND;
	error = put(data, &key, record->value, &order, NULL, &former);
	if (error != WW_OK)
		free(record->value);
	return error;
}

/* The map may only be asked for it while the entry is there: then its value stays. */
int data_touch(
    struct data *data, const struct data_key *key, const struct data_entry *entry, uint64_t ttl, uint64_t deadline)
{
	/* Nobody else sets the key, so the version says that the pointer is that of the entry. */
	uint64_t end = entry->end == DATA_NEVER && ttl != DATA_NEVER ? data_lifetime_end(data) : entry->end;
	struct data_times times = {ttl, deadline, end, entry->version, 0};
	struct ww_session_order order = make_order(data, key, entry->size, &times);
	void *value = NULL;
	void *former;
	int error;

	if (ww_session_get(data_map(data, key->database), key->bytes, key->length, &value) != 1)
		return 0;
	error = put(data, key, value, &order, NULL, &former);
	if (error != WW_OK)
		return error == WW_ESTALE ? 0 : error;
	if (data->keep)
		tell_keep(
		    data, key, NULL, DATA_NEVER, 0, end == entry->end ? data->keep->touch : data->keep->begin_lifetime);
	return 1;
}

struct value *data_take(struct data *data, const struct data_key *key)
{
	struct ww_session *session = data_map(data, key->database);
	void *value = NULL;

	if (!session || ww_session_delete(session, key->bytes, key->length, &value) != 1)
		return NULL;
	if (data->keep)
		data->keep->erase(data->keep->context, key->database, key->bytes, key->length);
	return value;
}

int data_delete(struct data *data, const struct data_key *key)
{
	struct value *value = data_take(data, key);

	free(value);
	return value != NULL;
}

int data_rename(struct data *data, const struct data_key *key, const struct data_key *to)
{
	struct ww_session_order order = {.flags = WW_SESSION_REPLACE};
	struct ww_session *session = data_map(data, key->database);
	void *former = NULL;
	int error;

	if (!session)
		return 0;
	error = ww_session_rename(session, key->bytes, key->length, to->bytes, to->length, &order, NULL, &former);
	if (error != WW_OK)
		return error == WW_ESTALE ? 0 : error;
	if (data->keep)
		tell_keep(data, to, key, DATA_NEVER, !former, NULL);
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

/* A clear of the map would also take what has expired and not been told. */
int data_clear(struct data *data, unsigned first, unsigned last)
{
	int error = WW_OK;

	for (unsigned i = first; i <= last && error == WW_OK; i++)
		if (data->map[i].session)
			error = ww_session_drain(data->map[i].session, drop, NULL, NULL);
	if (error != WW_OK || !data->keep)
		return error;
	/* A load could not tell it any more, once it has read that all are gone. */
	data_settle_expired(data, data_now(data));
	for (unsigned i = first; i <= last; i++)
		data->keep->clear(data->keep->context, i);
	return WW_OK;
}
