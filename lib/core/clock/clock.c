/* Clocks: the real ones, virtual ones with their alarms, and reading any. */

#include "lib/base/time.h"
#include "lib/core/clock/clock_internal.h"
#include "lib/core/clock/descriptor.h"

struct ww_clock *ww_clock_elapsed(void)
{
	static struct ww_clock elapsed = {.id = CLOCK_BOOTTIME};

	return &elapsed;
}

struct ww_clock *ww_clock_awake(void)
{
	static struct ww_clock awake = {.id = CLOCK_MONOTONIC};

	return &awake;
}

struct ww_clock *ww_clock_wall(void)
{
	static struct ww_clock wall = {.id = CLOCK_REALTIME};

	return &wall;
}

int ww_clock_now(struct ww_clock *clock, uint64_t *ns)
{
	if (clock == NULL || ns == NULL)
		return WW_EINVAL;
	if (clock->is_virtual) {
		*ns = atomic_load_explicit(&clock->now, memory_order_acquire);
		return WW_OK;
	}
	/* The kernel keeps both as signed 64-bit nanoseconds and refuses times before 1970: the result fits. */
	*ns = time_now(clock->id);
	return WW_OK;
}

/* ---- The lock of a virtual clock -------------------------------------------------------------------------------- */

/*
 * Descriptors are raised and cleared at cancellation points: a thread that was cancelled there would leave the lock
 * taken. While a thread holds the lock, it is not cancelled. *state is for leave.
 */
static void enter(struct ww_clock *clock, int *state)
{
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, state);
	pthread_mutex_lock(&clock->lock);
}

static void leave(struct ww_clock *clock, int state)
{
	pthread_mutex_unlock(&clock->lock);
	(void)pthread_setcancelstate(state, &state);
}

/* ---- Alarms, the lock held -------------------------------------------------------------------------------------- */

static void go_off(struct ww_alarm *alarm)
{
	alarm->when = NEVER;
	if (!alarm->went_off)
		alarm->went_off = ww_descriptor_raise(alarm->fd);
}

/* Let it not have gone off. Returns whether it had. */
static int take_back(struct ww_alarm *alarm)
{
	if (!alarm->went_off)
		return 0;
	alarm->went_off = 0;
	return ww_descriptor_clear(alarm->fd);
}

/* After a step backwards every alarm goes off: waiting threads have computed with a time that is wrong now. */
static void move_to(struct ww_clock *clock, uint64_t ns)
{
	int backwards = ns < atomic_load_explicit(&clock->now, memory_order_relaxed);

	/* Before the alarms, as a thread that is woken reads the clock. */
	atomic_store_explicit(&clock->now, ns, memory_order_release);
	for (struct ww_alarm *alarm = clock->alarms; alarm != NULL; alarm = alarm->next)
		if (alarm->when != NEVER && (backwards || alarm->when <= ns))
			go_off(alarm);
}

/* ---- What alarm.c needs ----------------------------------------------------------------------------------------- */

void ww_clock_virtual_add(struct ww_alarm *alarm)
{
	struct ww_clock *clock = alarm->clock;
	int state;

	enter(clock, &state);
	alarm->next = clock->alarms;
	alarm->pprev = &clock->alarms;
	if (alarm->next != NULL)
		alarm->next->pprev = &alarm->next;
	clock->alarms = alarm;
	leave(clock, state);
}

void ww_clock_virtual_remove(struct ww_alarm *alarm)
{
	int state;

	enter(alarm->clock, &state);
	*alarm->pprev = alarm->next;
	if (alarm->next != NULL)
		alarm->next->pprev = alarm->pprev;
	leave(alarm->clock, state);
}

void ww_clock_virtual_set_alarm(struct ww_alarm *alarm, uint64_t ns)
{
	struct ww_clock *clock = alarm->clock;
	int state;

	enter(clock, &state);
	if (ns <= atomic_load_explicit(&clock->now, memory_order_relaxed)) {
		go_off(alarm);
	} else {
		(void)take_back(alarm);
		alarm->when = ns;
	}
	leave(clock, state);
}

int ww_clock_virtual_clear_alarm(struct ww_alarm *alarm)
{
	int state, went_off;

	enter(alarm->clock, &state);
	went_off = take_back(alarm);
	leave(alarm->clock, state);
	return went_off;
}

/* ---- Virtual clocks -------------------------------------------------------------------------------------------- */

int ww_clock_virtual_create(struct ww_clock **clock, uint64_t start_ns, const struct ww_allocator *allocator)
{
	struct ww_clock *made;

	if (clock == NULL)
		return WW_EINVAL;
	if (start_ns > WW_CLOCK_MAX)
		return WW_EOVERFLOW;
	if (allocator == NULL)
		allocator = ww_allocator_default();
	made = allocator->allocate(allocator->user, sizeof *made);
	if (made == NULL)
		return WW_ENOMEM;
	*made = (struct ww_clock){.is_virtual = 1, .now = start_ns, .allocator = allocator};
	if (pthread_mutex_init(&made->lock, NULL) != 0) {
		allocator->free(allocator->user, made, sizeof *made);
		return WW_ENOMEM;
	}
	*clock = made;
	return WW_OK;
}

int ww_clock_virtual_destroy(struct ww_clock *clock)
{
	int state, busy;

	if (clock == NULL)
		return WW_OK;
	if (!clock->is_virtual)
		return WW_EINVAL;
	enter(clock, &state);
	busy = clock->alarms != NULL;
	leave(clock, state);
	if (busy)
		return WW_EBUSY;
	pthread_mutex_destroy(&clock->lock);
	clock->allocator->free(clock->allocator->user, clock, sizeof *clock);
	return WW_OK;
}

int ww_clock_virtual_advance(struct ww_clock *clock, uint64_t ns)
{
	uint64_t now;
	int state, fits;

	if (clock == NULL || !clock->is_virtual)
		return WW_EINVAL;
	enter(clock, &state);
	now = atomic_load_explicit(&clock->now, memory_order_relaxed);
	fits = ns <= WW_CLOCK_MAX - now;
	if (fits)
		move_to(clock, now + ns);
	leave(clock, state);
	return fits ? WW_OK : WW_EOVERFLOW;
}

int ww_clock_virtual_set(struct ww_clock *clock, uint64_t ns)
{
	int state;

	if (clock == NULL || !clock->is_virtual)
		return WW_EINVAL;
	if (ns > WW_CLOCK_MAX)
		return WW_EOVERFLOW;
	enter(clock, &state);
	move_to(clock, ns);
	leave(clock, state);
	return WW_OK;
}
