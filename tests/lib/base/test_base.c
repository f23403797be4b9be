/*
 * The helpers that all libraries share: the random generator's sequence, and times that are added, split and waited
 * for.
 */
/* tier: quick */
#include <errno.h>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "tests/support/suite.h"

/* The sequence that the generator's authors give for the seed 0. Seeds that reproduce a failure depend on it. */
static const uint64_t sequence[] = {
    UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4), UINT64_C(0x06c45d188009454f)};

START_TEST(a_seed_always_gives_the_same_sequence)
{
	uint64_t state = 0;
	_Atomic uint64_t shared = 0;

	for (size_t i = 0; i < sizeof sequence / sizeof *sequence; i++) {
		ck_assert_uint_eq(random_next(&state), sequence[i]);
		ck_assert_uint_eq(random_next_shared(&shared), sequence[i]);
	}
	state = 0;
	ck_assert_uint_eq(random_below(&state, 10), sequence[0] % 10);
	ck_assert_uint_eq(random_below(&state, 1), 0);
}
END_TEST

START_TEST(a_sum_of_times_ends_at_the_last_one)
{
	ck_assert_uint_eq(time_add(1, 2), 3);
	ck_assert_uint_eq(time_add(1, UINT64_MAX - 1), UINT64_MAX);
	ck_assert_uint_eq(time_add(2, UINT64_MAX - 1), UINT64_MAX);
	ck_assert_uint_eq(time_add(UINT64_MAX, UINT64_MAX), UINT64_MAX);
	ck_assert_int_eq(time_spec(3 * TIME_SECOND + 7).tv_sec, 3);
	ck_assert_int_eq(time_spec(3 * TIME_SECOND + 7).tv_nsec, 7);
}
END_TEST

START_TEST(the_time_left_is_rounded_up_and_an_hour_at_most)
{
	uint64_t now = time_now(CLOCK_MONOTONIC);

	ck_assert_int_eq(time_left_ms(now), 0);
	ck_assert_int_eq(time_left_ms(0), 0);
	ck_assert_int_eq(time_left_ms(UINT64_MAX), 3600000);
	ck_assert_int_le(time_left_ms(now + 60 * TIME_SECOND), 60000);
	ck_assert_int_gt(time_left_ms(now + 60 * TIME_SECOND), 0);
}
END_TEST

START_TEST(a_wait_ends_at_its_deadline)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;
	uint64_t deadline = time_now(CLOCK_MONOTONIC) + TIME_SECOND / 100;
	int result;

	ck_assert_int_eq(time_cond_init(&cond), 0);
	pthread_mutex_lock(&lock);
	do
		result = time_wait(&cond, &lock, deadline);
	while (result == 0);
	pthread_mutex_unlock(&lock);
	ck_assert_int_eq(result, ETIMEDOUT);
	ck_assert_uint_ge(time_now(CLOCK_MONOTONIC), deadline);
	pthread_cond_destroy(&cond);
}
END_TEST

TEST_MAIN("base/base", a_seed_always_gives_the_same_sequence, a_sum_of_times_ends_at_the_last_one,
    the_time_left_is_rounded_up_and_an_hour_at_most, a_wait_ends_at_its_deadline)
