/* H: many sessions with one deadline among many more that are not due. */
#include <stdatomic.h>

#include "lib/base/random.h"
#include "tools/bench/layers.h"
#include "weekwheel/weekwheel.h"

enum { HERD = 1000, TICKS_MOST = 60 };

static void count(struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	_Atomic unsigned *gone = user;

	(void)session;
	(void)key;
	(void)length;
	(void)value;
	if (why == WW_GONE_EXPIRED)
		atomic_fetch_add(gone, 1);
}

/* n sessions, of which HERD expire after a minute and the others after more than an hour; ticks of a second. */
static void fill(struct ww_session *session, uint64_t n, uint64_t seed)
{
	unsigned char key[16];
	uint64_t state = seed;

	for (uint64_t i = 0; i < n + HERD; i++) {
		uint64_t ttl = i < n ? 3600 + random_below(&state, 600000) : 60;
		layer_key(i, seed, key);
		layer_check(ww_session_set(session, key, sizeof key, session, ttl * WW_SECOND, NULL), "a session");
	}
}

struct layer_sample layer_herd(uint64_t n, uint64_t seed)
{
	struct ww_clock *clock;
	struct ww_driver *driver;
	struct ww_session *session;
	struct ww_driver_config config;
	struct ww_session_config map;
	_Atomic unsigned gone = 0;
	unsigned ticks;

	layer_check(ww_clock_virtual_create(&clock, 0, NULL), "the clock");
	layer_check(ww_driver_config_default(&config), "the driver");
	config.clock = clock;
	config.tick_ns = WW_SECOND;
	layer_check(ww_driver_create(&driver, &config), "the driver");
	layer_check(ww_session_config_default(&map), "the session map");
	map.gone = count;
	map.user = &gone;
	layer_check(ww_session_create(&session, driver, &map), "the session map");
	fill(session, n, seed);
	layer_check(ww_clock_virtual_advance(clock, 60 * WW_SECOND), "the clock");
	layer_check(ww_driver_settle(driver), "the driver");
	for (ticks = 0; gone < HERD && ticks < TICKS_MOST; ticks++) {
		layer_check(ww_clock_virtual_advance(clock, WW_SECOND), "the clock");
		layer_check(ww_driver_settle(driver), "the driver");
	}
	layer_check(ww_session_destroy(session), "the session map");
	layer_check(ww_driver_destroy(driver), "the driver");
	layer_check(ww_clock_virtual_destroy(clock), "the clock");
	return (struct layer_sample){ticks, 0};
}
