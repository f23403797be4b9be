/*
 * Hosts: a *host* is a name and a port. Deliveries to it share its place (place.c) and its breaker (breaker.c). A host is
 * remembered when its last delivery has gone, up to KEPT of them.
 */
#include <string.h>

#include "lib/callback/callback_internal.h"

enum { KEPT = 4096 };

/* ---- The table */

static struct host **host_bucket(const struct ww_callback *callback, const char *name, size_t size, unsigned port)
{
	return &callback->hosts[ww_callback_place_bucket(callback, name, size, port)];
}

static void host_free(struct ww_callback *callback, struct host *host)
{
	struct host **at = host_bucket(callback, host->name, host->size, host->port);

	while (*at != host)
		at = &(*at)->next;
	*at = host->next;
	callback->resting -= host->is_resting != 0;
	callback->unanswered -= !host->has_answered;
	ww_callback_place_leave(callback, host->place);
	memory_give(callback->allocator, host, sizeof *host + host->size);
}

/* ---- Hosts without deliveries, the one that had one last first */

static void leave_idle(struct ww_callback *callback, struct host *host)
{
	*(host->newer ? &host->newer->older : &callback->idle_newest) = host->older;
	*(host->older ? &host->older->newer : &callback->idle_oldest) = host->newer;
	callback->idle--;
}

static void become_idle(struct ww_callback *callback, struct host *host)
{
	host->newer = NULL;
	host->older = callback->idle_newest;
	*(host->older ? &host->older->newer : &callback->idle_oldest) = host;
	callback->idle_newest = host;
	if (++callback->idle > KEPT) {
		host = callback->idle_oldest;
		leave_idle(callback, host);
		host_free(callback, host);
	}
}

/* ---- Hosts of deliveries */

static struct host *host_make(struct ww_callback *callback, const char *name, size_t size, unsigned port)
{
	struct host **bucket = host_bucket(callback, name, size, port);
	struct host *host = memory_take_zeroed(callback->allocator, sizeof *host + size);

	if (!host)
		return NULL;
	host->place = ww_callback_place_of_name(callback, name);
	if (!host->place) {
		memory_give(callback->allocator, host, sizeof *host + size);
		return NULL;
	}
	host->next = *bucket;
	host->port = port;
	host->size = size;
	host->answered = time_now(CLOCK_BOOTTIME);
	callback->unanswered++;
	memcpy(host->name, name, size);
	*bucket = host;
	return host;
}

struct host *ww_callback_host_take(struct ww_callback *callback, const struct callback_url *url)
{
	char name[WW_CALLBACK_URL_MAX + 1];
	size_t size = url->host.size;
	struct host *host;

	for (size_t i = 0; i < size; i++)
		name[i] = (char)(url->host.data[i] >= 'A' && url->host.data[i] <= 'Z' ? url->host.data[i] | 0x20
		                                                                      : url->host.data[i]);
	/* A dot at the end names the same host. */
	size -= size > 1 && name[size - 1] == '.';
	name[size] = '\0';
	host = *host_bucket(callback, name, size, url->port);
	while (host && (host->port != url->port || host->size != size || memcmp(host->name, name, size) != 0))
		host = host->next;
	if (!host)
		host = host_make(callback, name, size, url->port);
	else if (!host->deliveries)
		leave_idle(callback, host);
	if (host)
		host->deliveries++;
	return host;
}

void ww_callback_host_leave(struct ww_callback *callback, struct host *host)
{
	if (!--host->deliveries)
		become_idle(callback, host);
}

void ww_callback_host_free_all(struct ww_callback *callback)
{
	while (callback->idle_newest) {
		struct host *host = callback->idle_newest;
		leave_idle(callback, host);
		host_free(callback, host);
	}
}

/* ---- Requests */

int ww_callback_host_may(const struct delivery *delivery, uint64_t now)
{
	return !ww_callback_breaker_rests(delivery, now) &&
	       ww_callback_place_may(delivery->callback, delivery->host->place);
}

void ww_callback_host_start(struct delivery *delivery)
{
	ww_callback_place_enter(delivery, delivery->host->place);
	ww_callback_breaker_start(delivery);
}

void ww_callback_host_stop(struct delivery *delivery)
{
	ww_callback_place_exit(delivery);
	ww_callback_breaker_stop(delivery);
}

int ww_callback_host_found(struct delivery *delivery, const struct sockaddr *address, int must_be_free)
{
	struct ww_callback *callback = delivery->callback;
	struct place *place = ww_callback_place_of(callback, address);
	int has_room;

	if (!place)
		return 0;
	has_room = place == delivery->place || !must_be_free || place->under_way < callback->config.per_host;
	if (has_room && place != delivery->place) {
		ww_callback_place_exit(delivery);
		ww_callback_place_enter(delivery, place);
	}
	ww_callback_place_leave(callback, delivery->host->place);
	delivery->host->place = place;
	return has_room;
}

void ww_callback_host_found_text(struct delivery *delivery, const char *text)
{
	struct sockaddr_storage address;

	if (ww_callback_place_read(text, &address))
		(void)ww_callback_host_found(delivery, (struct sockaddr *)&address, 0);
}
