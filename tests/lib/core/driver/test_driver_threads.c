/* The driver's threads: their names and hooks, and that nobody cancels them. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

#define WORKERS 3

/* What the hooks have seen, by worker + 1. */
struct seen {
	pthread_mutex_t lock;
	int begun[WORKERS + 1];
	int ended[WORKERS + 1];
	pthread_t thread[WORKERS + 1];
	char name[WORKERS + 1][16];
};

static _Thread_local int attached;

static void attach(const struct ww_driver_thread *thread, void *user)
{
	struct seen *seen = user;
	int i = thread->worker + 1;
	char name[16];

	ck_assert(i >= 0 && i <= WORKERS);
	ck_assert_int_eq(pthread_getname_np(pthread_self(), name, sizeof name), 0);
	ck_assert_str_eq(name, thread->name);
	attached = 1;
	pthread_mutex_lock(&seen->lock);
	seen->begun[i]++;
	seen->thread[i] = pthread_self();
	memcpy(seen->name[i], name, sizeof name);
	pthread_mutex_unlock(&seen->lock);
}

static void detach(const struct ww_driver_thread *thread, void *user)
{
	struct seen *seen = user;

	ck_assert_int_eq(attached, 1);
	attached = 0;
	pthread_mutex_lock(&seen->lock);
	ck_assert(pthread_equal(seen->thread[thread->worker + 1], pthread_self()));
	ck_assert_str_eq(seen->name[thread->worker + 1], thread->name);
	seen->ended[thread->worker + 1]++;
	pthread_mutex_unlock(&seen->lock);
}

static int begun(struct seen *seen)
{
	int count = 0;

	pthread_mutex_lock(&seen->lock);
	for (int i = 0; i <= WORKERS; i++)
		count += seen->begun[i];
	pthread_mutex_unlock(&seen->lock);
	return count;
}

static void begin_hooked(struct seen *seen, uint32_t flags)
{
	struct ww_driver_config config = config_of(flags, WORKERS);

	*seen = (struct seen){.lock = PTHREAD_MUTEX_INITIALIZER};
	config.thread_begin = attach;
	config.thread_end = detach;
	config.thread_user = seen;
	begin_with(&config);
}

static void note_if_attached(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	ck_assert_int_eq(attached, 1);
	note(of, firing, user);
}

START_TEST(each_thread_has_a_name_and_calls_its_hooks)
{
	static const char *const names[] = {"ww-tick", "ww-worker-0", "ww-worker-1", "ww-worker-2"};
	struct seen seen;

	begin_hooked(&seen, 0);
	for (int i = 0; i < 100; i++)
		(void)after(0, note_if_attached, NULL);
	go(TICK);
	ck_assert_uint_eq(fired_count, 100);
	UNTIL(begun(&seen) == WORKERS + 1);
	end();
	for (int i = 0; i <= WORKERS; i++) {
		ck_assert_int_eq(seen.begun[i], 1);
		ck_assert_int_eq(seen.ended[i], 1);
		ck_assert_str_eq(seen.name[i], names[i]);
	}
}
END_TEST

START_TEST(a_driver_without_threads_calls_no_hooks)
{
	struct seen seen;

	begin_hooked(&seen, WW_DRIVER_THREADLESS);
	(void)after(0, note, NULL);
	go(TICK);
	end();
	ck_assert_int_eq(begun(&seen), 0);
}
END_TEST

static void note_and_test(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	note(of, firing, user);
	pthread_testcancel();
}

static void cancel_own_thread(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	ck_assert_int_eq(pthread_cancel(pthread_self()), 0);
	note_and_test(of, firing, user);
}

START_TEST(a_cancelled_thread_of_the_driver_works_on)
{
	struct seen seen;

	begin_hooked(&seen, 0);
	UNTIL(begun(&seen) == WORKERS + 1);
	/* The workers cancel themselves in a callback. All threads are cancelled while they wait for work. */
	for (int i = 0; i < 20; i++)
		(void)after(0, cancel_own_thread, NULL);
	go(TICK);
	for (int i = 0; i <= WORKERS; i++)
		ck_assert_int_eq(pthread_cancel(seen.thread[i]), 0);
	for (int i = 0; i < 20; i++)
		(void)after(0, note_and_test, NULL);
	go(TICK);
	ck_assert_uint_eq(fired_count, 40);
	end();
	for (int i = 0; i <= WORKERS; i++)
		ck_assert_int_eq(seen.ended[i], 1);
}
END_TEST

TEST_MAIN("driver/threads", each_thread_has_a_name_and_calls_its_hooks, a_driver_without_threads_calls_no_hooks,
    a_cancelled_thread_of_the_driver_works_on)
