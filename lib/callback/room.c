/*
 * The room for requests: config.in_flight, less those under way and the results that the store has not taken.
 *
 * Each tube has a quarter of the room, divided by the number of tubes, for itself. The rest is for all, but for a
 * sixteenth of the room, which only urgent jobs get.
 */
#include "lib/callback/callback_internal.h"

/* Parts of it: what tubes have for themselves, and what urgent jobs have. */
enum { PART_OF_TUBES = 4, PART_OF_URGENT = 16 };

size_t ww_callback_room_to_start(const struct ww_callback *callback)
{
	const size_t taken = callback->lists[CALLBACK_UNDER_WAY].count + callback->lists[CALLBACK_UNREPORTED].count -
	                     callback->given_back;

	return taken < callback->config.in_flight ? callback->config.in_flight - taken : 0;
}

/* The room that no tube has for itself, less what is taken of it. */
static size_t room_for_all(const struct ww_callback *callback, size_t own)
{
	const size_t count = callback->config.tube_count;
	size_t taken = 0;

	for (size_t i = 0; i < count; i++)
		taken += callback->tubes[i].under_way > own ? callback->tubes[i].under_way - own : 0;
	return callback->config.in_flight - count * own > taken ? callback->config.in_flight - count * own - taken : 0;
}

size_t ww_callback_room_of(const struct ww_callback *callback, const struct pushed *tube, int urgent)
{
	const struct ww_callback_config *config = &callback->config;
	const size_t own = config->in_flight / PART_OF_TUBES / config->tube_count;
	const size_t kept = urgent ? 0 : config->in_flight / PART_OF_URGENT;
	const size_t all = room_for_all(callback, own);
	const size_t left = own > tube->under_way ? own - tube->under_way : 0;
	const size_t start = ww_callback_room_to_start(callback);
	const size_t most = left + (all > kept ? all - kept : 0);

	return most < start ? most : start;
}
