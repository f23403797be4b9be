/* ww_driver_step: a virtual clock goes from deadline to deadline. */
/* tier: check, threads */

#include "tests/lib/core/driver/fixture.h"
#include "weekwheel/session.h"

static const uint32_t kinds[] = {0, WW_DRIVER_THREADLESS};

static int by_time(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

static uint64_t tick_after(uint64_t ns)
{
	return (ns + TICK - 1) / TICK * TICK;
}

START_TEST(each_step_goes_to_the_next_deadline)
{
	enum { MANY = 300 };
	uint64_t seed = seed_of_run("each_step_goes_to_the_next_deadline");

	for (int kind = 0; kind < 2; kind++) {
		uint64_t due[MANY];
		uint64_t now = 0;
		size_t count = 0;
		begin(kinds[kind], 2);
		for (int i = 0; i < MANY; i++) {
			/* From a tick to ten years, each magnitude as often as others. */
			uint64_t delay = seed_next(&seed) % (3650 * DAY_NS) >> seed_below(&seed, 40);
			ww_handle handle = after(delay, note, NULL);
			if (seed_below(&seed, 4) == 0) {
				ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
				continue;
			}
			/* A later deadline leaves the timer in its slot, which is not when it is due. */
			if (seed_below(&seed, 4) == 0) {
				delay += seed_next(&seed) % (10 * DAY_NS);
				ck_assert_int_eq(ww_driver_reschedule(driver, handle, delay), 1);
			}
			due[count++] = tick_after(START + delay);
		}
		qsort(due, count, sizeof *due, by_time);
		for (size_t i = 0; i < count;) {
			ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, &now), 1);
			ck_assert_uint_eq(now, now_ns());
			/* What was due at the beginning may have fired by itself. */
			while (i < count && due[i] < now && due[i] <= tick_after(START))
				i++;
			ck_assert(i == count || due[i] == now);
			while (i < count && due[i] == now)
				i++;
			ck_assert_uint_eq(fired_count, i);
		}
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, &now), 0);
		ck_assert_uint_eq(now, now_ns());
		end();
	}
}
END_TEST

START_TEST(a_bound_ends_the_steps_and_is_where_the_clock_stands_then)
{
	for (int kind = 0; kind < 2; kind++) {
		uint64_t now = 7;
		begin(kinds[kind], 2);
		(void)after(DAY_NS, note, NULL);
		uint64_t due = tick_after(now_ns() + DAY_NS);
		ck_assert_int_eq(ww_driver_step(driver, due - 1, &now), 0);
		ck_assert_uint_eq(now, 7);
		ck_assert_uint_eq(now_ns(), due - 1);
		/* A bound that has passed moves nothing. */
		ck_assert_int_eq(ww_driver_step(driver, START, &now), 0);
		ck_assert_uint_eq(now_ns(), due - 1);
		ck_assert_int_eq(ww_driver_step(driver, due, NULL), 1);
		ck_assert_uint_eq(now_ns(), due);
		ck_assert_uint_eq(fired_count, 1);
		ck_assert_int_eq(ww_driver_step(driver, due + 5, NULL), 0);
		ck_assert_uint_eq(now_ns(), due + 5);
		end();
	}
}
END_TEST

START_TEST(without_anything_pending_the_clock_stays)
{
	for (int kind = 0; kind < 2; kind++) {
		begin(kinds[kind], 2);
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), 0);
		ck_assert_uint_eq(now_ns(), START);
		/* The wheel asks for a look at a slot that is empty by then. */
		ck_assert_int_eq(ww_driver_cancel(driver, after(100 * DAY_NS, note, NULL)), 1);
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), 0);
		ck_assert_uint_eq(now_ns(), START);
		end();
	}
}
END_TEST

static void come_again(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	int *left = user;

	note(of, firing, user);
	if (--*left > 0)
		(void)after(DAY_NS, come_again, user);
}

START_TEST(what_callbacks_schedule_and_periods_are_steps_too)
{
	for (int kind = 0; kind < 2; kind++) {
		int left = 5;
		int steps = 0;
		begin(kinds[kind], 2);
		advance(tick_after(START) - START);
		(void)after(DAY_NS, come_again, &left);
		ww_handle periodic = every(DAY_NS / 2, DAY_NS, 0, note, NULL);
		while (ww_driver_step(driver, START + 5 * DAY_NS + TICK, NULL) > 0)
			steps++;
		ck_assert_int_eq(steps, 10);
		ck_assert_uint_eq(fired_count, 10);
		ck_assert_int_eq(ww_driver_cancel(driver, periodic), 1);
		end();
	}
}
END_TEST

/* A map without gone calls nobody when an entry expires. */
START_TEST(an_expiring_entry_is_a_step)
{
	struct ww_session_config config;
	struct ww_session *map;

	for (int kind = 0; kind < 2; kind++) {
		begin(kinds[kind], 2);
		OK(ww_session_config_default(&config));
		OK(ww_session_create(&map, driver, &config));
		OK(ww_session_set(map, "a", 1, NULL, DAY_NS, NULL));
		OK(ww_session_set(map, "b", 1, NULL, 7 * DAY_NS, NULL));
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), 1);
		ck_assert_uint_eq(now_ns(), tick_after(START + DAY_NS));
		ck_assert_int_eq(ww_session_get(map, "a", 1, NULL), 0);
		ck_assert_int_eq(ww_session_get(map, "b", 1, NULL), 1);
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), 1);
		ck_assert_uint_eq(now_ns(), tick_after(START + 7 * DAY_NS));
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), 0);
		OK(ww_session_destroy(map));
		end();
	}
}
END_TEST

static void step_inside(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)firing;
	*(int *)user = ww_driver_step(of, WW_NEVER, NULL);
}

START_TEST(a_step_is_refused_where_it_cannot_be)
{
	ck_assert_int_eq(ww_driver_step(NULL, WW_NEVER, NULL), WW_EINVAL);
	for (int kind = 0; kind < 2; kind++) {
		struct ww_driver_config config = config_of(kinds[kind], 1);
		int inside = 77;
		begin(kinds[kind], 1);
		ck_assert_int_eq(ww_driver_step(driver, WW_CLOCK_MAX + 1, NULL), WW_EOVERFLOW);
		(void)after(0, step_inside, &inside);
		go(TICK);
		ck_assert_int_eq(inside, WW_EBUSY);
		ck_assert_int_eq(ww_driver_step(driver, WW_CLOCK_MAX, NULL), 0);
		ck_assert_uint_eq(now_ns(), WW_CLOCK_MAX);
		OK(ww_driver_stop(driver, NULL, NULL, NULL));
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), WW_ECLOSED);
		OK(ww_driver_destroy(driver));
		config.clock = ww_clock_elapsed();
		begin_with(&config);
		ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), WW_EINVAL);
		end();
	}
}
END_TEST

TEST_MAIN("driver/simulation", each_step_goes_to_the_next_deadline,
    a_bound_ends_the_steps_and_is_where_the_clock_stands_then, without_anything_pending_the_clock_stays,
    what_callbacks_schedule_and_periods_are_steps_too, an_expiring_entry_is_a_step,
    a_step_is_refused_where_it_cannot_be)
