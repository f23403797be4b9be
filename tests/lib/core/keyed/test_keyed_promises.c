/* Mistakes that other keyed wheels make, a test for each, without threads. test_keyed_threads.c has the rest. */
/* tier: quick, forks */

#include <poll.h>

#include "lib/core/keyed/keyed_internal.h"
#include "tests/lib/core/keyed/fixture.h"
#include "tests/support/worker.h"

/* The slots of the wheel that has these faults, a second each. */
#define SLOTS 300

/* ---- When ------------------------------------------------------------------------------------------------------- */

START_TEST(a_move_by_less_than_a_tick_fires_once)
{
	struct rig *rig = make();

	for (uint64_t delay = 0; delay < S; delay += S / 7) {
		uint64_t now;
		OK(ww_driver_now(rig->driver, &now));
		rig->count = 0;
		ck_assert_int_eq(set(rig, "key", delay, 20 * S), 0);
		OK(move(rig, "key", ANY, delay));
		/* Nor at once: the delay has not passed. */
		settle(rig);
		ck_assert_uint_eq(rig->count, now % S == 0 && delay == 0);
		for (uint32_t i = 0; i < SLOTS; i++)
			pass(rig, S);
		ck_assert_uint_eq(rig->count, 1);
		ck_assert_uint_ge(rig->log[0].now, now + delay);
		ck_assert_uint_lt(rig->log[0].now, rounded_up(now, delay, S) + S);
	}
	unmake(rig);
}
END_TEST

/* Wherever the hand stands, an entry that is set and later moved fires at its new deadline only. */
static void move_exactly(struct rig *rig, uint64_t hand, uint64_t first, uint64_t later, uint64_t second)
{
	uint64_t due = hand + later + second;

	come_to(rig, hand * S);
	rig->count = 0;
	ck_assert_int_eq(set(rig, "key", hand, first * S), 0);
	come_to(rig, (hand + later) * S);
	OK(move(rig, "key", ANY, second * S));
	/* START lies within a tick. The first tick that is not early is a second later. */
	come_to(rig, due * S);
	ck_assert_uint_eq(rig->count, 0);
	come_to(rig, (due + 1) * S);
	ck_assert_uint_eq(rig->count, 1);
	ck_assert_uint_eq(rig->log[0].deadline, START + due * S);
	pass(rig, 2 * SLOTS * S);
	ck_assert_uint_eq(rig->count, 1);
}

START_TEST(a_move_is_exact_at_every_position_of_the_hand)
{
	struct rig *rig = make();
	uint64_t hand = 0;

	/* Each round moves the hand one slot on. */
	for (uint32_t i = 0; i <= SLOTS; i++, hand += 3 * SLOTS + 1)
		move_exactly(rig, hand, 290, 0, 5);
	for (uint32_t i = 0; i <= SLOTS; i++, hand += 6 * SLOTS + 1)
		move_exactly(rig, hand, 290, i % 280, 5 + i % 60);
	for (uint32_t i = 0; i <= SLOTS; i++, hand += 12 * SLOTS + 1)
		move_exactly(rig, hand, 5, 4, 6 + i * 7);
	unmake(rig);
}
END_TEST

START_TEST(delays_are_rounded_up_so_that_nothing_fires_early)
{
	static const uint64_t delays[] = {0, 1, S - 123456789, S - 123456790, S - 123456788, S - 1, S, S + 1,
	    59 * S + 999999999, 60 * S, 3600 * S + 1};
	struct rig *rig = make();

	for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
		uint64_t now, due;
		OK(ww_clock_virtual_advance(rig->clock, i * 1111));
		OK(ww_driver_now(rig->driver, &now));
		due = rounded_up(now, delays[i], S);
		rig->count = 0;
		ck_assert_int_eq(set(rig, "key", i, delays[i]), 0);
		if (due > now) {
			OK(ww_clock_virtual_set(rig->clock, due - 1));
			settle(rig);
			ck_assert_uint_eq(rig->count, 0);
		}
		OK(ww_clock_virtual_set(rig->clock, due));
		settle(rig);
		ck_assert_uint_eq(rig->count, 1);
		ck_assert_uint_ge(rig->log[0].now, rig->log[0].deadline);
	}
	unmake(rig);
}
END_TEST

START_TEST(missed_ticks_are_caught_up)
{
	struct rig *rig = make();
	char key[4] = "000";

	for (uint64_t i = 0; i < 1000; i++) {
		key[0] = (char)('0' + i / 100);
		key[1] = (char)('0' + i / 10 % 10);
		key[2] = (char)('0' + i % 10);
		ck_assert_int_eq(set(rig, key, i, i * 10 * S), 0);
	}
	/* A stall of an hour and more. */
	pass(rig, 4000 * S);
	ck_assert_uint_eq(rig->count, 400);
	for (uint64_t i = 0; i < 400; i++)
		ck_assert_ptr_eq(rig->log[i].value, value_of(i));
	pass(rig, 10000 * S);
	ck_assert_uint_eq(rig->count, 1000);
	unmake(rig);
}
END_TEST

static int is_readable(int fd)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};

	return poll(&wanted, 1, 0) == 1;
}

START_TEST(long_timers_are_not_touched_in_every_turn)
{
	struct rig *rig = make();
	uint64_t looks = 0;

	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_int_eq(ww_keyed_set(rig->keyed, &i, sizeof i, NULL, 6 * 86400 * S, NULL, NULL), 0);
	/* Six days, in steps of a minute: the driver asks for a call only where a timer changes levels. */
	for (uint32_t i = 0; i < 6 * 1440; i++) {
		OK(ww_clock_virtual_advance(rig->clock, 60 * S));
		if (!is_readable(ww_driver_fd(rig->driver)))
			continue;
		looks++;
		settle(rig);
	}
	ck_assert_uint_le(looks, 8);
	ck_assert_uint_le(wheel_stats(rig->keyed->shards[0].source).demoted, 4 * 1000);
	pass(rig, 60 * S);
	ck_assert_uint_eq(rig->count, 1000);
	unmake(rig);
}
END_TEST

/* The eighths of all hashes, as the table sees them, that hold its least and its greatest entry. */
static void find_ends(const struct table *table, uint64_t *least, uint64_t *greatest)
{
	*least = 7;
	*greatest = 0;
	for (uint32_t i = 0; i < table->lines; i++)
		for (uint32_t k = 0; k < TABLE_LINE; k++) {
			uint64_t entry = table_line(table, i)->entry[k];
			if (entry == TABLE_EMPTY)
				continue;
			*least = entry >> 61 < *least ? entry >> 61 : *least;
			*greatest = entry >> 61 > *greatest ? entry >> 61 : *greatest;
		}
}

/* Otherwise all entries of a shard would crowd into a part of its table, and lookups would take long walks. */
START_TEST(a_shard_is_not_chosen_by_bits_that_its_table_uses)
{
	struct rig *rig = make_with(NULL, note, 8);

	for (uint64_t i = 0; i < 8000; i++)
		ck_assert_int_eq(ww_keyed_set(rig->keyed, &i, sizeof i, NULL, S, NULL, NULL), 0);
	for (uint32_t i = 0; i < 8; i++) {
		uint64_t least, greatest;
		find_ends(&rig->keyed->shards[i].table, &least, &greatest);
		ck_assert_uint_ge(table_count(&rig->keyed->shards[i].table), 500);
		ck_assert_uint_eq(least, 0);
		ck_assert_uint_eq(greatest, 7);
	}
	unmake(rig);
}
END_TEST

/* ---- Draining --------------------------------------------------------------------------------------------------- */

START_TEST(keys_are_gone_after_drain_and_a_later_set_fires)
{
	struct rig *rig = make_with(NULL, note, 4);
	size_t count = 0;
	char key[2] = "a";

	for (key[0] = 'a'; key[0] <= 'z'; key[0]++)
		ck_assert_int_eq(set(rig, key, (uint64_t)key[0], 10 * S), 0);
	OK(ww_keyed_drain(rig->keyed, note, rig, &count));
	ck_assert_uint_eq(count, 26);
	ck_assert_uint_eq(rig->count, 26);
	ck_assert_uint_eq(stats_of(rig).entries, 0);
	for (key[0] = 'a'; key[0] <= 'z'; key[0]++) {
		uint32_t handed = 0;
		for (uint32_t i = 0; i < 26; i++)
			handed += strcmp(rig->log[i].key, key) == 0 && rig->log[i].value == value_of((uint64_t)key[0]);
		ck_assert_uint_eq(handed, 1);
		ck_assert_int_eq(move(rig, key, ANY, S), WW_ESTALE);
		ck_assert_int_eq(drop(rig, key, ANY), WW_ESTALE);
		ck_assert_int_eq(has(rig, key), 0);
		ck_assert_int_eq(set(rig, key, 1, 5 * S), 0);
	}
	rig->count = 0;
	pass(rig, 20 * S);
	ck_assert_uint_eq(rig->count, 26);
	for (uint32_t i = 0; i < 26; i++)
		ck_assert_ptr_eq(rig->log[i].value, value_of(1));
	OK(ww_keyed_drain(rig->keyed, note, rig, &count));
	ck_assert_uint_eq(count, 0);
	unmake(rig);
}
END_TEST

static uint32_t drains;

/* Makes every kind of call on the map. */
static void meddle(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *context)
{
	struct rig *rig = context;
	size_t count;

	drains++;
	ck_assert_int_eq(ww_keyed_get(keyed, entry->key, entry->length, NULL, NULL, NULL), 0);
	ck_assert_int_eq(ww_keyed_set(keyed, entry->key, entry->length, value_of(99), 5 * S, NULL, NULL), 0);
	ck_assert_int_eq(ww_keyed_set(keyed, "another", 7, value_of(1), 5 * S, NULL, NULL), 0);
	OK(ww_keyed_move(keyed, "another", 7, ANY, 7 * S));
	OK(ww_keyed_remove(keyed, "another", 7, ANY, NULL));
	if (drains == 3) {
		OK(ww_keyed_drain(keyed, note, rig, &count));
		/* The entries not drained yet, and those set since. */
		ck_assert_uint_ge(count, 3);
	}
}

START_TEST(a_drain_callback_may_set_move_remove_and_drain)
{
	struct rig *rig = make_with(NULL, note, 3);
	size_t count = 0;

	for (uint64_t i = 0; i < 500; i++)
		ck_assert_int_eq(ww_keyed_set(rig->keyed, &i, sizeof i, value_of(i + 100), 10 * S, NULL, NULL), 0);
	OK(ww_keyed_drain(rig->keyed, meddle, rig, &count));
	ck_assert_uint_eq(count, drains);
	/* Each of the 500 is handed out once, by either drain. The outer drain does not reach entries that meddle sets. */
	size_t there = 0;
	for (size_t i = 0; i < rig->count; i++)
		there += rig->log[i].value != value_of(99);
	ck_assert_uint_eq(count + there, 500);
	ck_assert_uint_eq(rig->count - there, 3);
	rig->count = 0;
	pass(rig, 20 * S);
	ck_assert_uint_eq(rig->count, count - 3);
	unmake(rig);
}
END_TEST

START_TEST(a_callback_may_set_move_remove_and_drain)
{
	struct rig *rig = make_with(NULL, meddle, 3);
	size_t count;

	ck_assert_int_eq(set(rig, "a", 1, S), 0);
	pass(rig, 2 * S);
	ck_assert_uint_eq(drains, 1);
	/* The entry it set under its own key is a new timer. */
	ck_assert_uint_eq(at(rig, "a"), 99);
	pass(rig, 7 * S);
	ck_assert_uint_eq(drains, 2);
	OK(ww_keyed_drain(rig->keyed, NULL, NULL, &count));
	ck_assert_uint_eq(count, 1);
	unmake(rig);
}
END_TEST

START_TEST(a_drain_takes_due_entries_that_are_not_dispatched)
{
	struct rig *rig = make();
	size_t count = 0;

	ck_assert_int_eq(set(rig, "a", 1, S), 0);
	ck_assert_int_eq(set(rig, "b", 2, 100 * S), 0);
	OK(ww_clock_virtual_advance(rig->clock, 10 * S));
	OK(ww_keyed_drain(rig->keyed, NULL, NULL, &count));
	ck_assert_uint_eq(count, 2);
	pass(rig, 200 * S);
	ck_assert_uint_eq(rig->count, 0);
	unmake(rig);
}
END_TEST

/* ---- Stopping --------------------------------------------------------------------------------------------------- */

START_TEST(stop_twice_is_harmless_and_set_after_stop_is_refused)
{
	struct rig *rig = make();
	size_t count = 0;
	uint64_t version = 5;

	ck_assert_int_eq(set(rig, "a", 1, S), 0);
	ck_assert_int_eq(set(rig, "b", 2, S), 0);
	OK(ww_keyed_stop(rig->keyed, note, rig, &count));
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(rig->count, 2);
	OK(ww_keyed_stop(rig->keyed, note, rig, &count));
	ck_assert_uint_eq(count, 0);
	OK(ww_keyed_stop(rig->keyed, NULL, NULL, NULL));
	ck_assert_int_eq(ww_keyed_set(rig->keyed, "a", 1, NULL, S, &version, NULL), WW_ECLOSED);
	ck_assert_uint_eq(version, 5);
	ck_assert_int_eq(move(rig, "a", ANY, S), WW_ECLOSED);
	ck_assert_int_eq(drop(rig, "a", ANY), WW_ECLOSED);
	ck_assert_int_eq(has(rig, "a"), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_drain(rig->keyed, NULL, NULL, NULL), WW_ECLOSED);
	pass(rig, 10 * S);
	ck_assert_uint_eq(rig->count, 2);
	unmake(rig);
}
END_TEST

static void refuse_destroy(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	ck_assert_int_eq(ww_keyed_destroy(keyed), WW_EBUSY);
	note(keyed, entry, user);
}

static void stop_again(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	size_t count = 9;

	OK(ww_keyed_stop(keyed, note, user, &count));
	ck_assert_uint_eq(count, 0);
	refuse_destroy(keyed, entry, user);
}

START_TEST(a_function_that_gets_entries_cannot_destroy_and_a_second_stop_takes_none)
{
	struct rig *rig = make_with(NULL, note, 3);
	size_t count = 0;

	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_int_eq(ww_keyed_set(rig->keyed, &i, sizeof i, NULL, S, NULL, NULL), 0);
	OK(ww_keyed_drain(rig->keyed, refuse_destroy, rig, &count));
	ck_assert_uint_eq(count, 1000);
	ck_assert_uint_eq(rig->count, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_int_eq(ww_keyed_set(rig->keyed, &i, sizeof i, NULL, S, NULL, NULL), 0);
	OK(ww_keyed_stop(rig->keyed, stop_again, rig, &count));
	ck_assert_uint_eq(count, 1000);
	ck_assert_uint_eq(rig->count, 2000);
	unmake(rig);
}
END_TEST

static size_t stopped_entries;

static void dispatch_meanwhile(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct rig *rig = user;

	(void)keyed;
	(void)entry;
	stopped_entries++;
	ck_assert_int_ge(ww_driver_dispatch(rig->driver, 100), 0);
}

START_TEST(no_callback_begins_while_a_stop_hands_over)
{
	struct rig *rig = make_with(NULL, note, 8);
	size_t count = 0;

	for (uint64_t i = 0; i < 100; i++)
		ck_assert_int_eq(ww_keyed_set(rig->keyed, &i, sizeof i, NULL, S, NULL, NULL), 0);
	OK(ww_clock_virtual_advance(rig->clock, 2 * S));
	/* The others wait in the queue. */
	ck_assert_int_eq(ww_driver_dispatch(rig->driver, 1), 1);
	OK(ww_keyed_stop(rig->keyed, dispatch_meanwhile, rig, &count));
	ck_assert_uint_eq(count, 99);
	ck_assert_uint_eq(stopped_entries, 99);
	ck_assert_uint_eq(rig->count, 1);
	unmake(rig);
}
END_TEST

static void stop_inside(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	size_t count = 9;

	(void)entry;
	OK(ww_keyed_stop(keyed, note, user, &count));
	ck_assert_uint_eq(count, 2);
}

START_TEST(a_callback_may_stop_its_map)
{
	struct rig *rig = make_with(NULL, stop_inside, 0);

	ck_assert_int_eq(set(rig, "a", 1, S), 0);
	ck_assert_int_eq(set(rig, "b", 1, S), 0);
	ck_assert_int_eq(set(rig, "c", 1, 10 * S), 0);
	pass(rig, 2 * S);
	ck_assert_uint_eq(rig->count, 2);
	unmake(rig);
}
END_TEST

TEST_MAIN("keyed/promises", a_move_by_less_than_a_tick_fires_once, a_move_is_exact_at_every_position_of_the_hand,
    delays_are_rounded_up_so_that_nothing_fires_early, missed_ticks_are_caught_up,
    long_timers_are_not_touched_in_every_turn, keys_are_gone_after_drain_and_a_later_set_fires,
    a_drain_callback_may_set_move_remove_and_drain, a_callback_may_set_move_remove_and_drain,
    a_drain_takes_due_entries_that_are_not_dispatched, stop_twice_is_harmless_and_set_after_stop_is_refused,
    a_function_that_gets_entries_cannot_destroy_and_a_second_stop_takes_none, a_callback_may_stop_its_map,
    no_callback_begins_while_a_stop_hands_over, a_shard_is_not_chosen_by_bits_that_its_table_uses)
