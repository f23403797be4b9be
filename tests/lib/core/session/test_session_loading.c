/* ww_session_take_by: loading ahead, kept failures, time limits, references taken in a look, and statistics of loads. */
/* tier: quick, threads */

#include <semaphore.h>
#include <stdatomic.h>

#include "tests/lib/core/session/fixture.h"

struct plan {
	struct rig *rig;
	struct ww_session_loading how;
	struct ww_session_order order;
	int answer;
	uintptr_t value;
	uint64_t takes;      /* the time that the load takes */
	uintptr_t meanwhile; /* what a get in the loader found */
	unsigned calls;
	int deletes; /* the loader deletes its key */
};

static int load(const void *key, size_t length, void **value, struct ww_session_order *order, void *context)
{
	struct plan *plan = context;
	void *found = NULL;

	plan->calls++;
	step(plan->rig, plan->takes);
	(void)ww_session_get(plan->rig->map, key, length, &found);
	plan->meanwhile = (uintptr_t)found;
	if (plan->deletes)
		ck_assert_int_ge(ww_session_delete(plan->rig->map, key, length, NULL), 0);
	*order = plan->order;
	*value = (void *)plan->value;
	return plan->answer;
}

static struct plan plan_of(struct rig *rig)
{
	return (struct plan){.rig = rig, .value = 2, .how = {.load = load}};
}

static int take(struct plan *plan, const char *key, uintptr_t *value)
{
	void *out = (void *)(uintptr_t)55;
	int answer;

	plan->how.context = plan;
	answer = ww_session_take_by(plan->rig->map, key, strlen(key), &plan->how, &out);
	*value = (uintptr_t)out;
	return answer;
}

START_TEST(an_ageing_value_is_loaded_ahead_while_it_serves)
{
	struct rig rig;
	uintptr_t value;

	rig_start(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.ahead = 800;
	OK(set(&rig, "a", 1, 10 * SEC));
	step(&rig, 8 * SEC - MS);
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(plan.calls, 0);
	step(&rig, MS);
	plan.takes = SEC;
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_uint_eq(value, 2);
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_uint_eq(plan.meanwhile, 1);
	assert_last_gone(1, "a", 1, WW_GONE_REPLACED);
	/* Its TTL counts from the end of the load. */
	ck_assert_uint_eq(left(&rig, "a"), 10 * SEC);
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(plan.calls, 1);
	/* One that expires during the load was not replaced. */
	step(&rig, 9 * SEC);
	plan.value = 3;
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	assert_last_gone(2, "a", 2, WW_GONE_EXPIRED);
	ck_assert_uint_eq(get(&rig, "a"), 3);
	ck_assert_uint_eq(stats(&rig).loads_ahead, 2);
	/* The same pointer stays, and is not told as gone. */
	step(&rig, 8 * SEC);
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_uint_eq(gone_calls(), 2);
	ck_assert_uint_eq(left(&rig, "a"), 10 * SEC);
	rig_close(&rig);
	assert_last_gone(3, "a", 3, WW_GONE_CLEARED);
}
END_TEST

START_TEST(a_load_ahead_that_fails_or_is_outdated_leaves_what_is_there)
{
	struct rig rig;
	uintptr_t value;

	rig_start(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.ahead = 500;
	plan.how.keep_failure = 2 * SEC;
	plan.answer = -77;
	OK(set(&rig, "a", 1, 10 * SEC));
	step(&rig, 5 * SEC);
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(value, 1);
	ck_assert_uint_eq(plan.calls, 1);
	/* While the failure is kept nobody tries again. */
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(plan.calls, 1);
	/* It is that of the key, not of the entry, and a rename forgets it. */
	OK(ww_session_rename(rig.map, "a", 1, "b", 1, NULL, NULL, NULL));
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 2);
	OK(ww_session_rename(rig.map, "b", 1, "a", 1, NULL, NULL, NULL));
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(plan.calls, 3);
	plan.calls = 1;
	/* Nor after a delete that is refused. */
	ck_assert_int_eq(ww_session_delete_if(rig.map, "a", 1, WW_SESSION_ABSENT, NULL), WW_ESTALE);
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(plan.calls, 1);
	step(&rig, 2 * SEC);
	plan.answer = WW_OK;
	plan.deletes = 1;
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_uint_eq(value, 2);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	assert_last_gone(2, "a", 2, WW_GONE_DELETED);
	ck_assert_uint_eq(gone_log[0].value, 1);
	ck_assert_uint_eq(stats(&rig).loads_outdated, 1);
	rig_close(&rig);
}
END_TEST

/* Why what is loaded ahead is refused, beside a pinned entry that leaves room for a weight of 1. */
static const struct {
	const char *why;
	struct ww_session_order order;
} refused[] = {
    {"unknown flags", {.flags = 1u << 31}},
    {"a TTL that is too long", {.ttl = WW_SESSION_TTL_MAX + 1}},
    {"more than a shard's share", {.weight = 101}},
    {"no room beside what is pinned", {.weight = 2}},
};

START_TEST(what_cannot_replace_an_ageing_value_leaves_it_there)
{
	struct rig rig;
	uintptr_t value;

	rig_plan(&rig);
	rig.of_map.weight_limit = 100;
	rig_open(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.ahead = 500;
	OK(ww_session_put(rig.map, "pin", 3, NULL,
	    &(struct ww_session_order){.weight = 99, .ttl = 3600 * SEC, .flags = WW_SESSION_PINNED}, NULL, NULL));
	OK(set(&rig, "a", 1, 10 * SEC));
	step(&rig, 5 * SEC);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		plan.order = refused[i].order;
		plan.value = 2;
		ck_assert_msg(take(&plan, "a", &value) == 1 && value == 1, "%s", refused[i].why);
		assert_last_gone(i + 1, "a", 2, WW_GONE_REPLACED);
	}
	/* The value that stays is not handed over, though the loader returned it, too. */
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		plan.order = refused[i].order;
		plan.value = 1;
		ck_assert_msg(take(&plan, "a", &value) == 1 && value == 1, "%s", refused[i].why);
	}
	ck_assert_uint_eq(gone_calls(), sizeof refused / sizeof refused[0]);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	rig_close(&rig);
}
END_TEST

START_TEST(a_failure_is_kept_until_its_time_or_a_set_a_delete_or_a_clear)
{
	struct rig rig;
	uintptr_t value;

	rig_start(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.keep_failure = 3 * SEC;
	plan.answer = -77;
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	step(&rig, 3 * SEC - 1);
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_uint_eq(value, 55);
	ck_assert_uint_eq(stats(&rig).failures_kept, 1);
	ck_assert_uint_eq(stats(&rig).loads_failed, 1);
	/* It is no entry. */
	ck_assert_uint_eq(get(&rig, "a"), 0);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	/* Other keys are loaded. */
	ck_assert_int_eq(take(&plan, "b", &value), -77);
	ck_assert_uint_eq(plan.calls, 2);
	step(&rig, 1);
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 3);
	ck_assert_int_eq(erase(&rig, "a"), 0);
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 4);
	OK(set(&rig, "a", 1, MS));
	step(&rig, MS);
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 5);
	OK(ww_session_clear(rig.map, NULL));
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 6);
	/* One that a delete outdated is not kept. */
	plan.deletes = 1;
	ck_assert_int_eq(take(&plan, "c", &value), -77);
	ck_assert_int_eq(take(&plan, "c", &value), -77);
	ck_assert_uint_eq(plan.calls, 8);
	rig_close(&rig);
}
END_TEST

START_TEST(a_set_forgets_a_failure_also_where_it_replaces_an_entry)
{
	struct rig rig;
	uintptr_t value;

	rig_start(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.keep_failure = 100 * SEC;
	plan.how.ahead = 500;
	plan.answer = -77;
	OK(set(&rig, "a", 1, 10 * SEC));
	step(&rig, 5 * SEC);
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(plan.calls, 1);
	OK(set(&rig, "a", 3, 10 * SEC));
	step(&rig, 10 * SEC);
	plan.answer = WW_OK;
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_uint_eq(plan.calls, 2);
	rig_close(&rig);
}
END_TEST

START_TEST(a_lifetime_that_ends_before_the_ttl_does_not_make_a_value_old)
{
	struct rig rig;
	uintptr_t value;

	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_LIFETIMES;
	rig_open(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.ahead = 500;
	plan.order = (struct ww_session_order){.ttl = 10 * SEC, .lifetime = 4 * SEC};
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(take(&plan, "a", &value), 1);
		step(&rig, SEC);
	}
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	/* With a longer lifetime the TTL tells how old it is. */
	plan.order.lifetime = 20 * SEC;
	ck_assert_int_eq(take(&plan, "b", &value), 0);
	step(&rig, 5 * SEC);
	ck_assert_int_eq(take(&plan, "b", &value), 0);
	ck_assert_uint_eq(stats(&rig).loads_ahead, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(a_weight_that_no_shard_can_take_is_too_big)
{
	struct rig rig;
	uintptr_t value;

	rig_plan(&rig);
	rig.of_map.weight_limit = 100;
	rig_open(&rig);
	struct plan plan = plan_of(&rig);
	plan.order = (struct ww_session_order){.weight = 101};
	ck_assert_int_eq(take(&plan, "a", &value), WW_ETOOBIG);
	plan.order.weight = 100;
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(the_loader_orders_lifetimes_and_may_be_refused)
{
	struct rig rig;
	uintptr_t value;

	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_LIFETIMES;
	rig_open(&rig);
	struct plan plan = plan_of(&rig);
	plan.order = (struct ww_session_order){.ttl = 5 * SEC, .lifetime = 7 * SEC};
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_uint_eq(left(&rig, "a"), 5 * SEC);
	step(&rig, 4 * SEC);
	ck_assert_int_eq(refresh(&rig, "a", 0), 1);
	ck_assert_uint_eq(left(&rig, "a"), 3 * SEC);
	plan.order = (struct ww_session_order){.flags = 1u << 31};
	ck_assert_int_eq(take(&plan, "b", &value), WW_EINVAL);
	assert_last_gone(1, "b", 2, WW_GONE_REPLACED);
	plan.order = (struct ww_session_order){.version = 8};
	ck_assert_int_eq(take(&plan, "b", &value), WW_EINVAL);
	plan.order = (struct ww_session_order){0};
	plan.how.ahead = 1000;
	ck_assert_int_eq(take(&plan, "b", &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_take_by(rig.map, "b", 1, NULL, (void **)&value), WW_EINVAL);
	ck_assert_uint_eq(plan.calls, 3);
	rig_close(&rig);
}
END_TEST

START_TEST(statistics_tell_how_long_loads_took)
{
	struct rig rig;
	uintptr_t value;

	rig_start(&rig);
	struct plan plan = plan_of(&rig);
	plan.takes = 30 * MS;
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	plan.takes = 10 * MS;
	plan.answer = -5;
	ck_assert_int_eq(take(&plan, "b", &value), -5);
	ck_assert_uint_eq(stats(&rig).load_time, 40 * MS);
	ck_assert_uint_eq(stats(&rig).load_time_max, 30 * MS);
	ck_assert_uint_eq(stats(&rig).loads, 2);
	rig_close(&rig);
}
END_TEST

START_TEST(without_memory_a_failure_is_not_kept)
{
	struct rig rig;
	uintptr_t value;

	rig_start(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.keep_failure = SEC;
	plan.answer = -77;
	rig.memory.calls = 0;
	rig.memory.fail_at = 1;
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	rig.memory.fail_at = 0;
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 2);
	ck_assert_int_eq(take(&plan, "a", &value), -77);
	ck_assert_uint_eq(plan.calls, 2);
	rig_close(&rig);
}
END_TEST

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

static sem_t entered, gate;

static int load_slowly(const void *key, size_t length, void **value, struct ww_session_order *order, void *context)
{
	(void)sem_post(&entered);
	while (sem_wait(&gate))
		continue;
	return load(key, length, value, order, context);
}

struct asker {
	struct plan *plan;
	struct ww_session_loading how;
	pthread_t thread;
	int answer;
	void *value;
	_Atomic int left; /* the call has returned */
};

static void *ask(void *argument)
{
	struct asker *asker = argument;

	asker->how.context = asker->plan;
	asker->answer = ww_session_take_by(asker->plan->rig->map, "a", 1, &asker->how, &asker->value);
	asker->left = 1;
	return NULL;
}

static void begin(struct asker *asker, struct plan *plan, uint64_t wait, ww_look_fn *look)
{
	*asker = (struct asker){.plan = plan, .answer = 4711, .value = (void *)55};
	asker->how = (struct ww_session_loading){.load = load_slowly, .wait = wait, .look = look};
	OK(pthread_create(&asker->thread, NULL, ask, asker));
}

static void await_shared(struct rig *rig, uint64_t shared)
{
	while (stats(rig).loads_shared < shared)
		(void)sched_yield();
}

/* Nobody else uses the map meanwhile, not even to ask for statistics: that would wake the driver. */
START_TEST(who_waits_with_a_limit_wakes_the_driver)
{
	struct rig rig;
	struct asker first, hasty;

	OK(sem_init(&entered, 0, 0));
	OK(sem_init(&gate, 0, 0));
	rig_plan_threads(&rig, 1);
	rig_open(&rig);
	struct plan plan = plan_of(&rig);
	begin(&first, &plan, 0, NULL);
	(void)sem_wait(&entered);
	begin(&hasty, &plan, 20 * MS, NULL);
	while (!hasty.left)
		pass(&rig, MS);
	OK(pthread_join(hasty.thread, NULL));
	ck_assert_int_eq(hasty.answer, WW_ETIMEOUT);
	(void)sem_post(&gate);
	OK(pthread_join(first.thread, NULL));
	ck_assert_int_eq(first.answer, 0);
	rig_close(&rig);
}
END_TEST

START_TEST(who_waits_with_a_limit_leaves_at_its_time_and_the_load_goes_on)
{
	struct rig rig;
	struct asker first, patient, hasty;

	OK(sem_init(&entered, 0, 0));
	OK(sem_init(&gate, 0, 0));
	rig_plan_threads(&rig, 1);
	rig_open(&rig);
	struct plan plan = plan_of(&rig);
	begin(&first, &plan, 1, NULL); /* its own loader it must wait for */
	(void)sem_wait(&entered);
	begin(&patient, &plan, 100 * SEC, NULL);
	await_shared(&rig, 1);
	begin(&hasty, &plan, 2 * SEC, NULL);
	await_shared(&rig, 2);
	pass(&rig, 2 * SEC - 2 * MS);
	ck_assert_uint_eq(stats(&rig).loads_late, 0);
	pass(&rig, 3 * MS);
	OK(pthread_join(hasty.thread, NULL));
	ck_assert_int_eq(hasty.answer, WW_ETIMEOUT);
	ck_assert_ptr_eq(hasty.value, (void *)55);
	ck_assert_uint_eq(stats(&rig).loads_late, 1);
	(void)sem_post(&gate);
	OK(pthread_join(first.thread, NULL));
	OK(pthread_join(patient.thread, NULL));
	ck_assert_int_eq(first.answer, 0);
	ck_assert_int_eq(patient.answer, 0);
	ck_assert_ptr_eq(patient.value, (void *)2);
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_uint_eq(get(&rig, "a"), 2);
	/* Nothing is left in the wheel of those that waited. */
	pass(&rig, 200 * SEC);
	assert_last_gone(1, "a", 2, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(an_ageing_value_serves_others_during_one_load)
{
	struct rig rig;
	struct asker first;
	uintptr_t value;

	OK(sem_init(&entered, 0, 0));
	OK(sem_init(&gate, 0, 0));
	rig_plan_threads(&rig, 1);
	rig_open(&rig);
	struct plan plan = plan_of(&rig);
	plan.how.ahead = 500;
	OK(set(&rig, "a", 1, 10 * SEC));
	step(&rig, 6 * SEC);
	first = (struct asker){.plan = &plan, .how = {.load = load_slowly, .ahead = 500}};
	OK(pthread_create(&first.thread, NULL, ask, &first));
	(void)sem_wait(&entered);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(take(&plan, "a", &value), 1);
		ck_assert_uint_eq(value, 1);
	}
	ck_assert_uint_eq(plan.calls, 0);
	(void)sem_post(&gate);
	OK(pthread_join(first.thread, NULL));
	ck_assert_int_eq(first.answer, 0);
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_int_eq(take(&plan, "a", &value), 1);
	ck_assert_uint_eq(value, 2);
	rig_close(&rig);
}
END_TEST

/* ---- References: the map's, and one for each call ---------------------------------------------------------------- */

#define THREADS 4
#define OPS 20000
#define KEYS 6

struct counted {
	_Atomic int references; /* 0: unused or freed */
	int freed; /* written by whom the last reference belonged to: ThreadSanitizer sees a use after it */
};

struct taker {
	pthread_t thread;
	unsigned number;
	unsigned op;
	uint64_t random;
};

static struct counted counted[THREADS][OPS];
static _Atomic int faults;
static struct rig shared_rig;

static void drop(struct counted *value)
{
	int before = atomic_fetch_sub(&value->references, 1);

	faults += before <= 0;
	if (before == 1)
		value->freed = 1;
}

static void drop_gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)map;
	(void)key;
	(void)length;
	(void)why;
	(void)user;
	drop(value);
}

static void refer(void *value, void *context)
{
	(void)context;
	faults += atomic_fetch_add(&((struct counted *)value)->references, 1) <= 0;
}

static int load_counted(const void *key, size_t length, void **value, struct ww_session_order *order, void *context)
{
	struct taker *taker = context;

	(void)key;
	(void)length;
	if (taker->random % 32 == 0)
		(void)sched_yield();
	if (taker->random % 5 == 0)
		return -99;
	counted[taker->number][taker->op].references = 1;
	*value = &counted[taker->number][taker->op];
	order->ttl = 1 + taker->random % (20 * MS);
	return WW_OK;
}

static void *take_and_delete(void *argument)
{
	struct taker *taker = argument;

	for (taker->op = 0; taker->op < OPS; taker->op++) {
		unsigned char key = (unsigned char)seed_below(&taker->random, KEYS);
		struct ww_session_loading how = {.load = load_counted,
		    .context = taker,
		    .look = refer,
		    .keep_failure = MS,
		    .ahead = 500,
		    .wait = 2 * MS};
		void *value = NULL;
		if (seed_below(&taker->random, 4) == 0)
			(void)ww_session_delete(shared_rig.map, &key, 1, NULL);
		if (seed_below(&taker->random, 200) == 0)
			(void)ww_session_clear(shared_rig.map, NULL);
		int answer = ww_session_take_by(shared_rig.map, &key, 1, &how, &value);
		if (answer >= 0) {
			faults += ((struct counted *)value)->freed;
			drop(value);
		} else
			faults += answer != -99 && answer != WW_ETIMEOUT;
	}
	return NULL;
}

START_TEST(a_reference_taken_in_the_look_is_safe)
{
	uint64_t random = seed_of_run("test_session_loading");
	struct taker taker[THREADS] = {0};

	memset(counted, 0, sizeof counted);
	faults = 0;
	rig_plan_threads(&shared_rig, 2);
	shared_rig.of_map.gone = drop_gone;
	rig_open(&shared_rig);
	for (unsigned i = 0; i < THREADS; i++) {
		taker[i] = (struct taker){.number = i, .random = seed_next(&random)};
		OK(pthread_create(&taker[i].thread, NULL, take_and_delete, &taker[i]));
	}
	for (int i = 0; i < 2000; i++) {
		step(&shared_rig, MS / 2);
		(void)sched_yield();
	}
	/* A call may still wait for its time. */
	for (unsigned i = 0; i < THREADS; i++)
		while (pthread_tryjoin_np(taker[i].thread, NULL))
			step(&shared_rig, MS);
	struct ww_session_stats end = stats(&shared_rig);
	printf("test_session_loading: %" PRIu64 " loads, %" PRIu64 " ahead, %" PRIu64 " outdated, %" PRIu64
	       " shared, %" PRIu64 " late, %" PRIu64 " kept failures\n",
	    end.loads, end.loads_ahead, end.loads_outdated, end.loads_shared, end.loads_late, end.failures_kept);
	rig_close(&shared_rig);
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned k = 0; k < OPS; k++)
			faults += counted[i][k].references != 0;
	ck_assert_int_eq(faults, 0);
}
END_TEST

TEST_MAIN("session/loading", an_ageing_value_is_loaded_ahead_while_it_serves,
    a_load_ahead_that_fails_or_is_outdated_leaves_what_is_there, what_cannot_replace_an_ageing_value_leaves_it_there,
    a_set_forgets_a_failure_also_where_it_replaces_an_entry,
    a_lifetime_that_ends_before_the_ttl_does_not_make_a_value_old,
    a_failure_is_kept_until_its_time_or_a_set_a_delete_or_a_clear, a_weight_that_no_shard_can_take_is_too_big,
    the_loader_orders_lifetimes_and_may_be_refused, statistics_tell_how_long_loads_took,
    without_memory_a_failure_is_not_kept, who_waits_with_a_limit_wakes_the_driver,
    who_waits_with_a_limit_leaves_at_its_time_and_the_load_goes_on, an_ageing_value_serves_others_during_one_load,
    a_reference_taken_in_the_look_is_safe)
