/* Recalling: the end of a lifetime outlasts its entry for a while, for a set that does not know of it. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

#define KEPT WW_SESSION_KEEP_END
#define STAYS WW_SESSION_STAY_ENDED
#define WHILE (5 * SEC)

/* Ten seconds idle, a minute in all, and recalled for five seconds. */
static void start(struct rig *rig)
{
	rig_plan(rig);
	rig->of_map.lifetime = 60 * SEC;
	rig_open(rig);
	OK(ww_session_recall(rig->map, WHILE));
}

static int put(struct rig *rig, const char *key, uint32_t flags)
{
	return ww_session_put(
	    rig->map, key, strlen(key), (void *)7, &(struct ww_session_order){.flags = flags}, NULL, NULL);
}

static uint64_t end_left(struct rig *rig, const char *key)
{
	struct ww_session_found it = {0};

	ck_assert_int_eq(ww_session_find(rig->map, key, strlen(key), &it), 1);
	return it.end_left;
}

/* From the beginning of the test; 0: it is not recalled. */
static uint64_t end_of(struct rig *rig, const char *key)
{
	uint64_t end = 4711;
	int recalled = ww_session_ended(rig->map, key, strlen(key), &end);

	ck_assert(recalled == 1 || (recalled == 0 && end == 4711));
	return recalled ? end - START : 0;
}

/* In use, until its lifetime has ended. `notices`: and the driver has noticed. */
static void live_to_the_end(struct rig *rig, const char *key, int notices)
{
	OK(set(rig, key, 1, 0));
	for (int s = 0; s < 60; s += 5) {
		ck_assert_int_eq(refresh(rig, key, 0), 1);
		step(rig, 5 * SEC);
	}
	ck_assert_uint_eq(get(rig, key), 0);
	if (notices)
		pass(rig, MS);
}

START_TEST(what_has_ended_stays_ended_for_that_time)
{
	for (int notices = 0; notices < 2; notices++) {
		struct rig rig;
		uint64_t age = notices ? MS : 0;

		start(&rig);
		live_to_the_end(&rig, "a", notices);
		ck_assert_uint_eq(end_of(&rig, "a"), 60 * SEC);
		ck_assert_int_eq(put(&rig, "a", STAYS), WW_EBACKWARDS);
		ck_assert_int_eq(put(&rig, "a", STAYS | KEPT), WW_EBACKWARDS);
		step(&rig, WHILE - age - 1);
		ck_assert_int_eq(put(&rig, "a", STAYS), WW_EBACKWARDS);
		ck_assert_uint_eq(get(&rig, "a"), 0);
		step(&rig, 1);
		ck_assert_uint_eq(end_of(&rig, "a"), 0);
		OK(put(&rig, "a", STAYS | KEPT));
		ck_assert_uint_eq(end_left(&rig, "a"), 60 * SEC);
		pass(&rig, 0);
		/* What was refused was never in the map. */
		assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(a_lifetime_goes_on_in_what_was_idle)
{
	for (int notices = 0; notices < 2; notices++) {
		struct rig rig;

		start(&rig);
		OK(set(&rig, "a", 1, 0));
		step(&rig, 12 * SEC);
		if (notices)
			pass(&rig, 0);
		ck_assert_uint_eq(end_of(&rig, "a"), 60 * SEC);
		OK(put(&rig, "a", STAYS | KEPT));
		ck_assert_uint_eq(end_left(&rig, "a"), 48 * SEC);
		/* It has an entry again. */
		ck_assert_uint_eq(end_of(&rig, "a"), 0);
		ck_assert_int_eq(erase(&rig, "a"), 1);
		ck_assert_uint_eq(end_of(&rig, "a"), 0);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(a_set_that_does_not_ask_begins_anew)
{
	struct rig rig;
	void *value;

	start(&rig);
	live_to_the_end(&rig, "a", 1);
	OK(put(&rig, "a", 0));
	ck_assert_uint_eq(end_left(&rig, "a"), 60 * SEC);
	ck_assert_int_eq(erase(&rig, "a"), 1);
	/* Nothing is left of the first. */
	OK(put(&rig, "a", STAYS | KEPT));
	ck_assert_uint_eq(end_left(&rig, "a"), 60 * SEC);
	live_to_the_end(&rig, "b", 1);
	OK(set(&rig, "b", 1, 0));
	live_to_the_end(&rig, "c", 1);
	ck_assert_int_eq(ww_session_take(rig.map, "c", 1, load_never, NULL, &value), 0);
	/* An end that goes on can be refused only when it has passed. */
	OK(set(&rig, "d", 1, SEC));
	pass(&rig, 2 * SEC);
	OK(put(&rig, "d", STAYS));
	ck_assert_uint_eq(end_left(&rig, "d"), 60 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(a_rename_to_it_is_refused_too)
{
	struct ww_session_order stays = {.flags = STAYS};
	struct ww_session_order replaces = {.flags = STAYS | WW_SESSION_REPLACE};

	for (int notices = 0; notices < 2; notices++) {
		struct rig rig;

		start(&rig);
		live_to_the_end(&rig, "a", notices);
		OK(set(&rig, "b", 2, 0));
		ck_assert_int_eq(ww_session_rename(rig.map, "b", 1, "a", 1, &stays, NULL, NULL), WW_EBACKWARDS);
		ck_assert_int_eq(ww_session_rename(rig.map, "b", 1, "a", 1, &replaces, NULL, NULL), WW_EBACKWARDS);
		ck_assert_uint_eq(get(&rig, "b"), 2);
		OK(ww_session_rename(rig.map, "b", 1, "c", 1, &stays, NULL, NULL));
		OK(set(&rig, "d", 2, 0));
		OK(ww_session_rename(rig.map, "d", 1, "c", 1, &replaces, NULL, NULL));
		OK(ww_session_rename(rig.map, "c", 1, "a", 1, NULL, NULL, NULL));
		ck_assert_uint_eq(get(&rig, "a"), 2);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(only_what_has_expired_with_a_lifetime_is_recalled)
{
	struct ww_session_order none = {.lifetime = WW_SESSION_NO_END};
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.lifetime = 60 * SEC;
	rig.of_map.limit = 2;
	rig_open(&rig);
	/* Not before it is asked for. */
	OK(set(&rig, "early", 1, SEC));
	pass(&rig, SEC + MS);
	ck_assert_uint_eq(end_of(&rig, "early"), 0);
	OK(ww_session_recall(rig.map, WHILE));
	ck_assert_uint_eq(end_of(&rig, "early"), 0);
	OK(ww_session_put(rig.map, "none", 4, (void *)1, &none, NULL, NULL));
	OK(set(&rig, "deleted", 1, 0));
	ck_assert_int_eq(erase(&rig, "deleted"), 1);
	pass(&rig, 20 * SEC);
	ck_assert_uint_eq(end_of(&rig, "none"), 0);
	ck_assert_uint_eq(end_of(&rig, "deleted"), 0);
	/* One that a full map puts out has not expired, unless it has. */
	OK(set(&rig, "evicted", 1, 0));
	OK(set(&rig, "a", 1, SEC));
	OK(set(&rig, "b", 1, SEC));
	ck_assert_uint_eq(end_of(&rig, "evicted"), 0);
	step(&rig, SEC);
	OK(set(&rig, "c", 1, SEC));
	ck_assert_uint_eq(stats(&rig).evicted, 1);
	ck_assert_uint_ne(end_of(&rig, "a"), 0);
	ck_assert_uint_ne(end_of(&rig, "b"), 0);
	OK(ww_session_clear(rig.map, NULL));
	ck_assert_uint_eq(end_of(&rig, "a"), 0);
	OK(ww_session_recall(rig.map, 0));
	OK(set(&rig, "late", 1, SEC));
	pass(&rig, SEC + MS);
	ck_assert_uint_eq(end_of(&rig, "late"), 0);
	rig_close(&rig);
}
END_TEST

static void expire_meanwhile(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	note(map, key, length, value, why, user);
	if (why != WW_GONE_CLEARED)
		return;
	OK(ww_session_set(map, "meanwhile", 9, value, SEC, NULL));
	pass(user, SEC + MS);
}

START_TEST(a_clear_forgets_what_expires_during_it)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.lifetime = 60 * SEC;
	rig.of_map.gone = expire_meanwhile;
	rig.of_map.user = &rig;
	rig_open(&rig);
	OK(ww_session_recall(rig.map, WHILE));
	OK(set(&rig, "a", 1, 0));
	OK(ww_session_clear(rig.map, NULL));
	assert_last_gone(2, "meanwhile", 1, WW_GONE_EXPIRED);
	ck_assert_uint_eq(end_of(&rig, "meanwhile"), 0);
	rig_close(&rig);
}
END_TEST

/* ---- Many ------------------------------------------------------------------------------------------------------ */

static const char *name_of(char name[32], int number)
{
	/* Some are blocks of their own. */
	(void)snprintf(name, 32, number % 2 ? "%d" : "a key that is longer: %d", number);
	return name;
}

struct seen {
	unsigned char times[20000];
	size_t count;
	int stops_at;
};

static int see(const void *key, size_t length, uint64_t end, uint64_t until, void *context)
{
	struct seen *seen = context;
	char name[32] = {0};
	int number;

	memcpy(name, key, length);
	number = atoi(strchr(name, ':') ? strchr(name, ':') + 2 : name);
	ck_assert_uint_eq(end, START + 60 * SEC);
	ck_assert_uint_eq(until, START + SEC + WHILE);
	seen->count += !seen->times[number]++;
	ck_assert_int_eq(ww_session_recall(NULL, 1), WW_EINVAL);
	return (int)seen->count == seen->stops_at ? 42 : 0;
}

/* In pieces, so that a lock is held only briefly. */
static int see_all(struct rig *rig, struct seen *seen)
{
	uint64_t cursor = 0;
	int answer;

	seen->count = 0;
	do {
		size_t before = seen->count;
		answer = ww_session_recalled(rig->map, &cursor, see, seen);
		ck_assert_uint_le(seen->count, before + 8);
	} while (cursor && !answer);
	return answer;
}

static uint64_t dropped_of(struct rig *rig)
{
	uint64_t dropped = 4711;

	OK(ww_session_recalls_dropped(rig->map, &dropped));
	return dropped;
}

START_TEST(hundreds_are_recalled_and_seen)
{
	enum { MANY = 500 };
	static struct seen seen;
	struct rig rig;
	char name[32];
	size_t before;

	start(&rig);
	for (int i = 0; i < MANY; i++)
		OK(set(&rig, name_of(name, i), 1, SEC));
	before = stats(&rig).bytes;
	pass(&rig, SEC + MS);
	ck_assert_uint_ge(stats(&rig).bytes, before + MANY * 40);
	OK(see_all(&rig, &seen));
	ck_assert_uint_eq(seen.count, MANY);
	for (int i = 0; i < MANY; i++) {
		ck_assert_uint_eq(end_of(&rig, name_of(name, i)), 60 * SEC);
		ck_assert_uint_eq(seen.times[i], 1);
	}
	ck_assert_uint_eq(dropped_of(&rig), 0);
	memset(seen.times, 0, sizeof seen.times);
	seen.stops_at = MANY / 2;
	ck_assert_int_eq(see_all(&rig, &seen), 42);
	ck_assert_uint_eq(seen.count, MANY / 2);
	step(&rig, WHILE - MS);
	OK(see_all(&rig, &seen));
	ck_assert_uint_eq(seen.count, 0);
	rig_close(&rig);
}
END_TEST

START_TEST(beyond_the_bound_those_go_whose_lifetime_goes_on)
{
	enum { ENDED = 300, ALL = 19000 };
	struct rig rig;
	uint64_t end;
	uint64_t kept = 0;
	size_t bytes;
	char name[32];

	start(&rig);
	for (int i = 0; i < ENDED; i++)
		OK(ww_session_remember(rig.map, name_of(name, i), strlen(name_of(name, i)), START, START + SEC));
	for (int i = ENDED; i < ALL; i++)
		OK(set(&rig, name_of(name, i), 1, SEC / 2));
	pass(&rig, SEC / 2 + MS);
	bytes = stats(&rig).bytes;
	for (int i = 0; i < ALL; i++)
		kept += ww_session_ended(rig.map, name_of(name, i), strlen(name_of(name, i)), &end) == 1;
	/* Those that have ended are all there. */
	ck_assert_uint_eq(dropped_of(&rig), 0);
	ck_assert_uint_le(kept, 8192);
	ck_assert_uint_ge(kept, 8000);
	for (int i = 0; i < ENDED; i++)
		ck_assert_int_eq(put(&rig, name_of(name, i), STAYS), WW_EBACKWARDS);
	/* Others take their cells when their time is over. */
	pass(&rig, WHILE);
	for (int i = 0; i < 100; i++)
		OK(set(&rig, name_of(name, i), 1, SEC));
	pass(&rig, SEC + MS);
	ck_assert_uint_le(stats(&rig).bytes, bytes + 4096);
	ck_assert_uint_eq(dropped_of(&rig), 0);
	rig_close(&rig);
}
END_TEST

/* All buckets are full of those that have ended. */
START_TEST(one_whose_lifetime_goes_on_puts_out_none_that_has_ended)
{
	enum { ENDED = 40000, ALL = 41000 };
	struct rig rig;
	uint64_t end;
	uint64_t dropped;
	char name[32];

	start(&rig);
	for (int i = 0; i < ENDED; i++)
		OK(ww_session_remember(rig.map, name_of(name, i), strlen(name_of(name, i)), START, START + SEC));
	dropped = dropped_of(&rig);
	ck_assert_uint_eq(dropped, ENDED - 8192);
	for (int i = ENDED; i < ALL; i++) {
		OK(ww_session_remember(
		    rig.map, name_of(name, i), strlen(name_of(name, i)), START + SEC, START + 2 * SEC));
		ck_assert_int_eq(ww_session_ended(rig.map, name, strlen(name), &end), 0);
	}
	ck_assert_uint_eq(dropped_of(&rig), dropped);
	/* Of two that have ended the one goes that would be forgotten first, be it the new one. */
	OK(ww_session_remember(rig.map, "short", 5, START, START + SEC / 2));
	ck_assert_uint_eq(dropped_of(&rig), dropped + 1);
	ck_assert_int_eq(ww_session_ended(rig.map, "short", 5, &end), 0);
	OK(ww_session_remember(rig.map, "long", 4, START, START + 2 * SEC));
	ck_assert_uint_eq(dropped_of(&rig), dropped + 2);
	ck_assert_int_eq(ww_session_ended(rig.map, "long", 4, &end), 1);
	rig_close(&rig);
}
END_TEST

START_TEST(a_long_key_is_not_recalled)
{
	char key[514] = {0};
	struct rig rig;

	memset(key, 'k', 513);
	start(&rig);
	for (size_t length = 512; length <= 513; length++) {
		size_t bytes = stats(&rig).bytes;
		uint64_t end;
		OK(ww_session_put(
		    rig.map, key, length, (void *)1, &(struct ww_session_order){.lifetime = SEC}, NULL, NULL));
		/* Its entry is still there. */
		step(&rig, SEC);
		ck_assert_int_eq(ww_session_ended(rig.map, key, length, &end), 1);
		pass(&rig, MS);
		ck_assert_int_eq(ww_session_ended(rig.map, key, length, &end), length == 512);
		ck_assert_uint_eq(dropped_of(&rig), length - 512);
		ck_assert_int_eq(stats(&rig).bytes >= bytes + 512, length == 512);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(without_memory_it_is_dropped_and_counted)
{
	struct ww_session_order second = {.lifetime = SEC};
	struct rig rig;

	start(&rig);
	OK(set(&rig, "a", 1, SEC));
	OK(ww_session_put(rig.map, "ended", 5, (void *)1, &second, NULL, NULL));
	OK(set(&rig, "b", 1, SEC + SEC / 2));
	OK(set(&rig, "c", 1, 2 * SEC));
	rig.memory.exhausted = 1;
	pass(&rig, SEC + MS);
	rig.memory.exhausted = 0;
	ck_assert_uint_eq(gone_calls(), 2);
	/* One whose lifetime goes on does not count. */
	ck_assert_uint_eq(dropped_of(&rig), 1);
	ck_assert_uint_eq(end_of(&rig, "a"), 0);
	ck_assert_uint_eq(end_of(&rig, "ended"), 0);
	pass(&rig, SEC);
	ck_assert_uint_eq(end_of(&rig, "b"), 60 * SEC);
	ck_assert_uint_eq(end_of(&rig, "c"), 60 * SEC);
	rig_close(&rig);
}
END_TEST

/* ---- Over a restart, and refusals ------------------------------------------------------------------------------ */

START_TEST(what_another_map_recalled_can_be_remembered)
{
	struct rig rig;

	start(&rig);
	step(&rig, 10 * SEC);
	OK(set(&rig, "there", 1, 0));
	OK(ww_session_remember(rig.map, "there", 5, START, START + 20 * SEC));
	OK(ww_session_remember(rig.map, "over", 4, START, START + 10 * SEC));
	OK(ww_session_remember(rig.map, "a", 1, START + 9 * SEC, START + 9 * SEC));
	OK(ww_session_remember(rig.map, "a", 1, START + 9 * SEC, START + 12 * SEC));
	OK(ww_session_remember(rig.map, "a", 1, START + 8 * SEC, START + 13 * SEC));
	OK(ww_session_remember(rig.map, "", 0, START + 40 * SEC, START + 20 * SEC));
	ck_assert_uint_eq(end_of(&rig, "over"), 0);
	ck_assert_uint_eq(end_of(&rig, "a"), 8 * SEC);
	ck_assert_uint_eq(end_of(&rig, ""), 40 * SEC);
	ck_assert_uint_eq(end_left(&rig, "there"), 60 * SEC);
	step(&rig, 3 * SEC);
	OK(put(&rig, "a", STAYS | KEPT));
	OK(put(&rig, "", STAYS | KEPT));
	ck_assert_uint_eq(end_left(&rig, ""), 27 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(what_waits_for_the_driver_has_its_own_end)
{
	struct rig rig;

	start(&rig);
	OK(set(&rig, "a", 1, SEC));
	step(&rig, 2 * SEC);
	OK(ww_session_remember(rig.map, "a", 1, START + SEC, START + 50 * SEC));
	ck_assert_uint_eq(end_of(&rig, "a"), 60 * SEC);
	/* What begins anew and is deleted leaves nothing to recall. */
	OK(set(&rig, "a", 2, 0));
	ck_assert_int_eq(erase(&rig, "a"), 1);
	ck_assert_uint_eq(end_of(&rig, "a"), 0);
	rig_close(&rig);
}
END_TEST

/* Counts the keys. There is none but this one. */
static int count_it(const void *key, size_t length, uint64_t end, uint64_t until, void *context)
{
	size_t *count = context;

	ck_assert_uint_eq(length, 2);
	ck_assert_mem_eq(key, "it", 2);
	ck_assert_uint_eq(end, START);
	ck_assert_uint_eq(until, START + SEC);
	++*count;
	return 0;
}

/* A call on any map is refused meanwhile, and the thread is not cancelled. */
static int call(const void *key, size_t length, uint64_t end, uint64_t until, void *context)
{
	struct rig *rig = context;
	uint64_t ns;
	int cancel;

	(void)end;
	(void)until;
	ck_assert_int_eq(ww_session_ended(rig->map, key, length, &ns), WW_EBUSY);
	ck_assert_int_eq(ww_session_set(rig->map, key, length, NULL, 0, NULL), WW_EBUSY);
	OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel));
	ck_assert_int_eq(cancel, PTHREAD_CANCEL_DISABLE);
	return 5;
}

START_TEST(asking_is_no_use_and_visits_outlast_a_stop)
{
	struct rig rig;
	uint64_t cursor = 0;
	int answer;

	start(&rig);
	OK(set(&rig, "there", 1, 0));
	OK(ww_session_remember(rig.map, "it", 2, START, START + SEC));
	ck_assert_uint_eq(end_of(&rig, "there"), 0);
	ck_assert_int_eq(ww_session_ended(rig.map, "it", 2, &(uint64_t){0}), 1);
	OK(ww_session_recall(rig.map, 0));
	ck_assert_int_eq(ww_session_ended(rig.map, "it", 2, &(uint64_t){0}), 0);
	OK(ww_session_recall(rig.map, WHILE));
	ck_assert_uint_eq(stats(&rig).hits + stats(&rig).misses, 0);
	OK(ww_driver_stop(rig.driver, NULL, NULL, NULL));
	do
		answer = ww_session_recalled(rig.map, &cursor, call, &rig);
	while (!answer && cursor);
	ck_assert_int_eq(answer, 5);
	/* It is visited again. */
	ck_assert_int_eq(ww_session_recalled(rig.map, &cursor, call, &rig), 5);
	rig_close(&rig);
}
END_TEST

START_TEST(any_number_can_be_a_cursor)
{
	struct rig rig;
	size_t count;

	start(&rig);
	OK(ww_session_remember(rig.map, "it", 2, START, START + SEC));
	for (uint64_t high = 0; high < 3; high++)
		for (uint64_t low = 0; low < 200; low++) {
			uint64_t cursor = (high == 2 ? UINT64_MAX - 100 : high << 32) + low;
			unsigned calls = 0;
			count = 0;
			do
				OK(ww_session_recalled(rig.map, &cursor, count_it, &count));
			while (cursor && ++calls < 10);
			ck_assert_uint_eq(cursor, 0);
			ck_assert_uint_le(count, 1);
		}
	rig_close(&rig);
}
END_TEST

START_TEST(what_is_out_of_range_is_refused)
{
	struct rig rig;
	uint64_t end = 9;

	start(&rig);
	ck_assert_int_eq(ww_session_recall(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_session_recall(rig.map, WW_SESSION_TTL_MAX + 1), WW_EINVAL);
	OK(ww_session_recall(rig.map, WW_SESSION_TTL_MAX));
	ck_assert_int_eq(ww_session_ended(rig.map, "a", 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_ended(rig.map, NULL, 1, &end), WW_EINVAL);
	ck_assert_int_eq(ww_session_ended(NULL, "a", 1, &end), WW_EINVAL);
	ck_assert_int_eq(ww_session_recalled(rig.map, &end, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_recalled(rig.map, NULL, see, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_recalls_dropped(rig.map, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_remember(rig.map, "a", 1, 0, START + SEC), WW_EINVAL);
	ck_assert_int_eq(ww_session_remember(rig.map, "a", 1, WW_DRIVER_TIME_MAX + 1, START + SEC), WW_EINVAL);
	ck_assert_int_eq(ww_session_remember(rig.map, NULL, 1, START, START + SEC), WW_EINVAL);
	ck_assert_uint_eq(end, 9);
	OK(ww_driver_stop(rig.driver, NULL, NULL, NULL));
	ck_assert_int_eq(ww_session_ended(rig.map, "a", 1, &end), WW_ECLOSED);
	ck_assert_int_eq(ww_session_remember(rig.map, "a", 1, START, START + SEC), WW_ECLOSED);
	ck_assert_int_eq(ww_session_recall(rig.map, 1), WW_ECLOSED);
	OK(ww_session_recalls_dropped(rig.map, &end));
	rig_close(&rig);
	rig_start(&rig);
	ck_assert_int_eq(ww_session_recall(rig.map, 1), WW_EINVAL);
	ck_assert_int_eq(ww_session_remember(rig.map, "a", 1, START, START + SEC), WW_EINVAL);
	OK(put(&rig, "a", STAYS | KEPT));
	ck_assert_int_eq(ww_session_ended(rig.map, "a", 1, &end), 0);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/recall", what_has_ended_stays_ended_for_that_time, a_lifetime_goes_on_in_what_was_idle,
    a_set_that_does_not_ask_begins_anew, a_rename_to_it_is_refused_too,
    only_what_has_expired_with_a_lifetime_is_recalled, a_clear_forgets_what_expires_during_it,
    hundreds_are_recalled_and_seen, beyond_the_bound_those_go_whose_lifetime_goes_on,
    one_whose_lifetime_goes_on_puts_out_none_that_has_ended, a_long_key_is_not_recalled,
    without_memory_it_is_dropped_and_counted, what_another_map_recalled_can_be_remembered,
    what_waits_for_the_driver_has_its_own_end, asking_is_no_use_and_visits_outlast_a_stop, any_number_can_be_a_cursor,
    what_is_out_of_range_is_refused)
