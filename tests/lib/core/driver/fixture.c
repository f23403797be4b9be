/* The driver and the callbacks that fixture.h declares. */
#include "tests/lib/core/driver/fixture.h"

struct ww_clock *virtual_clock;
struct ww_driver *driver;

/* ---- The driver and its clock */

struct ww_driver_config config_of(uint32_t flags, uint32_t workers)
{
	struct ww_driver_config config;

	if (!virtual_clock)
		OK(ww_clock_virtual_create(&virtual_clock, START, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = virtual_clock;
	config.flags = flags;
	config.workers = workers;
	return config;
}

void begin_with(const struct ww_driver_config *config)
{
	fired_count = 0;
	drained_count = 0;
	OK(ww_driver_create(&driver, config));
	ck_assert_ptr_nonnull(driver);
}

void begin(uint32_t flags, uint32_t workers)
{
	struct ww_driver_config config = config_of(flags, workers);

	begin_with(&config);
}

void end(void)
{
	OK(ww_driver_destroy(driver));
	OK(ww_clock_virtual_destroy(virtual_clock));
	driver = NULL;
	virtual_clock = NULL;
}

void advance(uint64_t ns)
{
	OK(ww_clock_virtual_advance(virtual_clock, ns));
}

void settle(void)
{
	OK(ww_driver_settle(driver));
}

uint32_t records_taken(uint32_t number)
{
	struct shard *shard = &driver->shards[number];

	ww_source_lock(shard->source);
	collect_records(shard, SIZE_MAX);
	uint32_t taken = slab_taken(&shard->slab);
	ww_source_unlock(shard->source);
	return taken;
}

void *settle_elsewhere(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)ww_driver_settle(driver);
}

void go(uint64_t ns)
{
	advance(ns);
	settle();
}

uint64_t now_ns(void)
{
	uint64_t now;

	ck_assert(ww_clock_now(virtual_clock, &now) == WW_OK);
	return now;
}

struct ww_driver_stats stats_of(void)
{
	struct ww_driver_stats stats;

	ck_assert(ww_driver_stats(driver, &stats) == WW_OK);
	return stats;
}

ww_handle after(uint64_t delay, ww_driver_fn *fn, void *user)
{
	ww_handle handle = 0;

	ck_assert(ww_driver_schedule(driver, delay, fn, user, &handle) == WW_OK);
	ck_assert(handle != 0);
	return handle;
}

ww_handle every(uint64_t delay, uint64_t period, uint32_t flags, ww_driver_fn *fn, void *user)
{
	ww_handle handle = 0;

	ck_assert(ww_driver_schedule_every(driver, delay, period, flags, fn, user, &handle) == WW_OK);
	ck_assert(handle != 0);
	return handle;
}

struct order_elsewhere {
	uint64_t delay;
	ww_driver_fn *fn;
	void *user;
	ww_handle handle;
};

static void *schedule_elsewhere(void *argument)
{
	struct order_elsewhere *order = argument;

	order->handle = after(order->delay, order->fn, order->user);
	return NULL;
}

ww_handle after_elsewhere(uint64_t delay, ww_driver_fn *fn, void *user)
{
	struct order_elsewhere order = {delay, fn, user, 0};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, schedule_elsewhere, &order), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	return order.handle;
}

uint32_t waiting_for_queue(void)
{
	pthread_mutex_lock(&driver->queue.lock);
	uint32_t count = driver->queue.watchers;
	pthread_mutex_unlock(&driver->queue.lock);
	return count;
}

uint32_t waiting_for_end(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < driver->shard_count; i++) {
		ww_source_lock(driver->shards[i].source);
		count += driver->shards[i].watchers;
		ww_source_unlock(driver->shards[i].source);
	}
	return count;
}

/* ---- Recorded calls */

struct fired fired[FIRED_MAX];
_Atomic size_t fired_count;
static pthread_mutex_t fired_lock = PTHREAD_MUTEX_INITIALIZER;

void note(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct fired one = {firing->handle, firing->deadline, firing->missed, 0, user};

	ck_assert(ww_driver_now(of, &one.now) == WW_OK);
	pthread_mutex_lock(&fired_lock);
	ck_assert(fired_count < FIRED_MAX);
	/* Publish the entry before the count that includes it. */
	fired[fired_count] = one;
	fired_count++;
	pthread_mutex_unlock(&fired_lock);
}

size_t times_fired(ww_handle handle)
{
	size_t count = 0;

	for (size_t i = 0; i < fired_count; i++)
		count += fired[i].handle == handle;
	return count;
}

/* ---- A callback that waits */

void gate_init(struct gate *gate)
{
	memset(gate, 0, sizeof *gate);
	sem_init(&gate->entered, 0, 0);
	sem_init(&gate->open, 0, 0);
}

static void pass_gate(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		continue;
}

void hold(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct gate *gate = user;
	int inside = ++gate->inside;
	int most = gate->most;

	(void)of;
	(void)firing;
	while (inside > most && !atomic_compare_exchange_weak(&gate->most, &most, inside))
		continue;
	sem_post(&gate->entered);
	pass_gate(&gate->open);
	gate->inside--;
	gate->left++;
}

void gate_wait(struct gate *gate, int count)
{
	while (count--)
		pass_gate(&gate->entered);
}

void gate_open(struct gate *gate, int count)
{
	while (count--)
		sem_post(&gate->open);
}

/* ---- Timers handed over by a stop */

struct drained drained[FIRED_MAX];
_Atomic size_t drained_count;

void take(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	(void)context;
	ck_assert(drained_count < FIRED_MAX);
	drained[drained_count++] = (struct drained){handle, fn, user, left};
}
