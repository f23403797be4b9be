/* Keys wait in order, however many come and go, and of any length. */
/* tier: quick */
#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/weekwheel-expirer/keys/waiting.h"

enum { ROUNDS = 200000, MOST = 5000 };

/* The length and the bytes of a key follow from its number. */
static size_t length_of(uint64_t number)
{
	return number % 1000 == 0 ? 60000 : number % 50;
}

static void drop(struct waiting *waiting, uint64_t number)
{
	size_t at = waiting->head;
	size_t length;
	const char *key = waiting_at(waiting, &at, &length);

	ck_assert_ptr_nonnull(key);
	ck_assert_uint_eq(length, length_of(number));
	for (size_t i = 0; i < length; i++)
		ck_assert_int_eq(key[i], (char)number);
	waiting_drop(waiting);
}

START_TEST(first_in_first_out)
{
	struct waiting waiting = {.bytes = NULL};
	uint64_t state = seed_of_run("test_waiting");
	char key[60000];
	size_t length;

	for (int i = 0; i < seed_rounds(ROUNDS); i++) {
		/* Once it grows, once it shrinks. */
		int grows = waiting.added - waiting.dropped < MOST && i / 20000 % 2 == 0;

		if (seed_below(&state, 4) ? grows : !grows) {
			memset(key, (char)waiting.added, sizeof key);
			ck_assert_int_eq(waiting_add(&waiting, key, length_of(waiting.added)), 0);
		} else if (!waiting_is_empty(&waiting)) {
			drop(&waiting, waiting.dropped);
		}
	}
	while (!waiting_is_empty(&waiting))
		drop(&waiting, waiting.dropped);
	ck_assert_uint_eq(waiting.added, waiting.dropped);
	ck_assert_ptr_null(waiting_at(&waiting, &waiting.head, &length));
	waiting_free(&waiting);
}
END_TEST

TEST_MAIN("expirer/waiting", first_in_first_out)
