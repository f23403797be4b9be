/* Moving a virtual clock from deadline to deadline. */

#include "lib/core/driver/driver_internal.h"

/* The agenda's lock is held, and the caller holds the source. A wheel may ask for a look at what was cancelled. */
static int is_pending_in(struct timer_source *source)
{
	struct ww_stats stats;

	pthread_mutex_lock(&source->lock);
	(void)ww_wheel_stats(source->wheel, &stats);
	if (!stats.pending)
		source->next = WW_NEVER;
	pthread_mutex_unlock(&source->lock);
	return stats.pending != 0;
}

/* Whether a timer of any source waits for its deadline. */
static int is_pending(struct ww_driver *driver)
{
	struct agenda *agenda = &driver->agenda;
	struct timer_source *source;
	int pending = 0;

	pthread_mutex_lock(&agenda->lock);
	while (!pending && (source = ww_agenda_first(agenda))) {
		ww_agenda_take(agenda, source);
		pending = is_pending_in(source);
		ww_agenda_file(agenda, source);
	}
	pthread_mutex_unlock(&agenda->lock);
	return pending;
}

/* When a wheel needs the driver next, in ns, for a deadline or for its own work; WW_NEVER: not at all. */
static uint64_t next_time(struct ww_driver *driver)
{
	uint64_t tick = ww_driver_next_tick(driver);

	return tick > WW_CLOCK_MAX / driver->tick_ns ? WW_NEVER : tick * driver->tick_ns;
}

static int move_to(const struct ww_driver *driver, uint64_t ns)
{
	return ns > ww_driver_time(driver) ? ww_clock_virtual_set(driver->clock, ns) : WW_OK;
}

/* Settle, and move the clock to the next thing to do until something has expired. Returns 1 then, 0 if nothing will. */
static int step(struct ww_driver *driver, uint64_t until)
{
	uint64_t expired = driver->expired;

	for (;;) {
		uint64_t next;
		int error = ww_driver_settle(driver);
		if (error)
			return error;
		if (driver->expired != expired)
			return 1;
		if (until == WW_NEVER && !is_pending(driver))
			return 0;
		next = next_time(driver);
		if (next == WW_NEVER || next > until)
			return until == WW_NEVER ? 0 : move_to(driver, until);
		error = move_to(driver, next);
		if (error)
			return error;
	}
}

int ww_driver_step(struct ww_driver *driver, uint64_t until, uint64_t *ns)
{
	int stepped;

	if (!driver)
		return WW_EINVAL;
	if (until > WW_CLOCK_MAX && until != WW_NEVER)
		return WW_EOVERFLOW;
	stepped = ww_driver_refuses(driver);
	/* Only a virtual clock can be moved, be it by nothing. */
	if (!stepped)
		stepped = ww_clock_virtual_advance(driver->clock, 0);
	if (!stepped)
		stepped = step(driver, until);
	if (stepped > 0 && ns)
		*ns = ww_driver_time(driver);
	return stepped;
}
