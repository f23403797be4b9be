/* The places of HTTP's clients: who comes gets one, who is slow leaves, and no address has all of them. */
/* tier: quick */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/service/http/visitors.h"

enum { PLACES = 64, EACH = PLACES / 2, ALL = 4 * PLACES };

static struct visitors visitors;
static int pairs[ALL][2];
static int count;

static void begin(void)
{
	visitors_begin(&visitors, PLACES);
	count = 0;
}

/* Returns the number of the visitor. */
static int enter(uint32_t address, uint64_t now)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[count]), 0);
	ck_assert_int_eq(visitors_enter(&visitors, pairs[count][0], (struct sockaddr *)&from, now), 0);
	return count++;
}

static int is_here(int number)
{
	struct pollfd other = {pairs[number][1], POLLIN, 0};

	return poll(&other, 1, 0) == 0;
}

static void finish(void)
{
	for (int i = 0; i < count; i++) {
		visitors_leave(&visitors, pairs[i][0]);
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
	ck_assert_uint_eq(visitors.count, 0);
	ck_assert(TAILQ_EMPTY(&visitors.asking));
	ck_assert(TAILQ_EMPTY(&visitors.answered));
	ck_assert(TAILQ_EMPTY(&visitors.idle));
	ck_assert(TAILQ_EMPTY(&visitors.leaving));
	visitors_end(&visitors);
}

START_TEST(the_oldest_leaves_for_the_newest)
{
	begin();
	for (uint32_t i = 0; i < PLACES; i++)
		(void)enter(i, 0);
	ck_assert_uint_eq(visitors.count, PLACES);
	/* It has just been answered. */
	visitors_note(&visitors, pairs[0][0], 0, 1);
	(void)enter(1000, 2);
	ck_assert(is_here(0));
	ck_assert(!is_here(1));
	ck_assert(is_here(2));
	ck_assert_uint_eq(visitors.count, PLACES);
	ck_assert_uint_eq(visitors.replaced, 1);
	finish();
}
END_TEST

START_TEST(who_waits_for_an_answer_leaves_last)
{
	begin();
	for (uint32_t i = 0; i < PLACES; i++)
		(void)enter(i, 0);
	for (uint32_t i = 0; i < PLACES - 1; i++)
		visitors_note(&visitors, pairs[i][0], 1, 1);
	(void)enter(1000, 2);
	ck_assert(!is_here(PLACES - 1));
	visitors_note(&visitors, pairs[PLACES][0], 1, 3);
	(void)enter(1001, 4);
	ck_assert(!is_here(0));
	ck_assert(is_here(1));
	ck_assert_uint_eq(visitors.replaced, 2);
	finish();
}
END_TEST

START_TEST(an_address_takes_only_its_own_places)
{
	int other;

	begin();
	other = enter(1, 0);
	for (int i = 0; i < 3 * PLACES; i++)
		(void)enter(2, 1);
	ck_assert(is_here(other));
	ck_assert_uint_eq(visitors.count, EACH + 1);
	ck_assert(is_here(count - EACH));
	ck_assert(!is_here(count - EACH - 1));
	finish();
}
END_TEST

START_TEST(requests_and_answers_have_their_time)
{
	int silent;
	int reads;
	int idle;

	begin();
	ck_assert_int_eq(visitors_sweep(&visitors, 0), -1);
	silent = enter(1, 1000);
	reads = enter(2, 1000);
	idle = enter(3, 1000);
	visitors_note(&visitors, pairs[reads][0], 1, 2000);
	visitors_note(&visitors, pairs[idle][0], 1, 2000);
	visitors_note(&visitors, pairs[idle][0], 0, 3000);
	ck_assert_int_eq(visitors_sweep(&visitors, 1000 + REQUEST_MS - 1), 1);
	ck_assert(is_here(silent));
	ck_assert_int_eq(visitors_sweep(&visitors, 1000 + REQUEST_MS), ANSWER_MS - REQUEST_MS + 1000);
	ck_assert(!is_here(silent));
	ck_assert_int_eq(visitors_sweep(&visitors, 3000 + REQUEST_MS), ANSWER_MS - REQUEST_MS - 1000);
	ck_assert(is_here(idle));
	ck_assert(is_here(reads));
	ck_assert_int_eq(visitors_sweep(&visitors, 2000 + ANSWER_MS), IDLE_MS - ANSWER_MS + 1000);
	ck_assert(!is_here(reads));
	ck_assert(is_here(idle));
	ck_assert_int_eq(visitors_sweep(&visitors, 3000 + IDLE_MS), -1);
	ck_assert(!is_here(idle));
	ck_assert_uint_eq(visitors.slow, 3);
	finish();
}
END_TEST

START_TEST(the_largest_leaves_and_what_it_has_is_known)
{
	int one;
	int other;

	begin();
	one = enter(1, 0);
	other = enter(2, 0);
	visitors_note(&visitors, pairs[one][0], 1, 0);
	visitors_note(&visitors, pairs[other][0], 1, 0);
	visitors_owe(&visitors, pairs[one][0], 1000);
	visitors_owe(&visitors, pairs[other][0], 3000);
	ck_assert_uint_eq(visitors_worst(&visitors), 3000);
	ck_assert_uint_eq(visitors_going(&visitors), 0);
	visitors_end_worst(&visitors);
	ck_assert(visitors_is_leaving(&visitors, pairs[other][0]));
	ck_assert(!visitors_is_leaving(&visitors, pairs[one][0]));
	ck_assert_uint_eq(visitors_worst(&visitors), 1000);
	ck_assert_uint_eq(visitors_going(&visitors), 3000);
	visitors_leave(&visitors, pairs[other][0]);
	ck_assert_uint_eq(visitors_going(&visitors), 0);
	finish();
}
END_TEST

TEST_MAIN("weekwheeld/visitors", the_oldest_leaves_for_the_newest, who_waits_for_an_answer_leaves_last,
    an_address_takes_only_its_own_places, requests_and_answers_have_their_time,
    the_largest_leaves_and_what_it_has_is_known)
