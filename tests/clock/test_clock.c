/*
 * Clocks and alarms. What depends on time is tested with virtual clocks; of the real ones only that they go forward and
 * that their alarms do go off.
 *
 * The program has some functions of its own in front of the C library's. timerfd_settime and read pretend that the wall
 * clock was stepped, which no test may do. pthread_setcancelstate, which the library calls before it takes a lock, lets
 * other threads in there, so that a race is run on a single processor, too.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/seed.h"
#include "support/suite.h"
#include "weekwheel/clock.h"

#define NEVER UINT64_MAX
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* How long a real alarm may take before something must be broken. Nothing waits for it otherwise. */
#define PATIENCE_MS 60000

/* ---- What the library calls ------------------------------------------------------------------------------------- */

static atomic_int step_before_set;  /* as many calls of timerfd_settime answer ECANCELED */
static atomic_int step_before_read; /* as many calls of read for this descriptor do */
static atomic_int stepped_fd;
static atomic_int last_flags; /* of timerfd_settime */

static int taken(atomic_int *count)
{
	if (atomic_load(count) <= 0)
		return 0;
	atomic_fetch_sub(count, 1);
	return 1;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new_value, struct itimerspec *old_value)
{
	int answer = (int)syscall(SYS_timerfd_settime, fd, flags, new_value, old_value);

	atomic_store(&last_flags, flags);
	if (answer == 0 && taken(&step_before_set)) {
		errno = ECANCELED;
		return -1;
	}
	return answer;
}

ssize_t read(int fd, void *buffer, size_t size)
{
	static _Atomic(ssize_t(*)(int, void *, size_t)) known;
	ssize_t (*next)(int, void *, size_t) = atomic_load(&known);

	if (next == NULL) {
		*(void **)(void *)&next = dlsym(RTLD_NEXT, "read");
		atomic_store(&known, next);
	}
	if (fd == atomic_load(&stepped_fd) && taken(&step_before_read)) {
		errno = ECANCELED;
		return -1;
	}
	return next(fd, buffer, size);
}

/* Of a thread that lets others in where the library is about to take a clock's lock: its random numbers. */
static _Thread_local uint64_t *hesitates;

int pthread_setcancelstate(int state, int *old_state)
{
	static _Atomic(int (*)(int, int *)) known;
	int (*next)(int, int *) = atomic_load(&known);

	if (next == NULL) {
		*(void **)(void *)&next = dlsym(RTLD_NEXT, "pthread_setcancelstate");
		atomic_store(&known, next);
	}
	if (hesitates != NULL && seed_below(hesitates, 4) == 0)
		sched_yield();
	return next(state, old_state);
}

/* ---- Helpers ---------------------------------------------------------------------------------------------------- */

static struct ww_clock *make_clock(uint64_t start)
{
	struct ww_clock *clock = NULL;

	OK(ww_clock_virtual_create(&clock, start, NULL));
	ck_assert_ptr_nonnull(clock);
	return clock;
}

static struct ww_alarm *make_alarm(struct ww_clock *clock)
{
	struct ww_alarm *alarm = NULL;

	OK(ww_alarm_create(&alarm, clock, NULL));
	ck_assert_ptr_nonnull(alarm);
	return alarm;
}

static uint64_t now(struct ww_clock *clock)
{
	uint64_t ns = NEVER;

	OK(ww_clock_now(clock, &ns));
	return ns;
}

static int readable_within(struct ww_alarm *alarm, int ms)
{
	struct pollfd descriptor = {.fd = ww_alarm_fd(alarm), .events = POLLIN};
	int count;

	do
		count = poll(&descriptor, 1, ms);
	while (count < 0 && errno == EINTR);
	ck_assert_int_ge(count, 0);
	return count == 1 && (descriptor.revents & POLLIN) != 0;
}

static int readable(struct ww_alarm *alarm)
{
	return readable_within(alarm, 0);
}

/* Whether it has gone off, by its descriptor and by clear, which must agree; it is cleared then. */
static int went_off(struct ww_alarm *alarm)
{
	int answer = readable(alarm);

	ck_assert_int_eq(ww_alarm_clear(alarm), answer);
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	ck_assert(!readable(alarm));
	return answer;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

START_TEST(null_is_refused_or_harmless)
{
	struct ww_clock *clock = make_clock(5);
	struct ww_alarm *alarm = NULL;
	uint64_t ns = 17;

	ck_assert_int_eq(ww_clock_now(NULL, &ns), WW_EINVAL);
	ck_assert_int_eq(ww_clock_now(clock, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_clock_now(ww_clock_elapsed(), NULL), WW_EINVAL);
	ck_assert_int_eq(ww_clock_virtual_create(NULL, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_clock_virtual_advance(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_clock_virtual_set(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_create(NULL, clock, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_create(&alarm, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_fd(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_set(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_clear(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_wait(NULL), WW_EINVAL);
	ck_assert_uint_eq(ns, 17);
	ck_assert_ptr_null(alarm);
	OK(ww_clock_virtual_destroy(NULL));
	ww_alarm_destroy(NULL);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(real_clocks_are_not_told_the_time)
{
	struct ww_clock *clocks[] = {ww_clock_elapsed(), ww_clock_wall()};

	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(ww_clock_virtual_advance(clocks[i], 1), WW_EINVAL);
		ck_assert_int_eq(ww_clock_virtual_set(clocks[i], 1), WW_EINVAL);
		ck_assert_int_eq(ww_clock_virtual_destroy(clocks[i]), WW_EINVAL);
	}
}
END_TEST

START_TEST(times_beyond_the_last_are_refused)
{
	static const uint64_t beyond[] = {WW_CLOCK_MAX + 1, WW_CLOCK_MAX + 2, UINT64_MAX - 1};
	struct ww_clock *clock = make_clock(WW_CLOCK_MAX), *none = NULL;
	struct ww_alarm *alarms[] = {make_alarm(clock), make_alarm(ww_clock_elapsed()), make_alarm(ww_clock_wall())};

	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(ww_clock_virtual_create(&none, beyond[i], NULL), WW_EOVERFLOW);
		ck_assert_int_eq(ww_clock_virtual_set(clock, beyond[i]), WW_EOVERFLOW);
		ck_assert_int_eq(ww_clock_virtual_advance(clock, beyond[i]), WW_EOVERFLOW);
		for (size_t j = 0; j < 3; j++)
			ck_assert_int_eq(ww_alarm_set(alarms[j], beyond[i]), WW_EOVERFLOW);
	}
	ck_assert_ptr_null(none);
	ck_assert_int_eq(ww_clock_virtual_create(&none, UINT64_MAX, NULL), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_set(clock, UINT64_MAX), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_advance(clock, 1), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_advance(clock, UINT64_MAX), WW_EOVERFLOW);
	OK(ww_clock_virtual_advance(clock, 0));
	ck_assert_uint_eq(now(clock), WW_CLOCK_MAX);
	for (size_t j = 0; j < 3; j++) {
		ck_assert(!readable(alarms[j]));
		OK(ww_alarm_set(alarms[j], WW_CLOCK_MAX));
	}
	ck_assert(went_off(alarms[0]));
	ck_assert(!readable(alarms[1]));
	for (size_t j = 0; j < 3; j++)
		ww_alarm_destroy(alarms[j]);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(refused_setting_leaves_the_former)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarm = make_alarm(clock);

	OK(ww_alarm_set(alarm, 10));
	ck_assert_int_eq(ww_alarm_set(alarm, WW_CLOCK_MAX + 1), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_advance(clock, WW_CLOCK_MAX + 1), WW_EOVERFLOW);
	OK(ww_clock_virtual_advance(clock, 10));
	ck_assert_int_eq(ww_alarm_set(alarm, WW_CLOCK_MAX + 1), WW_EOVERFLOW);
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

/* ---- Memory and descriptors ------------------------------------------------------------------------------------- */

START_TEST(clock_with_alarms_is_not_destroyed)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *one = make_alarm(clock), *two = make_alarm(clock);

	ck_assert_int_eq(ww_clock_virtual_destroy(clock), WW_EBUSY);
	ww_alarm_destroy(one);
	ck_assert_int_eq(ww_clock_virtual_destroy(clock), WW_EBUSY);
	OK(ww_alarm_set(two, 3));
	OK(ww_clock_virtual_advance(clock, 3));
	ck_assert(went_off(two));
	ww_alarm_destroy(two);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(each_allocation_fails)
{
	struct ww_clock *clock_marker = ww_clock_wall(), *clock;
	struct ww_alarm *alarm_marker = make_alarm(clock_marker), *alarm;
	struct test_memory memory;
	int error = WW_ENOMEM;

	for (size_t fail_at = 1; error != WW_OK; fail_at++) {
		ck_assert_uint_le(fail_at, 3);
		clock = clock_marker;
		alarm = alarm_marker;
		test_memory_init(&memory, fail_at);
		error = ww_clock_virtual_create(&clock, 0, &memory.table);
		if (error != WW_OK) {
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_ptr_eq(clock, clock_marker);
			ck_assert_uint_eq(memory.blocks, 0);
			continue;
		}
		error = ww_alarm_create(&alarm, clock, &memory.table);
		if (error != WW_OK) {
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_ptr_eq(alarm, alarm_marker);
			ck_assert_uint_eq(memory.blocks, 1);
		} else {
			ck_assert_uint_eq(memory.blocks, 2);
			ww_alarm_destroy(alarm);
		}
		OK(ww_clock_virtual_destroy(clock));
		ck_assert_uint_eq(memory.blocks, 0);
		ck_assert_uint_eq(memory.bytes, 0);
	}
	ck_assert_uint_eq(memory.calls, 2);
	ww_alarm_destroy(alarm_marker);
}
END_TEST

START_TEST(no_descriptor_is_left)
{
	struct ww_clock *clocks[] = {make_clock(0), ww_clock_elapsed(), ww_clock_wall()};
	struct ww_alarm *marker = make_alarm(clocks[0]);
	struct rlimit limit, none;
	struct test_memory memory;

	test_memory_init(&memory, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	for (size_t i = 0; i < 3; i++) {
		struct ww_alarm *alarm = marker;
		int error;

		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
		error = ww_alarm_create(&alarm, clocks[i], &memory.table);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		ck_assert_int_eq(error, WW_ESYSTEM);
		ck_assert_ptr_eq(alarm, marker);
		ck_assert_uint_eq(memory.blocks, 0);
	}
	ww_alarm_destroy(marker);
	OK(ww_clock_virtual_destroy(clocks[0]));
}
END_TEST

START_TEST(descriptors_are_closed_on_exec_and_when_destroyed)
{
	struct ww_clock *clocks[] = {make_clock(0), ww_clock_elapsed(), ww_clock_wall()};

	for (size_t i = 0; i < 3; i++) {
		struct ww_alarm *alarm = make_alarm(clocks[i]);
		int fd = ww_alarm_fd(alarm);

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(ww_alarm_fd(alarm), fd);
		ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
		OK(ww_alarm_set(alarm, 0));
		ww_alarm_destroy(alarm);
		ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	}
	OK(ww_clock_virtual_destroy(clocks[0]));
}
END_TEST

/* ---- Virtual clocks --------------------------------------------------------------------------------------------- */

START_TEST(virtual_clock_is_told_the_time)
{
	struct ww_clock *clock = make_clock(7), *other = make_clock(0);

	ck_assert_uint_eq(now(clock), 7);
	OK(ww_clock_virtual_advance(clock, 0));
	ck_assert_uint_eq(now(clock), 7);
	OK(ww_clock_virtual_advance(clock, 3));
	ck_assert_uint_eq(now(clock), 10);
	OK(ww_clock_virtual_set(clock, 4));
	ck_assert_uint_eq(now(clock), 4);
	OK(ww_clock_virtual_set(clock, 0));
	OK(ww_clock_virtual_advance(clock, WW_CLOCK_MAX));
	ck_assert_uint_eq(now(clock), WW_CLOCK_MAX);
	OK(ww_clock_virtual_set(clock, WW_CLOCK_MAX));
	ck_assert_uint_eq(now(other), 0);
	OK(ww_clock_virtual_destroy(clock));
	OK(ww_clock_virtual_destroy(other));
}
END_TEST

START_TEST(alarm_goes_off_in_the_nanosecond_and_once)
{
	struct ww_clock *clock = make_clock(100);
	struct ww_alarm *alarm = make_alarm(clock);

	ck_assert(!went_off(alarm));
	OK(ww_alarm_set(alarm, 200));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_advance(clock, 99));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_advance(clock, 1));
	ck_assert(readable(alarm));
	OK(ww_clock_virtual_advance(clock, 1));
	ck_assert(went_off(alarm));
	OK(ww_clock_virtual_advance(clock, S));
	ck_assert(!went_off(alarm));

	OK(ww_alarm_set(alarm, 10 * S));
	OK(ww_clock_virtual_set(clock, 10 * S - 1));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 20 * S));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(alarm_goes_off_at_once)
{
	static const uint64_t reached[] = {0, 1, 499, 500};
	struct ww_clock *clock = make_clock(500);
	struct ww_alarm *alarm = make_alarm(clock);

	for (size_t i = 0; i < sizeof reached / sizeof reached[0]; i++) {
		OK(ww_alarm_set(alarm, reached[i]));
		ck_assert(went_off(alarm));
	}
	/* Twice is once. */
	OK(ww_alarm_set(alarm, 0));
	OK(ww_alarm_set(alarm, 0));
	ck_assert(went_off(alarm));
	OK(ww_alarm_set(alarm, 501));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 0));
	ck_assert_int_eq(ww_alarm_clear(alarm), 1);
	OK(ww_alarm_set(alarm, 0));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(setting_replaces_the_former)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarm = make_alarm(clock);

	/* Later, earlier, not at all. */
	OK(ww_alarm_set(alarm, 10));
	OK(ww_alarm_set(alarm, 20));
	OK(ww_clock_virtual_set(clock, 19));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 20));
	ck_assert(went_off(alarm));
	OK(ww_alarm_set(alarm, 50));
	OK(ww_alarm_set(alarm, 40));
	OK(ww_clock_virtual_set(clock, 40));
	ck_assert(went_off(alarm));
	OK(ww_clock_virtual_set(clock, 50));
	ck_assert(!went_off(alarm));
	OK(ww_alarm_set(alarm, 60));
	OK(ww_alarm_set(alarm, NEVER));
	OK(ww_clock_virtual_set(clock, WW_CLOCK_MAX));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 50));

	/* One that has gone off is taken back. */
	OK(ww_alarm_set(alarm, 0));
	OK(ww_alarm_set(alarm, 60));
	ck_assert(!readable(alarm));
	OK(ww_clock_virtual_set(clock, 60));
	ck_assert(readable(alarm));
	OK(ww_alarm_set(alarm, NEVER));
	ck_assert(!went_off(alarm));

	/* Clearing one that has not gone off leaves it set. */
	OK(ww_alarm_set(alarm, 70));
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	OK(ww_clock_virtual_set(clock, 70));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(step_backwards_calls_alarms_that_are_set)
{
	struct ww_clock *clock = make_clock(1000);
	struct ww_alarm *set = make_alarm(clock), *not_set = make_alarm(clock), *spent = make_alarm(clock);

	OK(ww_alarm_set(set, 2000));
	OK(ww_alarm_set(not_set, 2000));
	OK(ww_alarm_set(not_set, NEVER));
	OK(ww_alarm_set(spent, 0));
	ck_assert(went_off(spent));
	OK(ww_clock_virtual_set(clock, 1000));
	ck_assert(!went_off(set));
	OK(ww_clock_virtual_set(clock, 999));
	ck_assert(went_off(set));
	ck_assert(!went_off(not_set));
	ck_assert(!went_off(spent));

	/* Who listens for steps alone is not called by time that passes. */
	OK(ww_alarm_set(set, WW_CLOCK_MAX));
	OK(ww_clock_virtual_advance(clock, S));
	OK(ww_clock_virtual_set(clock, 2 * S));
	ck_assert(!went_off(set));
	OK(ww_clock_virtual_set(clock, 0));
	ck_assert(went_off(set));
	ww_alarm_destroy(set);
	ww_alarm_destroy(not_set);
	ww_alarm_destroy(spent);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(alarms_of_other_clocks_stay)
{
	struct ww_clock *one = make_clock(0), *two = make_clock(0);
	struct ww_alarm *of_one = make_alarm(one), *of_two = make_alarm(two);

	OK(ww_alarm_set(of_one, 5));
	OK(ww_alarm_set(of_two, 5));
	OK(ww_clock_virtual_advance(one, 5));
	ck_assert(went_off(of_one));
	ck_assert(!went_off(of_two));
	ww_alarm_destroy(of_one);
	ww_alarm_destroy(of_two);
	OK(ww_clock_virtual_destroy(one));
	OK(ww_clock_virtual_destroy(two));
}
END_TEST

/* ---- Random operations against what the header says ------------------------------------------------------------- */

enum { ALARMS = 100, STEPS = 200000, SPAN = 1000 };

struct expected {
	struct ww_alarm *alarm;
	uint64_t when; /* NEVER: not set */
	int off;
};

static void expect_time(struct expected *all, uint64_t *time, uint64_t ns)
{
	for (size_t i = 0; i < ALARMS; i++) {
		if (all[i].when == NEVER || (ns >= *time && all[i].when > ns))
			continue;
		all[i].when = NEVER;
		all[i].off = 1;
	}
	*time = ns;
}

static void expect_setting(struct expected *one, uint64_t time, uint64_t ns)
{
	one->off = ns <= time;
	one->when = one->off ? NEVER : ns;
}

static void random_step(struct ww_clock *clock, struct expected *all, uint64_t *time, uint64_t *state)
{
	struct expected *one = &all[seed_below(state, ALARMS)];
	uint64_t ns = *time - SPAN + seed_below(state, 2 * SPAN);

	switch (seed_below(state, 20)) {
	case 0:
		ns = seed_below(state, SPAN / 4);
		OK(ww_clock_virtual_advance(clock, ns));
		expect_time(all, time, *time + ns);
		break;
	case 1:
		OK(ww_clock_virtual_set(clock, ns));
		expect_time(all, time, ns);
		break;
	case 2:
		OK(ww_alarm_set(one->alarm, NEVER));
		expect_setting(one, *time, NEVER);
		break;
	case 3:
		/* Its place in the clock's list is anywhere. */
		ww_alarm_destroy(one->alarm);
		*one = (struct expected){make_alarm(clock), NEVER, 0};
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		ck_assert_int_eq(ww_alarm_clear(one->alarm), one->off);
		one->off = 0;
		break;
	default:
		OK(ww_alarm_set(one->alarm, ns));
		expect_setting(one, *time, ns);
		break;
	}
}

START_TEST(many_alarms_do_what_they_should)
{
	static struct expected all[ALARMS];
	uint64_t state = seed_of_run("many_alarms_do_what_they_should"), time = 1000 * S;
	struct ww_clock *clock = make_clock(time);

	for (size_t i = 0; i < ALARMS; i++)
		all[i] = (struct expected){make_alarm(clock), NEVER, 0};
	for (int step = 0; step < STEPS; step++) {
		size_t i = (size_t)step % ALARMS;

		random_step(clock, all, &time, &state);
		ck_assert_uint_eq(now(clock), time);
		ck_assert_msg(readable(all[i].alarm) == all[i].off, "step %d, alarm %zu", step, i);
	}
	for (size_t i = 0; i < ALARMS; i++) {
		ck_assert_int_eq(ww_alarm_clear(all[i].alarm), all[i].off);
		ww_alarm_destroy(all[i].alarm);
	}
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 100000 };

struct race {
	struct ww_clock *clock;
	struct ww_alarm *alarm;
	uint64_t state;
	_Atomic uint64_t begun, ended;
	int failed;
};

static void *advance_in_each_round(void *argument)
{
	struct race *race = argument;

	hesitates = &race->state;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&race->begun) < round)
			sched_yield();
		if (round % 2 == 0)
			race->failed |= ww_clock_virtual_advance(race->clock, 1);
		else
			race->failed |= ww_clock_virtual_set(race->clock, round);
		atomic_store(&race->ended, round);
	}
	return NULL;
}

/* In each round the clock reaches the very time that the alarm is set to meanwhile. No later step would make up for it. */
START_TEST(set_races_with_advance)
{
	struct ww_clock *clock = make_clock(0);
	uint64_t state = seed_of_run("set_races_with_advance");
	struct race race = {.clock = clock, .alarm = make_alarm(clock), .state = state + 1};
	pthread_t thread;

	hesitates = &state;
	ck_assert_int_eq(pthread_create(&thread, NULL, advance_in_each_round, &race), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		atomic_store(&race.begun, round);
		OK(ww_alarm_set(race.alarm, round));
		while (atomic_load(&race.ended) < round)
			sched_yield();
		if (!readable(race.alarm) || ww_alarm_clear(race.alarm) != 1)
			ck_abort_msg("the wake-up of round %" PRIu64 " is lost", round);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(race.failed, 0);
	hesitates = NULL;
	ck_assert_uint_eq(now(clock), ROUNDS);
	ww_alarm_destroy(race.alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

enum { THREADS = 4, SHARED_ALARMS = 3, THREAD_STEPS = 20000 };

struct hammer {
	struct ww_clock *clock;
	struct ww_alarm **alarms;
	uint64_t state;
	int failed;
};

static void *hammer(void *argument)
{
	struct hammer *mine = argument;

	hesitates = &mine->state;
	for (int step = 0; step < THREAD_STEPS; step++) {
		struct ww_alarm *alarm = mine->alarms[seed_below(&mine->state, SHARED_ALARMS)], *own;
		uint64_t ns = 0;

		mine->failed |= ww_clock_now(mine->clock, &ns) != WW_OK;
		ns += seed_below(&mine->state, 20);
		switch (seed_below(&mine->state, 8)) {
		case 0:
			mine->failed |= ww_clock_virtual_advance(mine->clock, 10) != WW_OK;
			break;
		case 1:
			mine->failed |= ww_clock_virtual_set(mine->clock, ns) != WW_OK;
			break;
		case 2:
			mine->failed |= ww_alarm_create(&own, mine->clock, NULL) != WW_OK;
			mine->failed |= ww_alarm_set(own, 0) != WW_OK || ww_alarm_clear(own) != 1;
			ww_alarm_destroy(own);
			break;
		case 3:
		case 4:
			mine->failed |= ww_alarm_clear(alarm) < 0;
			break;
		default:
			mine->failed |= ww_alarm_set(alarm, ns) != WW_OK;
			break;
		}
	}
	return NULL;
}

START_TEST(threads_share_alarms)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarms[SHARED_ALARMS] = {make_alarm(clock), make_alarm(clock), make_alarm(clock)};
	struct hammer hammers[THREADS];
	pthread_t threads[THREADS];
	uint64_t seed = seed_of_run("threads_share_alarms");

	for (size_t i = 0; i < THREADS; i++) {
		hammers[i] = (struct hammer){clock, alarms, seed + i, 0};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(hammers[i].failed, 0);
	}
	for (size_t i = 0; i < SHARED_ALARMS; i++) {
		(void)went_off(alarms[i]);
		OK(ww_alarm_set(alarms[i], now(clock) + 5));
		ck_assert(!went_off(alarms[i]));
		OK(ww_clock_virtual_advance(clock, 5));
		ck_assert(went_off(alarms[i]));
		ww_alarm_destroy(alarms[i]);
	}
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

/* Of threads that clear one alarm, one is told each time it went off. */
struct clearer {
	struct ww_alarm *alarm;
	atomic_int *stop;
	uint64_t told;
};

static void *clear_until_stopped(void *argument)
{
	struct clearer *mine = argument;
	int last;

	do {
		last = atomic_load(mine->stop);
		mine->told += (uint64_t)ww_alarm_clear(mine->alarm);
		sched_yield();
	} while (!last);
	return NULL;
}

START_TEST(one_of_many_clearers_is_told)
{
	enum { TIMES = 2000 };
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarm = make_alarm(clock);
	atomic_int stop = 0;
	struct clearer clearers[THREADS];
	pthread_t threads[THREADS];
	uint64_t told = 0;

	for (size_t i = 0; i < THREADS; i++) {
		clearers[i] = (struct clearer){alarm, &stop, 0};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, clear_until_stopped, &clearers[i]), 0);
	}
	for (uint64_t i = 1; i <= TIMES; i++) {
		OK(ww_alarm_set(alarm, i));
		OK(ww_clock_virtual_advance(clock, 1));
		while (readable(alarm))
			sched_yield();
	}
	atomic_store(&stop, 1);
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		told += clearers[i].told;
	}
	ck_assert_uint_eq(told, TIMES);
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

/* ---- Waiting ---------------------------------------------------------------------------------------------------- */

/* The example of the header, word for word. */
static int wait_until(struct ww_clock *clock, uint64_t ns)
{
	struct ww_alarm *alarm;
	uint64_t now;
	int error = ww_alarm_create(&alarm, clock, NULL);

	if (error != WW_OK)
		return error;
	for (;;) {
		ww_clock_now(clock, &now);
		if (now >= ns || (error = ww_alarm_set(alarm, ns)) != WW_OK)
			break;
		if ((error = ww_alarm_wait(alarm)) != WW_OK)
			break;
		ww_alarm_clear(alarm);
	}
	ww_alarm_destroy(alarm);
	return error;
}

struct waiter {
	struct ww_clock *clock;
	struct ww_alarm *alarm;
	uint64_t until;
	int answer;
	atomic_int done;
};

static void *wait_for_time(void *argument)
{
	struct waiter *mine = argument;

	mine->answer = wait_until(mine->clock, mine->until);
	atomic_store(&mine->done, 1);
	return NULL;
}

static void *wait_for_alarm(void *argument)
{
	struct waiter *mine = argument;

	mine->answer = ww_alarm_wait(mine->alarm);
	atomic_store(&mine->done, 1);
	return NULL;
}

START_TEST(example_waits_for_a_week)
{
	struct waiter waiter = {.clock = make_clock(50 * S), .until = 604800 * S, .answer = 1};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_time, &waiter), 0);
	for (uint64_t time = 3600 * S; time < waiter.until; time += 3600 * S) {
		OK(ww_clock_virtual_set(waiter.clock, time - 50 * S));
		OK(ww_clock_virtual_set(waiter.clock, time - 60 * S));
		sched_yield();
		ck_assert_int_eq(atomic_load(&waiter.done), 0);
	}
	OK(ww_clock_virtual_set(waiter.clock, waiter.until));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	OK(waiter.answer);
	OK(ww_clock_virtual_destroy(waiter.clock));
	OK(wait_until(ww_clock_elapsed(), now(ww_clock_elapsed()) + MS));
}
END_TEST

START_TEST(wait_wakes_all_and_leaves_the_alarm)
{
	struct ww_clock *clock = make_clock(0);
	struct waiter waiters[THREADS];
	struct ww_alarm *alarm = make_alarm(clock);
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		waiters[i] = (struct waiter){.alarm = alarm, .answer = 1};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_for_alarm, &waiters[i]), 0);
	}
	OK(ww_alarm_set(alarm, 1));
	OK(ww_clock_virtual_advance(clock, 1));
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		OK(waiters[i].answer);
	}
	OK(ww_alarm_wait(alarm));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

static atomic_int signals;

static void count_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

START_TEST(signals_do_not_end_the_wait)
{
	struct waiter waiter = {.clock = make_clock(0), .answer = 1};
	struct sigaction action = {.sa_handler = count_signal};
	pthread_t thread;

	waiter.alarm = make_alarm(waiter.clock);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_alarm, &waiter), 0);
	for (int i = 0; i < 100; i++) {
		/* ThreadSanitizer puts a signal off that comes just before the thread begins to wait, until another one comes. */
		while (atomic_load(&signals) <= i) {
			ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
			for (int k = 0; k < 1000 && atomic_load(&signals) <= i; k++)
				sched_yield();
		}
		ck_assert_int_eq(atomic_load(&waiter.done), 0);
	}
	OK(ww_alarm_set(waiter.alarm, 0));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	OK(waiter.answer);
	ww_alarm_destroy(waiter.alarm);
	OK(ww_clock_virtual_destroy(waiter.clock));
}
END_TEST

/* ---- Cancellation ----------------------------------------------------------------------------------------------- */

/*
 * A cancelled thread leaves AddressSanitizer's marks of its frames behind on the stack, and its end, when it frees the
 * stack for signals that AddressSanitizer has given it, stumbles over them.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}

/* A cancelled thread ends at the first cancellation point: it must come to the end of this. */
static void *use_all_when_cancelled(void *argument)
{
	struct waiter *mine = argument;
	struct ww_alarm *alarm;
	uint64_t ns;

	(void)pthread_cancel(pthread_self());
	mine->answer = ww_alarm_create(&alarm, mine->clock, NULL);
	for (int i = 0; i < 2; i++) {
		mine->answer |= ww_alarm_set(alarm, 0);
		(void)ww_alarm_clear(alarm);
		mine->answer |= ww_alarm_set(alarm, WW_CLOCK_MAX);
		(void)ww_alarm_clear(alarm);
		mine->answer |= ww_alarm_set(alarm, NEVER);
		mine->answer |= ww_clock_now(mine->clock, &ns);
	}
	if (mine->clock != ww_clock_elapsed() && mine->clock != ww_clock_wall()) {
		mine->answer |= ww_alarm_set(alarm, ns + 5);
		mine->answer |= ww_clock_virtual_advance(mine->clock, 5);
		mine->answer |= ww_alarm_set(alarm, WW_CLOCK_MAX);
		mine->answer |= ww_clock_virtual_set(mine->clock, 1);
	}
	ww_alarm_destroy(alarm);
	atomic_store(&mine->done, 1);
	pthread_testcancel();
	return NULL;
}

START_TEST(cancellation_waits_for_the_end_of_calls)
{
	struct ww_clock *clocks[] = {make_clock(0), ww_clock_elapsed(), ww_clock_wall()};

	for (size_t i = 0; i < 3; i++) {
		struct waiter waiter = {.clock = clocks[i], .answer = 1};
		pthread_t thread;
		void *result;

		ck_assert_int_eq(pthread_create(&thread, NULL, use_all_when_cancelled, &waiter), 0);
		ck_assert_int_eq(pthread_join(thread, &result), 0);
		ck_assert_ptr_eq(result, PTHREAD_CANCELED);
		ck_assert_int_eq(atomic_load(&waiter.done), 1);
		OK(waiter.answer);
	}
	OK(ww_clock_virtual_destroy(clocks[0]));
}
END_TEST

START_TEST(wait_can_be_cancelled)
{
	struct waiter waiter = {.clock = make_clock(0)};
	pthread_t thread;
	void *result;

	waiter.alarm = make_alarm(waiter.clock);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_alarm, &waiter), 0);
	ck_assert_int_eq(pthread_cancel(thread), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_int_eq(atomic_load(&waiter.done), 0);
	ww_alarm_destroy(waiter.alarm);
	OK(ww_clock_virtual_destroy(waiter.clock));
}
END_TEST

/* ---- Real clocks ------------------------------------------------------------------------------------------------ */

static uint64_t system_time(clockid_t id)
{
	struct timespec time;

	ck_assert_int_eq(clock_gettime(id, &time), 0);
	return (uint64_t)time.tv_sec * S + (uint64_t)time.tv_nsec;
}

START_TEST(elapsed_clock_goes_forward)
{
	uint64_t last = system_time(CLOCK_BOOTTIME);

	ck_assert_ptr_nonnull(ww_clock_elapsed());
	ck_assert_ptr_eq(ww_clock_elapsed(), ww_clock_elapsed());
	for (int i = 0; i < 100000; i++) {
		uint64_t time = now(ww_clock_elapsed());

		if (time < last || time > WW_CLOCK_MAX)
			ck_abort_msg("%" PRIu64 " after %" PRIu64, time, last);
		last = time;
	}
	ck_assert_uint_le(last, system_time(CLOCK_BOOTTIME));
}
END_TEST

START_TEST(wall_clock_is_the_system_s)
{
	int between = 0;

	ck_assert_ptr_nonnull(ww_clock_wall());
	ck_assert_ptr_eq(ww_clock_wall(), ww_clock_wall());
	ck_assert_ptr_ne(ww_clock_wall(), ww_clock_elapsed());
	/* Unless it is stepped just then. */
	for (int i = 0; i < 10 && !between; i++) {
		uint64_t before = system_time(CLOCK_REALTIME), time = now(ww_clock_wall());

		between = before <= time && time <= system_time(CLOCK_REALTIME) && time <= WW_CLOCK_MAX;
	}
	ck_assert(between);
}
END_TEST

static void check_real_alarm(struct ww_clock *clock)
{
	struct ww_alarm *alarm = make_alarm(clock);
	const uint64_t reached[] = {0, 1, now(clock)};

	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	for (size_t i = 0; i < 3; i++) {
		OK(ww_alarm_set(alarm, reached[i]));
		ck_assert(readable_within(alarm, PATIENCE_MS));
		ck_assert(went_off(alarm));
	}
	OK(ww_alarm_set(alarm, now(clock) + 3 * MS));
	OK(ww_alarm_wait(alarm));
	ck_assert(readable(alarm));
	ck_assert_int_eq(ww_alarm_clear(alarm), 1);

	/* Replaced, and not set: setting takes back that it went off. */
	OK(ww_alarm_set(alarm, now(clock) + 3600 * S));
	OK(ww_alarm_set(alarm, 0));
	ck_assert(readable_within(alarm, PATIENCE_MS));
	OK(ww_alarm_set(alarm, NEVER));
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	ww_alarm_destroy(alarm);
}

START_TEST(alarms_of_real_clocks_go_off)
{
	check_real_alarm(ww_clock_elapsed());
	check_real_alarm(ww_clock_wall());
}
END_TEST

START_TEST(elapsed_alarm_is_never_early)
{
	struct ww_alarm *alarm = make_alarm(ww_clock_elapsed());

	for (uint64_t i = 0; i < 5; i++) {
		uint64_t deadline = now(ww_clock_elapsed()) + i * MS / 2;

		OK(ww_alarm_set(alarm, deadline));
		ck_assert(readable_within(alarm, PATIENCE_MS));
		ck_assert_uint_ge(now(ww_clock_elapsed()), deadline);
		ck_assert_int_eq(ww_alarm_clear(alarm), 1);
	}
	ww_alarm_destroy(alarm);
}
END_TEST

START_TEST(step_of_the_wall_clock_is_told)
{
	struct ww_alarm *alarm = make_alarm(ww_clock_wall()), *elapsed = make_alarm(ww_clock_elapsed());

	/* Only an alarm of the wall clock asks for it, and only while it is set. */
	OK(ww_alarm_set(elapsed, WW_CLOCK_MAX));
	ck_assert_int_eq(atomic_load(&last_flags), TFD_TIMER_ABSTIME);
	OK(ww_alarm_set(alarm, NEVER));
	ck_assert_int_eq(atomic_load(&last_flags), TFD_TIMER_ABSTIME);
	OK(ww_alarm_set(alarm, WW_CLOCK_MAX));
	ck_assert_int_eq(atomic_load(&last_flags), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
	ck_assert(!readable(alarm));

	atomic_store(&stepped_fd, ww_alarm_fd(alarm));
	atomic_store(&step_before_read, 1);
	ck_assert_int_eq(ww_alarm_clear(alarm), 1);
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);

	/* A step that was not cleared is not lost by setting. */
	atomic_store(&step_before_set, 2);
	OK(ww_alarm_set(alarm, WW_CLOCK_MAX));
	ck_assert_int_eq(atomic_load(&step_before_set), 0);
	ck_assert(readable_within(alarm, PATIENCE_MS));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	ww_alarm_destroy(elapsed);
}
END_TEST

TEST_MAIN("clock", null_is_refused_or_harmless, real_clocks_are_not_told_the_time, times_beyond_the_last_are_refused,
    refused_setting_leaves_the_former, clock_with_alarms_is_not_destroyed, each_allocation_fails, no_descriptor_is_left,
    descriptors_are_closed_on_exec_and_when_destroyed, virtual_clock_is_told_the_time,
    alarm_goes_off_in_the_nanosecond_and_once, alarm_goes_off_at_once, setting_replaces_the_former,
    step_backwards_calls_alarms_that_are_set, alarms_of_other_clocks_stay, many_alarms_do_what_they_should,
    set_races_with_advance, threads_share_alarms, one_of_many_clearers_is_told, example_waits_for_a_week,
    wait_wakes_all_and_leaves_the_alarm, signals_do_not_end_the_wait, cancellation_waits_for_the_end_of_calls,
    wait_can_be_cancelled, elapsed_clock_goes_forward, wall_clock_is_the_system_s, alarms_of_real_clocks_go_off,
    elapsed_alarm_is_never_early, step_of_the_wall_clock_is_told)
