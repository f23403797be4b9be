/* P: how late an unrelated timer is while a burst of sessions expires. */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/bench/layers.h"
#include "weekwheel/weekwheel.h"

enum { PROBES = 20, PROBE_EVERY_MS = 20 };

struct burst {
	uint64_t sessions;
	uint64_t callback_ns;
	int computes; /* else it sleeps */
	_Atomic uint64_t gone;
	_Atomic unsigned probes;
	double late_us[PROBES];
};

static void work(struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	struct burst *burst = user;
	uint64_t end = time_now(CLOCK_MONOTONIC) + burst->callback_ns;
	struct timespec pause = {0, (long)burst->callback_ns};

	(void)session, (void)key, (void)length, (void)value, (void)why;
	if (!burst->computes)
		(void)nanosleep(&pause, NULL);
	while (time_now(CLOCK_MONOTONIC) < end)
		continue;
	burst->gone++;
}

static void probe(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct burst *burst = user;
	uint64_t now = firing->deadline;

	(void)ww_driver_now(driver, &now);
	burst->late_us[burst->probes++] = (double)(now - firing->deadline) / 1e3;
}

static int by_value(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

/* All sessions expire half a second from now, and the timers in the 0.4 s after that. */
static void schedule(struct burst *burst, struct ww_driver *driver, struct ww_session *session)
{
	uint64_t begin, now;

	layer_check(ww_driver_now(driver, &begin), "the driver");
	begin += WW_SECOND / 2;
	for (uint64_t i = 0; i < burst->sessions; i++) {
		layer_check(ww_driver_now(driver, &now), "the driver");
		layer_check(
		    ww_session_set(session, &i, sizeof i, session, begin > now ? begin - now : 1, NULL), "a session");
	}
	for (unsigned i = 1; i <= PROBES; i++)
		layer_check(
		    ww_driver_schedule_at(driver, begin + i * PROBE_EVERY_MS * WW_MILLISECOND, probe, burst, NULL),
		    "a timer");
}

static struct layer_sample measure(struct burst burst)
{
	const struct timespec pause = {0, 10000000};
	struct ww_session_config config;
	struct ww_session *session;
	struct ww_driver *driver;

	layer_check(ww_driver_create(&driver, NULL), "the driver");
	layer_check(ww_session_config_default(&config), "the session map");
	config.gone = work;
	config.user = &burst;
	layer_check(ww_session_create(&session, driver, &config), "the session map");
	schedule(&burst, driver, session);
	while (burst.gone < burst.sessions || burst.probes < PROBES)
		(void)nanosleep(&pause, NULL);
	layer_check(ww_session_destroy(session), "the session map");
	layer_check(ww_driver_destroy(driver), "the driver");
	qsort(burst.late_us, PROBES, sizeof *burst.late_us, by_value);
	return (struct layer_sample){burst.late_us[PROBES / 2], 0};
}

struct layer_sample layer_short_burst(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return measure((struct burst){.sessions = 100000, .callback_ns = 20 * WW_MICROSECOND, .computes = 1});
}

struct layer_sample layer_slow_burst(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return measure((struct burst){.sessions = 1000, .callback_ns = 20 * WW_MILLISECOND});
}
