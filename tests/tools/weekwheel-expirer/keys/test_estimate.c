/* The estimate of Redis's time is never ahead of it, and close, over slow answers, drift and steps. */
/* tier: quick */
#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/weekwheel-expirer/keys/estimate.h"

#define SECOND INT64_C(1000000000)

enum { ROUNDS = 20000 };

static uint64_t state;

/* Redis's clock: ahead by `offset` ns at local time 0, and `ppm` faster. */
struct remote {
	int64_t offset;
	int64_t ppm;
};

static int64_t remote_at(const struct remote *remote, uint64_t local)
{
	return (int64_t)local + remote->offset + (int64_t)(local / 1000000) * remote->ppm;
}

/* Ask at a local time; the way there and the way back take what they take. Returns the step. */
static int64_t ask(
    struct estimate *estimate, const struct remote *remote, uint64_t *local, uint64_t there, uint64_t back)
{
	uint64_t sent = *local;
	int64_t told = remote_at(remote, sent + there) / 1000;

	*local = sent + there + back;
	return estimate_add(estimate, sent, *local, told);
}

START_TEST(it_is_never_ahead_and_close)
{
	struct remote remote = {.offset = 1700000000 * SECOND, .ppm = 100};
	struct estimate estimate = {.count = 0};
	uint64_t local = 5 * SECOND;

	state = seed_of_run("test_estimate");
	for (int i = 0; i < ROUNDS; i++) {
		/* One in ten answers is slow, on one of its ways. */
		uint64_t slow = seed_below(&state, 10) ? 0 : seed_below(&state, 50000000);
		int is_there = (int)seed_below(&state, 2);
		uint64_t later;

		if (i % 1000 == 0)
			remote.offset += (remote.ppm - -remote.ppm) * (int64_t)(local / 1000000),
			    remote.ppm = -remote.ppm;
		ck_assert_int_eq(
		    ask(&estimate, &remote, &local, 40000 + seed_below(&state, 40000) + (is_there ? slow : 0),
		        40000 + seed_below(&state, 40000) + (is_there ? 0 : slow)),
		    0);
		later = local + seed_below(&state, 200000000);
		ck_assert_int_le(estimate_reached(&estimate, later), remote_at(&remote, later));
		ck_assert_int_ge(estimate_latest(&estimate, later), remote_at(&remote, later));
		if (i > ESTIMATE_SAMPLES)
			ck_assert_int_le(
			    estimate_latest(&estimate, later) - estimate_reached(&estimate, later), 1500000);
		local = later;
	}
}
END_TEST

START_TEST(both_clocks_may_be_off)
{
	/* One a 2,000th ahead, the other behind. */
	static const int64_t paces[] = {-1000, 1000};

	for (size_t i = 0; i < sizeof paces / sizeof *paces; i++) {
		struct remote remote = {.offset = 1700000000 * SECOND, .ppm = paces[i]};
		struct estimate estimate = {.count = 0};
		uint64_t local = 5 * SECOND;

		(void)ask(&estimate, &remote, &local, 1000, 1000);
		local += 20 * SECOND;
		ck_assert_int_le(estimate_reached(&estimate, local), remote_at(&remote, local));
		ck_assert_int_ge(estimate_latest(&estimate, local), remote_at(&remote, local));
	}
}
END_TEST

START_TEST(a_step_is_followed_at_the_next_answer)
{
	static const int64_t steps[] = {3600 * SECOND, -3600 * SECOND, SECOND / 100, -SECOND / 100};
	struct remote remote = {.offset = 1700000000 * SECOND};
	struct estimate estimate = {.count = 0};
	uint64_t local = 5 * SECOND;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		int64_t step;

		for (int k = 0; k < 100; k++, local += 200000000)
			ck_assert_int_eq(ask(&estimate, &remote, &local, 50000, 50000), 0);
		remote.offset += steps[i];
		step = ask(&estimate, &remote, &local, 50000, 50000);
		ck_assert_int_eq(step > 0, steps[i] > 0);
		ck_assert_int_le(llabs(step - steps[i]), 1000000);
		ck_assert_int_le(estimate_reached(&estimate, local), remote_at(&remote, local));
		ck_assert_int_ge(estimate_reached(&estimate, local), remote_at(&remote, local) - 101000);
	}
}
END_TEST

START_TEST(an_answer_after_a_stall_is_no_step)
{
	struct remote remote = {.offset = 1700000000 * SECOND};
	struct estimate estimate = {.count = 0};
	uint64_t local = 5 * SECOND;

	ck_assert_uint_eq(estimate_trip(&estimate), 0);
	(void)ask(&estimate, &remote, &local, 50000, 50000);
	ck_assert_int_eq(ask(&estimate, &remote, &local, 30 * SECOND, 50000), 0);
	ck_assert_int_eq(ask(&estimate, &remote, &local, 50000, 30 * SECOND), 0);
	ck_assert_uint_eq(estimate_trip(&estimate), 100000);
	ck_assert_int_le(estimate_reached(&estimate, local), remote_at(&remote, local));
}
END_TEST

TEST_MAIN("expirer/estimate", it_is_never_ahead_and_close, both_clocks_may_be_off,
    a_step_is_followed_at_the_next_answer, an_answer_after_a_stall_is_no_step)
