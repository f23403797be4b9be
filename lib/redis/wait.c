/* Waits for a job: reserves, and once more after each message that something may be ready. */
#include "lib/redis/redis_internal.h"

static uint64_t readies(struct redis_store *store)
{
	uint64_t readies;

	pthread_mutex_lock(&store->lock);
	readies = store->readies;
	pthread_mutex_unlock(&store->lock);
	return readies;
}

/* Wait for a message, or until that time. */
static void wait_until(struct redis_store *store, uint64_t seen, uint64_t until)
{
	pthread_mutex_lock(&store->lock);
	while (store->readies == seen)
		if (time_wait(&store->heard, &store->lock, until))
			break;
	pthread_mutex_unlock(&store->lock);
}

int ww_redis_wait_reserve(struct ww_jobs *jobs, const struct ww_reserve *what, uint64_t timeout, struct ww_lease *lease)
{
	struct redis_store *store = store_of(jobs);
	uint64_t end = time_add(time_now(CLOCK_MONOTONIC), timeout);
	int result;

	for (;;) {
		uint64_t seen = readies(store);
		result = ww_redis_reserve(jobs, what, lease);
		if (result || is_alone(store))
			return result;
		if (time_now(CLOCK_MONOTONIC) >= end)
			return 0;
		wait_until(store, seen, end);
	}
}
