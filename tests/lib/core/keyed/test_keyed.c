/* Keyed maps: the answer and the effect of each function, in one thread. */
/* tier: check, core */

#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/core/keyed/fixture.h"

/* ---- One key ---------------------------------------------------------------------------------------------------- */

START_TEST(an_entry_fires_once_with_everything_that_was_set)
{
	struct rig *rig = make();
	uint64_t version = 0;
	void *former = rig;

	ck_assert_int_eq(ww_keyed_set(rig->keyed, "key", 3, value_of(7), 5 * S, &version, &former), 0);
	ck_assert_ptr_null(former);
	ck_assert_uint_ne(version, ANY);
	pass(rig, 4 * S);
	ck_assert_uint_eq(rig->count, 0);
	pass(rig, 2 * S);
	ck_assert_uint_eq(rig->count, 1);
	ASSERT_LOGGED(rig, 0, "key", 7);
	ck_assert_uint_eq(rig->log[0].version, version);
	ck_assert_uint_eq(rig->log[0].deadline, START + 5 * S);
	pass(rig, 1000 * S);
	ck_assert_uint_eq(rig->count, 1);
	ck_assert_int_eq(has(rig, "key"), 0);
	unmake(rig);
}
END_TEST

START_TEST(a_replaced_value_is_handed_out_and_never_fires)
{
	struct rig *rig = make();
	void *former = NULL;

	ck_assert_int_eq(set(rig, "key", 1, 5 * S), 0);
	ck_assert_int_eq(ww_keyed_set(rig->keyed, "key", 3, value_of(2), 10 * S, NULL, &former), 1);
	ck_assert_ptr_eq(former, value_of(1));
	pass(rig, 7 * S);
	ck_assert_uint_eq(rig->count, 0);
	pass(rig, 7 * S);
	ck_assert_uint_eq(rig->count, 1);
	ASSERT_LOGGED(rig, 0, "key", 2);
	unmake(rig);
}
END_TEST

START_TEST(absolute_deadlines_are_met_and_past_ones_fire_at_once)
{
	struct rig *rig = make();

	ck_assert_int_eq(ww_keyed_set_at(rig->keyed, "late", 4, NULL, START + 3 * S, NULL, NULL), 0);
	ck_assert_int_eq(ww_keyed_set_at(rig->keyed, "past", 4, NULL, 0, NULL, NULL), 0);
	settle(rig);
	ASSERT_LOGGED(rig, 0, "past", 0);
	pass(rig, 4 * S);
	ASSERT_LOGGED(rig, 1, "late", 0);
	ck_assert_uint_eq(rig->log[1].deadline, START + 3 * S);
	unmake(rig);
}
END_TEST

START_TEST(get_returns_value_time_left_and_version)
{
	struct rig *rig = make();
	uint64_t set_to = set_version(rig, "key", 5, 100 * S);
	uint64_t version = 1, left = 1;
	void *value = rig;

	pass(rig, 30 * S);
	ck_assert_int_eq(ww_keyed_get(rig->keyed, "key", 3, &value, &left, &version), 1);
	ck_assert_ptr_eq(value, value_of(5));
	ck_assert_uint_eq(left, 70 * S);
	ck_assert_uint_eq(version, set_to);
	ck_assert_int_eq(ww_keyed_get(rig->keyed, "kex", 3, &value, &left, &version), 0);
	ck_assert_ptr_eq(value, value_of(5));
	ck_assert_uint_eq(left, 70 * S);
	ck_assert_uint_eq(version, set_to);
	/* Due, but not dispatched yet. */
	OK(ww_clock_virtual_advance(rig->clock, 71 * S));
	ck_assert_int_eq(ww_keyed_get(rig->keyed, "key", 3, NULL, &left, NULL), 1);
	ck_assert_uint_eq(left, 0);
	unmake(rig);
}
END_TEST

START_TEST(a_stale_version_changes_nothing)
{
	struct rig *rig = make();
	uint64_t first = set_version(rig, "key", 1, 5 * S);
	uint64_t second = set_version(rig, "key", 2, 5 * S);
	void *value = rig;

	ck_assert_uint_ne(first, second);
	ck_assert_int_eq(move(rig, "key", first, 100 * S), WW_ESTALE);
	ck_assert_int_eq(ww_keyed_remove(rig->keyed, "key", 3, first, &value), WW_ESTALE);
	ck_assert_ptr_eq(value, rig);
	ck_assert_int_eq(move(rig, "key", UINT64_MAX, 100 * S), WW_ESTALE);
	pass(rig, 6 * S);
	ASSERT_LOGGED(rig, 0, "key", 2);
	/* Once it has fired, its version is stale, also for the next entry under the key. */
	ck_assert_int_eq(drop(rig, "key", second), WW_ESTALE);
	ck_assert_int_eq(drop(rig, "key", ANY), WW_ESTALE);
	uint64_t third = set_version(rig, "key", 3, 5 * S);
	ck_assert_int_eq(drop(rig, "key", second), WW_ESTALE);
	ck_assert_int_eq(drop(rig, "key", third), WW_OK);
	ck_assert_int_eq(drop(rig, "key", third), WW_ESTALE);
	unmake(rig);
}
END_TEST

START_TEST(a_version_survives_moves)
{
	struct rig *rig = make();
	uint64_t version = set_version(rig, "key", 1, 5 * S);

	for (uint64_t i = 1; i < 50; i++)
		OK(move(rig, "key", version, i * 7 * S % (31 * S) + 2 * S));
	OK(drop(rig, "key", version));
	unmake(rig);
}
END_TEST

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

START_TEST(versions_never_repeat_in_a_map)
{
	struct rig *rig = make_with(NULL, note, 7);
	static uint64_t seen[10000];
	char key[] = "aa";

	for (uint64_t i = 0; i < 10000; i++) {
		key[0] = (char)('a' + i % 26);
		key[1] = (char)('a' + i / 26 % 5);
		seen[i] = set_version(rig, key, i, S);
		if (i % 3 == 0)
			OK(drop(rig, key, seen[i]));
		if (i % 1000 == 0)
			pass(rig, 2 * S);
	}
	qsort(seen, 10000, sizeof *seen, by_number);
	for (size_t i = 1; i < 10000; i++)
		ck_assert_uint_ne(seen[i - 1], seen[i]);
	unmake(rig);
}
END_TEST

START_TEST(a_remove_hands_the_value_out)
{
	struct rig *rig = make();
	void *value = NULL;

	ck_assert_int_eq(set(rig, "key", 9, 5 * S), 0);
	OK(ww_keyed_remove(rig->keyed, "key", 3, ANY, &value));
	ck_assert_ptr_eq(value, value_of(9));
	pass(rig, 10 * S);
	ck_assert_uint_eq(rig->count, 0);
	ck_assert_int_eq(has(rig, "key"), 0);
	unmake(rig);
}
END_TEST

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

static size_t handed_length;
static unsigned char handed_key[WW_KEYED_LENGTH_MAX];

static void keep_key(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	(void)keyed;
	(void)user;
	ck_assert_ptr_nonnull(entry->key);
	handed_length = entry->length;
	memcpy(handed_key, entry->key, entry->length);
}

START_TEST(keys_of_every_length_are_copied)
{
	static const size_t lengths[] = {0, 1, 7, 8, 15, 16, 17, 24, 240, 241, 4096, 65534, 65535};
	struct rig *rig = make_with(NULL, keep_key, 0);

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		size_t length = lengths[i];
		unsigned char *key = malloc(length + 1);
		ck_assert_ptr_nonnull(key);
		for (size_t k = 0; k < length; k++)
			key[k] = (unsigned char)(k * 7 + i);
		ck_assert_int_eq(ww_keyed_set(rig->keyed, key, length, NULL, S, NULL, NULL), 0);
		ck_assert_int_eq(ww_keyed_get(rig->keyed, key, length, NULL, NULL, NULL), 1);
		if (length) {
			key[length - 1] ^= 1;
			ck_assert_int_eq(ww_keyed_get(rig->keyed, key, length, NULL, NULL, NULL), 0);
			key[length - 1] ^= 1;
		}
		pass(rig, 2 * S);
		ck_assert_uint_eq(handed_length, length);
		ck_assert_mem_eq(handed_key, key, length);
		free(key);
	}
	unmake(rig);
}
END_TEST

START_TEST(an_empty_key_is_a_key)
{
	struct rig *rig = make();

	ck_assert_int_eq(ww_keyed_set(rig->keyed, NULL, 0, value_of(1), S, NULL, NULL), 0);
	ck_assert_int_eq(ww_keyed_set(rig->keyed, "x", 0, value_of(2), S, NULL, NULL), 1);
	ck_assert_int_eq(ww_keyed_get(rig->keyed, NULL, 0, NULL, NULL, NULL), 1);
	OK(ww_keyed_move(rig->keyed, NULL, 0, ANY, 2 * S));
	pass(rig, 3 * S);
	ASSERT_LOGGED(rig, 0, "", 2);
	unmake(rig);
}
END_TEST

START_TEST(keys_that_differ_in_length_or_in_a_zero_byte_are_different)
{
	struct rig *rig = make();

	ck_assert_int_eq(ww_keyed_set(rig->keyed, "a", 1, value_of(1), S, NULL, NULL), 0);
	ck_assert_int_eq(ww_keyed_set(rig->keyed, "a\0", 2, value_of(2), S, NULL, NULL), 0);
	ck_assert_int_eq(ww_keyed_set(rig->keyed, "a\0\0", 3, value_of(3), S, NULL, NULL), 0);
	ck_assert_uint_eq(stats_of(rig).entries, 3);
	ck_assert_uint_eq(at(rig, "a"), 1);
	unmake(rig);
}
END_TEST

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

START_TEST(invalid_arguments_are_refused)
{
	struct rig *rig = make();
	struct ww_keyed *keyed = rig->keyed, *other = NULL;
	struct ww_keyed_config config = {.fn = note, .shards = WW_DRIVER_SHARDS_MAX + 1};
	struct ww_keyed_stats stats;
	static char longer[WW_KEYED_LENGTH_MAX + 1];

	ck_assert_int_eq(ww_keyed_create(&other, rig->driver, &config), WW_EINVAL);
	config = (struct ww_keyed_config){.fn = note, .share = WW_DRIVER_SHARE_MAX + 1};
	ck_assert_int_eq(ww_keyed_create(&other, rig->driver, &config), WW_EINVAL);
	config = (struct ww_keyed_config){.fn = NULL};
	ck_assert_int_eq(ww_keyed_create(&other, rig->driver, &config), WW_EINVAL);
	config.fn = note;
	ck_assert_int_eq(ww_keyed_create(NULL, rig->driver, &config), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_create(&other, NULL, &config), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_create(&other, rig->driver, NULL), WW_EINVAL);
	ck_assert_ptr_null(other);
	config = (struct ww_keyed_config){.fn = note, .shards = WW_DRIVER_SHARDS_MAX, .share = WW_DRIVER_SHARE_MAX};
	OK(ww_keyed_create(&other, rig->driver, &config));
	OK(ww_keyed_destroy(other));
	OK(ww_keyed_destroy(NULL));
	ck_assert_int_eq(ww_keyed_stop(NULL, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_drain(NULL, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_stats(NULL, &stats), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_stats(keyed, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_set(NULL, "k", 1, NULL, 0, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_set_at(NULL, "k", 1, NULL, 0, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_set(keyed, NULL, 1, NULL, 0, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_set(keyed, longer, sizeof longer, NULL, 0, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_move(NULL, "k", 1, ANY, 0), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_move(keyed, NULL, 1, ANY, 0), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_remove(NULL, "k", 1, ANY, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_remove(keyed, longer, sizeof longer, ANY, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_get(NULL, "k", 1, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_keyed_get(keyed, NULL, 1, NULL, NULL, NULL), WW_EINVAL);
	unmake(rig);
}
END_TEST

START_TEST(deadlines_beyond_the_end_are_refused_and_change_nothing)
{
	struct rig *rig = make();
	uint64_t most = WW_DRIVER_TIME_MAX - START;
	uint64_t version = 77, left = 0;
	void *former = rig;

	ck_assert_int_eq(set(rig, "key", 1, 5 * S), 0);
	ck_assert_int_eq(ww_keyed_set(rig->keyed, "key", 3, NULL, most + 1, &version, &former), WW_EOVERFLOW);
	ck_assert_int_eq(ww_keyed_set(rig->keyed, "new", 3, NULL, UINT64_MAX, &version, &former), WW_EOVERFLOW);
	ck_assert_int_eq(
	    ww_keyed_set_at(rig->keyed, "new", 3, NULL, WW_DRIVER_TIME_MAX + 1, &version, &former), WW_EOVERFLOW);
	ck_assert_int_eq(move(rig, "key", ANY, most + 1), WW_EOVERFLOW);
	ck_assert_uint_eq(version, 77);
	ck_assert_ptr_eq(former, rig);
	ck_assert_uint_eq(stats_of(rig).entries, 1);
	ck_assert_int_eq(ww_keyed_get(rig->keyed, "key", 3, NULL, &left, NULL), 1);
	ck_assert_uint_eq(left, 5 * S);
	OK(move(rig, "key", ANY, most));
	ck_assert_int_eq(set(rig, "new", 1, most), 0);
	unmake(rig);
}
END_TEST

static void refuses_all(struct rig *rig)
{
	struct ww_keyed *keyed = rig->keyed;
	size_t count = 5;

	ck_assert_int_eq(ww_keyed_set(keyed, "k", 1, NULL, 0, NULL, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_set_at(keyed, "k", 1, NULL, 0, NULL, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_move(keyed, "k", 1, ANY, 0), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_remove(keyed, "k", 1, ANY, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_get(keyed, "k", 1, NULL, NULL, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_drain(keyed, note, rig, &count), WW_ECLOSED);
	ck_assert_uint_eq(count, 5);
}

START_TEST(a_stopped_driver_refuses_but_stop_still_hands_out)
{
	struct rig *rig = make();
	struct ww_keyed_config config = {.fn = note};
	struct ww_keyed *other = NULL;
	size_t count = 0;

	ck_assert_int_eq(set(rig, "k", 1, 5 * S), 0);
	OK(ww_driver_stop(rig->driver, NULL, NULL, &count));
	ck_assert_uint_eq(count, 0);
	refuses_all(rig);
	ck_assert_int_eq(ww_keyed_create(&other, rig->driver, &config), WW_ECLOSED);
	OK(ww_keyed_stop(rig->keyed, note, rig, &count));
	ck_assert_uint_eq(count, 1);
	ASSERT_LOGGED(rig, 0, "k", 1);
	unmake(rig);
}
END_TEST

START_TEST(a_forked_child_can_only_destroy)
{
	struct rig *rig = make();
	int status = -1;

	ck_assert_int_eq(set(rig, "k", 1, 5 * S), 0);
	ck_assert_int_eq(set(rig, "a key that is longer than a record", 1, 5 * S), 0);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		struct ww_keyed_stats stats;
		refuses_all(rig);
		ck_assert_int_eq(ww_keyed_stop(rig->keyed, note, rig, NULL), WW_ECLOSED);
		ck_assert_int_eq(ww_keyed_stats(rig->keyed, &stats), WW_ECLOSED);
		OK(ww_keyed_destroy(rig->keyed));
		OK(ww_driver_destroy(rig->driver));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	pass(rig, 6 * S);
	ck_assert_uint_eq(rig->count, 2);
	unmake(rig);
}
END_TEST

/* The child ends inside the function. */
static void destroy_in_child(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct rig *rig = user;
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(ww_keyed_destroy(keyed) == WW_OK && ww_driver_destroy(rig->driver) == WW_OK ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	note(keyed, entry, user);
}

START_TEST(a_child_forked_in_a_function_of_the_map_can_destroy)
{
	struct rig *rig = make_with(NULL, destroy_in_child, 0);

	ck_assert_int_eq(set(rig, "a", 1, 5 * S), 0);
	ck_assert_int_eq(set(rig, "b", 1, 50 * S), 0);
	pass(rig, 6 * S);
	ck_assert_uint_eq(rig->count, 1);
	OK(ww_keyed_drain(rig->keyed, destroy_in_child, rig, NULL));
	ck_assert_uint_eq(rig->count, 2);
	unmake(rig);
}
END_TEST

/* ---- Many maps -------------------------------------------------------------------------------------------------- */

static void count(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	(void)keyed;
	(void)entry;
	++*(size_t *)user;
}

START_TEST(maps_get_turns_by_their_shares)
{
	struct rig *rig = make();
	size_t calls[2] = {0};
	struct ww_keyed *maps[2];

	for (uint32_t i = 0; i < 2; i++) {
		const struct ww_keyed_config config = {.fn = count, .user = &calls[i], .share = i ? 3 : 0};
		OK(ww_keyed_create(&maps[i], rig->driver, &config));
		for (uint32_t key = 0; key < 1000; key++)
			ck_assert_int_eq(ww_keyed_set(maps[i], &key, sizeof key, NULL, S, NULL, NULL), 0);
	}
	OK(ww_clock_virtual_advance(rig->clock, 2 * S));
	/* On a virtual clock each call counts the same. */
	ck_assert_int_eq(ww_driver_dispatch(rig->driver, 800), 800);
	ck_assert_uint_ge(calls[0], 100);
	ck_assert_uint_ge(calls[1], 500);
	settle(rig);
	ck_assert_uint_eq(calls[0] + calls[1], 2000);
	for (int i = 0; i < 2; i++)
		OK(ww_keyed_destroy(maps[i]));
	unmake(rig);
}
END_TEST

START_TEST(maps_of_one_driver_are_independent)
{
	struct rig *rig = make();
	struct ww_keyed_config config = {.fn = note, .user = rig, .shards = 3};
	struct ww_keyed *maps[20];

	for (uint64_t i = 0; i < 20; i++) {
		OK(ww_keyed_create(&maps[i], rig->driver, &config));
		ck_assert_int_eq(ww_keyed_set(maps[i], "k", 1, value_of(i), (i + 1) * S, NULL, NULL), 0);
	}
	ck_assert_int_eq(ww_driver_destroy(rig->driver), WW_EBUSY);
	OK(ww_keyed_destroy(maps[4]));
	OK(ww_keyed_drain(maps[7], NULL, NULL, NULL));
	pass(rig, 30 * S);
	ck_assert_uint_eq(rig->count, 18);
	for (uint32_t i = 0; i < 20; i++)
		if (i != 4)
			OK(ww_keyed_destroy(maps[i]));
	unmake(rig);
}
END_TEST

START_TEST(stats_count_every_call_and_expiry)
{
	struct rig *rig = make_with(NULL, note, 5);
	char key[2] = "a";

	for (key[0] = 'a'; key[0] <= 'z'; key[0]++)
		ck_assert_int_eq(set(rig, key, 1, 10 * S), 0);
	ck_assert_int_eq(set(rig, "a", 1, 20 * S), 1);
	OK(move(rig, "b", ANY, 20 * S));
	OK(drop(rig, "c", ANY));
	pass(rig, 11 * S);
	OK(ww_keyed_drain(rig->keyed, NULL, NULL, NULL));
	struct ww_keyed_stats stats = stats_of(rig);
	ck_assert_uint_eq(stats.set, 27);
	ck_assert_uint_eq(stats.replaced, 1);
	ck_assert_uint_eq(stats.moved, 1);
	ck_assert_uint_eq(stats.removed, 1);
	ck_assert_uint_eq(stats.fired, 23);
	ck_assert_uint_eq(stats.drained, 2);
	ck_assert_uint_eq(stats.entries, 0);
	ck_assert_uint_eq(stats.dropped, 0);
	unmake(rig);
}
END_TEST

TEST_MAIN("keyed/keyed", an_entry_fires_once_with_everything_that_was_set,
    a_replaced_value_is_handed_out_and_never_fires, absolute_deadlines_are_met_and_past_ones_fire_at_once,
    get_returns_value_time_left_and_version, a_stale_version_changes_nothing, a_version_survives_moves,
    versions_never_repeat_in_a_map, a_remove_hands_the_value_out, keys_of_every_length_are_copied,
    an_empty_key_is_a_key, keys_that_differ_in_length_or_in_a_zero_byte_are_different, invalid_arguments_are_refused,
    deadlines_beyond_the_end_are_refused_and_change_nothing, a_stopped_driver_refuses_but_stop_still_hands_out,
    a_forked_child_can_only_destroy, a_child_forked_in_a_function_of_the_map_can_destroy,
    maps_get_turns_by_their_shares, maps_of_one_driver_are_independent, stats_count_every_call_and_expiry)
