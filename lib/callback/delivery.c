/* A delivery, from its lease to its result. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/callback/callback_internal.h"

/* Jobs of a lesser priority are urgent, as in the statistics of a tube. */
enum { URGENT = 1024 };

static void add(struct delivery *delivery, enum callback_state state)
{
	struct delivery_list *list = &delivery->callback->lists[state];

	delivery->state = state;
	delivery->next = NULL;
	delivery->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = delivery;
	list->last = delivery;
	list->count++;
}

static void leave(struct delivery *delivery)
{
	struct delivery_list *list = &delivery->callback->lists[delivery->state];

	*(delivery->prev ? &delivery->prev->next : &list->first) = delivery->next;
	*(delivery->next ? &delivery->next->prev : &list->last) = delivery->prev;
	list->count--;
}

void ww_callback_move(struct delivery *delivery, enum callback_state state)
{
	leave(delivery);
	add(delivery, state);
}

void ww_callback_result(
    struct delivery *delivery, enum callback_outcome outcome, uint64_t delay, const char *format, ...)
{
	va_list arguments;

	delivery->outcome = outcome;
	delivery->callback->given_back += outcome == CALLBACK_GIVE_BACK;
	delivery->delay = delay;
	delivery->error[0] = '\0';
	if (format) {
		va_start(arguments, format);
		(void)vsnprintf(delivery->error, sizeof delivery->error, format, arguments);
		va_end(arguments);
	}
	/* A receiver's words must not look like several lines in a list or a log. */
	for (char *at = delivery->error; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			*at = (unsigned char)*at <= ' ' ? ' ' : '?';
	ww_callback_move(delivery, CALLBACK_UNREPORTED);
}

/* ---- The way of a delivery */

int ww_callback_direct(struct delivery *delivery, struct text_span url, const struct callback_url *parts)
{
	struct ww_callback *callback = delivery->callback;
	char *block = memory_take(callback->allocator, url.size + 1);
	struct host *host;

	if (!block)
		return WW_ENOMEM;
	host = ww_callback_host_take(callback, parts);
	if (!host) {
		memory_give(callback->allocator, block, url.size + 1);
		return WW_ENOMEM;
	}
	memcpy(block, url.data, url.size);
	block[url.size] = '\0';
	if (delivery->host) {
		delivery->is_elsewhere |= host != delivery->host;
		ww_callback_host_leave(callback, delivery->host);
	}
	memory_give(callback->allocator, delivery->url, delivery->url_size);
	delivery->url = block;
	delivery->url_size = url.size + 1;
	delivery->host = host;
	return WW_OK;
}

/*
 * Give the job back for a while, as its host takes no more now. A redirected one has been sent already, and would be
 * sent again to the first host each time: it has failed.
 */
static void put_off(struct delivery *delivery, uint64_t now)
{
	if (delivery->redirects)
		ww_callback_result(
		    delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "the host that it was redirected to takes no more now");
	else
		ww_callback_result(delivery, CALLBACK_GIVE_BACK, ww_callback_breaker_turn(delivery, now), NULL);
}

static int is_urgent(const struct delivery *delivery)
{
	return delivery->lease.priority < URGENT;
}

void ww_callback_try(struct delivery *delivery, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	const int is_beyond = callback->lists[CALLBACK_WAITING].count > callback->config.waiting;
	const int may = ww_callback_host_may(delivery, now);

	if (may && ww_callback_room_of(callback, delivery->tube, is_urgent(delivery)))
		ww_callback_send(delivery, now);
	else if (ww_callback_breaker_rests(delivery, now) ||
	         (is_beyond && !may && ww_callback_breaker_is_silent(delivery, now)))
		put_off(delivery, now);
	else if (is_beyond && !delivery->redirects) {
		callback->left = 1;
		callback->returned++;
		ww_callback_result(delivery, CALLBACK_GIVE_BACK, 0, NULL);
	}
}

void ww_callback_accept(struct delivery *delivery, uint64_t now)
{
	const struct ww_callback_config *config = &delivery->callback->config;
	struct ww_callback_request request;
	struct ww_callback_problem problem;
	struct callback_url parts;
	struct text_span url;

	add(delivery, CALLBACK_WAITING);
	if (ww_callback_parse(delivery->lease.body, delivery->lease.body_length, &request, &problem)) {
		ww_callback_result(delivery, CALLBACK_BURY, 0,
		    "no request, as \"weekwheel put --url\" composes it: line %zu: %s", problem.line, problem.reason);
		return;
	}
	if (request.body_length > config->body_max) {
		ww_callback_result(delivery, CALLBACK_BURY, 0, "the body has %zu bytes, and %zu are allowed",
		    request.body_length, config->body_max);
		return;
	}
	url = (struct text_span){request.url, request.url_length};
	(void)ww_callback_text_url(url, &parts);
	if (!(config->schemes & (parts.scheme.size == 5 ? WW_CALLBACK_HTTPS : WW_CALLBACK_HTTP))) {
		ww_callback_result(delivery, CALLBACK_BURY, 0,
		    "%.*s:// may not be called: the pusher has the other scheme alone (weekwheeld --push-schemes)",
		    (int)parts.scheme.size, url.data);
		return;
	}
	if (ww_callback_direct(delivery, url, &parts))
		ww_callback_result(delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "there was no memory for the request");
	else
		ww_callback_try(delivery, now);
}

static void spare(struct delivery *delivery, struct ww_callback *callback)
{
	delivery->next = callback->spare;
	callback->spare = delivery;
	callback->spares++;
}

void ww_callback_forget(struct delivery *delivery)
{
	struct ww_callback *callback = delivery->callback;

	callback->given_back -= delivery->state == CALLBACK_UNREPORTED && delivery->outcome == CALLBACK_GIVE_BACK;
	leave(delivery);
	if (delivery->host)
		ww_callback_host_leave(callback, delivery->host);
	memory_give(callback->allocator, delivery->url, delivery->url_size);
	ww_jobs_free(callback->config.jobs, delivery->lease.body);
	spare(delivery, callback);
}

size_t ww_callback_prepare(struct ww_callback *callback, size_t wanted)
{
	while (callback->spares < wanted) {
		struct delivery *delivery = memory_take(callback->allocator, sizeof *delivery);
		if (!delivery)
			return callback->spares;
		spare(delivery, callback);
	}
	return wanted;
}

struct delivery *ww_callback_fresh(struct ww_callback *callback)
{
	struct delivery *delivery = callback->spare;

	callback->spare = delivery->next;
	callback->spares--;
	memset(delivery, 0, sizeof *delivery);
	delivery->callback = callback;
	return delivery;
}

void ww_callback_free_spares(struct ww_callback *callback)
{
	while (callback->spare) {
		struct delivery *delivery = callback->spare;
		callback->spare = delivery->next;
		memory_give(callback->allocator, delivery, sizeof *delivery);
	}
}
