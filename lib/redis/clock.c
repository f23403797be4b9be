/* Redis's time, as far as this process knows it. */
#include "lib/redis/redis_internal.h"

uint64_t ww_redis_clock_now(const struct redis_store *store)
{
	if (store->config.now)
		return store->config.now(store->config.context);
	return (uint64_t)((int64_t)time_now(CLOCK_BOOTTIME) + atomic_load(&store->offset));
}

void ww_redis_clock_learn(struct redis_store *store, uint64_t redis_us, uint64_t began)
{
	uint64_t now = time_now(CLOCK_BOOTTIME);

	/* An answer that took long says little. */
	if (now - began < 100 * WW_MILLISECOND || atomic_load(&store->offset) == 0)
		atomic_store(&store->offset, (int64_t)(redis_us * 1000) - (int64_t)now);
}
