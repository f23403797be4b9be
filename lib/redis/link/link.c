/* Opening and closing a link, its reports and statistics. */
#include "lib/redis/link/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/redis/link/link_internal.h"

#define MINUTE UINT64_C(60000000000)

uint64_t ww_redis_link_now(struct redis_link *link)
{
	return link->config.now ? link->config.now(link->config.context) : time_now(CLOCK_MONOTONIC);
}

/* ---- Reports */

void ww_redis_link_log(struct redis_link *link, const char *format, ...)
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

void ww_redis_link_report(
    struct redis_link *link, const struct redis_node *node, const char *command, const struct redisReply *reply)
{
	char text[200];

	ww_redis_error_copy(text, sizeof text, reply);
	ww_redis_link_complain(link, "Redis at %s answers %s: %s", node->place, command, text);
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
	if (pthread_mutex_init(&link->lock, NULL))
		return WW_ESYSTEM;
	if (!time_cond_init(&link->freed))
		return WW_OK;
	pthread_mutex_destroy(&link->lock);
	return WW_ESYSTEM;
}

static int check(const struct redis_link_config *config)
{
	if (!config->allocator || config->timeout == 0 || config->connections == 0 || config->reply_max < 1024)
		return WW_EINVAL;
	return config->timeout > UINT64_MAX / 4 || config->backoff_max > UINT64_MAX / 4 ? WW_EINVAL : WW_OK;
}

static int read_url(struct redis_url *parts, const char *url, const char **why)
{
	int error = ww_redis_url_parse(parts, url, why);

	if (error || !parts->master[0])
		return error;
	*why =
	    "Jobs are kept in a Redis that the url names itself: give the master's address instead of its Sentinels'.";
	return WW_EINVAL;
}

int ww_redis_link_check_url(const char *url, const char **why)
{
	struct redis_url parts;

	return read_url(&parts, url, why);
}

static int begin_tls(struct redis_link *link)
{
	char why[700];
	int error = ww_redis_tls_make(&link->tls, &link->url, why, sizeof why);

	if (error == WW_EINVAL)
		ww_redis_link_log(link, "rediss://: %s.", why);
	return error;
}

int ww_redis_link_open(struct redis_link **link, const struct redis_link_config *config)
{
	struct redis_link *made;
	const char *why;
	int error = check(config);

	if (error)
		return error;
	made = memory_take_zeroed(config->allocator, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	made->allocator = config->allocator;
	made->config = *config;
	made->config.url = NULL;
	made->random = time_now(CLOCK_MONOTONIC) ^ (uint64_t)(uintptr_t)made;
	made->config.user = made->config.password = NULL;
	why = "The user or the password is too long.";
	error = read_url(&made->url, config->url, &why);
	error = error ? error : ww_redis_url_login(&made->url, config->user, config->password);
	if (error)
		ww_redis_link_log(made, "%s", why);
	error = error ? error : make_locks(made);
	if (error) {
		memory_give(made->allocator, made, sizeof *made);
		return error;
	}
	error = add_seeds(made);
	if (!error && made->url.is_tls)
		error = begin_tls(made);
	if (!error)
		error = ww_redis_cluster_discover(made, time_now(CLOCK_MONOTONIC) + made->config.timeout);
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
	ww_redis_tls_free(link->tls);
	memory_give(link->allocator, link->slots, REDIS_SLOTS * sizeof *link->slots);
	pthread_cond_destroy(&link->freed);
	pthread_mutex_destroy(&link->lock);
	memory_give(link->allocator, link, sizeof *link);
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

void ww_redis_link_free(struct redis_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ww_redis_reply_free(calls[i].reply);
		calls[i].reply = NULL;
	}
}
