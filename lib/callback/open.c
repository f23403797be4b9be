/* A pusher from outside: open, wake, close, statistics. */
#include <pthread.h>

#include "lib/base/random.h"
#include "lib/base/thread.h"
#include "lib/callback/callback_internal.h"

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static CURLcode global_code;

/* Never undone: somebody else in this process may use libcurl. */
static void init_global(void)
{
	global_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void release_memory(struct ww_callback *callback)
{
	const struct ww_allocator *allocator = callback->allocator;

	if (callback->multi)
		(void)curl_multi_cleanup(callback->multi);
	ww_callback_socket_free_all(callback);
	ww_callback_host_free_all(callback);
	memory_give(allocator, callback->hosts, callback->host_buckets * sizeof *callback->hosts);
	memory_give(allocator, callback->places, callback->host_buckets * sizeof *callback->places);
	memory_give(allocator, callback->tubes, callback->config.tube_count * sizeof *callback->tubes);
	ww_callback_config_free(callback);
	ww_callback_free_spares(callback);
	memory_give(allocator, callback, sizeof *callback);
}

static int make_tables(struct ww_callback *callback)
{
	const struct ww_callback_config *config = &callback->config;

	callback->host_buckets = 16;
	while (callback->host_buckets < config->in_flight + config->waiting)
		callback->host_buckets *= 2;
	callback->hosts = memory_take_zeroed(callback->allocator, callback->host_buckets * sizeof *callback->hosts);
	callback->places = memory_take_zeroed(callback->allocator, callback->host_buckets * sizeof *callback->places);
	callback->tubes = memory_take_zeroed(callback->allocator, config->tube_count * sizeof *callback->tubes);
	return callback->hosts && callback->places && callback->tubes ? WW_OK : WW_ENOMEM;
}

static int make_multi(struct ww_callback *callback)
{
	const size_t most = callback->config.in_flight;

	(void)pthread_once(&global_once, init_global);
	if (global_code)
		return WW_ESYSTEM;
	callback->multi = curl_multi_init();
	if (!callback->multi)
		return WW_ENOMEM;
	/* Keep as many connections as there may be requests. libcurl's default is too few for small bursts. */
	return curl_multi_setopt(callback->multi, CURLMOPT_MAXCONNECTS, (long)most) ? WW_ESYSTEM : WW_OK;
}

static int make(struct ww_callback *callback, const struct ww_callback_config *config)
{
	int error = ww_callback_config_copy(callback, config);

	if (!error)
		error = make_tables(callback);
	if (!error)
		error = make_multi(callback);
	if (!error && thread_start(&callback->thread, ww_callback_run, callback))
		error = WW_ESYSTEM;
	return error;
}

int ww_callback_open(struct ww_callback **callback, const struct ww_callback_config *config)
{
	const struct ww_allocator *allocator;
	struct ww_callback *made;
	int error;

	if (!callback || !config || !config->jobs)
		return WW_EINVAL;
	allocator = config->allocator ? config->allocator : ww_allocator_default();
	made = memory_take_zeroed(allocator, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	made->allocator = allocator;
	made->forks = ww_fork_watch();
	made->random = time_now(CLOCK_BOOTTIME);
	made->seed = random_next(&made->random);
	error = make(made, config);
	if (error) {
		release_memory(made);
		return error;
	}
	*callback = made;
	return WW_OK;
}

int ww_callback_wake(struct ww_callback *callback)
{
	if (!callback)
		return WW_EINVAL;
	if (callback->forks != ww_fork_count())
		return WW_ECLOSED;
	if (!atomic_exchange(&callback->woken, 1))
		(void)curl_multi_wakeup(callback->multi);
	return WW_OK;
}

int ww_callback_close(struct ww_callback *callback, uint64_t grace_ns)
{
	size_t untold;

	if (!callback)
		return WW_OK;
	if (callback->forks != ww_fork_count())
		return WW_ECLOSED;
	if (pthread_equal(callback->thread, pthread_self()))
		return WW_EBUSY;
	callback->grace_ends = time_add(time_now(CLOCK_BOOTTIME), grace_ns);
	callback->closing = 1;
	(void)curl_multi_wakeup(callback->multi);
	thread_join(callback->thread);
	untold = callback->unreported_at_end;
	release_memory(callback);
	return (int)untold;
}

int ww_callback_stats(const struct ww_callback *callback, struct ww_callback_stats *stats)
{
	const struct counters *counters;

	if (!callback || !stats)
		return WW_EINVAL;
	if (callback->forks != ww_fork_count())
		return WW_ECLOSED;
	counters = &callback->counters;
	*stats = (struct ww_callback_stats){
	    .reserved = counters->reserved,
	    .requests = counters->requests,
	    .redirects = counters->redirects,
	    .connections = counters->connections,
	    .finished = counters->finished,
	    .retried = counters->retried,
	    .buried = counters->buried,
	    .given_back = counters->given_back,
	    .refused = counters->refused,
	    .timed_out = counters->timed_out,
	    .over = counters->over,
	    .rests = counters->rests,
	    .rested = counters->rested,
	    .crowded = counters->crowded,
	    .stale = counters->stale,
	    .lost = counters->lost,
	    .store_errors = counters->store_errors,
	    .in_flight = callback->lists[CALLBACK_UNDER_WAY].count,
	    .waiting = callback->lists[CALLBACK_WAITING].count,
	    .resting = callback->resting,
	    .untold = callback->lists[CALLBACK_UNREPORTED].count,
	};
	return WW_OK;
}
