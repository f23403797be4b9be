/* Opening and closing a link, and what it says. */
#include "lib/redis/link/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/redis/link/link_internal.h"

#define MINUTE UINT64_C(60000000000)

void ww_redis_link_config_default(struct redis_link_config *config)
{
	*config = (struct redis_link_config){.timeout = UINT64_C(5000000000),
	    .backoff_max = UINT64_C(2000000000),
	    .connections = 16,
	    .reply_max = (size_t)256 << 20,
	    .allocator = ww_allocator_default()};
}

uint64_t ww_redis_link_now(struct redis_link *link)
{
	return link->config.now ? link->config.now(link->config.context) : redis_now();
}

void *ww_redis_link_take(struct redis_link *link, size_t size)
{
	return link->allocator->allocate(link->allocator->user, size);
}

void ww_redis_link_give(struct redis_link *link, void *block, size_t size)
{
	if (block)
		link->allocator->free(link->allocator->user, block, size);
}

/* ---- What a person should know */

void ww_redis_link_say(struct redis_link *link, const char *format, ...)
{
	char sentence[REDIS_SENTENCE_MAX];
	va_list values;

	if (!link->config.report)
		return;
	va_start(values, format);
	(void)vsnprintf(sentence, sizeof sentence, format, values);
	va_end(values);
	link->config.report(sentence, link->config.context);
}

void ww_redis_link_complain(struct redis_link *link, const char *format, ...)
{
	char sentence[REDIS_SENTENCE_MAX];
	uint64_t now = ww_redis_link_now(link);
	va_list values;
	int is_new;

	if (!link->config.report)
		return;
	va_start(values, format);
	(void)vsnprintf(sentence, sizeof sentence, format, values);
	va_end(values);
	pthread_mutex_lock(&link->lock);
	is_new = strcmp(sentence, link->complaint) != 0 || now - link->complained > MINUTE;
	if (is_new) {
		memcpy(link->complaint, sentence, sizeof sentence);
		link->complained = now;
	}
	pthread_mutex_unlock(&link->lock);
	if (is_new)
		link->config.report(sentence, link->config.context);
}

int ww_redis_link_unexpected(struct redis_link *link, const struct redis_call *call, const char *wanted)
{
	ww_redis_link_complain(link, "Redis answers %s with something else than %s.",
	    call->script     ? call->script->name
	    : call->argc > 0 ? call->argv[0]
	                     : "a call",
	    wanted);
	return WW_ECORRUPT;
}

/* ---- Life */

static int add_seeds(struct redis_link *link)
{
	for (size_t i = 0; i < link->url.count; i++) {
		const struct redis_address *host = &link->url.hosts[i];
		if (!ww_redis_node_find_locked(link, host->host, strlen(host->host), host->port))
			return WW_ENOMEM;
	}
	return WW_OK;
}

static int make_locks(struct redis_link *link)
{
	pthread_condattr_t attributes;
	int error;

	if (pthread_mutex_init(&link->lock, NULL))
		return WW_ESYSTEM;
	if (pthread_condattr_init(&attributes)) {
		pthread_mutex_destroy(&link->lock);
		return WW_ESYSTEM;
	}
	error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	error = error ? error : pthread_cond_init(&link->freed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (error)
		pthread_mutex_destroy(&link->lock);
	return error ? WW_ESYSTEM : WW_OK;
}

static int check(const struct redis_link_config *config)
{
	if (!config->allocator || config->timeout == 0 || config->connections == 0 || config->reply_max < 1024)
		return WW_EINVAL;
	return config->timeout > UINT64_MAX / 4 || config->backoff_max > UINT64_MAX / 4 ? WW_EINVAL : WW_OK;
}

int ww_redis_link_open(struct redis_link **link, const struct redis_link_config *config)
{
	struct redis_link *made;
	const char *why;
	int error = check(config);

	if (error)
		return error;
	made = config->allocator->allocate(config->allocator->user, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	memset(made, 0, sizeof *made);
	made->allocator = config->allocator;
	made->config = *config;
	made->config.url = NULL;
	made->random = redis_now() ^ (uint64_t)(uintptr_t)made;
	error = ww_redis_url_parse(&made->url, config->url, &why);
	if (error)
		ww_redis_link_say(made, "%s", why);
	error = error ? error : make_locks(made);
	if (error) {
		ww_redis_link_give(made, made, sizeof *made);
		return error;
	}
	error = add_seeds(made);
	if (!error)
		error = ww_redis_cluster_discover(made, redis_now() + made->config.timeout);
	if (error)
		ww_redis_link_close(made);
	else
		*link = made;
	return error;
}

void ww_redis_link_close(struct redis_link *link)
{
	if (!link)
		return;
	ww_redis_node_close_all(link);
	ww_redis_link_give(link, link->slots, REDIS_SLOTS * sizeof *link->slots);
	pthread_cond_destroy(&link->freed);
	pthread_mutex_destroy(&link->lock);
	ww_redis_link_give(link, link, sizeof *link);
}

void ww_redis_link_stats(struct redis_link *link, struct redis_link_stats *stats)
{
	pthread_mutex_lock(&link->lock);
	*stats = link->stats;
	stats->is_cluster = link->slots != NULL;
	stats->nodes = 0;
	for (uint32_t i = 0; i < link->count; i++)
		stats->nodes += link->nodes[i]->has_slots != 0;
	pthread_mutex_unlock(&link->lock);
}

uint32_t ww_redis_link_nodes(struct redis_link *link)
{
	struct redis_link_stats stats;

	ww_redis_link_stats(link, &stats);
	return stats.nodes;
}

void ww_redis_link_free(struct redis_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ww_redis_reply_free(calls[i].reply);
		calls[i].reply = NULL;
	}
}
