/*
 * Places: how many requests may be under way to an address.
 *
 * A *place* is an address, whatever its ports and names: what config.per_host limits, by its key (lib/base/address.h).
 * The place of a host is its name, until a connection shows the address (socket.c); from then on it is that address.
 *
 * The limit of a place shrinks with the room that is left: all of config.per_host while half of the room is free, and
 * then in proportion to it. Many places that hang thus leave room, and one that answers goes on.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/base/address.h"
#include "lib/callback/callback_internal.h"

size_t ww_callback_place_bucket(const struct ww_callback *callback, const char *data, size_t size, unsigned port)
{
	uint64_t hash = callback->seed ^ port;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
	return (hash ^ hash >> 32) & (callback->host_buckets - 1);
}

static struct place *place_take(struct ww_callback *callback, const char *key, size_t size)
{
	struct place **bucket = &callback->places[ww_callback_place_bucket(callback, key, size, 0)];
	struct place *place = *bucket;

	while (place && (place->size != size || memcmp(place->key, key, size) != 0))
		place = place->next;
	if (!place) {
		place = memory_take(callback->allocator, sizeof *place + size);
		if (!place)
			return NULL;
		*place = (struct place){.next = *bucket, .size = size};
		memcpy(place->key, key, size);
		*bucket = place;
	}
	place->users++;
	return place;
}

void ww_callback_place_leave(struct ww_callback *callback, struct place *place)
{
	struct place **at;

	if (!place || --place->users)
		return;
	at = &callback->places[ww_callback_place_bucket(callback, place->key, place->size, 0)];
	while (*at != place)
		at = &(*at)->next;
	*at = place->next;
	memory_give(callback->allocator, place, sizeof *place + place->size);
}

/* No name has a byte 0, and every key has one. */
struct place *ww_callback_place_of(struct ww_callback *callback, const struct sockaddr *address)
{
	struct address_key key = address_key(address);

	return place_take(callback, (const char *)key.bytes, sizeof key.bytes);
}

int ww_callback_place_read(const char *text, struct sockaddr_storage *address)
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

struct place *ww_callback_place_of_name(struct ww_callback *callback, const char *name)
{
	struct sockaddr_storage address;

	if (ww_callback_place_read(name, &address))
		return ww_callback_place_of(callback, (struct sockaddr *)&address);
	return place_take(callback, name, strlen(name));
}

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

int ww_callback_place_may(const struct ww_callback *callback, const struct place *place)
{
	return place->under_way < limit_now(callback);
}

void ww_callback_place_enter(struct delivery *delivery, struct place *place)
{
	delivery->place = place;
	place->users++;
	place->under_way++;
}

void ww_callback_place_exit(struct delivery *delivery)
{
	delivery->place->under_way--;
	ww_callback_place_leave(delivery->callback, delivery->place);
	delivery->place = NULL;
}
