/* Making a driver: what is refused, what fails, and what threads it has. */
/* tier: check, threads */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/core/driver/fixture.h"

START_TEST(the_default_is_as_documented_and_works)
{
	struct ww_driver_config config;
	struct ww_driver *made = NULL;

	OK(ww_driver_config_default(&config));
	ck_assert_ptr_null(config.clock);
	ck_assert_ptr_null(config.allocator);
	ck_assert_uint_eq(config.tick_ns, WW_MILLISECOND);
	ck_assert_uint_eq(config.queue, 65536);
	ck_assert_uint_eq(config.workers, 8);
	ck_assert_uint_eq(config.shards, 0);
	ck_assert_uint_eq(config.flags, 0);
	ck_assert_uint_eq(config.share, 0);
	OK(ww_driver_create(&made, NULL));
	OK(ww_driver_schedule(made, 0, note, NULL, NULL));
	UNTIL(fired_count == 1);
	OK(ww_driver_destroy(made));
}
END_TEST

START_TEST(destroying_nothing_is_harmless)
{
	OK(ww_driver_destroy(NULL));
}
END_TEST

START_TEST(every_function_refuses_null)
{
	struct ww_driver_stats stats;
	uint64_t ns;

	begin(0, 1);
	ck_assert_int_eq(ww_driver_config_default(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_create(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_stop(NULL, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule(NULL, 0, note, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule(driver, 0, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule_at(NULL, 0, note, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule_at(driver, 0, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule_every(NULL, 0, 1, 0, note, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule_every(driver, 0, 1, 0, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule_every(driver, 0, 0, 0, note, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_schedule_every(driver, 0, 1, 2, note, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_reschedule(NULL, 1, 0), WW_EINVAL);
	ck_assert_int_eq(ww_driver_cancel(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_driver_cancel_wait(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_driver_time_left(NULL, 1, &ns), WW_EINVAL);
	ck_assert_int_eq(ww_driver_time_left(driver, 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_reserve(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_driver_fd(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_fd(driver), WW_EINVAL);
	ck_assert_int_eq(ww_driver_dispatch(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), WW_EINVAL);
	ck_assert_int_eq(ww_driver_now(NULL, &ns), WW_EINVAL);
	ck_assert_int_eq(ww_driver_now(driver, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_settle(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_driver_stats(NULL, &stats), WW_EINVAL);
	ck_assert_int_eq(ww_driver_stats(driver, NULL), WW_EINVAL);
	ck_assert_uint_eq(stats_of().scheduled, 0);
	end();
}
END_TEST

/* Returns the error of a creation, which leaves the caller's pointer as it was. */
static int refusal(const struct ww_driver_config *config)
{
	struct ww_driver *untouched = (struct ww_driver *)(void *)&config;
	struct ww_driver *made = untouched;
	int error = ww_driver_create(&made, config);

	if (error)
		ck_assert_ptr_eq(made, untouched);
	else
		OK(ww_driver_destroy(made));
	return error;
}

START_TEST(a_configuration_out_of_range_is_refused)
{
	struct ww_driver_config good = config_of(0, 1);
	struct ww_driver_config bad;
	struct ww_allocator half = {NULL, ww_allocator_default()->free, NULL};

#define WITH(member, value) (bad = good, bad.member = (value), ck_assert(refusal(&bad) == WW_EINVAL))
	WITH(tick_ns, 0);
	WITH(tick_ns, 999);
	WITH(tick_ns, UINT64_C(1000000000001));
	WITH(queue, 0);
	WITH(queue, (size_t)INT32_MAX + 1);
	WITH(workers, 0);
	WITH(workers, WW_DRIVER_WORKERS_MAX + 1);
	WITH(shards, WW_DRIVER_SHARDS_MAX + 1);
	WITH(share, WW_DRIVER_SHARE_MAX + 1);
	WITH(flags, 4);
	WITH(allocator, &half);
	half = (struct ww_allocator){ww_allocator_default()->allocate, NULL, NULL};
	WITH(allocator, &half);
}
END_TEST

START_TEST(the_ends_of_the_range_work)
{
	static const uint64_t ticks[] = {1000, 999999, WW_SECOND - 1, WW_SECOND, 1000 * WW_SECOND};

	for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
		struct ww_driver_config config = config_of(0, i ? 1 : WW_DRIVER_WORKERS_MAX);
		config.tick_ns = ticks[i];
		config.shards = i ? 1 : WW_DRIVER_SHARDS_MAX;
		config.queue = i ? 1 : INT32_MAX;
		config.share = i ? 1 : WW_DRIVER_SHARE_MAX;
		begin_with(&config);
		(void)after(3 * ticks[i], note, NULL);
		go(3 * ticks[i] + ticks[i] - 1);
		ck_assert_uint_eq(fired_count, 1);
		end();
	}
}
END_TEST

START_TEST(each_failed_allocation_of_create_is_reported_and_leaves_nothing)
{
	struct ww_driver_config config = config_of(0, 2);
	size_t failures = 0;

	config.shards = 3;
	for (int error = WW_ENOMEM; error; failures++) {
		struct test_memory memory;
		test_memory_init(&memory, failures + 1);
		config.allocator = &memory.table;
		error = refusal(&config);
		if (error) {
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_uint_eq(memory.calls, failures + 1);
		}
		ck_assert_uint_eq(memory.blocks, 0);
		ck_assert_uint_eq(memory.bytes, 0);
	}
	/* The driver, its alarm, the workers, the shards, and their group with all wheels. */
	ck_assert_uint_eq(failures - 1, 5);
	/* No alarm is left on the clock. */
	OK(ww_clock_virtual_destroy(virtual_clock));
	virtual_clock = NULL;
}
END_TEST

START_TEST(create_without_descriptors_fails_and_leaves_nothing)
{
	struct rlimit limit;
	struct ww_driver_config config = config_of(0, 1);
	struct test_memory memory;
	int fd;

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	fd = open("/dev/null", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	limit.rlim_cur = (rlim_t)fd;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	int error = refusal(&config);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(error, WW_ESYSTEM);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

/*
 * Runs in a process of its own that may have `threads` threads. 0: create fails as it should; 1 or 2: it does not; 77:
 * the system does not limit the process.
 */
static int create_with(rlim_t threads)
{
	struct rlimit limit = {threads, threads};
	struct ww_driver_config config = config_of(0, 4);
	struct test_memory memory;
	int error;

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	if (setrlimit(RLIMIT_NPROC, &limit))
		return 77;
	/* The superuser is not limited: become a user who has no other processes. */
	if (geteuid() == 0 && (setgid(54321) || setuid(54321)))
		return 77;
	error = refusal(&config);
	if (error == WW_OK)
		return threads <= 1 ? 77 : 2;
	return error == WW_ESYSTEM && memory.blocks == 0 ? 0 : 1;
}

START_TEST(create_without_threads_fails_and_leaves_nothing)
{
	/* A driver of 4 workers has 5 threads, one too many at each of these limits. */
	for (rlim_t threads = 1; threads <= 5; threads++) {
		int status;
		pid_t child = fork();
		if (child == 0)
			_exit(create_with(threads));
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77) {
			printf("test_driver_create: skipped: the number of threads cannot be limited here\n");
			return;
		}
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	}
}
END_TEST

static void look_at_signals(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)of;
	(void)firing;
	ck_assert(pthread_sigmask(SIG_BLOCK, NULL, user) == 0);
}

/* The kernel's view of the signals that a thread of this process blocks. */
static uint64_t blocked_in(const char *task)
{
	char line[300];
	uint64_t mask = 0;
	FILE *file;

	(void)snprintf(line, sizeof line, "/proc/self/task/%s/status", task);
	file = fopen(line, "r");
	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "SigBlk:", 7) == 0)
			mask = strtoull(line + 7, NULL, 16);
	if (file)
		(void)fclose(file);
	return mask;
}

/* This holds on a busy machine too: thread numbers need not follow the number of the process. */
static int threads_that_block(int signal)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	int count = 0;

	ck_assert_ptr_nonnull(tasks);
	while ((task = readdir(tasks)))
		if (task->d_name[0] != '.')
			count += (blocked_in(task->d_name) & UINT64_C(1) << (signal - 1)) != 0;
	(void)closedir(tasks);
	return count;
}

/* A thread raises these itself. If they were blocked, they would end the process whatever handler it has. */
static int is_fault(int signal)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	int found = 0;

	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		found += faults[i] == signal;
	return found;
}

START_TEST(signals_are_blocked_in_the_drivers_threads_but_not_in_the_callers)
{
	sigset_t before;
	sigset_t here;
	sigset_t there;

	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
	sigemptyset(&there);
	begin(0, 1);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &here), 0);
	for (int signal = 1; signal < 32; signal++)
		ck_assert_int_eq(sigismember(&here, signal), sigismember(&before, signal));
	(void)after(0, look_at_signals, &there);
	go(TICK);
	for (int signal = 1; signal < 32; signal++)
		if (signal != SIGKILL && signal != SIGSTOP)
			ck_assert_int_eq(sigismember(&there, signal), !is_fault(signal));
	ck_assert_int_ge(threads_that_block(SIGTERM), 2);
	ck_assert_int_ge(threads_that_block(SIGUSR1), 2);
	end();
}
END_TEST

START_TEST(a_fault_signal_blocked_by_the_creator_is_blocked_in_the_drivers_threads)
{
	sigset_t fault;
	sigset_t there;

	sigemptyset(&fault);
	sigaddset(&fault, SIGTRAP);
	sigemptyset(&there);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &fault, NULL), 0);
	begin(0, 1);
	(void)after(0, look_at_signals, &there);
	go(TICK);
	ck_assert_int_eq(sigismember(&there, SIGTRAP), 1);
	ck_assert_int_eq(sigismember(&there, SIGSEGV), 0);
	end();
}
END_TEST

TEST_MAIN("driver/create", the_default_is_as_documented_and_works, destroying_nothing_is_harmless,
    every_function_refuses_null, a_configuration_out_of_range_is_refused, the_ends_of_the_range_work,
    each_failed_allocation_of_create_is_reported_and_leaves_nothing,
    create_without_descriptors_fails_and_leaves_nothing, create_without_threads_fails_and_leaves_nothing,
    signals_are_blocked_in_the_drivers_threads_but_not_in_the_callers,
    a_fault_signal_blocked_by_the_creator_is_blocked_in_the_drivers_threads)
