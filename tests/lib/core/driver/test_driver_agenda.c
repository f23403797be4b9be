/* The agenda, against a search through all sources; and while many threads schedule earlier and earlier. */
/* tier: quick, threads, forks */

#include "lib/core/driver/agenda.h"
#include "tests/lib/core/driver/fixture.h"

#define SOURCES 300

static struct agenda agenda;
static struct timer_source source[SOURCES];

static void begin_agenda(void)
{
	ww_agenda_init(&agenda);
	for (int i = 0; i < SOURCES; i++) {
		source[i] = (struct timer_source){.next = WW_NEVER, .at = WW_NEVER};
		pthread_mutex_init(&source[i].lock, NULL);
	}
}

static uint64_t earliest(void)
{
	uint64_t next = WW_NEVER;

	for (int i = 0; i < SOURCES; i++)
		if (source[i].place != SOURCE_HELD && source[i].next < next)
			next = source[i].next;
	return next;
}

/* Walk a tree of the heap, and return how many are in it. */
static int check_tree(const struct timer_source *tree, const struct timer_source *parent, uint64_t at, int *rank)
{
	int left, right, count;

	*rank = 0;
	if (!tree)
		return 0;
	ck_assert_int_eq(tree->place, SOURCE_FILED);
	ck_assert(tree->parent == parent);
	ck_assert_uint_ge(tree->at, at);
	count = check_tree(tree->left, tree, tree->at, &left);
	count += check_tree(tree->right, tree, tree->at, &right);
	ck_assert_int_ge(left, right);
	ck_assert_int_eq(tree->rank, right + 1);
	*rank = right + 1;
	return count + 1;
}

/* The invariant of agenda.h, when no thread is about to list anything and the list is merged. */
static void check_agenda(void)
{
	const struct timer_source *first = ww_agenda_first(&agenda);
	int filed = 0;
	int rank;

	ck_assert_ptr_null(agenda.changed);
	for (int i = 0; i < SOURCES; i++) {
		ck_assert(!source[i].changed);
		filed += source[i].place == SOURCE_FILED;
		if (source[i].place != SOURCE_HELD) {
			ck_assert_uint_eq(source[i].at, source[i].next);
			ck_assert_int_eq(source[i].place, source[i].next == WW_NEVER ? SOURCE_IDLE : SOURCE_FILED);
		}
	}
	ck_assert_uint_eq(first ? first->at : WW_NEVER, earliest());
	ck_assert_int_eq(check_tree(first, NULL, 0, &rank), filed);
}

static void lower(struct timer_source *one, uint64_t next)
{
	pthread_mutex_lock(&one->lock);
	if (next < one->next) {
		one->next = next;
		ww_agenda_note(&agenda, one);
	}
	pthread_mutex_unlock(&one->lock);
}

/* What a pass does to the first one. */
static void renew(struct timer_source *one, uint64_t next)
{
	ww_agenda_take(&agenda, one);
	pthread_mutex_lock(&one->lock);
	one->next = next;
	pthread_mutex_unlock(&one->lock);
}

static void hold_or_file(struct timer_source *one)
{
	int held = one->place == SOURCE_HELD;

	ww_agenda_take(&agenda, one);
	if (held)
		ww_agenda_file(&agenda, one);
	else
		ww_agenda_set_aside(&agenda.waiting, one);
}

/* Look at the first one, in which a fifth of the times nothing waits any more. */
static void look(uint64_t *seed)
{
	struct timer_source *first = ww_agenda_first(&agenda);

	if (!first)
		return;
	renew(first, seed_below(seed, 5) ? first->at + seed_below(seed, 1000) : WW_NEVER);
	ww_agenda_file(&agenda, first);
}

START_TEST(the_first_is_the_earliest_whatever_was_done)
{
	uint64_t seed = seed_of_run("test_driver_agenda");

	begin_agenda();
	for (int n = 0; n < 200000; n++) {
		struct timer_source *one = &source[seed_below(&seed, SOURCES)];
		uint64_t what = seed_below(&seed, 200);
		if (what < 100)
			lower(one, seed_below(&seed, 1000));
		else if (what < 180)
			look(&seed);
		else if (what < 199)
			hold_or_file(one);
		else
			ww_agenda_resume(&agenda, &agenda.waiting);
		if (n % 100 == 0)
			check_agenda();
	}
	ww_agenda_destroy(&agenda);
}
END_TEST

/* ---- Threads */

enum { THREADS = 8, ROUNDS = 40, SCHEDULES = 500 };

static pthread_barrier_t barrier;
static _Atomic int lowering;

/* In each round all threads schedule earlier and earlier, in all sources. */
static void *schedule_earlier(void *argument)
{
	uint64_t seed = *(uint64_t *)argument;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		for (int n = SCHEDULES; n > 0; n--)
			lower(&source[seed_below(&seed, SOURCES)], (uint64_t)n * 10 + seed_below(&seed, 10));
		lowering--;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

START_TEST(no_change_is_lost_while_threads_schedule_earlier_and_earlier)
{
	uint64_t seed = seed_of_run("test_driver_agenda");
	uint64_t seeds[THREADS];
	pthread_t thread[THREADS];

	begin_agenda();
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		seeds[i] = seed_next(&seed);
		ck_assert_int_eq(pthread_create(&thread[i], NULL, schedule_earlier, &seeds[i]), 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		lowering = THREADS;
		pthread_barrier_wait(&barrier);
		while (lowering)
			look(&seed);
		pthread_barrier_wait(&barrier);
		check_agenda();
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	ww_agenda_destroy(&agenda);
}
END_TEST

/* ---- In a driver */

struct item {
	struct ww_timer timer;
	uint64_t deadline;
};

enum { MAPS = 6, SHARDS = 4, EACH = 60 };

static struct timer_group *groups[MAPS];
static uint32_t shards[SHARDS];
static _Atomic int expired;

static struct firing *expire(void *shard, struct ww_timer *timer)
{
	(void)shard;
	ck_assert_uint_ge(now_ns(), ((struct item *)(void *)timer)->deadline);
	expired++;
	return NULL;
}

static const struct group_ops ops = {.expire = expire};

static void *schedule_in_all(void *argument)
{
	struct item *item = argument;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		uint64_t now = now_ns();
		for (unsigned n = 0; n < EACH; n++) {
			struct timer_source *one = ww_group_source(groups[n % MAPS], n / MAPS % SHARDS);
			item[n].deadline = now + (EACH - n) * TICK;
			ww_source_lock(one);
			OK(ww_source_prepare(one));
			ww_source_schedule(one, &item[n].timer, item[n].deadline);
			ww_source_unlock(one);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* Time passes meanwhile. Nothing asks the driver to look: if a change were lost, the test would wait for ever. */
START_TEST(the_driver_wakes_for_every_timer_that_becomes_the_first)
{
	static struct item item[THREADS][EACH];
	pthread_t thread[THREADS];

	begin(0, 1);
	for (int i = 0; i < MAPS; i++)
		OK(ww_group_attach(&groups[i], driver, &ops, NULL, shards, sizeof shards[0], SHARDS));
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, schedule_in_all, item[i]), 0);
	for (int round = 0; round < ROUNDS; round++) {
		expired = 0;
		pthread_barrier_wait(&barrier);
		for (int n = 0; n < EACH; n++)
			advance(TICK / 2);
		pthread_barrier_wait(&barrier);
		advance((EACH + 1) * TICK);
		UNTIL(expired == THREADS * EACH);
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	for (int i = 0; i < MAPS; i++)
		ww_group_detach(groups[i]);
	end();
}
END_TEST

/* What a detached group has changed to the last is not looked at when its memory is gone. */
START_TEST(groups_come_and_go_while_others_are_busy)
{
	static struct item item[3][SHARDS];
	uint64_t seed = seed_of_run("test_driver_agenda");
	int made[3] = {0};

	begin(0, 1);
	for (int n = 0; n < 3000; n++) {
		uint64_t i = seed_below(&seed, 3);
		if (made[i]) {
			ww_group_detach(groups[i]);
			memset(item[i], 0, sizeof item[i]);
		} else {
			OK(ww_group_attach(&groups[i], driver, &ops, NULL, shards, sizeof shards[0], SHARDS));
			for (uint32_t s = 0; s < SHARDS; s++) {
				struct timer_source *one = ww_group_source(groups[i], s);
				uint64_t ticks = seed_below(&seed, 100);
				item[i][s].deadline = now_ns() + ticks * TICK;
				ww_source_lock(one);
				OK(ww_source_prepare(one));
				ww_source_schedule(one, &item[i][s].timer, item[i][s].deadline);
				ww_source_unlock(one);
			}
		}
		made[i] = !made[i];
		advance(TICK);
		if (n % 16 == 0)
			settle();
	}
	for (int i = 0; i < 3; i++)
		if (made[i])
			ww_group_detach(groups[i]);
	end();
}
END_TEST

TEST_MAIN("driver/agenda", the_first_is_the_earliest_whatever_was_done,
    no_change_is_lost_while_threads_schedule_earlier_and_earlier,
    the_driver_wakes_for_every_timer_that_becomes_the_first, groups_come_and_go_while_others_are_busy)
