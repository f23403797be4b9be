/*
 * Hosts, places, and whether a request may start.
 *
 * A *host* is a name and a port: what a breaker watches. A *place* is an address, whatever its ports and names: what
 * config.per_host limits, by its key (lib/base/address.h). The place of a
 * host is its name, until a connection tells the address (socket.c); from then on it is that address.
 *
 * The limit of a place shrinks with the room that is left: all of config.per_host while half of the room is free, and
 * then in proportion to it. Many places that hang thus leave room, and one that answers goes on.
 *
 * The breaker of a host:
 *
 *     closed --- config.rest_after requests in a row without an answer ---> resting
 *       ^                                                                      |  the pause is over: one request
 *       +--- an answer --- probing <-------------------------------------------+
 *                             +--- none: the pause doubles ------------------> resting
 *
 * Jobs of a resting host, and those of a silent one for which there is no place to wait, are *put off*: returned to the
 * store with a delay, and without an attempt. Each gets a turn behind the one before, so that they come back one by one,
 * at a pace that costs little, however many they are.
 *
 * A host is remembered when its last delivery has gone, up to KEPT of them.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/address.h"
#include "lib/base/random.h"
#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

enum { KEPT = 4096 };

/* Between two jobs that are put off: of all resting hosts together, of a host that is silent, and of all that are
 * new together. */
#define STEP_RESTING (5 * WW_MILLISECOND)
#define STEP_SILENT (20 * WW_MILLISECOND)
#define STEP_NEW WW_MILLISECOND
/* After an answer, and at first, a host is not silent for so long. */
#define SILENCE WW_SECOND
#define PUT_OFF_MIN (100 * WW_MILLISECOND)
#define PUT_OFF_MAX (600 * WW_SECOND)

/* What a request may not start in excess of. */
struct site {
	struct site *next;
	size_t users; /* hosts, and requests under way */
	size_t under_way;
	size_t size;
	char key[];
};

struct host {
	struct host *next;
	struct host *newer; /* in the list of those without deliveries */
	struct host *older;
	struct site *place;
	size_t deliveries;
	unsigned failures; /* in a row */
	int is_resting;
	int is_probed;
	uint64_t rests_from;
	uint64_t probe_at;
	uint64_t pause;
	uint64_t put_off; /* jobs since it rests */
	uint64_t turn;    /* when the next job that is put off comes back */
	int has_answered;
	uint64_t answered; /* at last, or when it was made */
	unsigned port;
	size_t size;
	char name[];
};

/* ---- The two tables */

static size_t bucket_of(const struct ww_callback *callback, const char *data, size_t size, unsigned port)
{
	uint64_t hash = callback->seed ^ port;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
	return (hash ^ hash >> 32) & (callback->host_buckets - 1);
}

static struct site *place_take(struct ww_callback *callback, const char *key, size_t size)
{
	struct site **bucket = &callback->places[bucket_of(callback, key, size, 0)];
	struct site *place = *bucket;

	while (place && (place->size != size || memcmp(place->key, key, size) != 0))
		place = place->next;
	if (!place) {
		place = memory_take(callback->allocator, sizeof *place + size);
		if (!place)
			return NULL;
		*place = (struct site){.next = *bucket, .size = size};
		memcpy(place->key, key, size);
		*bucket = place;
	}
	place->users++;
	return place;
}

static void place_leave(struct ww_callback *callback, struct site *place)
{
	struct site **at;

	if (!place || --place->users)
		return;
	at = &callback->places[bucket_of(callback, place->key, place->size, 0)];
	while (*at != place)
		at = &(*at)->next;
	*at = place->next;
	memory_give(callback->allocator, place, sizeof *place + place->size);
}

static struct host **host_bucket(const struct ww_callback *callback, const char *name, size_t size, unsigned port)
{
	return &callback->hosts[bucket_of(callback, name, size, port)];
}

static void host_free(struct ww_callback *callback, struct host *host)
{
	struct host **at = host_bucket(callback, host->name, host->size, host->port);

	while (*at != host)
		at = &(*at)->next;
	*at = host->next;
	callback->resting -= host->is_resting != 0;
	callback->unanswered -= !host->has_answered;
	place_leave(callback, host->place);
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

/* No name has a byte 0, and every key has one. */
static struct site *place_of(struct ww_callback *callback, const struct sockaddr *address)
{
	struct address_key key = address_key(address);

	return place_take(callback, (const char *)key.bytes, sizeof key.bytes);
}

/* Read an address. Returns 0 if it is a name. */
static int read_address(const char *text, struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof *address);
	address->ss_family = AF_INET;
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		return 1;
	address->ss_family = AF_INET6;
	return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1;
}

/* The place of a name that has not been called yet. */
static struct site *first_place(struct ww_callback *callback, const char *name)
{
	struct sockaddr_storage address;

	if (read_address(name, &address))
		return place_of(callback, (struct sockaddr *)&address);
	return place_take(callback, name, strlen(name));
}

static struct host *host_make(struct ww_callback *callback, const char *name, size_t size, unsigned port)
{
	struct host **bucket = host_bucket(callback, name, size, port);
	struct host *host = memory_take_zeroed(callback->allocator, sizeof *host + size);

	if (!host)
		return NULL;
	host->place = first_place(callback, name);
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

/* ---- Whether a request may start */

static size_t limit_now(const struct ww_callback *callback)
{
	const size_t per_host = callback->config.per_host;
	const size_t all = callback->config.in_flight;
	const size_t room = ww_callback_room_to_start(callback);
	size_t limit;

	if (room >= all / 2 || per_host >= all)
		return per_host;
	limit = per_host * room / (all / 2);
	return limit ? limit : 1;
}

static int may_probe(const struct ww_callback *callback, const struct host *host, uint64_t now)
{
	const size_t most = callback->config.in_flight / 8;

	return !host->is_probed && now >= host->probe_at && callback->probes < (most ? most : 1);
}

int ww_callback_host_rests(const struct delivery *delivery, uint64_t now)
{
	return delivery->host->is_resting && !may_probe(delivery->callback, delivery->host, now);
}

int ww_callback_host_may(const struct delivery *delivery, uint64_t now)
{
	return !ww_callback_host_rests(delivery, now) &&
	       delivery->host->place->under_way < limit_now(delivery->callback);
}

void ww_callback_host_start(struct delivery *delivery)
{
	struct host *host = delivery->host;

	delivery->place = host->place;
	delivery->place->users++;
	delivery->place->under_way++;
	delivery->is_probe = host->is_resting;
	host->is_probed |= delivery->is_probe;
	delivery->callback->probes += (size_t)delivery->is_probe;
}

void ww_callback_host_stop(struct delivery *delivery)
{
	struct ww_callback *callback = delivery->callback;

	delivery->place->under_way--;
	place_leave(callback, delivery->place);
	delivery->place = NULL;
	if (delivery->is_probe) {
		delivery->host->is_probed = 0;
		callback->probes--;
	}
	delivery->is_probe = 0;
}

/* The request goes to that place: count it there. */
static void go_to(struct delivery *delivery, struct site *place)
{
	struct ww_callback *callback = delivery->callback;

	delivery->place->under_way--;
	place_leave(callback, delivery->place);
	delivery->place = place;
	place->users++;
	place->under_way++;
}

static void settle_at(struct ww_callback *callback, struct host *host, struct site *place)
{
	place_leave(callback, host->place);
	host->place = place;
}

int ww_callback_host_found(struct delivery *delivery, const struct sockaddr *address, int must_be_free)
{
	struct ww_callback *callback = delivery->callback;
	struct site *place = place_of(callback, address);
	int has_room;

	if (!place)
		return 0;
	has_room = place == delivery->place || !must_be_free || place->under_way < callback->config.per_host;
	if (has_room && place != delivery->place)
		go_to(delivery, place);
	settle_at(callback, delivery->host, place);
	return has_room;
}

void ww_callback_host_found_text(struct delivery *delivery, const char *text)
{
	struct sockaddr_storage address;

	if (read_address(text, &address))
		(void)ww_callback_host_found(delivery, (struct sockaddr *)&address, 0);
}

/* ---- The breaker */

static void rest(struct ww_callback *callback, struct host *host, const char *why, uint64_t now)
{
	const struct ww_callback_config *config = &callback->config;
	const int begins = !host->is_resting;

	host->pause = begins ? config->rest : host->pause > config->rest_max / 2 ? config->rest_max : host->pause * 2;
	if (host->pause > config->rest_max)
		host->pause = config->rest_max;
	host->probe_at = now + host->pause - random_below(&callback->random, host->pause / 4 + 1);
	if (!begins)
		return;
	host->is_resting = 1;
	host->rests_from = now;
	host->put_off = 0;
	callback->resting++;
	callback->counters.rests++;
	ww_callback_say(callback,
	    "The host %.*s, port %u, rests after %u requests in a row without an answer, and is tried now and then: %s",
	    (int)host->size, host->name, host->port, host->failures, why);
}

void ww_callback_host_failed(struct delivery *delivery, const char *why, int was_probe, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	struct host *host = delivery->host;

	host->failures++;
	if (host->is_resting ? was_probe : callback->config.rest_after && host->failures >= callback->config.rest_after)
		rest(callback, host, why, now);
}

void ww_callback_host_answered(struct delivery *delivery, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	struct host *host = delivery->host;

	/* Turns were given at the pace of a silent host. */
	host->turn = 0;
	callback->unanswered -= !host->has_answered;
	host->has_answered = 1;
	host->answered = now;
	host->failures = 0;
	if (!host->is_resting)
		return;
	host->is_resting = 0;
	callback->resting--;
	ww_callback_say(callback,
	    "The host %.*s, port %u, answers again after %.1f s; jobs were put off %" PRIu64 " times", (int)host->size,
	    host->name, host->port, (double)(now - host->rests_from) / WW_SECOND, host->put_off);
}

/* ---- Putting off */

int ww_callback_host_is_silent(const struct delivery *delivery, uint64_t now)
{
	const struct host *host = delivery->host;

	return !host->has_answered || host->failures || now - host->answered > SILENCE;
}

static uint64_t step_of(const struct ww_callback *callback, const struct host *host, uint64_t now)
{
	if (host->is_resting)
		return STEP_RESTING * callback->resting;
	if (host->failures || now - host->answered > SILENCE || callback->unanswered > STEP_SILENT / STEP_NEW)
		return STEP_SILENT;
	return STEP_NEW * (callback->unanswered ? callback->unanswered : 1);
}

uint64_t ww_callback_host_turn(struct delivery *delivery, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	struct host *host = delivery->host;
	uint64_t turn = now + PUT_OFF_MIN;

	if (host->is_resting) {
		uint64_t probe = host->is_probed ? now + host->pause : host->probe_at;
		turn = turn > probe ? turn : probe;
		host->put_off++;
		callback->counters.rested++;
	} else {
		callback->counters.crowded++;
	}
	turn = turn > host->turn ? turn : host->turn;
	if (turn - now > PUT_OFF_MAX)
		return PUT_OFF_MAX - random_below(&callback->random, PUT_OFF_MAX / 4);
	host->turn = turn + step_of(callback, host, now);
	return turn - now;
}
