/* Items of many shards in as few calls as possible. */

#include "lib/redis/redis_internal.h"

static size_t size_of(const struct gather *gather)
{
	return (4 * gather->count + 2 * gather->store->shards) * sizeof(uint32_t);
}

int ww_redis_gather_make(struct gather *gather, struct redis_store *store, size_t count, uint32_t batch)
{
	*gather = (struct gather){.store = store, .count = count, .batch = batch};
	if (count > UINT32_MAX / 4)
		return WW_EINVAL;
	gather->call_of = memory_take_zeroed(store->allocator, size_of(gather));
	if (!gather->call_of)
		return WW_ENOMEM;
	gather->place = gather->call_of + count;
	gather->shard = gather->place + count;
	gather->items = gather->shard + count;
	gather->open = gather->items + count;
	return WW_OK;
}

void ww_redis_gather_add(struct gather *gather, size_t i, uint32_t shard, int is_free)
{
	uint32_t at = is_free ? gather->store->shards + shard : shard;
	uint32_t call = gather->open[at];

	if (!call || gather->items[call - 1] == gather->batch) {
		call = gather->open[at] = ++gather->calls;
		gather->shard[call - 1] = at;
	}
	gather->call_of[i] = call;
	gather->place[i] = gather->items[call - 1]++;
}

int ww_redis_gather_begin(struct gather *gather, size_t words)
{
	struct fan *fan = &gather->fan;
	int error = ww_redis_call_fan_make(gather->store, fan, gather->calls);

	for (size_t call = 0; call < gather->calls && !error; call++) {
		fan->words[call] = ww_redis_words_many(gather->store, 2 + words * gather->items[call]);
		error = fan->words[call] ? WW_OK : WW_ENOMEM;
	}
	return error;
}

struct words *ww_redis_gather_words(const struct gather *gather, size_t i)
{
	return gather->call_of[i] ? gather->fan.words[gather->call_of[i] - 1] : NULL;
}

int ww_redis_gather_run(struct gather *gather, const struct redis_script *script, unsigned flags)
{
	struct fan *fan = &gather->fan;

	for (size_t call = 0; call < fan->count; call++) {
		uint32_t at = gather->shard[call];
		fan->calls[call] =
		    ww_redis_call_make(gather->store, script, at % gather->store->shards, fan->words[call],
		        flags | (at < gather->store->shards ? 0 : REDIS_CALL_SOON | REDIS_CALL_ANY_SHARD));
	}
	return fan->count ? ww_redis_call_fan(gather->store, fan) : WW_OK;
}

int ww_redis_gather_reply(const struct gather *gather, size_t i, size_t size, redisReply *const **reply)
{
	const struct redis_call *call = &gather->fan.calls[gather->call_of[i] - 1];
	size_t at = size * gather->place[i];
	int error = call->error;

	if (!error)
		error = ww_redis_call_array(gather->store, call->reply, at + size);
	if (!error)
		*reply = call->reply->element + at;
	return error;
}

void ww_redis_gather_free(struct gather *gather)
{
	ww_redis_call_fan_free(gather->store, &gather->fan);
	memory_give(gather->store->allocator, gather->call_of, size_of(gather));
}
