/*
 * Two million random steps on a map and on its oracle, an array searched from end to end.
 *
 * WW_MODEL_OPS sets the number of steps, WW_SEED the seed, which is printed.
 */
/* tier: check, every-build, no-valgrind */

#include "tests/lib/core/keyed/fixture.h"
#include "tests/support/seed.h"

#define STEPS UINT64_C(2000000)
#define KEYS 200

struct expected {
	int present;
	uint64_t deadline;
	uint64_t version;
	uint64_t value;
};

static struct expected oracle[KEYS];
static uint64_t state;
static uint64_t values;
static uint64_t tick;

static uint64_t below(uint64_t limit)
{
	return seed_below(&state, limit);
}

static uint64_t time_of(struct rig *rig)
{
	uint64_t now = 0;

	ck_assert(ww_driver_now(rig->driver, &now) == WW_OK);
	return now;
}

/* Keys of 2 to 41 bytes: some fit into their records, some do not. */
static size_t write_key(char *text, uint32_t key)
{
	size_t length = 2 + key % 40;

	memset(text, 'k', length);
	text[0] = (char)(key % 256);
	text[1] = (char)(key / 256);
	return length;
}

static void check_fired(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct rig *rig = user;
	const unsigned char *text = entry->key;
	uint32_t key = text[0] + text[1] * 256u;

	(void)keyed;
	ck_assert(key < KEYS);
	struct expected *expected = &oracle[key];
	ck_assert(expected->present == 1);
	ck_assert(rounded_up(expected->deadline, 0, tick) <= time_of(rig));
	ck_assert(entry->deadline == expected->deadline);
	ck_assert(entry->version == expected->version);
	ck_assert(entry->value == value_of(expected->value));
	expected->present = 0;
}

/* Assert that no due entry is left. */
static void check_none_late(struct rig *rig)
{
	uint64_t now = time_of(rig);

	for (uint32_t i = 0; i < KEYS; i++)
		if (oracle[i].present && rounded_up(oracle[i].deadline, 0, tick) <= now)
			ck_abort_msg(
			    "key %u of deadline %" PRIu64 " has not fired at %" PRIu64, i, oracle[i].deadline, now);
}

static uint64_t a_delay(void)
{
	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return below(tick);
	case 2:
		return below(10 * tick);
	case 3:
		return below(300) * tick;
	case 4:
		return below(300 * tick);
	case 5:
		return below(4000 * tick);
	case 6:
		return below(100000 * tick);
	default:
		return 5 * tick;
	}
}

static void set_one(struct rig *rig, uint32_t key, uint64_t now)
{
	struct expected *expected = &oracle[key];
	uint64_t delay = a_delay(), version = 0, value = ++values;
	char text[64];
	size_t length = write_key(text, key);
	void *former = rig;

	ck_assert(
	    ww_keyed_set(rig->keyed, text, length, value_of(value), delay, &version, &former) == expected->present);
	ck_assert(former == (expected->present ? value_of(expected->value) : NULL));
	ck_assert(version != expected->version);
	*expected = (struct expected){1, now + delay, version, value};
}

/* The entry's version, a stale one, or ANY. *stale says whether it must be refused. */
static uint64_t a_version(const struct expected *expected, int *stale)
{
	uint64_t kind = below(4);

	*stale = !expected->present || kind == 0;
	if (kind == 0)
		return expected->version + 1;
	return kind == 1 ? ANY : expected->version;
}

static void move_one(struct rig *rig, uint32_t key, uint64_t now)
{
	struct expected *expected = &oracle[key];
	uint64_t delay = a_delay();
	char text[64];
	size_t length = write_key(text, key);
	int stale;
	uint64_t version = a_version(expected, &stale);

	ck_assert(ww_keyed_move(rig->keyed, text, length, version, delay) == (stale ? WW_ESTALE : WW_OK));
	if (!stale)
		expected->deadline = now + delay;
}

static void remove_one(struct rig *rig, uint32_t key)
{
	struct expected *expected = &oracle[key];
	char text[64];
	size_t length = write_key(text, key);
	void *value = NULL;
	int stale;
	uint64_t version = a_version(expected, &stale);

	ck_assert(ww_keyed_remove(rig->keyed, text, length, version, &value) == (stale ? WW_ESTALE : WW_OK));
	if (!stale) {
		ck_assert(value == value_of(expected->value));
		expected->present = 0;
	}
}

static void get_one(struct rig *rig, uint32_t key, uint64_t now)
{
	struct expected *expected = &oracle[key];
	uint64_t left, version;
	char text[64];
	size_t length = write_key(text, key);
	void *value;

	ck_assert(ww_keyed_get(rig->keyed, text, length, &value, &left, &version) == expected->present);
	if (!expected->present)
		return;
	ck_assert(value == value_of(expected->value));
	ck_assert(version == expected->version);
	ck_assert(left == (expected->deadline > now ? expected->deadline - now : 0));
}

static void let_time_pass(struct rig *rig)
{
	static const uint64_t most[] = {1, 2, 2, 10, 70, 400};

	OK(ww_clock_virtual_advance(rig->clock, below(most[below(6)] * tick) + 1));
	switch (below(4)) {
	case 0:
		/* Nobody dispatches for a while: due entries are set, moved and removed. */
		break;
	case 1:
		/* The rest stays in the queue, and is set, moved and removed there. */
		ck_assert(ww_driver_dispatch(rig->driver, 1 + (uint32_t)below(3)) >= 0);
		break;
	default:
		OK(ww_driver_settle(rig->driver));
		check_none_late(rig);
	}
}

static void step(struct rig *rig)
{
	uint32_t key = (uint32_t)below(KEYS);
	uint64_t now = time_of(rig);

	switch (below(20)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
	case 5:
		set_one(rig, key, now);
		break;
	case 6:
	case 7:
		remove_one(rig, key);
		break;
	case 8:
	case 9:
		get_one(rig, key, now);
		break;
	case 10:
	case 11:
	case 12:
		let_time_pass(rig);
		break;
	default:
		move_one(rig, key, now);
	}
}

static void check_drain(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	const unsigned char *text = entry->key;
	struct expected *expected = &oracle[text[0] + text[1] * 256u];

	(void)keyed;
	(void)user;
	ck_assert(expected->present == 1);
	ck_assert(entry->version == expected->version);
	ck_assert(entry->value == value_of(expected->value));
	expected->present = 0;
}

static void run_steps(uint64_t steps, uint64_t tick_ns, uint32_t shards)
{
	struct ww_driver_config config = quiet_config();
	size_t count;

	tick = config.tick_ns = tick_ns;
	memset(oracle, 0, sizeof oracle);
	struct rig *rig = make_with(&config, check_fired, shards);
	for (uint64_t i = 0; i < steps; i++) {
		step(rig);
		if (below(100000) == 0) {
			ck_assert(ww_keyed_drain(rig->keyed, check_drain, NULL, &count) == WW_OK);
			for (uint32_t k = 0; k < KEYS; k++)
				ck_assert(oracle[k].present == 0);
		}
	}
	struct ww_keyed_stats stats = stats_of(rig);
	ck_assert(stats.set == stats.fired + stats.replaced + stats.removed + stats.drained + stats.entries);
	unmake(rig);
}

START_TEST(millions_of_random_steps_agree_with_an_oracle)
{
	const char *text = getenv("WW_MODEL_OPS");
	uint64_t steps = text && *text ? strtoull(text, NULL, 0) : STEPS;

	state = seed_of_run("keyed/oracle");
	run_steps(steps - steps / 4, S, 0);
	run_steps(steps / 4, MS, 5);
}
END_TEST

TEST_MAIN("keyed/oracle", millions_of_random_steps_agree_with_an_oracle)
