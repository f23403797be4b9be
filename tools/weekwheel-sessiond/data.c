/* The maps of all databases, their driver and time; reading and changing entries. */
#include "tools/weekwheel-sessiond/data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "tools/weekwheel-sessiond/data_internal.h"

/* An entry without a deadline has this one, later than all others. */
#define FOREVER WW_DRIVER_TIME_MAX
/* The bytes that an entry takes in addition to key and value, for the bound of memory. */
enum { ENTRY_BYTES = 128, READINGS = 16 };

/* ---- Maps */

static _Thread_local struct data_evicted *evicted;

/* The journal hears of it when the stripe of its key can be had. */
static void evicted_note(struct data *data, unsigned database, const void *key, size_t length)
{
	struct data_evicted *note;

	if (!data->keep)
		return;
	note = malloc(sizeof *note + length);
	/* Without the note, the key may be back after a restart. */
	if (!note)
		return;
	note->next = evicted;
	note->database = database;
	note->length = length;
	memcpy(note->key, key, length);
	evicted = note;
}

struct data_evicted *data_evicted_take(void)
{
	struct data_evicted *all = evicted;

	evicted = NULL;
	return all;
}

static void gone(struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	struct data_map *map = user;
	struct data *data = map->data;
	unsigned database = (unsigned)(map - data->map);

	(void)session;
	if (why == WW_GONE_EVICTED)
		evicted_note(data, database, key, length);
	if (data->config.gone && (why == WW_GONE_EXPIRED || why == WW_GONE_EVICTED))
		data->config.gone(data->config.context, database, key, length, value, why);
	free(value);
}

/* Enough that threads seldom meet. With a bound each has an equal part of it, and must have room for large values. */
static uint32_t shards_of(const struct data_config *config)
{
	uint64_t share = config->memory / config->databases / SHARD_BYTES;

	return config->memory && share < SHARDS ? (uint32_t)share + 1 : SHARDS;
}

static int make_map(struct data *data, struct data_map *map)
{
	const struct data_config *from = &data->config;
	struct ww_session_config config;
	struct ww_session *session;
	uint64_t share = from->memory / from->databases;
	int error;

	(void)ww_session_config_default(&config);
	config.gone = gone;
	config.user = map;
	config.shards = data->shards;
	config.lifetime = from->lifetime;
	config.flags = from->has_lifetimes ? WW_SESSION_LIFETIMES : 0;
	if (from->memory) {
		config.weight_limit = share ? share : 1;
		config.limit = share / ENTRY_BYTES + 1;
		config.flags |= from->policy == DATA_ALLKEYS_LRU ? WW_SESSION_ADMIT : 0;
	}
	error = ww_session_create(&session, data->driver, &config);
	if (error == WW_OK)
		map->session = session;
	return error;
}

struct ww_session *data_map(struct data *data, unsigned database)
{
	struct data_map *map = &data->map[database];
	struct ww_session *session = map->session;

	if (session)
		return session;
	pthread_mutex_lock(&data->lock);
	if (!map->session)
		(void)make_map(data, map);
	session = map->session;
	pthread_mutex_unlock(&data->lock);
	return session;
}

unsigned data_databases(const struct data *data)
{
	return data->config.databases;
}

/* What the wall clock is ahead of this one. A thread may have to wait between two readings: the closest of some count. */
static int find_offset(struct ww_clock *clock, uint64_t *offset)
{
	uint64_t closest = UINT64_MAX;
	int error = WW_OK;

	for (int i = 0; i < READINGS && error == WW_OK; i++) {
		uint64_t before = 0;
		uint64_t wall = 0;
		uint64_t after = 0;

		error = ww_clock_now(clock, &before);
		if (error == WW_OK)
			error = ww_clock_now(ww_clock_wall(), &wall);
		if (error == WW_OK)
			error = ww_clock_now(clock, &after);
		if (error == WW_OK && after - before < closest) {
			closest = after - before;
			*offset = wall - before;
		}
	}
	return error;
}

static int start_time(struct data *data)
{
	struct ww_driver_config config;
	int error = WW_OK;

	(void)ww_driver_config_default(&config);
	if (data->config.is_virtual)
		error = ww_clock_virtual_create(&data->clock, WW_SECOND, NULL);
	config.clock = data->clock ? data->clock : ww_clock_elapsed();
	config.workers = 1;
	if (error == WW_OK)
		error = find_offset(config.clock, &data->offset);
	if (error == WW_OK)
		error = ww_driver_create(&data->driver, &config);
	/* Whole ms of wall time are ticks of the driver: a deadline is no tick later than it must be, and none too early. */
	data->offset -= data->offset % WW_MILLISECOND;
	return error;
}

int data_open(struct data **made, const struct data_config *config)
{
	struct data *data = aligned_alloc(64, (sizeof *data + 63) / 64 * 64);
	int error;

	if (!data)
		return WW_ENOMEM;
	memset(data, 0, sizeof *data);
	data->config = *config;
	data->shards = shards_of(config);
	pthread_mutex_init(&data->lock, NULL);
	for (size_t i = 0; i < DATA_STRIPES; i++)
		pthread_mutex_init(&data->stripe[i].lock, NULL);
	for (unsigned i = 0; i < DATA_DATABASES_MAX; i++)
		data->map[i].data = data;
	error = start_time(data);
	if (error == WW_OK)
		error = make_map(data, &data->map[0]);
	if (error == WW_OK)
		*made = data;
	else
		data_close(data);
	return error;
}

void data_set_keep(struct data *data, const struct data_keep *keep)
{
	data->keep = keep;
}

void data_set_loading(struct data *data, int is_loading)
{
	data->is_loading = is_loading;
}

void data_close(struct data *data)
{
	if (!data)
		return;
	(void)ww_driver_stop(data->driver, NULL, NULL, NULL);
	/* What is cleared now is told to nobody. */
	data->config.gone = NULL;
	for (unsigned i = 0; i < DATA_DATABASES_MAX; i++)
		(void)ww_session_destroy(data->map[i].session);
	(void)ww_driver_destroy(data->driver);
	(void)ww_clock_virtual_destroy(data->clock);
	for (size_t i = 0; i < DATA_STRIPES; i++)
		pthread_mutex_destroy(&data->stripe[i].lock);
	pthread_mutex_destroy(&data->lock);
	free(data);
}

/* ---- Time */

uint64_t data_now(const struct data *data)
{
	uint64_t now = 0;

	(void)ww_driver_now(data->driver, &now);
	return now;
}

int64_t data_to_wall_ms(const struct data *data, uint64_t ns)
{
	return (int64_t)((ns + data->offset) / WW_MILLISECOND);
}

int64_t data_gone_ms(const struct data *data)
{
	uint64_t deadline = FOREVER;

	(void)ww_session_gone_deadline(&deadline);
	return deadline >= FOREVER ? INT64_MAX : data_to_wall_ms(data, deadline);
}

int64_t data_wall_ms(const struct data *data)
{
	return data_to_wall_ms(data, data_now(data));
}

uint64_t data_from_wall_ms(const struct data *data, int64_t ms)
{
	if (ms <= 0 || (uint64_t)ms <= data->offset / WW_MILLISECOND)
		return 1;
	if ((uint64_t)ms > (data->offset + DATA_LAST) / WW_MILLISECOND)
		return DATA_LAST;
	return (uint64_t)ms * WW_MILLISECOND - data->offset;
}

int data_advance(struct data *data, uint64_t ns)
{
	int error = data->clock ? ww_clock_virtual_advance(data->clock, ns) : WW_EINVAL;

	return error == WW_OK ? ww_driver_settle(data->driver) : error;
}

/*
 * Whoever holds stripes calls gone for what they put out, and the driver for what expires: in the tick behind the deadline,
 * and from the deadline on neither a look nor a walk sees the entry.
 */
static void settle_expired(struct data *data, uint64_t since)
{
	const struct timespec tick = {0, WW_MILLISECOND};

	while (!data->clock && data_now(data) < since + WW_MILLISECOND)
		(void)nanosleep(&tick, NULL);
	(void)ww_driver_settle(data->driver);
}

void data_settle_gone(struct data *data)
{
	uint64_t since = data_now(data);

	data_pass(data);
	settle_expired(data, since);
}

int data_has_lifetimes(const struct data *data)
{
	return data->config.has_lifetimes;
}

uint64_t data_lifetime_end(const struct data *data)
{
	uint64_t now = data_now(data);
	uint64_t lifetime = data->config.lifetime;

	if (!lifetime)
		return DATA_NEVER;
	return lifetime < DATA_LAST - now ? now + lifetime : DATA_LAST;
}

/* ---- Reading */

struct looking {
	struct data *data;
	struct data_entry *entry;
	ww_look_fn *fn;
	void *context;
};

void data_entry_fill(struct data_entry *entry, const struct ww_session_found *found)
{
	const struct value *value = found->value;

	entry->version = found->version;
	entry->deadline = found->deadline >= FOREVER ? DATA_NEVER : found->deadline;
	entry->ttl = found->ttl >= WW_SESSION_TTL_MAX ? DATA_NEVER : found->ttl;
	entry->end =
	    found->end_left == WW_SESSION_NO_END ? DATA_NEVER : found->deadline - found->left + found->end_left;
	entry->disk = value_disk(value);
	entry->size = value->size;
}

static int look(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct looking *looking = context;

	(void)key;
	(void)length;
	if (looking->entry)
		data_entry_fill(looking->entry, found);
	if (looking->fn)
		looking->fn(found->value, looking->context);
	return 0;
}

int data_read(struct data *data, const struct data_key *key, ww_look_fn *fn, void *context)
{
	struct ww_session *session = data_map(data, key->database);

	return session ? ww_session_look(session, key->bytes, key->length, fn, context) : 0;
}

int data_inspect(struct data *data, const struct data_key *key, struct data_entry *entry, ww_look_fn *fn, void *context)
{
	struct looking looking = {data, entry, fn, context};
	struct ww_session *session = data_map(data, key->database);

	entry->version = 0;
	return session ? ww_session_inspect(session, key->bytes, key->length, look, &looking) : 0;
}

int data_is_there(struct data *data, const struct data_key *key)
{
	struct ww_session *session = data_map(data, key->database);
	uint64_t left;

	return session && ww_session_time_left(session, key->bytes, key->length, &left) == 1;
}

static void add_stats(struct data *data, unsigned database, struct ww_session_stats *all)
{
	struct ww_session_stats stats;

	if (!data->map[database].session || ww_session_stats(data->map[database].session, &stats) != WW_OK)
		return;
	all->entries += stats.entries;
	all->hits += stats.hits;
	all->misses += stats.misses;
	all->expired += stats.expired;
	all->evicted += stats.evicted;
	all->weight += stats.weight;
	all->bytes += stats.bytes;
}

uint64_t data_count(struct data *data, unsigned database)
{
	struct ww_session_stats stats = {0};

	add_stats(data, database, &stats);
	return stats.entries;
}

uint64_t data_cursor(struct data *data, unsigned database)
{
	uint64_t a_shard = data_count(data, database) / data->shards + 1;
	uint64_t random = 0;

	if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
		random = data_now(data);
	return (random % data->shards << 32 | (random >> 32) % a_shard) + 1;
}

void data_stats(struct data *data, struct ww_session_stats *stats)
{
	*stats = (struct ww_session_stats){0};
	for (unsigned i = 0; i < data->config.databases; i++)
		add_stats(data, i, stats);
}

/* ---- Changing */

static struct value *make_value(const void *bytes, size_t size)
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
		order.deadline = FOREVER;
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
		order.weight = ENTRY_BYTES + key->length + size;
		if (data->config.policy == DATA_NOEVICTION || (data->config.policy == DATA_VOLATILE_LRU && is_forever))
			order.flags |= WW_SESSION_PINNED;
		if (data->is_loading)
			order.flags |= WW_SESSION_BEYOND;
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
 * The value cannot leave the map while it is told. If it has expired already, the journal will not hear of it but from gone,
 * and must have heard before the change is answered: a server that is killed then would tell its end to nobody. What was over
 * from the beginning (`ttl` of a set) has not lived, and nobody waits for it.
 */
static void tell_keep(struct data *data, const struct data_key *key, const struct data_key *from, uint64_t ttl,
    int is_new, void (*how)(void *context, const struct data_record *record))
{
	struct telling telling = {.data = data, .key = key, .from = from, .is_new = is_new, .tell = how};

	if (ww_session_inspect(data_map(data, key->database), key->bytes, key->length, tell, &telling) == 1)
		return;
	if (ttl > DATA_TTL_OVER)
		settle_expired(data, data_now(data));
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
	struct value *value = make_value(bytes, size);
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

int data_restore(struct data *data, const struct data_record *record, const void *bytes, size_t size)
{
	struct data_key key = {record->database, record->key, record->length};
	struct data_times times = {.ttl = record->ttl, .deadline = record->deadline, .end = record->end};
	struct value *value = make_value(bytes, size);
	void *former = NULL;
	int error;

	if (!value)
		return WW_ENOMEM;
	if (record->value)
		value_set_disk(value, value_disk(record->value));
	error = set(data, &key, value, &times, &former);
	free(former);
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
	settle_expired(data, data_now(data));
	for (unsigned i = first; i <= last; i++)
		data->keep->clear(data->keep->context, i);
	return WW_OK;
}

/* ---- Keeping */

const char *data_refuses(const struct data *data)
{
	return data->keep ? data->keep->refuses(data->keep->context) : NULL;
}

void data_begin(struct data *data)
{
	if (data->keep)
		data->keep->begin(data->keep->context);
}

void data_commit(struct data *data)
{
	if (data->keep)
		data->keep->commit(data->keep->context);
}

int data_settle(struct data *data)
{
	return data->keep ? data->keep->settle(data->keep->context) : WW_OK;
}

void data_leave(struct data *data)
{
	if (data->keep)
		data->keep->leave(data->keep->context);
}

int data_save(struct data *data, int wait)
{
	return data->keep ? data->keep->save(data->keep->context, wait) : WW_ENOTFOUND;
}

int data_saving(const struct data *data, int64_t *last)
{
	return data->keep ? data->keep->saving(data->keep->context, last) : 0;
}

void data_keep_info(struct data *data, struct buffer *out)
{
	if (data->keep && data->keep->info)
		data->keep->info(data->keep->context, out);
}

void data_erase_evicted(struct data *data, const struct data_evicted *key)
{
	struct data_key sought = {key->database, key->key, key->length};

	if (!data_is_there(data, &sought))
		data->keep->erase(data->keep->context, key->database, key->key, key->length);
}
