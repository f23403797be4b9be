/* ww_session_take: loads a value once for all threads that ask for it. */
/* tier: quick, threads */

#include <semaphore.h>

#include "tests/lib/core/session/fixture.h"

/* What a loader does, and the arguments of its last call. */
struct plan {
	struct rig *rig;
	int answer;
	uintptr_t value;
	uint64_t ttl;
	unsigned calls;
	int (*also)(struct plan *plan, const void *key, size_t length);
	int also_answered;
};

static int load(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	struct plan *plan = context;

	plan->calls++;
	ck_assert_uint_eq(*ttl, 0);
	if (plan->also)
		plan->also_answered = plan->also(plan, key, length);
	if (plan->answer != WW_OK)
		return plan->answer;
	*value = (void *)plan->value;
	if (plan->ttl)
		*ttl = plan->ttl;
	return WW_OK;
}

static int take(struct plan *plan, const char *key, uintptr_t *value)
{
	void *out = (void *)(uintptr_t)55;
	int answer = ww_session_take(plan->rig->map, key, strlen(key), load, plan, &out);

	*value = (uintptr_t)out;
	return answer;
}

/* A call must answer so, with that value; 55: none was stored. */
static void expect_take(struct plan *plan, const char *key, int answer, uintptr_t expected)
{
	uintptr_t value;

	ck_assert_int_eq(take(plan, key, &value), answer);
	ck_assert_uint_eq(value, expected);
}

START_TEST(only_a_missing_key_is_loaded)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2};

	rig_start(&rig);
	OK(set(&rig, "a", 1, SEC));
	expect_take(&plan, "a", 1, 1);
	ck_assert_uint_eq(plan.calls, 0);
	expect_take(&plan, "b", 0, 2);
	expect_take(&plan, "b", 1, 2);
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_uint_eq(left(&rig, "b"), 10 * SEC);
	ck_assert_uint_eq(gone_calls(), 0);
	ck_assert_uint_eq(stats(&rig).hits, 2);
	ck_assert_uint_eq(stats(&rig).misses, 1);
	ck_assert_uint_eq(stats(&rig).loads, 1);
	/* An expired entry is missing. */
	step(&rig, SEC);
	plan.value = 3;
	plan.ttl = 5 * SEC;
	expect_take(&plan, "a", 0, 3);
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	ck_assert_uint_eq(left(&rig, "a"), 5 * SEC); /* the loader's TTL */
	ck_assert_int_eq(refresh(&rig, "a", 0), 1);
	ck_assert_uint_eq(left(&rig, "a"), 5 * SEC);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 3);
}
END_TEST

START_TEST(a_failed_load_is_answered_and_not_stored)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .answer = -4711};
	uintptr_t value;

	rig_start(&rig);
	for (unsigned i = 1; i <= 3; i++) {
		expect_take(&plan, "a", -4711, 55);
		ck_assert_uint_eq(plan.calls, i);
		ck_assert_uint_eq(get(&rig, "a"), 0);
		ck_assert_uint_eq(stats(&rig).loads_failed, i);
	}
	plan = (struct plan){.rig = &rig, .value = 9};
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_uint_eq(stats(&rig).loads_failed, 3);
	ck_assert_uint_eq(gone_calls(), 0);
	rig_close(&rig);
	assert_last_gone(1, "a", 9, WW_GONE_CLEARED);
}
END_TEST

static int set_meanwhile(struct plan *plan, const void *key, size_t length)
{
	return ww_session_set(plan->rig->map, key, length, (void *)8, SEC, NULL);
}

START_TEST(a_value_set_during_the_load_stays)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2, .also = set_meanwhile};

	rig_start(&rig);
	expect_take(&plan, "a", 0, 8);
	assert_last_gone(1, "a", 2, WW_GONE_REPLACED);
	ck_assert_uint_eq(get(&rig, "a"), 8);
	ck_assert_uint_eq(left(&rig, "a"), SEC);
	/* Even if the load's TTL is refused: the loaded value goes to gone, and the set one is the answer. */
	plan.ttl = UINT64_MAX;
	expect_take(&plan, "b", 0, 8);
	assert_last_gone(2, "b", 2, WW_GONE_REPLACED);
	rig_close(&rig);
}
END_TEST

static int set_the_same(struct plan *plan, const void *key, size_t length)
{
	return ww_session_set(plan->rig->map, key, length, (void *)2, SEC, NULL);
}

START_TEST(gone_is_not_told_of_the_value_that_the_loader_set_itself)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2, .also = set_the_same};

	rig_start(&rig);
	expect_take(&plan, "a", 0, 2);
	ck_assert_uint_eq(get(&rig, "a"), 2);
	ck_assert_uint_eq(left(&rig, "a"), SEC);
	/* Even if the load's TTL is refused. */
	plan.ttl = UINT64_MAX;
	expect_take(&plan, "b", 0, 2);
	ck_assert_uint_eq(gone_calls(), 0);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 2);
}
END_TEST

static int set_and_expire(struct plan *plan, const void *key, size_t length)
{
	OK(ww_session_set(plan->rig->map, key, length, (void *)8, SEC, NULL));
	step(plan->rig, SEC);
	return 0;
}

START_TEST(a_value_set_and_expired_during_the_load_does_not_stay)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2, .also = set_and_expire};

	rig_start(&rig);
	expect_take(&plan, "a", 0, 2);
	assert_last_gone(1, "a", 8, WW_GONE_EXPIRED);
	ck_assert_uint_eq(get(&rig, "a"), 2);
	/* The TTL counts from the end of the load. */
	ck_assert_uint_eq(left(&rig, "a"), 10 * SEC);
	rig_close(&rig);
}
END_TEST

static int take_the_same(struct plan *plan, const void *key, size_t length)
{
	void *value = NULL;

	(void)length;
	return ww_session_take(plan->rig->map, key, length, load, plan, &value);
}

static int take_another(struct plan *plan, const void *key, size_t length)
{
	struct plan inner = {.rig = plan->rig, .value = 30};
	uintptr_t value;

	(void)key;
	(void)length;
	int answer = take(&inner, "another", &value);
	ck_assert_uint_eq(value, 30);
	return answer;
}

START_TEST(a_loader_may_take_other_keys_but_not_its_own)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2, .also = take_the_same};
	uintptr_t value;

	rig_start(&rig);
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_int_eq(plan.also_answered, WW_EBUSY);
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_uint_eq(value, 2);
	plan.also = take_another;
	ck_assert_int_eq(take(&plan, "b", &value), 0);
	ck_assert_int_eq(plan.also_answered, 0);
	ck_assert_uint_eq(get(&rig, "another"), 30);
	rig_close(&rig);
}
END_TEST

static int destroy_the_map(struct plan *plan, const void *key, size_t length)
{
	(void)key;
	(void)length;
	return ww_session_destroy(plan->rig->map);
}

START_TEST(a_loader_may_not_destroy_its_map)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2, .also = destroy_the_map};
	uintptr_t value;

	rig_start(&rig);
	OK(set(&rig, "there", 1, 0));
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_int_eq(plan.also_answered, WW_EBUSY);
	ck_assert_uint_eq(value, 2);
	plan.answer = WW_ENOMEM;
	plan.also_answered = WW_OK;
	ck_assert_int_eq(take(&plan, "b", &value), WW_ENOMEM);
	ck_assert_int_eq(plan.also_answered, WW_EBUSY);
	ck_assert_uint_eq(get(&rig, "a"), 2);
	ck_assert_uint_eq(get(&rig, "there"), 1);
	ck_assert_uint_eq(gone_calls(), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(a_loaded_value_that_cannot_be_stored_is_answered_and_goes_to_gone)
{
	static const char key[] = "a key of which a copy needs a block of its own";
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2};
	uintptr_t value;
	size_t count = 0;

	rig_start(&rig);
	for (size_t fail_at = 1;; fail_at++) {
		rig.memory.calls = 0;
		rig.memory.fail_at = fail_at;
		int answer = take(&plan, key, &value);
		rig.memory.fail_at = 0;
		if (answer == WW_OK)
			break;
		ck_assert_int_eq(answer, WW_ENOMEM);
		ck_assert_uint_eq(value, 55);
		assert_last_gone(++count, key, 2, WW_GONE_REPLACED);
		ck_assert_uint_eq(get(&rig, key), 0);
	}
	ck_assert_uint_ge(count, 2);
	plan.ttl = WW_SESSION_TTL_MAX + 1;
	ck_assert_int_eq(take(&plan, "b", &value), WW_EINVAL);
	assert_last_gone(++count, "b", 2, WW_GONE_REPLACED);
	ck_assert_uint_eq(get(&rig, "b"), 0);
	rig_close(&rig);
}
END_TEST

static int delete_meanwhile(struct plan *plan, const void *key, size_t length)
{
	return ww_session_delete(plan->rig->map, key, length, NULL);
}

static int set_and_delete(struct plan *plan, const void *key, size_t length)
{
	void *value;

	OK(ww_session_set(plan->rig->map, key, length, (void *)8, SEC, NULL));
	return ww_session_delete(plan->rig->map, key, length, &value);
}

static int clear_meanwhile(struct plan *plan, const void *key, size_t length)
{
	(void)key;
	(void)length;
	return ww_session_clear(plan->rig->map, NULL);
}

static int delete_and_set(struct plan *plan, const void *key, size_t length)
{
	OK(ww_session_delete(plan->rig->map, key, length, NULL));
	return ww_session_set(plan->rig->map, key, length, (void *)8, SEC, NULL);
}

static int set_and_rename(struct plan *plan, const void *key, size_t length)
{
	OK(ww_session_set(plan->rig->map, key, length, (void *)8, SEC, NULL));
	return ww_session_rename(plan->rig->map, key, length, "renamed", 7, NULL, NULL, NULL);
}

static int delete_another(struct plan *plan, const void *key, size_t length)
{
	(void)key;
	return ww_session_delete(plan->rig->map, "b", length, NULL);
}

START_TEST(a_delete_or_clear_outdates_what_is_being_loaded)
{
	/* The key has no value, and a load is outdated all the same: the source may have changed. What is set after the
	 * delete stays. */
	static const struct {
		int (*also)(struct plan *plan, const void *key, size_t length);
		int also_answers;
		uintptr_t taken, kept, renamed;
		enum ww_gone why; /* the loaded value is gone */
	} cases[] = {{delete_meanwhile, 0, 2, 0, 0, WW_GONE_DELETED}, {set_and_delete, 1, 2, 0, 0, WW_GONE_DELETED},
	    {clear_meanwhile, 0, 2, 0, 0, WW_GONE_CLEARED}, {set_and_rename, 0, 2, 0, 8, WW_GONE_DELETED},
	    {delete_and_set, 0, 8, 8, 8, WW_GONE_REPLACED}};
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2};

	rig_start(&rig);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		plan.also = cases[i].also;
		expect_take(&plan, "a", 0, cases[i].taken);
		ck_assert_int_eq(plan.also_answered, cases[i].also_answers);
		ck_assert_uint_eq(get(&rig, "a"), cases[i].kept);
		ck_assert_uint_eq(get(&rig, "renamed"), cases[i].renamed);
		assert_last_gone(i + 1, "a", 2, cases[i].why);
	}
	/* Another key's delete does not matter. */
	plan.also = delete_another;
	ck_assert_int_eq(take(&plan, "c", &(uintptr_t){0}), 0);
	ck_assert_uint_eq(get(&rig, "c"), 2);
	rig_close(&rig);
}
END_TEST

static int delete_and_take(struct plan *plan, const void *key, size_t length)
{
	OK(ww_session_delete(plan->rig->map, key, length, NULL));
	return take_the_same(plan, key, length);
}

START_TEST(a_loader_that_outdated_its_load_may_not_take_its_key)
{
	struct rig rig;
	struct plan plan = {.rig = &rig, .value = 2, .also = delete_and_take};
	uintptr_t value;

	rig_start(&rig);
	ck_assert_int_eq(take(&plan, "a", &value), 0);
	ck_assert_int_eq(plan.also_answered, WW_EBUSY);
	ck_assert_uint_eq(plan.calls, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(take_refuses_invalid_arguments)
{
	struct rig rig;
	struct plan plan = {.rig = &rig};
	void *value = NULL;

	rig_start(&rig);
	ck_assert_int_eq(ww_session_take(NULL, "a", 1, load, &plan, &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_take(rig.map, NULL, 1, load, &plan, &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_take(rig.map, "a", 65536, load, &plan, &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_take(rig.map, "a", 1, NULL, &plan, &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_take(rig.map, "a", 1, load, &plan, NULL), WW_EINVAL);
	ck_assert_uint_eq(plan.calls, 0);
	rig_close(&rig);
}
END_TEST

/* ---- Many threads that ask ------------------------------------------------------------------------------------ */

#define ASKERS 8

static sem_t entered, gate;

static int load_slowly(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	(void)sem_post(&entered);
	while (sem_wait(&gate))
		continue;
	return load(key, length, value, ttl, context);
}

struct asker {
	struct plan *plan;
	pthread_t thread;
	int answer;
	void *value;
};

static void *ask(void *argument)
{
	struct asker *asker = argument;

	asker->answer = ww_session_take(asker->plan->rig->map, "a", 1, load_slowly, asker->plan, &asker->value);
	return NULL;
}

/* All ask while the first one's loader waits. Then it goes on. */
static void ask_all(struct plan *plan, struct asker *asker)
{
	uint64_t shared = stats(plan->rig).loads_shared;

	OK(sem_init(&entered, 0, 0));
	OK(sem_init(&gate, 0, 0));
	for (size_t i = 0; i < ASKERS; i++) {
		asker[i] = (struct asker){.plan = plan, .answer = 4711, .value = (void *)55};
		OK(pthread_create(&asker[i].thread, NULL, ask, &asker[i]));
	}
	(void)sem_wait(&entered);
	while (stats(plan->rig).loads_shared < shared + ASKERS - 1)
		(void)sched_yield();
}

/* All ask a new map. */
static void open_and_ask(struct plan *plan, struct asker *asker)
{
	rig_plan_threads(plan->rig, 1);
	rig_open(plan->rig);
	ask_all(plan, asker);
}

static void join_all(struct asker *asker)
{
	(void)sem_post(&gate);
	for (size_t i = 0; i < ASKERS; i++)
		OK(pthread_join(asker[i].thread, NULL));
}

/* Join them: all have the same answer and value. */
static void join_all_with(struct asker *asker, int answer, uintptr_t value)
{
	join_all(asker);
	for (size_t i = 0; i < ASKERS; i++) {
		ck_assert_int_eq(asker[i].answer, answer);
		ck_assert_ptr_eq(asker[i].value, (void *)value);
	}
}

START_TEST(one_thread_loads_however_many_ask)
{
	struct rig rig;
	struct asker asker[ASKERS];

	rig_plan_threads(&rig, 1);
	rig_open(&rig);
	for (uintptr_t round = 1; round <= 20; round++) {
		struct plan plan = {.rig = &rig, .value = round};
		ask_all(&plan, asker);
		/* Other keys of the shard do not wait. */
		OK(set(&rig, "b", 1, 0));
		join_all_with(asker, 0, round);
		ck_assert_uint_eq(plan.calls, 1);
		ck_assert_uint_eq(stats(&rig).loads, round);
		ck_assert_uint_eq(stats(&rig).loads_shared, round * (ASKERS - 1));
		ck_assert_int_eq(ww_session_delete(rig.map, "a", 1, &asker[0].value), 1);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(all_get_the_error_of_a_failed_load)
{
	struct rig rig;
	struct asker asker[ASKERS];
	struct plan plan = {.rig = &rig, .answer = WW_ESYSTEM};

	open_and_ask(&plan, asker);
	join_all_with(asker, WW_ESYSTEM, 55);
	ck_assert_uint_eq(plan.calls, 1);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	ck_assert_uint_eq(stats(&rig).loads_failed, 1);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 0);
}
END_TEST

START_TEST(all_get_the_value_set_during_the_load)
{
	struct rig rig;
	struct asker asker[ASKERS];
	struct plan plan = {.rig = &rig, .value = 2};

	open_and_ask(&plan, asker);
	OK(set(&rig, "a", 3, 0));
	join_all_with(asker, 0, 3);
	assert_last_gone(1, "a", 2, WW_GONE_REPLACED);
	rig_close(&rig);
	assert_last_gone(2, "a", 3, WW_GONE_CLEARED);
}
END_TEST

START_TEST(nobody_waits_for_a_load_that_is_outdated)
{
	struct rig rig;
	struct asker asker[ASKERS];
	struct plan plan = {.rig = &rig, .value = 2};
	struct plan fresh = {.rig = &rig, .value = 3};

	open_and_ask(&plan, asker);
	ck_assert_int_eq(ww_session_delete(rig.map, "a", 1, NULL), 0);
	expect_take(&fresh, "a", 0, 3);
	ck_assert_int_eq(ww_session_delete(rig.map, "a", 1, NULL), 1);
	assert_last_gone(1, "a", 3, WW_GONE_DELETED);
	join_all_with(asker, 0, 2);
	assert_last_gone(2, "a", 2, WW_GONE_DELETED);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(who_waits_gets_the_value_set_during_a_load_that_fails)
{
	struct rig rig;
	struct asker asker[ASKERS];
	struct plan plan = {.rig = &rig, .answer = WW_ESYSTEM};
	int failed = 0;

	open_and_ask(&plan, asker);
	OK(set(&rig, "a", 3, 0));
	join_all(asker);
	/* The thread whose loader failed is told so. */
	for (size_t i = 0; i < ASKERS; i++) {
		failed += asker[i].answer == WW_ESYSTEM;
		ck_assert(asker[i].answer == WW_ESYSTEM || asker[i].answer == 1);
		ck_assert_ptr_eq(asker[i].value, asker[i].answer == 1 ? (void *)3 : (void *)55);
	}
	ck_assert_int_eq(failed, 1);
	ck_assert_uint_eq(gone_calls(), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(cancelled_threads_end_after_the_call)
{
	struct rig rig;
	struct asker asker[ASKERS];
	struct plan plan = {.rig = &rig, .value = 2};

	open_and_ask(&plan, asker);
	for (size_t i = 0; i < ASKERS; i += 2)
		OK(pthread_cancel(asker[i].thread));
	for (int i = 0; i < 100; i++)
		(void)sched_yield();
	join_all(asker);
	ck_assert_uint_eq(plan.calls, 1);
	for (size_t i = 1; i < ASKERS; i += 2)
		ck_assert_ptr_eq(asker[i].value, (void *)2);
	ck_assert_uint_eq(get(&rig, "a"), 2);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/take", only_a_missing_key_is_loaded, a_failed_load_is_answered_and_not_stored,
    a_value_set_during_the_load_stays, gone_is_not_told_of_the_value_that_the_loader_set_itself,
    a_value_set_and_expired_during_the_load_does_not_stay, a_loader_may_take_other_keys_but_not_its_own,
    a_delete_or_clear_outdates_what_is_being_loaded, a_loader_that_outdated_its_load_may_not_take_its_key,
    a_loader_may_not_destroy_its_map, a_loaded_value_that_cannot_be_stored_is_answered_and_goes_to_gone,
    take_refuses_invalid_arguments, one_thread_loads_however_many_ask, all_get_the_error_of_a_failed_load,
    all_get_the_value_set_during_the_load, nobody_waits_for_a_load_that_is_outdated,
    who_waits_gets_the_value_set_during_a_load_that_fails, cancelled_threads_end_after_the_call)
