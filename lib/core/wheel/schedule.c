/* The caller's side of a timer: schedule, reschedule, cancel. */

#include "lib/core/wheel/place.h"

/*
 * Whether a pending timer can stay where it is, because its slot comes round no later than the new deadline. The due
 * slots are an exception: the next call delivers them, too late for a deadline that the running call still comes to.
 */
static inline int stays(const struct ww_wheel *wheel, const struct ww_timer *timer, uint64_t deadline)
{
	if (deadline < timer_deadline(timer))
		return 0;
	return deadline <= wheel->head.hand || timer_slot(timer) - wheel->due_first >= DUE_SLOTS;
}

static inline void move_timer(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline)
{
	if (stays(wheel, timer, deadline)) {
		timer_set_deadline(timer, deadline);
		return;
	}
	wheel->moved++;
	unlink_timer(wheel, timer);
	file_timer(wheel, timer, deadline, timer_periodic(timer));
}

/* Why a deadline is refused. An error that holds for every wheel comes before one of this configuration. */
static int refused(const struct ww_wheel *wheel, uint64_t deadline)
{
	if (deadline > WW_TIME_MAX)
		return WW_EOVERFLOW;
	if (deadline > wheel->head.now && deadline - wheel->head.now > wheel->longest)
		return WW_ERANGE;
	return WW_OK;
}

/* now + delay, or, where that would wrap round, a time that is refused. */
static inline uint64_t deadline_after(const struct ww_wheel *wheel, uint64_t delay)
{
	return delay <= WW_TIME_MAX ? wheel->head.now + delay : WW_NEVER;
}

static int schedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint64_t period)
{
	uint32_t periodic = period ? WHERE_PERIODIC : 0;
	int error = refused(wheel, deadline);

	if (error)
		return error;
	if (timer_is_pending(timer)) {
		if (timer_broken(wheel, timer))
			return WW_ECORRUPT;
		if (periodic)
			timer->ww_period = period;
		timer_set_periodic(timer, periodic);
		move_timer(wheel, timer, deadline);
		return WW_OK;
	}
	if (periodic)
		timer->ww_period = period;
	return file_timer(wheel, timer, deadline, periodic);
}

static __attribute__((noinline)) int schedule_otherwise(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay)
{
	return schedule(wheel, timer, deadline_after(wheel, delay), 0);
}

static inline int reschedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline)
{
	int error = refused(wheel, deadline);

	if (error)
		return error;
	if (!timer_is_pending(timer))
		return 0;
	if (timer_broken(wheel, timer))
		return WW_ECORRUPT;
	move_timer(wheel, timer, deadline);
	return 1;
}

static inline int schedule_after(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay)
{
	if (!wheel || !timer)
		return WW_EINVAL;
	uint64_t deadline = wheel->head.now + delay;
	if (delay - 1 >= wheel->quick || timer_is_pending(timer))
		return schedule_otherwise(wheel, timer, delay);
	return link_timer(wheel, timer, deadline, 0, slot_near(wheel, delay, deadline));
}

int ww_wheel_schedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay)
{
	return schedule_after(wheel, timer, delay);
}

int ww_wheel_schedule_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline)
{
	if (!wheel || !timer)
		return WW_EINVAL;
	return schedule(wheel, timer, deadline, 0);
}

int ww_wheel_schedule_every_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint64_t period)
{
	if (!wheel || !timer || period == 0 || period > WW_TIME_MAX)
		return WW_EINVAL;
	if (period > wheel->longest)
		return deadline > WW_TIME_MAX ? WW_EOVERFLOW : WW_ERANGE;
	return schedule(wheel, timer, deadline, period);
}

int ww_wheel_schedule_every(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay, uint64_t period)
{
	if (!wheel)
		return WW_EINVAL;
	return ww_wheel_schedule_every_at(wheel, timer, deadline_after(wheel, delay), period);
}

int ww_wheel_reschedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay)
{
	if (!wheel || !timer)
		return WW_EINVAL;
	return reschedule(wheel, timer, deadline_after(wheel, delay));
}

int ww_wheel_reschedule_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline)
{
	if (!wheel || !timer)
		return WW_EINVAL;
	return reschedule(wheel, timer, deadline);
}

/* The timer is periodic, another wheel's, or, found by a debug library, broken otherwise. */
static __attribute__((noinline)) int cancel_otherwise(struct ww_wheel *wheel, struct ww_timer *timer)
{
	if (timer_broken(wheel, timer))
		return WW_ECORRUPT;
	unlink_timer(wheel, timer);
	timer_set_idle(timer);
	return 1;
}

static inline int cancel(struct ww_wheel *wheel, struct ww_timer *timer)
{
	if (!wheel || !timer)
		return WW_EINVAL;
	if (!timer_is_pending(timer))
		return 0;
	uint32_t slot = where_without_tag(wheel, timer);
	if (slot >= WHERE_SLOTS || timer_broken(wheel, timer))
		return cancel_otherwise(wheel, timer);
	unlink_from(wheel, timer, slot);
	timer_set_idle(timer);
	return 1;
}

int ww_wheel_cancel(struct ww_wheel *wheel, struct ww_timer *timer)
{
	return cancel(wheel, timer);
}

/* ---- Many timers in a call */

/*
 * How many timers ahead the next ones are prefetched, and, once their own lines are there, their neighbours. As many
 * misses are then under way. Any distance is right; half or twice as far makes no difference that can be measured.
 */
#define AHEAD 16u
#define NEIGHBOURS_AHEAD (AHEAD / 2)

int ww_wheel_schedule_many(
    struct ww_wheel *wheel, struct ww_timer *const *timers, const uint64_t *delays, size_t count, size_t *scheduled)
{
	int error = !wheel || (count && (!timers || !delays)) ? WW_EINVAL : WW_OK;
	size_t done = 0;

	while (!error && done < count) {
		if (count - done > AHEAD)
			__builtin_prefetch(timers[done + AHEAD], 1);
		error = schedule_after(wheel, timers[done], delays[done]);
		done += !error;
	}
	if (scheduled)
		*scheduled = done;
	return error;
}

static inline void prefetch_neighbours(const struct ww_timer *timer)
{
	if (!timer || !timer_is_pending(timer))
		return;
	__builtin_prefetch(timer->ww_next, 1);
	__builtin_prefetch(timer->ww_pprev, 1);
}

int ww_wheel_cancel_many(struct ww_wheel *wheel, struct ww_timer *const *timers, size_t count, size_t *cancelled)
{
	int error = !wheel || (count && !timers) ? WW_EINVAL : WW_OK;
	size_t pending = 0;

	if (error)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		if (count - i > AHEAD)
			__builtin_prefetch(timers[i + AHEAD], 1);
		if (count - i > NEIGHBOURS_AHEAD)
			prefetch_neighbours(timers[i + NEIGHBOURS_AHEAD]);
		int answer = cancel(wheel, timers[i]);
		pending += answer == 1;
		if (answer < 0 && !error)
			error = answer;
	}
	if (cancelled)
		*cancelled = pending;
	return error;
}

int ww_wheel_time_left(const struct ww_wheel *wheel, const struct ww_timer *timer, uint64_t *ticks)
{
	if (!wheel || !timer || !ticks)
		return WW_EINVAL;
	if (!timer_is_pending(timer))
		return 0;
	if (timer_broken(wheel, timer))
		return WW_ECORRUPT;
	uint64_t deadline = timer_deadline(timer);
	*ticks = deadline > wheel->head.now ? deadline - wheel->head.now : 0;
	return 1;
}
