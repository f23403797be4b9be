/*
 * Random calls against a model that knows each timer. There is one thread, a driver without threads, and a virtual
 * clock that also goes backwards. WW_MODEL_OPS sets ten times the number of calls, each of which takes as long as ten of
 * the wheel's. WW_SEED repeats a run.
 */
/* tier: check, threads, every-build, no-valgrind */

#include <stdio.h>

#include "tests/lib/core/driver/fixture.h"

#define TIMERS 400
#define OPS_DEFAULT (SLOW ? 90000 : 400000)

struct timer {
	ww_handle handle; /* 0: none */
	uint64_t deadline;
	uint64_t period;
	uint64_t missed;
	int was_due; /* a dispatch has seen it due since its deadline was set */
	int ordered; /* it was not overdue when it was set, and the clock has not gone backwards since */
	int inside;
};

static struct timer timers[TIMERS];
static ww_handle stale[TIMERS];
static uint64_t seed;
static size_t live_count;
static size_t inside_count;
static uint64_t ops_left;
static uint64_t calls;
static uint64_t scheduled;
static uint64_t cancelled;
/* The last tick that fired in the running dispatch, or WW_NEVER when the order is unknown. */
static uint64_t last_tick;
/* The latest tick of all dispatches. The wheel has not advanced beyond it. */
static uint64_t latest_tick;

static void called(struct ww_driver *of, const struct ww_firing *firing, void *user);

static uint64_t draw(uint64_t below)
{
	return seed_below(&seed, below);
}

static uint64_t tick_of(uint64_t deadline)
{
	return (deadline + TICK - 1) / TICK;
}

static uint64_t draw_delay(void)
{
	static const uint64_t ranges[] = {1, TICK, 20 * TICK, 100 * TICK, 5 * WW_SECOND, 3600 * WW_SECOND, 30 * DAY_NS};

	return draw(ranges[draw(sizeof ranges / sizeof ranges[0])]);
}

static struct timer *any_timer(void)
{
	return &timers[draw(TIMERS)];
}

static void timer_ended(struct timer *timer)
{
	stale[timer - timers] = timer->handle;
	timer->handle = 0;
	live_count--;
}

static void set_deadline(struct timer *timer, uint64_t deadline)
{
	timer->deadline = deadline;
	timer->was_due = 0;
	timer->ordered = tick_of(deadline) > latest_tick;
}

static void schedule(struct timer *timer)
{
	uint64_t now = now_ns();
	uint64_t delay = draw_delay();
	uint64_t deadline = now + delay;
	uint64_t period = 0;
	int error;

	switch (draw(4)) {
	case 0:
		deadline = draw(2) ? now - draw(now) : deadline;
		error = ww_driver_schedule_at(driver, deadline, called, timer, &timer->handle);
		break;
	case 1:
		period = 1 + draw_delay();
		error = ww_driver_schedule_every(driver, delay, period, 0, called, timer, &timer->handle);
		break;
	default:
		error = ww_driver_schedule(driver, delay, called, timer, &timer->handle);
	}
	ck_assert(error == WW_OK && timer->handle != 0);
	timer->period = period;
	timer->missed = 0;
	timer->inside = 0;
	set_deadline(timer, deadline);
	live_count++;
	scheduled++;
}

static void cancel(struct timer *timer)
{
	int answer = draw(4) ? ww_driver_cancel(driver, timer->handle) : ww_driver_cancel_wait(driver, timer->handle);

	if (timer->inside) {
		ck_assert(answer == 0 || answer == WW_EBUSY);
		if (answer == 0)
			timer_ended(timer);
		return;
	}
	ck_assert(answer == 1);
	cancelled++;
	timer_ended(timer);
}

static void move(struct timer *timer)
{
	uint64_t delay = draw_delay();
	int answer = ww_driver_reschedule(driver, timer->handle, delay);

	ck_assert(answer == !timer->inside);
	set_deadline(timer, now_ns() + delay);
	if (timer->inside)
		timer->inside = 2;
}

static void ask(struct timer *timer)
{
	uint64_t now = now_ns();
	uint64_t left = 7;
	int answer = ww_driver_time_left(driver, timer->handle, &left);
	uint64_t deadline = timer->deadline;

	if (timer->inside == 1) {
		ck_assert(answer == (timer->period != 0));
		deadline += timer->period;
	} else
		ck_assert(answer == 1);
	if (answer)
		ck_assert(left == (deadline > now ? deadline - now : 0));
}

static void ask_stale(void)
{
	ww_handle handle = draw(4) ? stale[draw(TIMERS)] : 0;
	uint64_t left;

	ck_assert(ww_driver_cancel(driver, handle) == WW_ESTALE);
	ck_assert(ww_driver_reschedule(driver, handle, draw(WW_SECOND)) == WW_ESTALE);
	ck_assert(ww_driver_time_left(driver, handle, &left) == WW_ESTALE);
}

/* Calls that are allowed anywhere, also in a callback. */
static void one_call(void)
{
	struct timer *timer = any_timer();

	if (!timer->handle && !timer->inside) {
		schedule(timer);
		return;
	}
	if (!timer->handle) {
		ask_stale();
		return;
	}
	switch (draw(8)) {
	case 0:
	case 1:
		cancel(timer);
		break;
	case 2:
	case 3:
	case 4:
		move(timer);
		break;
	case 5:
		ask_stale();
		break;
	default:
		ask(timer);
	}
}

/* The call has ended. Do to the model what the driver does to a timer then. */
static void go_on(struct timer *timer)
{
	int moved = timer->inside == 2;

	timer->inside = 0;
	inside_count--;
	if (!timer->handle || moved) {
		timer->missed = 0;
		return;
	}
	if (!timer->period) {
		timer_ended(timer);
		return;
	}
	uint64_t time = now_ns() / TICK * TICK;
	timer->missed = time > timer->deadline ? (time - timer->deadline) / timer->period : 0;
	set_deadline(timer, timer->deadline + (timer->missed + 1) * timer->period);
}

static void called(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct timer *timer = user;

	ck_assert(of == driver);
	ck_assert(timer->handle == firing->handle);
	ck_assert(!timer->inside);
	ck_assert(timer->was_due);
	ck_assert(firing->deadline == timer->deadline);
	ck_assert(firing->missed == timer->missed);
	if (last_tick != WW_NEVER && timer->ordered) {
		ck_assert(tick_of(timer->deadline) >= last_tick);
		last_tick = tick_of(timer->deadline);
	}
	calls++;
	timer->inside = 1;
	inside_count++;
	for (uint64_t n = draw(6); n > 3; n--)
		one_call();
	go_on(timer);
}

static void note_due(void)
{
	uint64_t tick = now_ns() / TICK;

	if (tick > latest_tick)
		latest_tick = tick;
	for (size_t i = 0; i < TIMERS; i++)
		if (timers[i].handle && tick_of(timers[i].deadline) <= tick)
			timers[i].was_due = 1;
}

static size_t due_count(void)
{
	uint64_t tick = now_ns() / TICK;
	size_t count = 0;

	for (size_t i = 0; i < TIMERS; i++)
		count += timers[i].handle && tick_of(timers[i].deadline) <= tick;
	return count;
}

static void dispatch(uint32_t budget)
{
	struct ww_driver_stats stats;
	int ran;

	note_due();
	ran = ww_driver_dispatch(driver, budget);
	ck_assert(ran >= 0 && (uint32_t)ran <= budget);
	ck_assert(ww_driver_stats(driver, &stats) == WW_OK);
	ck_assert(stats.pending + stats.queued == live_count);
	ck_assert(stats.fired == calls && stats.scheduled == scheduled && stats.cancelled == cancelled);
	ck_assert(stats.running == 0 && stats.dropped == 0);
}

/* Dispatch until nothing is due. The first round is in order if the queue was empty and has room for all timers. */
static void dispatch_all(void)
{
	last_tick = driver->queue.lanes.length || driver->queue.limit < TIMERS ? WW_NEVER : 0;
	dispatch(INT32_MAX);
	last_tick = WW_NEVER;
	while (due_count() || driver->queue.lanes.length)
		dispatch(INT32_MAX);
}

static void move_clock(void)
{
	switch (draw(40)) {
	case 0:
		ck_assert(ww_clock_virtual_set(
		              virtual_clock, now_ns() - draw(draw(2) ? 100 * TICK : 100 * WW_SECOND)) == WW_OK);
		for (size_t i = 0; i < TIMERS; i++)
			timers[i].ordered = 0;
		break;
	case 1:
		advance(draw(5 * DAY_NS));
		break;
	case 2:
	case 3:
		advance(draw(20 * WW_SECOND));
		break;
	default:
		advance(draw(4 * TICK));
	}
}

static void run_model(size_t queue)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);

	config.queue = queue;
	config.shards = 1;
	memset(timers, 0, sizeof timers);
	memset(stale, 0, sizeof stale);
	live_count = calls = scheduled = cancelled = inside_count = 0;
	last_tick = WW_NEVER;
	OK(ww_clock_virtual_set(virtual_clock, START + 1000 * DAY_NS));
	latest_tick = now_ns() / TICK; /* where the wheel begins */
	begin_with(&config);
	for (uint64_t op = 0; op < ops_left; op++) {
		uint64_t what = draw(10);
		if (what < 7)
			one_call();
		else if (what < 9)
			move_clock();
		else if (draw(2))
			dispatch(1 + (uint32_t)draw(10));
		else
			dispatch_all();
	}
	dispatch_all();
	size_t count;
	size_t live = live_count;
	OK(ww_driver_stop(driver, take, NULL, &count));
	ck_assert_uint_eq(count, live);
	for (size_t i = 0; i < count; i++) {
		struct timer *timer = drained[i].user;
		ck_assert(timer->handle == drained[i].handle);
		ck_assert(drained[i].left == (timer->deadline > now_ns() ? timer->deadline - now_ns() : 0));
		timer->handle = 0;
	}
	printf("test_driver_model: queue of %zu: %" PRIu64 " scheduled, %" PRIu64 " calls, %" PRIu64 " cancelled\n",
	    queue, scheduled, calls, cancelled);
	end();
}

START_TEST(random_calls_and_times_agree_with_the_model)
{
	static const size_t queues[] = {65536, 16, 1};
	const char *text = getenv("WW_MODEL_OPS");

	ops_left = (text ? strtoull(text, NULL, 0) / 10 : OPS_DEFAULT) / 3;
	seed = seed_of_run("test_driver_model");
	for (size_t i = 0; i < 3; i++)
		run_model(queues[i]);
}
END_TEST

TEST_MAIN("driver/model", random_calls_and_times_agree_with_the_model)
