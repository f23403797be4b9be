/* Pushers from outside: open, close, wake, statistics; and their memory, time and lists. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/thread.h"
#include "lib/callback/callback_internal.h"
#include "weekwheel/clock.h"

/* ---- Memory, time, lists */

void *ww_callback_allocate(const struct ww_callback *callback, size_t size)
{
	return callback->allocator->allocate(callback->allocator->user, size);
}

void ww_callback_free(const struct ww_callback *callback, void *block, size_t size)
{
	if (block)
		callback->allocator->free(callback->allocator->user, block, size);
}

uint64_t ww_callback_time(void)
{
	uint64_t now = 0;

	(void)ww_clock_now(ww_clock_elapsed(), &now);
	return now;
}

void ww_callback_add(struct delivery *delivery, enum callback_state state)
{
	struct list *list = &delivery->callback->lists[state];

	delivery->state = state;
	delivery->next = NULL;
	delivery->before = list->last;
	*(list->last ? &list->last->next : &list->first) = delivery;
	list->last = delivery;
	list->count++;
}

void ww_callback_remove(struct delivery *delivery)
{
	struct list *list = &delivery->callback->lists[delivery->state];

	*(delivery->before ? &delivery->before->next : &list->first) = delivery->next;
	*(delivery->next ? &delivery->next->before : &list->last) = delivery->before;
	list->count--;
}

void ww_callback_say(const struct ww_callback *callback, const char *format, ...)
{
	char sentence[512];
	va_list arguments;

	if (!callback->config.report)
		return;
	va_start(arguments, format);
	(void)vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	callback->config.report(sentence, callback->config.context);
}

/* ---- Open and close */

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static CURLcode global_code;

/* Never undone: who else uses libcurl in this process is not known. */
static void init_global(void)
{
	global_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void release_memory(struct ww_callback *callback)
{
	const struct ww_allocator *allocator = callback->allocator;

	if (callback->multi)
		(void)curl_multi_cleanup(callback->multi);
	ww_callback_free(callback, callback->hosts, callback->host_buckets * sizeof *callback->hosts);
	ww_callback_free(callback, callback->rests, callback->config.tube_count * sizeof *callback->rests);
	ww_callback_config_free(callback);
	ww_callback_free_spares(callback);
	allocator->free(allocator->user, callback, sizeof *callback);
}

static int make_hosts(struct ww_callback *callback)
{
	const size_t wanted = callback->config.in_flight + callback->config.waiting;
	size_t size;

	callback->host_buckets = 16;
	while (callback->host_buckets < wanted)
		callback->host_buckets *= 2;
	size = callback->host_buckets * sizeof *callback->hosts;
	callback->hosts = ww_callback_allocate(callback, size);
	if (!callback->hosts)
		return WW_ENOMEM;
	memset(callback->hosts, 0, size);
	return WW_OK;
}

static int make_rests(struct ww_callback *callback)
{
	const size_t size = callback->config.tube_count * sizeof *callback->rests;

	callback->rests = ww_callback_allocate(callback, size);
	if (!callback->rests)
		return WW_ENOMEM;
	memset(callback->rests, 0, size);
	return WW_OK;
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
	/*
	 * As many connections are kept as there may be requests; by itself libcurl keeps fewer than with small bursts
	 * are needed.
	 */
	return curl_multi_setopt(callback->multi, CURLMOPT_MAXCONNECTS, (long)most) ? WW_ESYSTEM : WW_OK;
}

static int make(struct ww_callback *callback, const struct ww_callback_config *config)
{
	int error = ww_callback_config_copy(callback, config);

	if (!error)
		error = make_hosts(callback);
	if (!error)
		error = make_rests(callback);
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
	made = allocator->allocate(allocator->user, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	memset(made, 0, sizeof *made);
	made->allocator = allocator;
	made->process = getpid();
	made->random = ww_callback_time() | 1;
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
	if (callback->process != getpid())
		return WW_ECLOSED;
	if (!atomic_exchange(&callback->woken, 1))
		(void)curl_multi_wakeup(callback->multi);
	return WW_OK;
}

int ww_callback_close(struct ww_callback *callback, uint64_t grace_ns)
{
	uint64_t now = ww_callback_time();
	size_t untold;

	if (!callback)
		return WW_OK;
	if (callback->process != getpid())
		return WW_ECLOSED;
	if (pthread_equal(callback->thread, pthread_self()))
		return WW_EBUSY;
	callback->grace_ends = grace_ns > UINT64_MAX - now ? UINT64_MAX : now + grace_ns;
	callback->closing = 1;
	(void)curl_multi_wakeup(callback->multi);
	thread_join(callback->thread);
	untold = callback->untold_at_end;
	release_memory(callback);
	return (int)untold;
}

int ww_callback_stats(const struct ww_callback *callback, struct ww_callback_stats *stats)
{
	const struct counters *counters;

	if (!callback || !stats)
		return WW_EINVAL;
	if (callback->process != getpid())
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
	    .stale = counters->stale,
	    .lost = counters->lost,
	    .store_errors = counters->store_errors,
	    .in_flight = callback->lists[CALLBACK_UNDER_WAY].count,
	    .waiting = callback->lists[CALLBACK_WAITING].count,
	    .untold = callback->lists[CALLBACK_UNTOLD].count,
	};
	return WW_OK;
}
