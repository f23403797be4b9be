/* The calls on the driver's own timers, which are records named by handles. */

#include "lib/core/driver/driver_internal.h"

static struct shard *shard_of(struct ww_driver *driver, ww_handle handle)
{
	uint32_t shard = (uint32_t)(handle >> HANDLE_SHARD);

	return shard < driver->shard_count ? &driver->shards[shard] : NULL;
}

/* The shard's lock is held: the record that the handle names, cancelled or not; NULL if the timer is gone. */
static struct timer_record *find_remains(const struct shard *shard, ww_handle handle)
{
	uint32_t index = (uint32_t)(handle >> HANDLE_INDEX) % SLAB_MAX;
	struct timer_record *record;

	if (index >= slab_end(&shard->slab))
		return NULL;
	record = record_at(shard, index);
	if (record->generation != (uint32_t)handle || record->state == RECORD_UNUSED || record->of != record->index)
		return NULL;
	hold_record(record);
	return record->state == RECORD_QUICK_ENDED ? NULL : record;
}

/* The same, but NULL also if the timer was cancelled, which makes the handle stale. */
static struct timer_record *find(const struct shard *shard, ww_handle handle)
{
	struct timer_record *record = find_remains(shard, handle);

	return record && (record->flags & RECORD_CANCELLED) ? NULL : record;
}

/* Lock the handle's shard and find its record. On error nothing is locked. */
static int lock_record(struct ww_driver *driver, ww_handle handle, struct shard **shard, struct timer_record **record)
{
	int error = ww_driver_refuses(driver);

	if (error)
		return error;
	*shard = shard_of(driver, handle);
	if (!*shard)
		return WW_ESTALE;
	ww_source_lock((*shard)->source);
	*record = find(*shard, handle);
	if (*record && !driver->closed)
		return WW_OK;
	ww_source_unlock((*shard)->source);
	return driver->closed ? WW_ECLOSED : WW_ESTALE;
}

static void unfile_record(struct shard *shard, struct timer_record *record)
{
	ww_source_cancel(shard->source, &record->as.timer);
	shard->pending--;
}

/* Take a queued record out of the queue. Returns 0 if it is not queued or a worker has taken it. */
static int take_from_queue(struct shard *shard, struct timer_record *record)
{
	return record->state == RECORD_QUEUED && ww_queue_withdraw(&shard->driver->queue, &record->as.firing);
}

/* ---- Scheduling */

/* A thread remembers its shards in this many drivers. */
#define HOMES 8u

struct home {
	uint64_t serial; /* the driver's; 0: none */
	uint32_t shard;
};

static _Thread_local struct home homes[HOMES];
static _Thread_local uint32_t homes_taken;

/*
 * Each driver gives out its shards in turn. If threads were numbered once for all drivers, those that use this one
 * might have numbers that have a factor in common with its shards, and leave most shards unused. The turn begins with
 * shard 1: in shard 0 the first handles are small numbers, which a program may pass by mistake.
 */
static uint32_t take_home(struct ww_driver *driver)
{
	struct home *home = &homes[homes_taken++ % HOMES];

	*home = (struct home){driver->serial, ++driver->homes % driver->shard_count};
	return home->shard;
}

/* The shard in which the calling thread schedules. */
static uint32_t home_of(struct ww_driver *driver)
{
	for (uint32_t i = 0; i < HOMES; i++)
		if (homes[i].serial == driver->serial)
			return homes[i].shard;
	return take_home(driver);
}

struct order {
	uint64_t deadline;
	uint64_t period;
	uint32_t flags;
	ww_driver_fn *fn;
	void *user;
};

static int schedule(struct ww_driver *driver, const struct order *order, ww_handle *timer)
{
	uint32_t number = home_of(driver);
	struct shard *shard = &driver->shards[number];
	struct timer_record *record = NULL;
	int error = WW_ENOMEM;

	ww_source_lock(shard->source);
	if (driver->closed)
		error = WW_ECLOSED;
	else
		record = take_record(shard, number);
	if (record) {
		record->fn = order->fn;
		record->user = order->user;
		record->deadline = order->deadline;
		record->period = order->period;
		record->flags = (uint8_t)order->flags;
		shard->scheduled++;
		/* The callback may run before this returns, and must find the handle. */
		if (timer)
			*timer = handle_of(record);
		file_record(shard, record);
		error = WW_OK;
	}
	ww_source_unlock(shard->source);
	return error;
}

static int schedule_in(struct ww_driver *driver, uint64_t delay, struct order *order, ww_handle *timer)
{
	int error = ww_driver_refuses(driver);

	if (!error && order->period > WW_DRIVER_TIME_MAX)
		error = WW_EOVERFLOW;
	if (!error)
		error = driver_deadline(driver, delay, &order->deadline);
	return error ? error : schedule(driver, order, timer);
}

int ww_driver_schedule_at(struct ww_driver *driver, uint64_t deadline, ww_driver_fn *fn, void *user, ww_handle *timer)
{
	struct order order = {.deadline = deadline, .fn = fn, .user = user};
	int error = fn ? ww_driver_refuses(driver) : WW_EINVAL;

	if (error)
		return error;
	if (deadline > WW_DRIVER_TIME_MAX)
		return WW_EOVERFLOW;
	return schedule(driver, &order, timer);
}

int ww_driver_schedule(struct ww_driver *driver, uint64_t delay, ww_driver_fn *fn, void *user, ww_handle *timer)
{
	struct order order = {.fn = fn, .user = user};

	return fn ? schedule_in(driver, delay, &order, timer) : WW_EINVAL;
}

int ww_driver_schedule_every(struct ww_driver *driver, uint64_t delay, uint64_t period, uint32_t flags,
    ww_driver_fn *fn, void *user, ww_handle *timer)
{
	struct order order = {.period = period, .fn = fn, .user = user};

	if (!fn || period == 0 || (flags & ~WW_EVERY_OVERLAP))
		return WW_EINVAL;
	order.flags = flags & WW_EVERY_OVERLAP ? RECORD_OVERLAP : 0;
	return schedule_in(driver, delay, &order, timer);
}

int ww_driver_schedule_kept(
    struct ww_driver *driver, uint64_t delay, uint64_t period, ww_driver_fn *fn, void *user, ww_handle *timer)
{
	struct order order = {.period = period, .flags = RECORD_KEPT, .fn = fn, .user = user};

	return schedule_in(driver, delay, &order, timer);
}

int ww_driver_reserve(struct ww_driver *driver, size_t timers)
{
	int error = ww_driver_refuses(driver);

	if (error)
		return error;
	struct shard *shard = &driver->shards[home_of(driver)];
	ww_source_lock(shard->source);
	int first = !shard->source->wheel;
	error = ww_source_prepare(shard->source);
	if (!error)
		collect_records(shard, SIZE_MAX);
	if (!error)
		error = ww_slab_reserve(&shard->slab, timers);
	if (error && first)
		ww_source_free_wheel(shard->source);
	ww_source_unlock(shard->source);
	return error;
}

/* ---- Moving and cancelling */

int ww_driver_reschedule(struct ww_driver *driver, ww_handle timer, uint64_t delay)
{
	struct shard *shard;
	struct timer_record *record;
	uint64_t deadline;
	int moved = 1;
	int error = lock_record(driver, timer, &shard, &record);

	if (error)
		return error;
	error = driver_deadline(driver, delay, &deadline);
	if (error) {
		ww_source_unlock(shard->source);
		return error;
	}
	/* A worker may read it, without using it: see begin_quickly. */
	__atomic_store_n(&record->deadline, deadline, __ATOMIC_RELAXED);
	if (record->state == RECORD_PENDING)
		ww_source_schedule(shard->source, &record->as.timer, deadline);
	else if ((record->flags & RECORD_OVERLAP) || take_from_queue(shard, record))
		file_record(shard, record);
	else {
		record->flags |= RECORD_AGAIN;
		moved = record->state == RECORD_QUEUED;
	}
	ww_source_unlock(shard->source);
	return moved;
}

/* Whether a callback of the timer runs. */
static int runs(const struct timer_record *record)
{
	return record->flags & RECORD_OVERLAP ? record->begun > 0 : record->state == RECORD_RUNNING;
}

/* The shard's lock is held. Returns what ww_driver_cancel returns. */
static int cancel_record(struct shard *shard, struct timer_record *record)
{
	int in_time = !runs(record);

	record->flags |= RECORD_CANCELLED;
	if (record->state == RECORD_PENDING) {
		unfile_record(shard, record);
		end_timer(shard, record);
	} else if (take_from_queue(shard, record))
		give_record(shard, record);
	shard->cancelled += (uint64_t)in_time;
	return in_time;
}

int ww_driver_cancel(struct ww_driver *driver, ww_handle timer)
{
	struct shard *shard;
	struct timer_record *record;
	int result = lock_record(driver, timer, &shard, &record);

	if (result)
		return result;
	result = cancel_record(shard, record);
	ww_source_unlock(shard->source);
	return result;
}

static void unlock_shard(void *argument)
{
	struct shard *shard = argument;

	shard->watchers--;
	ww_source_unlock(shard->source);
}

static void wait_for_end(struct shard *shard, const struct timer_record *record, ww_handle timer)
{
	shard->watchers++;
	pthread_cleanup_push(unlock_shard, shard);
	while (record->generation == (uint32_t)timer && runs(record))
		pthread_cond_wait(&shard->ended, &shard->source->lock);
	pthread_cleanup_pop(1);
}

/*
 * The shard's lock is held, and is released. Cancel the timer unless that is done, and wait until its callback has
 * ended if it runs. Returns what ww_driver_cancel returned, or WW_EBUSY if this thread would wait for itself.
 */
static int cancel_and_wait(struct shard *shard, struct timer_record *record, ww_handle timer)
{
	struct queue *queue = &shard->driver->queue;
	int waits = runs(record);
	int result = 0;

	if (waits && !ww_queue_begin_wait(queue, timer)) {
		ww_source_unlock(shard->source);
		return WW_EBUSY;
	}
	if (!(record->flags & RECORD_CANCELLED) && !shard->driver->closed)
		result = cancel_record(shard, record);
	if (!waits) {
		ww_source_unlock(shard->source);
		return result;
	}
	wait_for_end(shard, record, timer);
	ww_queue_end_wait(queue);
	return result;
}

/*
 * The timer was cancelled already, or the driver stopped: just wait until its callback has ended. If a worker had taken
 * the timer and not begun it when the driver stopped, the callback does not begin, and the stop hands the timer over.
 * Returns WW_EBUSY if this thread would wait for the callback of another thread that waits for it.
 */
static int wait_for_remains(struct ww_driver *driver, ww_handle timer)
{
	struct shard *shard = shard_of(driver, timer);
	struct timer_record *record;

	if (!shard || ww_queue_serving(&driver->queue, timer))
		return WW_OK;
	ww_source_lock(shard->source);
	record = find_remains(shard, timer);
	if (record && (driver->closed || (record->flags & RECORD_CANCELLED)))
		return cancel_and_wait(shard, record, timer) == WW_EBUSY ? WW_EBUSY : WW_OK;
	ww_source_unlock(shard->source);
	return WW_OK;
}

int ww_driver_cancel_wait(struct ww_driver *driver, ww_handle timer)
{
	struct shard *shard;
	struct timer_record *record;
	int result = lock_record(driver, timer, &shard, &record);

	if (!result)
		return cancel_and_wait(shard, record, timer);
	if (result == WW_ESTALE || (result == WW_ECLOSED && !ww_driver_forked(driver)))
		result = wait_for_remains(driver, timer) ? WW_EBUSY : result;
	return result;
}

int ww_driver_time_left(struct ww_driver *driver, ww_handle timer, uint64_t *ns)
{
	struct shard *shard;
	struct timer_record *record;
	int result;

	if (!ns)
		return WW_EINVAL;
	result = lock_record(driver, timer, &shard, &record);
	if (result)
		return result;
	uint64_t now = ww_driver_time(driver);
	uint64_t deadline = record->deadline;
	int again = record->state != RECORD_RUNNING || (record->flags & RECORD_AGAIN);
	if (!again && record->period) {
		deadline += record->period;
		again = deadline <= WW_DRIVER_TIME_MAX;
	}
	ww_source_unlock(shard->source);
	if (again)
		*ns = deadline > now ? deadline - now : 0;
	return again;
}
