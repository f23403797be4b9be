/* M: what a tick costs with one map in use, alone and among many that are not. */
#include <stdlib.h>

#include "lib/base/time.h"
#include "tools/bench/layers.h"
#include "tools/common/memory.h"
#include "weekwheel/weekwheel.h"

enum { TICKS = 20000 };

static void nothing(
    struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)session, (void)key, (void)length, (void)value, (void)why, (void)user;
}

static void set(struct ww_session *session, uint64_t ttl)
{
	layer_check(ww_session_set(session, "key", 3, session, ttl, NULL), "a session");
}

/* In each tick a session of the first map expires, and another one is set. The clock is virtual, and nobody sleeps. */
static uint64_t run_ticks(struct ww_driver *driver, struct ww_clock *clock, struct ww_session *busy)
{
	uint64_t begin = time_now(CLOCK_MONOTONIC);

	for (int i = 0; i < TICKS; i++) {
		set(busy, WW_MILLISECOND);
		layer_check(ww_clock_virtual_advance(clock, WW_MILLISECOND), "the clock");
		layer_check(ww_driver_dispatch(driver, 1), "the driver");
	}
	return time_now(CLOCK_MONOTONIC) - begin;
}

/* All maps have a session, which expires in an hour. */
static struct layer_sample run_maps(uint64_t maps)
{
	struct ww_session **map = memory_zeroed(maps, sizeof *map);
	struct ww_driver_config config;
	struct ww_session_config with;
	struct ww_driver *driver;
	struct ww_clock *clock;

	layer_check(ww_clock_virtual_create(&clock, 0, NULL), "the clock");
	layer_check(ww_driver_config_default(&config), "the driver");
	config.clock = clock;
	config.flags = WW_DRIVER_THREADLESS;
	config.shards = 8;
	layer_check(ww_driver_create(&driver, &config), "the driver");
	layer_check(ww_session_config_default(&with), "a session map");
	with.gone = nothing;
	for (uint64_t i = 0; i < maps; i++) {
		layer_check(ww_session_create(&map[i], driver, &with), "a session map");
		set(map[i], 3600 * WW_SECOND);
	}
	double ns = (double)run_ticks(driver, clock, map[0]) / TICKS;
	for (uint64_t i = 0; i < maps; i++)
		layer_check(ww_session_destroy(map[i]), "a session map");
	layer_check(ww_driver_destroy(driver), "the driver");
	layer_check(ww_clock_virtual_destroy(clock), "the clock");
	free(map);
	return (struct layer_sample){ns, 0};
}

struct layer_sample layer_one_map(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return run_maps(1);
}

struct layer_sample layer_many_maps(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return run_maps(LAYER_MAPS);
}
