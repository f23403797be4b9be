/* The driver's own timers, as they fire, and what a stop takes back of them. */

#include "lib/core/driver/record.h"

/* Set a periodic timer's deadline to the first one whose tick is still to come, and count those that it passes over. */
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
		place_record(shard, record);
}

/*
 * The driver is stopped, and the timer's callback runs or has ended: whether it would be called again. Then its
 * deadline is that of the next call.
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
 * The driver is stopped, and a worker, which had taken the timer before, has done with it. The stop knows of all that
 * was taken, and has not come to this one yet, or would have cancelled it: what it is to hand over is left to it.
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

/* A timer's call has ended, or did not begin: what comes next for it. */
static void pass_on(struct shard *shard, struct timer_record *record)
{
	if (record->flags & RECORD_CANCELLED)
		give_record(shard, record);
	else if (shard->driver->closed)
		leave_to_stop(shard, record);
	else if (record->flags & RECORD_AGAIN) {
		record->flags &= (uint8_t)~RECORD_AGAIN;
		record->missed = 0;
		place_record(shard, record);
	} else if (record->period)
		renew(shard, record);
	else
		give_record(shard, record);
}

/* Of a timer whose calls may overlap: a record for this call, while the timer waits for the next one. */
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

static void drop(void *shard, struct ww_timer *timer)
{
	((struct shard *)shard)->pending--;
	drop_call(shard, (struct timer_record *)(void *)timer);
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
	call->state = RECORD_QUEUED;
	return &call->as.firing;
}

/* The record's call begins: returns 0 when it was cancelled or moved while a worker took it, or all was stopped. */
static int begin_call(struct shard *shard, struct timer_record *record, struct ww_firing *told)
{
	struct timer_record *timer = record_at(shard, record->of);

	if (shard->driver->closed || (timer->flags & (RECORD_CANCELLED | RECORD_AGAIN)))
		return 0;
	record->state = RECORD_RUNNING;
	if (timer != record)
		timer->begun++;
	shard->fired++;
	*told = (struct ww_firing){handle_of(timer), record->deadline, record->missed};
	return 1;
}

/* The record's call has ended, or did not come to pass. */
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

static void run(void *owner, struct firing *firing)
{
	struct ww_driver *driver = owner;
	struct timer_record *record = (struct timer_record *)(void *)firing;
	struct shard *shard = &driver->shards[record->shard];
	struct ww_firing told;
	int begun;

	ww_source_lock(shard->source);
	begun = begin_call(shard, record, &told);
	ww_source_unlock(shard->source);
	if (begun)
		record->fn(driver, &told, record->user);
	ww_source_lock(shard->source);
	end_call(shard, record, begun);
	ww_source_unlock(shard->source);
}

const struct group_ops ww_driver_fire_ops = {.expire = expire, .drop = drop, .run = run};

/* ---- Stopping */

/* One timer taken back by a stop. */
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

/* A firing that was still in the queue. A call of a timer whose calls may overlap is no timer, and is forgotten. */
static size_t drain_queued(
    struct ww_driver *driver, struct firing *firing, uint64_t now, ww_driver_drain_fn *drain, void *context)
{
	struct timer_record *record = (struct timer_record *)(void *)firing;
	struct shard *shard = &driver->shards[record->shard];
	size_t count = record->of == record->index;
	struct taken taken;

	ww_source_lock(shard->source);
	if (count)
		taken = take_back(shard, record, now);
	end_call(shard, record, 0);
	ww_source_unlock(shard->source);
	return hand_over(&taken, count, drain, context);
}

/*
 * A firing that a worker had taken when the queue was closed, or one that has its memory since. If its callback did not
 * begin, or runs or ran and its timer would have gone on, the timer is taken back. Its record is the worker's to give,
 * unless that has left it here.
 */
static size_t drain_taken(
    struct ww_driver *driver, struct firing *firing, uint64_t now, ww_driver_drain_fn *drain, void *context)
{
	struct timer_record *record = (struct timer_record *)(void *)firing;
	struct shard *shard = &driver->shards[record->shard];
	struct taken taken;
	size_t count = 0;

	ww_source_lock(shard->source);
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
	/* With the wheels empty nothing comes into the queue any more. */
	for (struct firing *firing = ww_queue_withdraw_all(&driver->queue, driver->timers); firing; firing = next) {
		next = firing->prev;
		count += drain_queued(driver, firing, now, drain, context);
	}
	for (uint32_t i = 0; i < taken_count; i++)
		count += drain_taken(driver, taken[i], now, drain, context);
	return count;
}
