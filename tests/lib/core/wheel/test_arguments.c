/* Every function refuses NULL and impossible numbers with the right error, and changes nothing. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"

static int never_called(struct ww_timer *timer, uint64_t deadline, void *user)
{
	(void)timer;
	(void)deadline;
	(void)user;
	ck_abort_msg("called in spite of an error");
	return 1;
}

/* A wheel with timers in every level, outside and due, and one that is idle. */
struct scene {
	struct placed placed;
	struct ww_wheel *wheel;
	struct ww_timer pending[7];
	struct ww_timer idle;
	struct ww_timer before[8];
};

static void set_scene(struct scene *scene, uint32_t flags)
{
	static const uint64_t delays[7] = {0, 5, 100, 5000, 100000, WEEK, 2 * WEEK};
	struct ww_wheel_config config;

	OK(ww_wheel_config_default(&config));
	config.start = 1000;
	config.flags = flags;
	scene->placed = place(&config);
	scene->wheel = scene->placed.wheel;
	OK(ww_timer_init(&scene->idle, note));
	for (size_t i = 0; i < 7; i++) {
		OK(ww_timer_init(&scene->pending[i], note));
		if (flags == 0 || delays[i] <= WEEK) {
			OK(ww_wheel_schedule(scene->wheel, &scene->pending[i], delays[i]));
		}
	}
	freeze(&scene->placed);
	memcpy(scene->before, scene->pending, sizeof scene->pending);
	scene->before[7] = scene->idle;
}

static void assert_nothing_changed(struct scene *scene)
{
	ck_assert(is_frozen(&scene->placed));
	ck_assert_mem_eq(scene->before, scene->pending, sizeof scene->pending);
	ck_assert_mem_eq(&scene->before[7], &scene->idle, sizeof scene->idle);
	ck_assert_uint_eq(recorded, 0);
}

START_TEST(null_is_refused_by_every_function_that_creates_or_destroys)
{
	size_t bytes = 0;
	struct ww_wheel *wheel = NULL;
	_Alignas(64) static unsigned char memory[16 * 1024];

	OK(ww_wheel_size(NULL, &bytes));
	ck_assert_int_eq(ww_wheel_config_default(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_size(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_create(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_create_at(NULL, memory, sizeof memory, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_create_at(&wheel, NULL, sizeof memory, NULL), WW_EINVAL);
	ck_assert_ptr_null(wheel);
	OK(ww_wheel_destroy(NULL));
}
END_TEST

START_TEST(null_is_refused_by_every_function_of_timers)
{
	struct scene scene;
	uint64_t out = 4711;

	set_scene(&scene, 0);
	ck_assert_int_eq(ww_timer_init(NULL, note), WW_EINVAL);
	ck_assert_int_eq(ww_timer_pending(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_timer_deadline(NULL, &out), WW_EINVAL);
	ck_assert_int_eq(ww_timer_deadline(&scene.pending[1], NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule(NULL, &scene.idle, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule(scene.wheel, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_at(NULL, &scene.idle, 2000), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_at(scene.wheel, NULL, 2000), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_every(NULL, &scene.idle, 1, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, NULL, 1, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_every_at(NULL, &scene.idle, 2000, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_every_at(scene.wheel, NULL, 2000, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_reschedule(NULL, &scene.pending[1], 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_reschedule(scene.wheel, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_reschedule_at(NULL, &scene.pending[1], 2000), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_reschedule_at(scene.wheel, NULL, 2000), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_cancel(NULL, &scene.pending[1]), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_cancel(scene.wheel, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_time_left(NULL, &scene.pending[1], &out), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_time_left(scene.wheel, NULL, &out), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_time_left(scene.wheel, &scene.pending[1], NULL), WW_EINVAL);
	ck_assert_uint_eq(out, 4711);
	assert_nothing_changed(&scene);
	unplace(&scene.placed);
}
END_TEST

START_TEST(null_is_refused_by_every_function_of_time_and_of_all_timers)
{
	struct scene scene;
	struct ww_expiry batch[4];
	struct ww_stats stats;
	uint64_t out = 4711;
	size_t count = 4711;
	char text[8] = "before";

	set_scene(&scene, 0);
	ck_assert_uint_eq(ww_wheel_now(NULL), WW_NEVER);
	ck_assert_uint_eq(ww_wheel_horizon(NULL), WW_NEVER);
	ck_assert_int_eq(ww_wheel_advance(NULL, 2000, 1, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_advance_batch(NULL, 2000, batch, 4, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_advance_batch(scene.wheel, 2000, NULL, 4, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_advance_batch(scene.wheel, 2000, batch, 4, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_next(NULL, &out), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_next(scene.wheel, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_deadline_ns(NULL, 1, &out), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_deadline_ns(scene.wheel, 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_now_ns(NULL, 1, &out), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_now_ns(scene.wheel, 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_drain(NULL, batch, 4, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_drain(scene.wheel, NULL, 4, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_drain(scene.wheel, batch, 4, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_drain(scene.wheel, batch, 0, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_each(NULL, never_called, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_each(scene.wheel, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_stats(NULL, &stats), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_stats(scene.wheel, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_check(NULL, text, sizeof text), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_check(scene.wheel, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_dump(NULL, text, sizeof text), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_dump(scene.wheel, NULL, 1), WW_EINVAL);
	ck_assert_uint_eq(out, 4711);
	ck_assert_uint_eq(count, 4711);
	ck_assert_str_eq(text, "before");
	assert_nothing_changed(&scene);
	unplace(&scene.placed);
}
END_TEST

START_TEST(a_time_beyond_the_last_is_an_overflow_and_changes_nothing)
{
	struct scene scene;

	set_scene(&scene, 0);
	for (size_t i = 0; i < INVALID_TIMES; i++) {
		uint64_t time = invalid_times[i].time;
		struct ww_timer *timers[] = {&scene.idle, &scene.pending[0], &scene.pending[1], &scene.pending[6]};
		size_t count = 4711;

		for (size_t k = 0; k < 4; k++) {
			ck_assert_int_eq(ww_wheel_schedule(scene.wheel, timers[k], time), WW_EOVERFLOW);
			ck_assert_int_eq(ww_wheel_schedule_at(scene.wheel, timers[k], time), WW_EOVERFLOW);
			ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, timers[k], time, 1), WW_EOVERFLOW);
			ck_assert_int_eq(ww_wheel_schedule_every_at(scene.wheel, timers[k], time, 1), WW_EOVERFLOW);
			ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, timers[k], 1, time), WW_EINVAL);
			ck_assert_int_eq(ww_wheel_schedule_every_at(scene.wheel, timers[k], 2000, time), WW_EINVAL);
			if (k > 0) {
				ck_assert_int_eq(ww_wheel_reschedule(scene.wheel, timers[k], time), WW_EOVERFLOW);
				ck_assert_int_eq(ww_wheel_reschedule_at(scene.wheel, timers[k], time), WW_EOVERFLOW);
			}
		}
		ck_assert_int_eq(ww_wheel_advance(scene.wheel, time, WW_UNLIMITED, &count), WW_EOVERFLOW);
		ck_assert_uint_eq(count, 4711);
		assert_nothing_changed(&scene);
	}
	unplace(&scene.placed);
}
END_TEST

START_TEST(now_plus_delay_beyond_the_last_time_is_an_overflow_and_changes_nothing)
{
	struct scene scene;

	set_scene(&scene, 0);
	for (uint64_t over = 1; over <= 1000; over += 111) {
		uint64_t delay = WW_TIME_MAX - 1000 + over;

		ck_assert_int_eq(ww_wheel_schedule(scene.wheel, &scene.idle, delay), WW_EOVERFLOW);
		ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, &scene.idle, delay, 1), WW_EOVERFLOW);
		ck_assert_int_eq(ww_wheel_reschedule(scene.wheel, &scene.pending[2], delay), WW_EOVERFLOW);
		assert_nothing_changed(&scene);
	}
	OK(ww_wheel_schedule(scene.wheel, &scene.idle, WW_TIME_MAX - 1000));
	ck_assert_int_eq(ww_wheel_reschedule(scene.wheel, &scene.pending[2], WW_TIME_MAX - 1000), 1);
	assert_sound(scene.wheel);
	unplace(&scene.placed);
}
END_TEST

START_TEST(a_period_of_0_is_refused_and_changes_nothing)
{
	struct scene scene;

	set_scene(&scene, 0);
	ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, &scene.idle, 1, 0), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_every_at(scene.wheel, &scene.idle, 2000, 0), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, &scene.pending[3], 1, 0), WW_EINVAL);
	assert_nothing_changed(&scene);
	unplace(&scene.placed);
}
END_TEST

START_TEST(a_bounded_wheel_refuses_deadlines_beyond_the_horizon_and_changes_nothing)
{
	struct scene scene;

	set_scene(&scene, WW_WHEEL_BOUNDED);
	for (size_t i = 0; i < VALID_TIMES; i++) {
		uint64_t delay = valid_times[i].time;

		if (delay <= WEEK || delay > WW_TIME_MAX - 1000) {
			continue;
		}
		ck_assert_int_eq(ww_wheel_schedule(scene.wheel, &scene.idle, delay), WW_ERANGE);
		ck_assert_int_eq(ww_wheel_schedule_at(scene.wheel, &scene.idle, 1000 + delay), WW_ERANGE);
		ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, &scene.idle, delay, 1), WW_ERANGE);
		ck_assert_int_eq(ww_wheel_schedule_every(scene.wheel, &scene.idle, 1, delay), WW_ERANGE);
		ck_assert_int_eq(ww_wheel_schedule_every_at(scene.wheel, &scene.idle, 1000 + delay, 1), WW_ERANGE);
		ck_assert_int_eq(ww_wheel_schedule_every_at(scene.wheel, &scene.idle, 2000, delay), WW_ERANGE);
		ck_assert_int_eq(ww_wheel_reschedule(scene.wheel, &scene.pending[1], delay), WW_ERANGE);
		ck_assert_int_eq(ww_wheel_reschedule_at(scene.wheel, &scene.pending[1], 1000 + delay), WW_ERANGE);
		assert_nothing_changed(&scene);
	}
	OK(ww_wheel_schedule(scene.wheel, &scene.idle, WEEK));
	ck_assert_int_eq(ww_wheel_reschedule(scene.wheel, &scene.pending[1], WEEK), 1);
	OK(ww_wheel_schedule_every(scene.wheel, &scene.pending[2], WEEK, WEEK));
	OK(ww_wheel_schedule_at(scene.wheel, &scene.pending[3], 0));
	assert_sound(scene.wheel);
	unplace(&scene.placed);
}
END_TEST

START_TEST(every_error_has_its_own_text)
{
	static char texts[-WW_ECORRUPT][256];

	for (int i = 0; i < -WW_ECORRUPT; i++) {
		strncpy(texts[i], ww_strerror(-1 - i), sizeof texts[i] - 1);
		ck_assert_uint_gt(strlen(texts[i]), 0);
		for (int k = 0; k < i; k++) {
			ck_assert_str_ne(texts[i], texts[k]);
		}
	}
}
END_TEST

TEST_MAIN("wheel/arguments", null_is_refused_by_every_function_that_creates_or_destroys,
    null_is_refused_by_every_function_of_timers, null_is_refused_by_every_function_of_time_and_of_all_timers,
    a_time_beyond_the_last_is_an_overflow_and_changes_nothing,
    now_plus_delay_beyond_the_last_time_is_an_overflow_and_changes_nothing,
    a_period_of_0_is_refused_and_changes_nothing,
    a_bounded_wheel_refuses_deadlines_beyond_the_horizon_and_changes_nothing, every_error_has_its_own_text)
