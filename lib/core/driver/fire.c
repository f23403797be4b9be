/* The driver's own timers: how they fire, and how a stop takes them back. */

#include "lib/core/driver/driver_internal.h"

/* Move a periodic timer's deadline to the first one whose tick is still to come, and count those it skips. */
static void step_period(struct timer_record *record, uint64_t time, uint64_t tick_ns)
{
	uint64_t tick = time - time % tick_ns;
	uint64_t missed = tick > record->deadline ? (tick - record->deadline) / record->period : 0;

	record->missed = missed;
	record->deadline += (missed + 1) * record->period;
}

/* Let a periodic timer wait for its next deadline. */
static void renew(struct shard *shard, struct timer_record *record)
{
	const struct ww_driver *driver = shard->driver;

	step_period(record, ww_driver_time(driver), driver->tick_ns);
	if (record->deadline > WW_DRIVER_TIME_MAX)
		end_timer(shard, record);
	else
		file_record(shard, record);
}

/*
 * The driver is stopped, and the timer's callback runs or has ended. Whether it would be called again: if so, its
 * deadline is set to that of the next call.
 */
static int would_go_on(struct timer_record *record, uint64_t now, uint64_t tick_ns)
{
	if (record->flags & RECORD_AGAIN)
		return 1;
	if (record->period == 0)
		return 0;
	step_period(record, now, tick_ns);
	return record->deadline <= WW_DRIVER_TIME_MAX;
}

/*
 * A worker that took the timer before the driver was stopped is done with it. The stop knows of every timer that was
 * taken. It has not come to this one yet, or it would have cancelled it: leave it to the stop if it has to hand it
 * over.
 */
static void leave_to_stop(struct shard *shard, struct timer_record *record)
{
	const struct ww_driver *driver = shard->driver;

	if (record->state == RECORD_QUEUED || would_go_on(record, ww_driver_time(driver), driver->tick_ns)) {
		record->state = RECORD_QUEUED;
		record->flags |= RECORD_LEFT;
	} else
		give_record(shard, record);
}

/* A timer's call has ended, or did not begin. Decide what comes next. */
static void pass_on(struct shard *shard, struct timer_record *record)
{
	if (record->flags & RECORD_CANCELLED)
		give_record(shard, record);
	else if (shard->driver->closed)
		leave_to_stop(shard, record);
	else if (record->flags & RECORD_AGAIN) {
		record->flags &= (uint8_t)~RECORD_AGAIN;
		record->missed = 0;
		file_record(shard, record);
	} else if (record->period)
		renew(shard, record);
	else
		give_record(shard, record);
}

/* The timer's calls may overlap. Make a record for this call, while the timer waits for the next one. */
static struct timer_record *make_call(struct shard *shard, struct timer_record *record)
{
	struct timer_record *call = take_record(shard, record->shard);

	if (call) {
		call->of = record->index;
		call->fn = record->fn;
		call->user = record->user;
		call->period = 0;
		call->deadline = record->deadline;
		call->missed = record->missed;
		record->calls++;
	}
	return call;
}

/* There is no room in the queue, or no memory for a call. */
static void drop_call(struct shard *shard, struct timer_record *record)
{
	uint64_t missed = record->missed;

	shard->dropped++;
	if (record->period) {
		renew(shard, record);
		record->missed += missed + 1;
	} else
		give_record(shard, record);
}

static struct firing *expire(void *of, struct ww_timer *timer)
{
	struct shard *shard = of;
	struct timer_record *record = (struct timer_record *)(void *)timer;
	struct timer_record *call = record;

	shard->pending--;
	if (record->flags & RECORD_OVERLAP) {
		call = make_call(shard, record);
		if (!call) {
			drop_call(shard, record);
			return NULL;
		}
		renew(shard, record);
	}
	call->state = call == record && !record->period ? RECORD_QUICK_QUEUED : RECORD_QUEUED;
	return &call->as.firing;
}

static struct firing *drop(void *shard, struct ww_timer *timer)
{
	struct timer_record *record = (struct timer_record *)(void *)timer;

	if (record->flags & RECORD_KEPT)
		return expire(shard, timer);
	((struct shard *)shard)->pending--;
	drop_call(shard, record);
	return NULL;
}

/* Begin the record's call. Returns 0 if it was cancelled or moved while a worker took it, or the driver stopped. */
static int begin_call(struct shard *shard, struct timer_record *record, struct ww_firing *fired)
{
	struct timer_record *timer = record_at(shard, record->of);

	if (shard->driver->closed || (timer->flags & (RECORD_CANCELLED | RECORD_AGAIN)))
		return 0;
	record->state = RECORD_RUNNING;
	if (timer != record)
		timer->begun++;
	shard->fired++;
	*fired = (struct ww_firing){handle_of(timer), record->deadline, record->missed};
	return 1;
}

/* The record's call has ended, or was not begun. */
static void end_call(struct shard *shard, struct timer_record *record, int began)
{
	struct timer_record *timer = record_at(shard, record->of);

	if (timer == record)
		pass_on(shard, record);
	else {
		give_record(shard, record);
		timer->calls--;
		timer->begun -= (uint32_t)began;
		if (timer->calls == 0 && timer->state == RECORD_RUNNING)
			give_record(shard, timer);
	}
	if (shard->watchers)
		pthread_cond_broadcast(&shard->ended);
}

/* Begin the call of a record that nobody has held. Returns 0 if somebody has. */
static int begin_quickly(struct shard *shard, struct timer_record *record, struct ww_firing *fired)
{
	uint8_t state = RECORD_QUICK_QUEUED;

	if (record->state != state || shard->driver->closed)
		return 0;
	/* A thread that changes the deadline has held the record before; then what is read here is not used. */
	fired->handle = handle_of(record);
	fired->deadline = __atomic_load_n(&record->deadline, __ATOMIC_RELAXED);
	fired->missed = 0;
	if (!atomic_compare_exchange_strong(&record->state, &state, RECORD_QUICK_RUNNING))
		return 0;
	ww_queue_count_call();
	return 1;
}

/* End that call. Returns 0 if somebody has held the record meanwhile. */
static int end_quickly(struct shard *shard, struct timer_record *record)
{
	uint8_t state = RECORD_QUICK_RUNNING;

	if (!atomic_compare_exchange_strong(&record->state, &state, RECORD_QUICK_ENDED))
		return 0;
	slab_return(&shard->ended_quickly, record);
	return 1;
}

static int begin_locked(struct shard *shard, struct timer_record *record, struct ww_firing *fired)
{
	int begun;

	ww_source_lock(shard->source);
	hold_record(record);
	begun = begin_call(shard, record, fired);
	ww_source_unlock(shard->source);
	return begun;
}

static void run(void *owner, struct firing *firing)
{
	struct ww_driver *driver = owner;
	struct timer_record *record = (struct timer_record *)(void *)firing;
	struct shard *shard = &driver->shards[record->shard];
	struct ww_firing fired;
	int begun = begin_quickly(shard, record, &fired) || begin_locked(shard, record, &fired);

	if (begun) {
		ww_queue_serves(fired.handle);
		record->fn(driver, &fired, record->user);
	}
	if (end_quickly(shard, record))
		return;
	ww_source_lock(shard->source);
	end_call(shard, record, begun);
	ww_source_unlock(shard->source);
}

const struct group_ops ww_driver_fire_ops = {.expire = expire, .drop = drop, .run = run};

/* ---- Stopping */

/* A timer that a stop has taken back. */
struct taken {
	ww_handle handle;
	ww_driver_fn *fn;
	void *user;
	uint64_t left;
};

/* The shard's lock is held: the timer is neither in the wheel nor in the queue any more. */
static struct taken take_back(struct shard *shard, struct timer_record *record, uint64_t now)
{
	uint64_t left = record->deadline > now ? record->deadline - now : 0;
	struct taken taken = {handle_of(record), record->fn, record->user, left};

	shard->cancelled++;
	record->flags |= RECORD_CANCELLED;
	return taken;
}

static size_t hand_over(const struct taken *taken, size_t count, ww_driver_drain_fn *drain, void *context)
{
	for (size_t i = 0; drain && i < count; i++)
		drain(taken[i].handle, taken[i].fn, taken[i].user, taken[i].left, context);
	return count;
}

static size_t drain_wheel(struct shard *shard, uint64_t now, ww_driver_drain_fn *drain, void *context)
{
	struct ww_expiry batch[SOURCE_BATCH];
	struct taken taken[SOURCE_BATCH];
	size_t total = 0;
	size_t count;

	do {
		ww_source_lock(shard->source);
		count = ww_source_drain(shard->source, batch);
		shard->pending -= count;
		for (size_t i = 0; i < count; i++) {
			struct timer_record *record = (struct timer_record *)(void *)batch[i].timer;
			taken[i] = take_back(shard, record, now);
			end_timer(shard, record);
		}
		ww_source_unlock(shard->source);
		total += hand_over(taken, count, drain, context);
	} while (count);
	return total;
}

/* The firing was still in the queue. If it is one of several calls of a timer, it is forgotten: it is no timer. */
static size_t drain_queued(
    struct ww_driver *driver, struct firing *firing, uint64_t now, ww_driver_drain_fn *drain, void *context)
{
	struct timer_record *record = (struct timer_record *)(void *)firing;
	struct shard *shard = &driver->shards[record->shard];
	size_t count = record->of == record->index;
	struct taken taken;

	ww_source_lock(shard->source);
	hold_record(record);
	if (count)
		taken = take_back(shard, record, now);
	end_call(shard, record, 0);
	ww_source_unlock(shard->source);
	return hand_over(&taken, count, drain, context);
}

/*
 * The firing had been taken by a worker when the queue was closed; its memory may be another's by now. The timer is
 * taken back if its callback did not begin, or if the timer would have gone on after it. The worker gives the record
 * back, unless it has left that to the stop.
 */
static size_t drain_taken(
    struct ww_driver *driver, struct firing *firing, uint64_t now, ww_driver_drain_fn *drain, void *context)
{
	struct timer_record *record = (struct timer_record *)(void *)firing;
	struct shard *shard = &driver->shards[record->shard];
	struct taken taken;
	size_t count = 0;

	ww_source_lock(shard->source);
	hold_record(record);
	if (record->of == record->index && !(record->flags & (RECORD_CANCELLED | RECORD_OVERLAP))) {
		int runs_on = record->state == RECORD_RUNNING && would_go_on(record, now, driver->tick_ns);
		count = record->state == RECORD_QUEUED || runs_on;
	}
	if (count)
		taken = take_back(shard, record, now);
	if (count && (record->flags & RECORD_LEFT))
		give_record(shard, record);
	ww_source_unlock(shard->source);
	return hand_over(&taken, count, drain, context);
}

size_t ww_driver_fire_drain(struct ww_driver *driver, struct firing *const *taken, uint32_t taken_count,
    ww_driver_drain_fn *drain, void *context)
{
	uint64_t now = ww_driver_time(driver);
	size_t count = 0;
	struct firing *next;

	for (uint32_t i = 0; i < driver->shard_count; i++)
		count += drain_wheel(&driver->shards[i], now, drain, context);
	/* The wheels are empty: nothing enters the queue any more. */
	for (struct firing *firing = ww_queue_withdraw_all(&driver->queue, driver->timers); firing; firing = next) {
		next = firing->prev;
		count += drain_queued(driver, firing, now, drain, context);
	}
	for (uint32_t i = 0; i < taken_count; i++)
		count += drain_taken(driver, taken[i], now, drain, context);
	return count;
}
