/* Syncs what LMDB has written to stable storage: at once, or in a thread at intervals. */
#include <errno.h>
#include <string.h>

#include "lib/base/time.h"
#include "lib/jobs/store/lmdb.h"

int ww_store_lmdb_sync(struct lmdb *lmdb)
{
	return ww_store_lmdb_error(mdb_env_sync(lmdb->env, 1));
}

static void *sync_often(void *argument)
{
	struct lmdb *lmdb = argument;
	uint64_t until = time_now(CLOCK_MONOTONIC);

	pthread_mutex_lock(&lmdb->mutex);
	while (!lmdb->ended) {
		until = time_add(until, lmdb->sync_ns);
		while (!lmdb->ended && time_wait(&lmdb->wake, &lmdb->mutex, until) != ETIMEDOUT)
			continue;
		if (!lmdb->dirty)
			continue;
		lmdb->dirty = 0;
		pthread_mutex_unlock(&lmdb->mutex);
		pthread_mutex_lock(&lmdb->exchange);
		int error = lmdb->dead ? WW_EIO : ww_store_lmdb_sync(lmdb);
		pthread_mutex_unlock(&lmdb->exchange);
		pthread_mutex_lock(&lmdb->mutex);
		lmdb->sync_error = error;
		lmdb->dirty |= error != WW_OK;
	}
	pthread_mutex_unlock(&lmdb->mutex);
	return NULL;
}

int ww_store_lmdb_sync_start(struct lmdb *lmdb, uint64_t sync_ns)
{
	pthread_mutex_init(&lmdb->mutex, NULL);
	(void)time_cond_init(&lmdb->wake);
	lmdb->sync_ns = sync_ns;
	if (pthread_create(&lmdb->thread, NULL, sync_often, lmdb)) {
		lmdb->sync_ns = 0;
		return WW_ESYSTEM;
	}
	return WW_OK;
}

void ww_store_lmdb_sync_end(struct lmdb *lmdb)
{
	if (!lmdb->sync_ns)
		return;
	pthread_mutex_lock(&lmdb->mutex);
	lmdb->ended = 1;
	pthread_cond_signal(&lmdb->wake);
	pthread_mutex_unlock(&lmdb->mutex);
	pthread_join(lmdb->thread, NULL);
	pthread_cond_destroy(&lmdb->wake);
	pthread_mutex_destroy(&lmdb->mutex);
}
