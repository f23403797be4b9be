/*
 * Many threads schedule, cancel and reschedule while one moves the clock and workers call. No callback begins after a
 * cancel in time, none is called twice, none is lost, and each timer ends in exactly one way.
 */
/* tier: quick, threads, no-valgrind */

#include <stdio.h>

#include "tests/lib/core/driver/fixture.h"

#define LIVES 120000
#define SLOTS 200
#define THREADS 4
#define OPS 12000

/* The life of one timer, from its schedule on. */
struct life {
	_Atomic ww_handle handle;
	_Atomic int began;
	_Atomic int inside;
	_Atomic int extra;     /* reschedules answered "running": each may cause one more call */
	_Atomic int ended;     /* cancels answered 0 or 1 */
	_Atomic int cancelled; /* set once a cancel has answered 1 */
	_Atomic int drained;
	_Atomic int began_before; /* calls begun when the cancel was answered */
	_Atomic int may_count;    /* calls that may have begun but are not counted yet */
	int own;                  /* calls after which the callback reschedules itself */
};

static struct life life[LIVES];
static _Atomic size_t lives;
static _Atomic size_t slot[SLOTS];
static _Atomic size_t calls;
static _Atomic size_t in_time;
static _Atomic int racing;

static _Thread_local uint64_t seed_here;
static uint64_t seed_first;
static _Atomic uint64_t seed_threads;

static uint64_t draw(uint64_t below)
{
	if (!seed_here)
		seed_here = seed_first + ++seed_threads * UINT64_C(0x9e3779b97f4a7c15);
	return seed_below(&seed_here, below);
}

static void live(struct ww_driver *of, const struct ww_firing *firing, void *user);

static void schedule_one(void)
{
	size_t at = lives++;
	ww_handle handle;

	if (at >= LIVES)
		return;
	life[at].own = draw(4) == 0 ? (int)draw(3) : 0;
	int error = ww_driver_schedule(driver, draw(4) ? draw(20 * TICK) : 0, live, &life[at], &handle);
	if (error == WW_ECLOSED) {
		life[at].ended = 1;
		life[at].drained = 1;
		return;
	}
	OK(error);
	life[at].handle = handle;
	slot[draw(SLOTS)] = at + 1;
}

static void cancel_one(struct life *one, int wait)
{
	int answer = wait ? ww_driver_cancel_wait(driver, one->handle) : ww_driver_cancel(driver, one->handle);

	if (answer == 0 || answer == 1) {
		int began = one->began;

		ck_assert(one->ended++ == 0);
		one->began_before = began;
		one->may_count = answer == 0 && !wait;
		if (wait)
			ck_assert(one->inside == 0);
		if (answer == 1) {
			one->cancelled = 1;
			in_time++;
		}
	} else
		ck_assert(answer == WW_ESTALE || answer == WW_ECLOSED || (wait && answer == WW_EBUSY));
}

static void move_one(struct life *one)
{
	int answer = ww_driver_reschedule(driver, one->handle, draw(10 * TICK));

	if (answer == 0)
		one->extra++;
	else
		ck_assert(answer == 1 || answer == WW_ESTALE || answer == WW_ECLOSED);
}

/* One random call on a timer that some thread has scheduled lately. */
static void meddle(int wait)
{
	size_t at = slot[draw(SLOTS)];
	uint64_t left;

	if (at == 0)
		return;
	struct life *one = &life[at - 1];
	switch (draw(4)) {
	case 0:
		cancel_one(one, wait && draw(2));
		break;
	case 1:
	case 2:
		move_one(one);
		break;
	default:
		(void)ww_driver_time_left(driver, one->handle, &left);
	}
}

static void live(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct life *one = user;
	uint64_t now;

	calls++;
	ck_assert(one->inside++ == 0);
	one->began++;
	ck_assert(!one->cancelled);
	ck_assert(ww_driver_now(of, &now) == WW_OK && now >= firing->deadline);
	ck_assert(one->handle == 0 || one->handle == firing->handle);
	if (one->own-- > 0) {
		int answer = ww_driver_reschedule(of, firing->handle, draw(3 * TICK));
		ck_assert(answer == 0 || answer == WW_ESTALE || answer == WW_ECLOSED);
		one->extra += answer == 0;
	} else if (racing && draw(8) == 0)
		schedule_one();
	if (draw(8) == 0)
		meddle(0);
	one->inside--;
}

static void *race(void *argument)
{
	(void)argument;
	for (int i = 0; i < OPS && racing; i++) {
		if (draw(2))
			schedule_one();
		else
			meddle(1);
	}
	return NULL;
}

static void *move_clock(void *argument)
{
	(void)argument;
	while (racing) {
		OK(ww_clock_virtual_advance(virtual_clock, draw(3 * TICK)));
		if (draw(16) == 0)
			(void)ww_driver_settle(driver);
		sched_yield();
	}
	return NULL;
}

static void begin_race(const struct ww_driver_config *config)
{
	memset(life, 0, sizeof life);
	lives = calls = in_time = 0;
	for (size_t i = 0; i < SLOTS; i++)
		slot[i] = 0;
	racing = 1;
	begin_with(config);
}

/* Assert that every life has ended in a valid way: by a cancel, by its calls, or by the stop. */
static void assert_ends(void)
{
	size_t count = lives < LIVES ? lives : LIVES;
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		const struct life *one = &life[i];
		total += (size_t)one->began;
		ck_assert(one->inside == 0);
		ck_assert(one->ended <= 1);
		ck_assert(one->began <= 1 + one->extra - one->cancelled);
		/* A call that a cancel finds running may not have counted itself yet. */
		if (one->ended || one->drained)
			ck_assert(one->began >= one->began_before && one->began <= one->began_before + one->may_count);
		if (one->drained)
			ck_assert(!one->cancelled);
		if (!one->ended && !one->drained)
			ck_assert(one->began >= 1);
		if (!one->extra)
			ck_assert(one->began + one->cancelled + one->drained == 1);
	}
	ck_assert_uint_eq(total, calls);
}

START_TEST(no_call_begins_after_a_cancel_in_time_and_none_is_lost_or_doubled)
{
	static const size_t queues[] = {65536, 2};
	pthread_t thread[THREADS + 1];

	seed_first = seed_of_run("test_driver_race");
	for (int round = 0; round < 2; round++) {
		struct ww_driver_config config = config_of(0, 3);
		config.queue = queues[round];
		config.shards = 2;
		begin_race(&config);
		for (int i = 0; i < THREADS; i++)
			ck_assert_int_eq(pthread_create(&thread[i], NULL, race, NULL), 0);
		ck_assert_int_eq(pthread_create(&thread[THREADS], NULL, move_clock, NULL), 0);
		for (int i = 0; i < THREADS; i++)
			ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		racing = 0;
		ck_assert_int_eq(pthread_join(thread[THREADS], NULL), 0);
		while (stats_of().pending + stats_of().queued + stats_of().running)
			go(100 * TICK);
		assert_ends();
		struct ww_driver_stats stats = stats_of();
		ck_assert_uint_eq(stats.fired, calls);
		ck_assert_uint_eq(stats.cancelled, in_time);
		ck_assert_uint_eq(stats.dropped, 0);
		ck_assert_uint_lt(lives, LIVES);
		ck_assert_uint_eq(stats.scheduled, lives);
		for (uint32_t i = 0; i < config.shards; i++)
			ck_assert_uint_eq(records_taken(i), 0);
		printf("test_driver_race: %zu timers, %zu calls, %zu cancelled in time\n", lives, calls, in_time);
		end();
	}
}
END_TEST

static void drain_life(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	struct life *one = user;

	(void)left;
	(void)context;
	ck_assert(fn == live);
	ck_assert(one->handle == 0 || one->handle == handle);
	ck_assert(one->drained++ == 0);
	one->began_before = one->began;
}

START_TEST(a_stop_in_the_middle_hands_over_exactly_the_timers_neither_run_nor_cancelled)
{
	pthread_t thread[THREADS + 1];
	size_t total = 0;

	seed_first = seed_of_run("test_driver_race");
	for (int round = 0; round < 60; round++) {
		struct ww_driver_config config = config_of(0, 3);
		size_t count;
		config.shards = 2;
		config.queue = round % 2 ? 3 : 1000;
		begin_race(&config);
		for (int i = 0; i < THREADS; i++)
			ck_assert_int_eq(pthread_create(&thread[i], NULL, race, NULL), 0);
		ck_assert_int_eq(pthread_create(&thread[THREADS], NULL, move_clock, NULL), 0);
		UNTIL(lives > 100 + draw(1000));
		OK(ww_driver_stop(driver, drain_life, NULL, &count));
		/* Nothing begins from here on. */
		size_t begun = stats_of().fired;
		racing = 0;
		for (int i = 0; i <= THREADS; i++)
			ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		UNTIL(stats_of().running == 0);
		ck_assert_uint_eq(stats_of().fired, begun);
		ck_assert_uint_eq(calls, begun);
		ck_assert_uint_eq(stats_of().cancelled, in_time + count);
		assert_ends();
		total += count;
		end();
	}
	ck_assert_uint_gt(total, 0);
}
END_TEST

static _Atomic size_t arrived;

static void arrive(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)of;
	(void)firing;
	(void)user;
	arrived++;
}

START_TEST(a_timer_scheduled_while_the_driver_goes_to_sleep_wakes_it)
{
	seed_first = seed_of_run("test_driver_race");
	begin(0, 2);
	/* The clock stands still: only the schedule itself makes the driver look. */
	for (size_t i = 0; i < 10000; i++) {
		volatile uint64_t wait = draw(300);
		ck_assert(
		    ww_driver_schedule_at(driver, draw(2) ? 0 : now_ns() / TICK * TICK, arrive, NULL, NULL) == WW_OK);
		UNTIL(arrived == i + 1);
		while (wait)
			wait--;
	}
	end();
}
END_TEST

/* ---- Periodic timers */

struct beat {
	_Atomic int inside;
	_Atomic uint64_t last;
	_Atomic size_t calls;
	_Atomic int gone;
	uint64_t period;
	int overlap;
};

static void beat(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct beat *one = user;

	(void)of;
	ck_assert(one->inside++ == 0 || one->overlap);
	ck_assert(!one->gone);
	if (!one->overlap) {
		ck_assert(firing->deadline > one->last);
		/* The call is told how many periods passed. */
		ck_assert(one->last == 0 || firing->deadline == one->last + (firing->missed + 1) * one->period);
		one->last = firing->deadline;
	}
	one->calls++;
	if (draw(4) == 0)
		sched_yield();
	one->inside--;
}

START_TEST(periodic_calls_do_not_overlap_and_end_with_a_cancel)
{
	static struct beat beats[60];
	ww_handle handle[60];

	seed_first = seed_of_run("test_driver_race");
	for (int round = 0; round < 6; round++) {
		struct ww_driver_config config = config_of(round % 3 == 2 ? WW_DRIVER_DROP : 0, 3);
		config.shards = 2;
		config.queue = round % 3 ? 4 : 1000;
		memset(beats, 0, sizeof beats);
		begin_with(&config);
		for (int i = 0; i < 60; i++) {
			beats[i].period = (1 + draw(5)) * TICK / 2;
			beats[i].overlap = i % 2;
			handle[i] = every(draw(5 * TICK), beats[i].period, (uint32_t)i % 2, beat, &beats[i]);
		}
		for (int i = 0; i < 300; i++) {
			advance(draw(4 * TICK));
			if (i % 5 == 0)
				settle();
			if (i >= 100 && i % 3 == 0 && (i - 100) / 3 < 60) {
				int at = (i - 100) / 3;
				ck_assert(ww_driver_cancel_wait(driver, handle[at]) >= 0);
				ck_assert(beats[at].inside == 0);
				beats[at].gone = 1;
			}
			sched_yield();
		}
		for (int i = 0; i < 60; i++) {
			(void)ww_driver_cancel_wait(driver, handle[i]);
			ck_assert(beats[i].calls > 0 || config.queue == 4);
		}
		settle();
		ck_assert_uint_eq(stats_of().pending, 0);
		for (uint32_t i = 0; i < config.shards; i++)
			ck_assert_uint_eq(records_taken(i), 0);
		end();
	}
}
END_TEST

TEST_MAIN("driver/race", no_call_begins_after_a_cancel_in_time_and_none_is_lost_or_doubled,
    a_stop_in_the_middle_hands_over_exactly_the_timers_neither_run_nor_cancelled,
    a_timer_scheduled_while_the_driver_goes_to_sleep_wakes_it, periodic_calls_do_not_overlap_and_end_with_a_cancel)
