/* The maps of all databases, their driver and time, and what keeps them. */
#include "tools/weekwheel-sessiond/data/data.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/weekwheel-sessiond/data/data_internal.h"

/* Read both clocks this often; the closest pair counts. */
enum { READINGS = 16 };
/* A smaller difference between the clocks, in ms, is no step: elapsed time is slewed, too. */
enum { NO_STEP = 10 };
/* Steady time does not begin earlier, in 2001: a clock that says so is wrong, and times before the machine's start need room. */
#define EARLIEST (INT64_C(1000000000) * 1000)

/* ---- Maps */

static _Thread_local struct data_evicted *evicted;

/* Journaled as soon as the key's stripe is free. */
static void evicted_note(struct data *data, unsigned database, const void *key, size_t length)
{
	struct data_evicted *note;

	if (!data->keep)
		return;
	note = malloc(sizeof *note + length);
	/* If it is not noted, the key may come back after a restart. */
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

/*
 * Enough that threads seldom meet. With a memory bound, each shard has an equal part and needs room for large values.
 */
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
		config.limit = share / DATA_ENTRY_BYTES + 1;
		config.flags |= from->policy == DATA_ALLKEYS_LRU ? WW_SESSION_ADMIT : 0;
	}
	error = ww_session_create(&session, data->driver, &config);
	if (error == WW_OK && from->has_lifetimes)
		error = ww_session_recall(session, from->stays_ended);
	if (error == WW_OK)
		map->session = session;
	return error;
}

int data_select(struct data *data, unsigned database)
{
	int error = WW_OK;

	pthread_mutex_lock(&data->lock);
	if (!data->map[database].session)
		error = make_map(data, &data->map[database]);
	pthread_mutex_unlock(&data->lock);
	return error;
}

struct ww_session *data_map(const struct data *data, unsigned database)
{
	return data->map[database].session;
}

unsigned data_databases(const struct data *data)
{
	return data->config.databases;
}

/* Whole ms of wall time are ticks of the driver: a deadline is no tick later than it must be, and none too early. */
static int64_t floor_ms(int64_t ns)
{
	return ns / (int64_t)WW_MILLISECOND - (ns % (int64_t)WW_MILLISECOND < 0);
}

/*
 * How far the wall clock is ahead of this one, in ms. The thread may be interrupted between two readings, so the
 * closest pair counts.
 */
static int find_offset(struct ww_clock *clock, int64_t *offset)
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
			*offset = floor_ms((int64_t)(wall - before));
		}
	}
	return error;
}

static int start_time(struct data *data)
{
	struct ww_driver_config config;
	int64_t offset = 0;
	int error = WW_OK;

	(void)ww_driver_config_default(&config);
	if (data->config.is_virtual)
		error = ww_clock_virtual_create(&data->clock, WW_SECOND, NULL);
	config.clock = data->clock ? data->clock : ww_clock_elapsed();
	config.workers = 1;
	if (error == WW_OK)
		error = find_offset(config.clock, &offset);
	if (error == WW_OK)
		error = ww_driver_create(&data->driver, &config);
	if (error != WW_OK)
		return error;
	data->wall = offset;
	data->steady = offset;
	if (data_steady_ms(data) < EARLIEST)
		data->steady += EARLIEST - data_steady_ms(data);
	return WW_OK;
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

void data_close(struct data *data)
{
	if (!data)
		return;
	(void)ww_driver_stop(data->driver, NULL, NULL, NULL);
	/* Do not report what is cleared now. */
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

/* The offset of the wall clock. It stays until that clock is stepped, so that a time is read as it was set. */
static int64_t wall_offset(struct data *data)
{
	int64_t offset = data->wall;
	uint64_t wall = 0;
	int64_t step;

	if (data->clock || ww_clock_now(ww_clock_wall(), &wall) != WW_OK)
		return offset;
	step = (int64_t)(wall / WW_MILLISECOND) - (int64_t)(data_now(data) / WW_MILLISECOND) - offset;
	if (step > -NO_STEP && step < NO_STEP)
		return offset;
	if (find_offset(ww_clock_elapsed(), &offset) == WW_OK)
		data->wall = offset;
	return offset;
}

static int64_t to_ms(uint64_t ns, int64_t offset)
{
	return (int64_t)(ns / WW_MILLISECOND) + offset;
}

static uint64_t from_ms(int64_t ms, int64_t offset)
{
	int64_t at;

	if (__builtin_sub_overflow(ms, offset, &at))
		return ms > 0 ? DATA_LAST : 1;
	if (at <= 0)
		return 1;
	return (uint64_t)at > DATA_LAST / WW_MILLISECOND ? DATA_LAST : (uint64_t)at * WW_MILLISECOND;
}

int64_t data_to_wall_ms(struct data *data, uint64_t ns)
{
	return to_ms(ns, wall_offset(data));
}

uint64_t data_from_wall_ms(struct data *data, int64_t ms)
{
	return from_ms(ms, wall_offset(data));
}

int64_t data_wall_ms(struct data *data)
{
	return data_to_wall_ms(data, data_now(data));
}

int64_t data_to_steady_ms(const struct data *data, uint64_t ns)
{
	return to_ms(ns, data->steady);
}

uint64_t data_from_steady_ms(const struct data *data, int64_t ms)
{
	return from_ms(ms, data->steady);
}

int64_t data_steady_ms(const struct data *data)
{
	return data_to_steady_ms(data, data_now(data));
}

int64_t data_steady_to_wall_ms(struct data *data, int64_t ms)
{
	return ms - data->steady + wall_offset(data);
}

int64_t data_steady_offset(const struct data *data)
{
	return data->steady;
}

void data_set_steady_offset(struct data *data, int64_t ms)
{
	data->steady = ms;
}

int data_is_virtual(const struct data *data)
{
	return data->clock != NULL;
}

int64_t data_gone_ms(const struct data *data)
{
	uint64_t deadline = DATA_FOREVER;

	(void)ww_session_gone_deadline(&deadline);
	return deadline >= DATA_FOREVER ? INT64_MAX : data_to_steady_ms(data, deadline);
}

int data_advance(struct data *data, uint64_t ns)
{
	int error = data->clock ? ww_clock_virtual_advance(data->clock, ns) : WW_EINVAL;

	return error == WW_OK ? ww_driver_settle(data->driver) : error;
}

/* The driver calls gone in the tick after the deadline. From the deadline on, neither reads nor walks see the entry. */
void data_settle_expired(struct data *data, uint64_t since)
{
	const struct timespec tick = {0, WW_MILLISECOND};

	while (!data->clock && data_now(data) < since + WW_MILLISECOND)
		(void)nanosleep(&tick, NULL);
	(void)ww_driver_settle(data->driver);
}

int data_has_lifetimes(const struct data *data)
{
	return data->config.has_lifetimes;
}

uint64_t data_lifetime_end(const struct data *data)
{
	uint64_t lifetime = data->config.lifetime;
	uint64_t now;

	if (!lifetime)
		return DATA_NEVER;
	now = data_now(data);
	return lifetime < DATA_LAST - now ? now + lifetime : DATA_LAST;
}

/* ---- Keeping */

const char *data_refuses(const struct data *data, int deletes)
{
	return data->keep ? data->keep->refuses(data->keep->context, deletes) : NULL;
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
