/* Keyed maps with threads: workers, and callers that race. */
/* tier: quick, threads, no-valgrind */

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/lib/core/keyed/fixture.h"
#include "tests/support/seed.h"

static struct ww_driver_config threads_config(uint32_t workers)
{
	struct ww_driver_config config;

	OK(ww_driver_config_default(&config));
	config.workers = workers;
	config.tick_ns = S;
	return config;
}

/* ---- Slow callbacks --------------------------------------------------------------------------------------------- */

/* Callbacks with the value SLOW wait here. */
#define SLOW 1

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int open_gate;
static uint32_t running, most_running, ended;

static void wait_at_gate(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct ww_keyed_entry copy = *entry;

	pthread_mutex_lock(&gate);
	running++;
	if (running > most_running)
		most_running = running;
	pthread_cond_broadcast(&change);
	while (entry->value == value_of(SLOW) && !open_gate)
		pthread_cond_wait(&change, &gate);
	running--;
	ended++;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&gate);
	ck_assert_mem_eq(entry, &copy, sizeof copy);
	note(keyed, entry, user);
}

static void wait_for(const uint32_t *number, uint32_t least)
{
	pthread_mutex_lock(&gate);
	while (*number < least)
		pthread_cond_wait(&change, &gate);
	pthread_mutex_unlock(&gate);
}

static void let_through(void)
{
	pthread_mutex_lock(&gate);
	open_gate = 1;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&gate);
}

START_TEST(one_slow_callback_delays_nothing_else)
{
	/* One of them is kept for the driver's own timers. */
	struct ww_driver_config config = threads_config(3);
	struct rig *rig = make_with(&config, wait_at_gate, 1);
	char key[] = "key 0";

	ck_assert_int_eq(set(rig, "slow", SLOW, S), 0);
	OK(ww_clock_virtual_advance(rig->clock, 2 * S));
	wait_for(&running, 1);
	/*
	 * In the same shard: entries of later slots and of the same one, new entries, and one under the slow entry's
	 * key.
	 */
	for (uint32_t i = 0; i < 10; i++) {
		key[4] = (char)('0' + i);
		ck_assert_int_eq(set(rig, key, 2, 0), 0);
		ck_assert_int_eq(set(rig, "slow", 2, S), 0);
		OK(ww_clock_virtual_advance(rig->clock, 2 * S));
		wait_for(&ended, 2 * i + 2);
	}
	ck_assert_uint_eq(running, 1);
	ck_assert_uint_eq(stats_of(rig).entries, 0);
	let_through();
	settle(rig);
	ck_assert_uint_eq(rig->count, 21);
	unmake(rig);
}
END_TEST

START_TEST(running_callbacks_are_bounded_across_slots)
{
	/* One of them is kept for the driver's own timers. */
	struct ww_driver_config config = threads_config(4);
	struct rig *rig = make_with(&config, wait_at_gate, 4);
	struct ww_driver_stats stats;
	char key[] = "a";

	for (uint64_t i = 0; i < 12; i++, key[0]++)
		ck_assert_int_eq(set(rig, key, SLOW, (i + 1) * S), 0);
	for (uint32_t i = 0; i < 14; i++)
		OK(ww_clock_virtual_advance(rig->clock, S));
	do {
		OK(ww_driver_stats(rig->driver, &stats));
		sched_yield();
	} while (stats.queued < 9);
	wait_for(&running, 3);
	ck_assert_uint_eq(stats_of(rig).entries, 9);
	let_through();
	settle(rig);
	ck_assert_uint_eq(rig->count, 12);
	ck_assert_uint_eq(most_running, 3);
	unmake(rig);
}
END_TEST

static void *open_later(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < 1000; i++)
		sched_yield();
	let_through();
	return NULL;
}

START_TEST(destroy_waits_for_callbacks_that_run)
{
	struct ww_driver_config config = threads_config(2);
	struct rig *rig = make_with(&config, wait_at_gate, 2);
	pthread_t opener;

	ck_assert_int_eq(set(rig, "a key that is longer than a record", SLOW, S), 0);
	ck_assert_int_eq(set(rig, "later", SLOW, 1000 * S), 0);
	OK(ww_clock_virtual_advance(rig->clock, 2 * S));
	wait_for(&running, 1);
	pthread_create(&opener, NULL, open_later, NULL);
	OK(ww_keyed_destroy(rig->keyed));
	ck_assert_uint_eq(rig->count, 1);
	rig->keyed = NULL;
	pthread_join(opener, NULL);
	unmake(rig);
}
END_TEST

START_TEST(stop_hands_out_queued_entries_and_running_callbacks_go_on)
{
	struct ww_driver_config config = threads_config(1);
	struct rig *rig = make_with(&config, wait_at_gate, 2);
	struct ww_driver_stats stats;
	size_t count = 0;

	ck_assert_int_eq(set(rig, "runs", SLOW, S), 0);
	OK(ww_clock_virtual_advance(rig->clock, 2 * S));
	wait_for(&running, 1);
	ck_assert_int_eq(set(rig, "queued", 2, S), 0);
	ck_assert_int_eq(set(rig, "waits", 3, 100 * S), 0);
	OK(ww_clock_virtual_advance(rig->clock, 2 * S));
	do {
		OK(ww_driver_stats(rig->driver, &stats));
		sched_yield();
	} while (stats.queued < 1);
	OK(ww_keyed_stop(rig->keyed, note, rig, &count));
	ck_assert_uint_eq(count, 2);
	let_through();
	settle(rig);
	pass(rig, 200 * S);
	ck_assert_uint_eq(rig->count, 3);
	ASSERT_LOGGED(rig, 2, "runs", SLOW);
	unmake(rig);
}
END_TEST

/* ---- The race --------------------------------------------------------------------------------------------------- */

/*
 * Threads set, move, remove, get and drain a few keys while a clock runs and workers fire. Every value is a token. It
 * must be handed out exactly once: by a callback, a replacement, a removal, a drain or the stop.
 */

#define THREADS 4
#define STEPS 15000
#define KEYS 40

struct token {
	_Atomic uint32_t handed_out;
	_Atomic uint32_t fired;
	uint64_t version;
	struct token *next; /* the token its thread set before */
};

struct racer {
	struct rig *rig;
	uint64_t state;
	struct token *tokens;
	struct token *mine[KEYS]; /* the last token this thread set under each key */
	uint64_t count;
	pthread_t thread;
};

static _Atomic uint64_t wrong;
static _Atomic uint64_t fates[5];
static _Atomic int stopped;

static void expect(int condition, const char *what)
{
	if (!condition && wrong++ < 5)
		(void)fprintf(stderr, "keyed/threads: %s\n", what);
}
#define EXPECT(condition) expect((condition), #condition)

enum fate { FIRED, REPLACED, REMOVED, DRAINED, STOPPED };

static void hand_out(struct token *token, enum fate fate)
{
	EXPECT(token != NULL);
	if (token == NULL)
		return;
	EXPECT(token->handed_out++ == 0);
	fates[fate]++;
}

static void race_fired(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct token *token = entry->value;

	(void)user;
	EXPECT(!stopped);
	EXPECT(entry->version == token->version);
	EXPECT(token->fired++ == 0);
	hand_out(token, FIRED);
	/* It is too late to move or remove this very entry. */
	EXPECT(ww_keyed_move(keyed, entry->key, entry->length, entry->version, 0) != WW_OK);
	EXPECT(ww_keyed_remove(keyed, entry->key, entry->length, entry->version, NULL) != WW_OK);
	EXPECT(entry->length >= 3 && ((const char *)entry->key)[1] == '-');
}

static void race_drained(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *context)
{
	struct token *token = entry->value;

	(void)keyed;
	EXPECT(entry->version == token->version);
	hand_out(token, *(enum fate *)context);
}

/* Half of the keys are too long for their records. */
static size_t write_key(char *text, uint32_t key)
{
	memset(text, 'x', 40);
	text[0] = (char)('!' + key);
	text[1] = '-';
	return key % 2 ? 3 : 40;
}

static void race_set(struct racer *racer, uint32_t key, const char *text, size_t length)
{
	struct token *token = calloc(1, sizeof *token);
	void *former = NULL;

	token->next = racer->tokens;
	racer->tokens = token;
	racer->count++;
	racer->mine[key] = token;
	int answer = ww_keyed_set(
	    racer->rig->keyed, text, length, token, seed_below(&racer->state, 4 * S), &token->version, &former);
	EXPECT(answer == (former != NULL));
	if (former)
		hand_out(former, REPLACED);
}

static void race_remove(struct racer *racer, uint32_t key, const char *text, size_t length)
{
	struct token *mine = seed_below(&racer->state, 2) ? racer->mine[key] : NULL;
	void *value = NULL;
	int answer = ww_keyed_remove(racer->rig->keyed, text, length, mine ? mine->version : ANY, &value);

	EXPECT(answer == WW_OK || answer == WW_ESTALE);
	if (answer == WW_OK) {
		EXPECT(!mine || mine == value);
		hand_out(value, REMOVED);
	}
}

static void race_step(struct racer *racer)
{
	struct ww_keyed *keyed = racer->rig->keyed;
	uint32_t key = (uint32_t)seed_below(&racer->state, KEYS);
	uint64_t kind = seed_below(&racer->state, 1000);
	struct token *mine = racer->mine[key];
	char text[40];
	size_t length = write_key(text, key);

	if (kind < 400)
		race_set(racer, key, text, length);
	else if (kind < 600)
		race_remove(racer, key, text, length);
	else if (kind < 900) {
		int answer = ww_keyed_move(
		    keyed, text, length, mine && kind % 2 ? mine->version : ANY, seed_below(&racer->state, 4 * S));
		EXPECT(answer == WW_OK || answer == WW_ESTALE);
	} else if (kind < 998)
		EXPECT(ww_keyed_get(keyed, text, length, NULL, NULL, NULL) >= 0);
	else {
		enum fate fate = DRAINED;
		EXPECT(ww_keyed_drain(keyed, race_drained, &fate, NULL) == WW_OK);
	}
}

static void *race(void *argument)
{
	struct racer *racer = argument;

	for (uint32_t i = 0; i < STEPS; i++) {
		race_step(racer);
		/* Without this, nothing would fire on a single processor. */
		if (seed_below(&racer->state, 30) == 0)
			EXPECT(ww_clock_virtual_advance(racer->rig->clock, S / 2) == WW_OK);
		if (seed_below(&racer->state, 300) == 0)
			EXPECT(ww_driver_settle(racer->rig->driver) == WW_OK);
		else if (seed_below(&racer->state, 30) == 0)
			sched_yield();
	}
	return NULL;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* At the end each token was handed out once, and no two have one version. */
static void check_tokens(struct racer *racers)
{
	static uint64_t versions[THREADS * STEPS];
	size_t count = 0;

	for (uint32_t i = 0; i < THREADS; i++) {
		struct token *next;
		for (struct token *token = racers[i].tokens; token; token = next) {
			next = token->next;
			EXPECT(token->handed_out == 1);
			versions[count++] = token->version;
			free(token);
		}
	}
	qsort(versions, count, sizeof *versions, by_number);
	for (size_t i = 1; i < count; i++)
		EXPECT(versions[i - 1] < versions[i]);
	EXPECT(fates[FIRED] + fates[REPLACED] + fates[REMOVED] + fates[DRAINED] + fates[STOPPED] == count);
}

static void run_race(uint32_t shards, uint32_t workers, size_t queue)
{
	static struct racer racers[THREADS];
	struct ww_driver_config config = threads_config(workers);
	uint64_t seed = seed_of_run("keyed/threads");
	enum fate fate = STOPPED;

	config.queue = queue;
	struct rig *rig = make_with(&config, race_fired, shards);
	for (uint64_t i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){.rig = rig, .state = seed + i};
		pthread_create(&racers[i].thread, NULL, race, &racers[i]);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(racers[i].thread, NULL);
	OK(ww_keyed_stop(rig->keyed, race_drained, &fate, NULL));
	pass(rig, 100 * S);
	stopped = 1;
	struct ww_keyed_stats stats = stats_of(rig);
	EXPECT(stats.entries == 0);
	EXPECT(stats.fired == fates[FIRED] && stats.replaced == fates[REPLACED]);
	EXPECT(stats.removed == fates[REMOVED] && stats.drained == fates[DRAINED] + fates[STOPPED]);
	unmake(rig);
	check_tokens(racers);
	printf("keyed/threads: fired %" PRIu64 ", replaced %" PRIu64 ", removed %" PRIu64 ", drained %" PRIu64
	       ", left to the stop %" PRIu64 "\n",
	    fates[FIRED], fates[REPLACED], fates[REMOVED], fates[DRAINED], fates[STOPPED]);
	ck_assert_uint_eq(wrong, 0);
}

START_TEST(every_value_is_handed_out_once_when_threads_race)
{
	run_race(1, 3, 65536);
}
END_TEST

START_TEST(every_value_is_handed_out_once_with_many_shards_and_a_short_queue)
{
	run_race(8, 2, 2);
}
END_TEST

/* A stop in the middle: the map has never owned a refused value. */
static _Atomic uint64_t refused;
static _Atomic uint64_t accepted;

static void *set_until_stopped(void *argument)
{
	struct racer *racer = argument;

	for (;;) {
		uint32_t key = (uint32_t)seed_below(&racer->state, KEYS);
		struct token *token = calloc(1, sizeof *token);
		char text[40];
		size_t length = write_key(text, key);
		void *former = NULL;
		int answer = ww_keyed_set(
		    racer->rig->keyed, text, length, token, seed_below(&racer->state, 2 * S), &token->version, &former);
		if (former)
			hand_out(former, REPLACED);
		if (answer < 0) {
			EXPECT(answer == WW_ECLOSED);
			free(token);
			refused++;
			break;
		}
		token->next = racer->tokens;
		racer->tokens = token;
		accepted++;
		if (++racer->count == STEPS)
			break;
		if (seed_below(&racer->state, 20) == 0) {
			EXPECT(ww_clock_virtual_advance(racer->rig->clock, S / 2) == WW_OK);
			sched_yield();
		}
	}
	return NULL;
}

static void run_stop(uint64_t turn, int whole_driver)
{
	static struct racer racers[THREADS];
	struct ww_driver_config config = threads_config(2);
	enum fate fate = STOPPED;
	size_t count = 0;

	stopped = 0;
	accepted = 0;
	struct rig *rig = make_with(&config, race_fired, 2);
	for (uint64_t i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){.rig = rig, .state = turn * THREADS + i};
		pthread_create(&racers[i].thread, NULL, set_until_stopped, &racers[i]);
	}
	while (accepted < 50 + turn * 200)
		sched_yield();
	if (whole_driver)
		OK(ww_driver_stop(rig->driver, NULL, NULL, NULL));
	OK(ww_keyed_stop(rig->keyed, race_drained, &fate, &count));
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(racers[i].thread, NULL);
	unmake(rig);
	check_tokens(racers);
	for (uint32_t i = 0; i < 5; i++)
		fates[i] = 0;
}

START_TEST(every_value_is_handed_out_once_with_a_stop_in_the_middle)
{
	for (uint64_t turn = 0; turn < 20; turn++)
		run_stop(turn, turn % 2);
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* ---- Cancelled threads ------------------------------------------------------------------------------------------ */

static void note_and_test(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	note(keyed, entry, user);
	pthread_testcancel();
}

static void *drain_when_cancelled(void *argument)
{
	/* Not on the stack: AddressSanitizer still guards the frames that a cancelled thread has left. */
	static size_t count;
	struct rig *rig = argument;

	pthread_cancel(pthread_self());
	(void)ww_keyed_drain(rig->keyed, note_and_test, rig, &count);
	if (count == 200)
		pthread_testcancel();
	return NULL;
}

START_TEST(a_thread_is_not_cancelled_while_it_drains)
{
	struct rig *rig = make_with(NULL, note, 3);
	char key[] = "000";
	pthread_t thread;
	void *result = NULL;

	for (int i = 0; i < 200; i++) {
		key[0] = (char)('0' + i / 100);
		key[1] = (char)('0' + i / 10 % 10);
		key[2] = (char)('0' + i % 10);
		ck_assert_int_eq(set(rig, key, 1, S), 0);
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, drain_when_cancelled, rig), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_uint_eq(rig->count, 200);
	ck_assert_uint_eq(stats_of(rig).entries, 0);
	unmake(rig);
}
END_TEST

TEST_MAIN("keyed/threads", one_slow_callback_delays_nothing_else, running_callbacks_are_bounded_across_slots,
    destroy_waits_for_callbacks_that_run, stop_hands_out_queued_entries_and_running_callbacks_go_on,
    every_value_is_handed_out_once_when_threads_race, every_value_is_handed_out_once_with_many_shards_and_a_short_queue,
    every_value_is_handed_out_once_with_a_stop_in_the_middle, a_thread_is_not_cancelled_while_it_drains)
