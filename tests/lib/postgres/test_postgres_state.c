/* The clock of PostgreSQL, as the owner of a store estimates it: from below, so that no job is early. */
/* tier: quick */
#include "lib/postgres/state.h"

#include <string.h>
#include <time.h>

#include "lib/postgres/postgres_internal.h"
#include "tests/support/suite.h"

static uint64_t now;

/* Time passes as the test says. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now / WW_SECOND), .tv_nsec = (long)(now % WW_SECOND)};
	return 0;
}

static struct postgres postgres;

/* An answer comes when PostgreSQL's clock is ahead of this one by so much, and took so long on its way. */
static uint64_t ahead_after(uint64_t ahead, uint64_t took)
{
	int64_t said = (int64_t)((now + ahead) / WW_MICROSECOND);

	now += took;
	ww_postgres_state_clock(&postgres, said);
	return postgres.ahead;
}

static void begin(void)
{
	memset(&postgres, 0, sizeof postgres);
	now = 1000 * WW_SECOND;
}

START_TEST(an_answer_that_took_long_does_not_put_the_estimate_back)
{
	const uint64_t ahead = 50 * WW_SECOND;

	begin();
	ck_assert_uint_eq(ahead_after(ahead, 0), ahead);
	/* But for what two clocks may drift apart. */
	ck_assert_uint_ge(ahead_after(ahead, 90 * WW_MILLISECOND), ahead - WW_MILLISECOND);
	ck_assert_uint_le(postgres.ahead, ahead);
}
END_TEST

START_TEST(the_estimate_is_never_more_than_what_an_answer_says_or_once_said)
{
	const uint64_t ahead = 50 * WW_SECOND;

	begin();
	ck_assert_uint_eq(ahead_after(ahead, 30 * WW_MILLISECOND), ahead - 30 * WW_MILLISECOND);
	ck_assert_uint_eq(ahead_after(ahead, 10 * WW_MILLISECOND), ahead - 10 * WW_MILLISECOND);
	/* After long it is no better than a late answer. */
	now += 1000 * WW_SECOND;
	ck_assert_uint_eq(ahead_after(ahead, 80 * WW_MILLISECOND), ahead - 80 * WW_MILLISECOND);
}
END_TEST

START_TEST(a_clock_that_was_set_is_followed)
{
	const uint64_t ahead = 50 * WW_SECOND;

	begin();
	(void)ahead_after(ahead, 0);
	ck_assert_uint_eq(ahead_after(ahead + WW_SECOND, 0), ahead + WW_SECOND);
	ck_assert_uint_eq(ahead_after(ahead - WW_SECOND, 0), ahead - WW_SECOND);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {an_answer_that_took_long_does_not_put_the_estimate_back,
	    the_estimate_is_never_more_than_what_an_answer_says_or_once_said, a_clock_that_was_set_is_followed};

	return suite_run("postgres/state", tests, sizeof tests / sizeof *tests);
}
