/* The queue of handshakes: their order, what a turn takes, and who leaves before. */
/* tier: quick */
#include <string.h>
#include <uv.h>

#include "tests/support/suite.h"
#include "tools/service/net/shake.h"

enum { MANY = 5, TURN_NS = 1000000 };

static struct shakes shakes;
static struct shake one[MANY];
static int turns_asked;
static char done[20]; /* the numbers of those that went on, in their order */
static int is_long;
static struct shake *again; /* has more bytes when it goes on */

static void wake(void *context)
{
	++*(int *)context;
}

static void go_on(struct shake *shake)
{
	uint64_t end = uv_hrtime() + TURN_NS;

	done[strlen(done)] = (char)('0' + (shake - one));
	while (is_long && uv_hrtime() < end)
		continue;
	if (shake == again) {
		again = NULL;
		shake_wait(&shakes, shake);
	}
}

/* All of them wait. */
static void begin(void)
{
	/* Cases may run in one process. */
	memset(&shakes, 0, sizeof shakes);
	memset(one, 0, sizeof one);
	memset(done, 0, sizeof done);
	turns_asked = 0;
	again = NULL;
	shakes_begin(&shakes, wake, &turns_asked);
	for (int i = 0; i < MANY; i++) {
		one[i].go_on = go_on;
		shake_wait(&shakes, &one[i]);
	}
	ck_assert_int_eq(turns_asked, MANY);
}

START_TEST(they_go_on_in_the_order_in_which_they_came)
{
	begin();
	shake_wait(&shakes, &one[0]);
	ck_assert_int_eq(turns_asked, MANY);
	for (int i = 0; i < MANY; i++)
		shake_turn(&shakes);
	ck_assert_str_eq(done, "01234");
	/* Nobody waits: no turn is asked for. */
	turns_asked = 0;
	shake_turn(&shakes);
	ck_assert_int_eq(turns_asked, 0);
	ck_assert_str_eq(done, "01234");
}
END_TEST

START_TEST(a_long_one_has_a_turn_alone)
{
	begin();
	is_long = 1;
	for (int i = 1; i <= MANY; i++) {
		turns_asked = 0;
		shake_turn(&shakes);
		ck_assert_uint_eq(strlen(done), (size_t)i);
		ck_assert_int_eq(turns_asked, i < MANY);
	}
	is_long = 0;
}
END_TEST

/* Nobody may take two turns while others have none. */
START_TEST(one_with_more_bytes_comes_behind_the_others)
{
	begin();
	again = &one[0];
	for (int i = 0; i <= MANY; i++)
		shake_turn(&shakes);
	ck_assert_str_eq(done, "012340");
}
END_TEST

START_TEST(who_leaves_is_not_called)
{
	begin();
	shake_leave(&shakes, &one[0]);
	shake_leave(&shakes, &one[2]);
	shake_leave(&shakes, &one[4]);
	shake_leave(&shakes, &one[4]);
	for (int i = 0; i < MANY; i++)
		shake_turn(&shakes);
	ck_assert_str_eq(done, "13");
}
END_TEST

TEST_MAIN("service/net/shake", they_go_on_in_the_order_in_which_they_came, a_long_one_has_a_turn_alone,
    one_with_more_bytes_comes_behind_the_others, who_leaves_is_not_called)
