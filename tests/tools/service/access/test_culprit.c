/* Guessers of tokens: their address rests longer and longer, and those with the most are remembered. */
/* tier: quick */
#include <arpa/inet.h>

#include "tests/support/suite.h"
#include "tools/service/access/culprit.h"
#include "weekwheel/driver.h"

static struct culprits culprits;
static uint32_t number;

static struct address_key key_of(const char *text)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};

	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&address)->sin_addr) != 1) {
		address.ss_family = AF_INET6;
		ck_assert_int_eq(inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&address)->sin6_addr), 1);
	}
	return address_key((struct sockaddr *)&address);
}

static struct address_key key_number(uint32_t i)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};

	((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(i);
	return address_key((struct sockaddr *)&address);
}

static int same(const char *one, const char *other)
{
	struct address_key a = key_of(one);
	struct address_key b = key_of(other);

	return address_key_equal(&a, &b);
}

START_TEST(an_address_has_one_key)
{
	ck_assert(same("192.0.2.1", "::ffff:192.0.2.1"));
	ck_assert(!same("192.0.2.1", "192.0.2.2"));
	ck_assert(!same("::ffff:192.0.2.1", "::ffff:192.0.2.2"));
	ck_assert(same("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff"));
	ck_assert(!same("2001:db8:0:1::1", "2001:db8:0:2::1"));
	/* The first bytes are the same. */
	ck_assert(!same("32.1.13.184", "2001:db8::1"));
}
END_TEST

START_TEST(an_address_rests_twice_as_long_after_each)
{
	struct address_key from = key_of("192.0.2.1");
	struct address_key other = key_of("192.0.2.2");
	uint64_t now = WW_SECOND;
	uint64_t rest = 100 * WW_MILLISECOND;

	culprits = (struct culprits){.failures = 0};
	ck_assert_uint_eq(culprit_rests(&culprits, &from, now), 0);
	for (uint32_t i = 1; i <= 10; i++) {
		ck_assert_uint_eq(culprit_failed(&culprits, &from, now, &number), rest);
		ck_assert_uint_eq(number, i);
		ck_assert_uint_eq(culprit_rests(&culprits, &from, now + 1), rest - 1);
		ck_assert_uint_eq(culprit_rests(&culprits, &other, now), 0);
		now += rest;
		ck_assert_uint_eq(culprit_rests(&culprits, &from, now), 0);
		rest *= i < 7 ? 2 : 1;
	}
	ck_assert_uint_eq(culprits.failures, 10);
	/* It is forgotten. */
	now += 700 * WW_SECOND;
	ck_assert_uint_eq(culprit_failed(&culprits, &from, now, &number), 100 * WW_MILLISECOND);
}
END_TEST

START_TEST(who_waits_has_turns_one_after_the_other)
{
	struct address_key from = key_of("192.0.2.1");
	uint64_t last = 0;
	uint64_t wait;
	int count = 0;

	culprits = (struct culprits){.failures = 0};
	ck_assert_uint_eq(culprit_turn(&culprits, &from, 0), 0);
	for (int i = 0; i < 7; i++)
		(void)culprit_failed(&culprits, &from, 0, &number);
	while ((wait = culprit_turn(&culprits, &from, 0)) != CULPRIT_CROWD) {
		ck_assert_uint_eq(wait, last + 6400 * WW_MILLISECOND);
		last = wait;
		count++;
	}
	/* However many come, this many have a turn within half a minute. */
	ck_assert_int_eq(count, 4);
}
END_TEST

START_TEST(the_worst_is_not_pushed_out)
{
	struct address_key worst = key_of("2001:db8::1");
	uint64_t now = 1;

	culprits = (struct culprits){.failures = 0};
	for (int i = 0; i < 20; i++)
		(void)culprit_failed(&culprits, &worst, now, &number);
	for (uint32_t i = 0; i < 10 * CULPRITS_MAX; i++) {
		struct address_key from = key_number(i);

		(void)culprit_failed(&culprits, &from, ++now, &number);
	}
	/* Ten times as many as there are places had one each: the last begins with as many as those it came after. */
	ck_assert_uint_ge(number, 10);
	(void)culprit_failed(&culprits, &worst, now, &number);
	ck_assert_uint_eq(number, 21);
	ck_assert_uint_gt(culprit_rests(&culprits, &worst, now), 6 * WW_SECOND);
}
END_TEST

START_TEST(one_that_is_answered_at_once_lengthens_no_rest)
{
	struct address_key from = key_of("192.0.2.1");
	uint64_t rest;

	culprits = (struct culprits){.failures = 0};
	rest = culprit_failed(&culprits, &from, 1, &number);
	for (uint32_t i = 2; i < 6; i++)
		ck_assert_uint_eq(culprit_again(&culprits, &from, 2), i);
	ck_assert_uint_eq(culprits.failures, 5);
	ck_assert_uint_eq(culprit_rests(&culprits, &from, 1), rest);
	/* The next rest is that of the sixth. */
	ck_assert_uint_eq(culprit_failed(&culprits, &from, 1 + rest, &number), 3200 * WW_MILLISECOND);
}
END_TEST

TEST_MAIN("weekwheeld/culprit", an_address_has_one_key, an_address_rests_twice_as_long_after_each,
    who_waits_has_turns_one_after_the_other, the_worst_is_not_pushed_out,
    one_that_is_answered_at_once_lengthens_no_rest)
