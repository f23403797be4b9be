/* A session map's life, the expiry of its entries, and its statistics. */

#include "lib/core/session/session_internal.h"

/* A limited map has so few shards that each holds at least this many entries: the limit is split evenly. */
#define LIMIT_A_SHARD 4096u
#define FLAGS (WW_SESSION_RENEW | WW_SESSION_LIFETIMES | WW_SESSION_ADMIT)

/* ---- Configuration */

int ww_session_config_default(struct ww_session_config *config)
{
	if (!config)
		return WW_EINVAL;
	*config = (struct ww_session_config){
	    .ttl = 7 * 24 * 3600 * WW_SECOND,
	    .jitter_max = 60 * WW_SECOND,
	};
	return WW_OK;
}

static int config_refused(const struct ww_session_config *config)
{
	if (config->ttl < 1 || config->ttl > WW_SESSION_TTL_MAX)
		return WW_EINVAL;
	if (config->jitter > 1000 || config->jitter_max > WW_SESSION_TTL_MAX || config->flags & ~FLAGS)
		return WW_EINVAL;
	if (config->weight_limit > UINT64_C(1) << 62 || (config->flags & WW_SESSION_ADMIT && !config->limit))
		return WW_EINVAL;
	if (config->shards > WW_DRIVER_SHARDS_MAX || config->share > WW_DRIVER_SHARE_MAX)
		return WW_EINVAL;
	return WW_OK;
}

static uint32_t shards_for(const struct ww_session_config *config, const struct ww_driver *driver)
{
	uint32_t shards = config->shards ? config->shards : ww_driver_shards(driver);
	uint64_t most = config->limit ? config->limit : UINT64_MAX;

	/* An entry weighs at least 1. */
	if (config->weight_limit && config->weight_limit < most)
		most = config->weight_limit;
	while (!config->shards && shards > 1 && most / shards < LIMIT_A_SHARD)
		shards /= 2;
	return shards;
}

/* ---- What the driver calls */

static struct firing *expire(void *of, struct ww_timer *timer)
{
	struct session_shard *shard = of;
	struct session_entry *entry = (struct session_entry *)(void *)timer;

	if (ww_session_take_expires(shard, timer))
		return NULL;
	ww_session_recall_expired(shard, entry, entry_met(shard, entry));
	ww_session_entry_remove(shard, entry, 0);
	*entry_gone_deadline(entry) = entry_met(shard, entry);
	shard->stats.expired++;
	if (shard->session->config.gone)
		return &entry->as.firing;
	ww_session_entry_free(shard, entry);
	return NULL;
}

/* The shard of an entry, by its key. */
static struct session_shard *shard_of_entry(struct ww_session *session, const struct session_entry *entry)
{
	uint64_t hash = ww_hash_bytes(&session->secret, entry_key(entry), entry->length);

	return &session->shard[(uint32_t)hash % session->shard_count];
}

static void run(void *owner, struct firing *firing)
{
	struct session_entry *entry = (struct session_entry *)(void *)firing;
	struct ww_session *session = owner;
	struct session_shard *shard = shard_of_entry(session, entry);
	int due = slab_returns_due(&shard->told, 0);

	ww_session_report(
	    session, entry_key(entry), entry->length, entry_value(entry), WW_GONE_EXPIRED, *entry_gone_deadline(entry));
	ww_session_entry_free_block(session, entry);
	slab_return(&shard->told, entry);
	if (!due)
		return;
	/* A lock for a batch of them. */
	ww_source_lock(shard->source);
	ww_session_entry_collect(shard, SIZE_MAX);
	ww_source_unlock(shard->source);
}

static const struct group_ops with_gone = {.expire = expire, .run = run};
static const struct group_ops without_gone = {.expire = expire};

/* ---- Making */

static void free_memory(struct ww_session *session, uint32_t shards)
{
	const struct ww_allocator *allocator = session->allocator;

	ww_pool_close(&session->pool);
	for (uint32_t i = 0; i < shards; i++) {
		ww_session_failure_free(&session->shard[i]);
		ww_session_recall_free(&session->shard[i]);
		ww_session_limit_free(&session->shard[i]);
		ww_table_destroy(&session->shard[i].table);
		ww_slab_destroy(&session->shard[i].slab);
	}
	ww_pool_end(&session->pool);
	allocator->free(allocator->user, session, sizeof *session + session->shard_count * sizeof session->shard[0]);
}

static void free_session(struct ww_session *session, uint32_t shards)
{
	for (uint32_t i = 0; i < shards; i++)
		pthread_cond_destroy(&session->shard[i].loaded);
	free_memory(session, shards);
}

/*
 * In a child of the process, locks and conditions are as they were at the fork: free the memory only, and call
 * nothing. Entries that are not taken have length 0.
 */
static void free_in_child(struct ww_session *session)
{
	ww_group_detach(session->group);
	for (uint32_t i = 0; i < session->shard_count; i++) {
		struct session_shard *shard = &session->shard[i];
		for (uint32_t n = 0; n < slab_end(&shard->slab); n++)
			ww_session_entry_free_key(shard, slab_at(&shard->slab, n));
	}
	free_memory(session, session->shard_count);
}

/* Find the places of an entry's optional parts. */
static void lay_out(struct ww_session *session)
{
	size_t size = sizeof(struct session_entry);

	if (session->config.lifetime || session->config.flags & WW_SESSION_LIFETIMES) {
		session->at_end = (uint32_t)size;
		size += sizeof(uint64_t);
	}
	if (session->shard_limit || session->shard_weight_limit) {
		session->at_use = (uint32_t)size;
		size += sizeof(struct session_use);
	}
	if (session->shard_weight_limit) {
		session->at_weight = (uint32_t)size;
		size += sizeof(uint64_t);
	}
	session->entry_size = (uint32_t)size;
}

static int fill_shard(struct ww_session *session, struct session_shard *shard)
{
	*shard = (struct session_shard){.session = session};
	ww_slab_init(&shard->slab, session->entry_size, &session->pool.table);
	shard->version = (uint64_t)(shard - session->shard);
	/* Any number but 0 can begin a sequence. Those of shards and maps should differ. */
	shard->random = ww_hash_bytes(&session->secret, &shard, sizeof shard);
	int error = ww_session_limit_init(shard);
	if (!error)
		error = ww_table_init(&shard->table, &session->pool.table);
	if (error)
		ww_session_limit_free(shard);
	else
		pthread_cond_init(&shard->loaded, NULL);
	return error;
}

static int fill_session(struct ww_session *session)
{
	uint32_t shards = session->shard_count;
	uint32_t made = 0;
	int error = WW_OK;

	if (ww_hash_secret_make(&session->secret))
		error = WW_ESYSTEM;
	while (!error && made < shards) {
		error = fill_shard(session, &session->shard[made]);
		made += !error;
	}
	if (!error)
		error =
		    ww_group_attach(&session->group, session->driver, session->config.gone ? &with_gone : &without_gone,
		        session, session->shard, sizeof session->shard[0], shards);
	if (error) {
		free_session(session, made);
		return error;
	}
	ww_group_share(session->group, session->config.share);
	for (uint32_t i = 0; i < shards; i++)
		session->shard[i].source = ww_group_source(session->group, i);
	return WW_OK;
}

int ww_session_create(struct ww_session **session, struct ww_driver *driver, const struct ww_session_config *config)
{
	struct ww_session_config fallback;
	struct ww_session *made;
	uint32_t shards;
	int error;

	if (!session || !driver)
		return WW_EINVAL;
	if (!config) {
		(void)ww_session_config_default(&fallback);
		config = &fallback;
	}
	error = config_refused(config);
	if (!error && ww_driver_tick(driver) > WW_SESSION_TICK_MAX)
		error = WW_EINVAL;
	if (!error && ww_session_is_looking())
		error = WW_EBUSY;
	if (!error)
		error = ww_driver_refuses(driver);
	if (error)
		return error;
	const struct ww_allocator *allocator = ww_driver_allocator(driver);
	shards = shards_for(config, driver);
	made = allocator->allocate(allocator->user, sizeof *made + shards * sizeof made->shard[0]);
	if (!made)
		return WW_ENOMEM;
	*made = (struct ww_session){
	    .shard_count = shards,
	    .driver = driver,
	    .allocator = allocator,
	    .config = *config,
	    .tick_ns = ww_driver_tick(driver),
	    .shard_limit = config->limit / shards + (config->limit % shards != 0),
	    .shard_weight_limit = config->weight_limit / shards + (config->weight_limit % shards != 0),
	};
	lay_out(made);
	ww_pool_init(&made->pool, allocator);
	error = fill_session(made);
	if (!error)
		*session = made;
	return error;
}

static void end_session(void *argument)
{
	struct ww_session *session = argument;

	ww_group_detach(session->group);
	for (uint32_t i = 0; i < session->shard_count; i++)
		ww_session_entry_collect(&session->shard[i], SIZE_MAX);
	free_session(session, session->shard_count);
}

int ww_session_destroy(struct ww_session *session)
{
	struct firing *next;
	int calls, in_gone;

	if (!session)
		return WW_OK;
	/* A child may be forked in gone, a loader or a look, and end there. */
	if (ww_driver_forked(session->driver)) {
		free_in_child(session);
		return WW_OK;
	}
	calls = ww_inside_of(session);
	/* In gone, for a value that has expired, and in no other call of the map. */
	in_gone = calls == 1 && ww_group_inside(session->group);
	if (in_gone && session->doomed)
		return WW_OK;
	if (ww_session_is_looking() || (calls && !in_gone) || (in_gone && session->closing))
		return WW_EBUSY;
	/* A gone that is running in a worker must not set what would not be taken out any more. */
	session->closing = 1;
	(void)ww_session_clear_all(session);
	/* Call gone here for what has expired and waits for a worker: there may be no workers any more. */
	for (struct firing *firing = ww_group_withdraw_all(session->group); firing; firing = next) {
		next = firing->prev;
		run(session, firing);
	}
	session->doomed = in_gone;
	if (in_gone) {
		ww_group_leave(session->group);
		ww_group_afterwards(session->group, end_session, session);
	} else
		end_session(session);
	return WW_OK;
}

/* ---- Looking inside */

int ww_session_stats(struct ww_session *session, struct ww_session_stats *stats)
{
	if (!session || !stats)
		return WW_EINVAL;
	if (ww_session_is_looking())
		return WW_EBUSY;
	if (ww_driver_forked(session->driver))
		return WW_ECLOSED;
	ww_driver_catch_up(session->driver);
	*stats = (struct ww_session_stats){.bytes = sizeof *session + session->shard_count * sizeof session->shard[0]};
	stats->bytes += ww_group_bytes(session->group) + ww_pool_spare(&session->pool);
	for (uint32_t i = 0; i < session->shard_count; i++) {
		struct session_shard *shard = &session->shard[i];
		ww_source_lock(shard->source);
		ww_session_entry_collect(shard, SIZE_MAX);
		stats->entries += table_count(&shard->table);
		stats->hits += shard->stats.hits;
		stats->misses += shard->stats.misses;
		stats->expired += shard->stats.expired;
		stats->evicted += shard->stats.evicted;
		stats->stale += shard->stats.stale;
		stats->loads += shard->stats.loads;
		stats->loads_failed += shard->stats.loads_failed;
		stats->loads_shared += shard->stats.loads_shared;
		stats->loads_ahead += shard->stats.loads_ahead;
		stats->loads_outdated += shard->stats.loads_outdated;
		stats->loads_late += shard->stats.loads_late;
		stats->failures_kept += shard->stats.failures_kept;
		stats->load_time += shard->stats.load_time;
		if (shard->stats.load_time_max > stats->load_time_max)
			stats->load_time_max = shard->stats.load_time_max;
		stats->bytes += ww_session_failure_bytes(shard) + ww_session_limit_bytes(shard);
		stats->not_admitted += shard->stats.not_admitted;
		stats->pinned += shard->list[LIST_PINNED].count;
		for (unsigned list = 0; list < LISTS; list++)
			stats->weight += shard->list[list].weight;
		stats->bytes += ww_table_bytes(&shard->table) + ww_slab_bytes(&shard->slab) + shard->key_bytes;
		stats->bytes += shard->recall_bytes;
		ww_source_unlock(shard->source);
	}
	return WW_OK;
}
