/* The driver's own timers: records named by handles. */

#define _GNU_SOURCE
#include "driver/driver_internal.h"

static struct shard *shard_of(struct ww_driver *driver, ww_handle handle)
{
	uint32_t shard = (uint32_t)(handle >> HANDLE_SHARD);

	return shard < driver->timers.count ? &driver->shards[shard] : NULL;
}

static ww_handle handle_of(const struct record *record)
{
	return (uint64_t)record->shard << HANDLE_SHARD | (uint64_t)record->index << HANDLE_INDEX | record->generation;
}

static struct record *record_at(const struct shard *shard, uint32_t index)
{
	return slab_at(&shard->slab, index);
}

/* The shard's lock is held: the record that the handle names, cancelled or not, or NULL if nothing is left of its timer. */
static struct record *find_remains(const struct shard *shard, ww_handle handle)
{
	uint32_t index = (uint32_t)(handle >> HANDLE_INDEX) % SLAB_MAX;
	struct record *record;

	if (index >= slab_end(&shard->slab))
		return NULL;
	record = record_at(shard, index);
	if (record->generation != (uint32_t)handle || record->state == RECORD_UNUSED || record->of != record->index)
		return NULL;
	return record;
}

/* The same, NULL also if the handle is stale because the timer was cancelled. */
static struct record *find(const struct shard *shard, ww_handle handle)
{
	struct record *record = find_remains(shard, handle);

	return record && (record->flags & RECORD_CANCELLED) ? NULL : record;
}

/* Lock the handle's shard and find its record. On error nothing is locked. */
static int lock_record(struct ww_driver *driver, ww_handle handle, struct shard **shard, struct record **record)
{
	int error;

	if (!driver)
		return WW_EINVAL;
	error = ww_driver_refuses(driver);
	if (error)
		return error;
	*shard = shard_of(driver, handle);
	if (!*shard)
		return WW_ESTALE;
	ww_source_lock(&(*shard)->source);
	*record = find(*shard, handle);
	if (*record && !driver->closed)
		return WW_OK;
	ww_source_unlock(&(*shard)->source);
	return driver->closed ? WW_ECLOSED : WW_ESTALE;
}

static struct record *take_record(struct shard *shard, uint32_t number)
{
	uint32_t index = ww_slab_take(&shard->slab);
	struct record *record;

	if (index == SLAB_NONE)
		return NULL;
	record = record_at(shard, index);
	record->index = record->of = index;
	record->shard = (uint16_t)number;
	record->generation++;
	record->flags = 0;
	record->missed = 0;
	record->calls = record->begun = 0;
	return record;
}

static void give_record(struct shard *shard, struct record *record)
{
	record->state = RECORD_UNUSED;
	/* A generation that began again would let old handles hit new timers. */
	if (record->generation != UINT32_MAX)
		ww_slab_give(&shard->slab, record->index);
}

/* Let the record wait for its deadline. */
static void place_record(struct shard *shard, struct record *record)
{
	record->as.timer = (struct ww_timer){0};
	record->state = RECORD_PENDING;
	shard->pending++;
	ww_source_schedule(&shard->source, &record->as.timer, record->deadline);
}

static void unplace_record(struct shard *shard, struct record *record)
{
	(void)ww_wheel_cancel(shard->source.wheel, &record->as.timer);
	shard->pending--;
}

/* Take a record that is queued back out of the queue, unless a worker has taken it already. Returns 1 if it was there. */
static int take_from_queue(struct shard *shard, struct record *record)
{
	return record->state == RECORD_QUEUED && ww_queue_remove(&shard->source.group->driver->queue, &record->as.job);
}

/* ---- Scheduling */

struct order {
	uint64_t deadline;
	uint64_t period;
	uint32_t flags;
	ww_driver_fn *fn;
	void *user;
};

static int schedule(struct ww_driver *driver, const struct order *order, ww_handle *timer)
{
	uint32_t number = ww_driver_home(&driver->timers);
	struct shard *shard = &driver->shards[number];
	struct record *record = NULL;
	int error = WW_ENOMEM;

	ww_source_lock(&shard->source);
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
		/* The callback may run before this returns; its handle is known by then. */
		if (timer)
			*timer = handle_of(record);
		place_record(shard, record);
		error = WW_OK;
	}
	ww_source_unlock(&shard->source);
	return error;
}

/* The absolute deadline of a delay, in *deadline. */
static int deadline_in(const struct ww_driver *driver, uint64_t delay, uint64_t *deadline)
{
	uint64_t now = ww_driver_time(driver);

	if (now > WW_DRIVER_TIME_MAX || delay > WW_DRIVER_TIME_MAX - now)
		return WW_EOVERFLOW;
	*deadline = now + delay;
	return WW_OK;
}

int ww_driver_schedule_at(struct ww_driver *driver, uint64_t deadline, ww_driver_fn *fn, void *user, ww_handle *timer)
{
	struct order order = {.deadline = deadline, .fn = fn, .user = user};
	int error;

	if (!driver || !fn)
		return WW_EINVAL;
	error = ww_driver_refuses(driver);
	if (error)
		return error;
	if (deadline > WW_DRIVER_TIME_MAX)
		return WW_EOVERFLOW;
	return schedule(driver, &order, timer);
}

int ww_driver_schedule(struct ww_driver *driver, uint64_t delay, ww_driver_fn *fn, void *user, ww_handle *timer)
{
	struct order order = {.fn = fn, .user = user};
	int error;

	if (!driver || !fn)
		return WW_EINVAL;
	error = ww_driver_refuses(driver);
	if (!error)
		error = deadline_in(driver, delay, &order.deadline);
	return error ? error : schedule(driver, &order, timer);
}

int ww_driver_schedule_every(struct ww_driver *driver, uint64_t delay, uint64_t period, uint32_t flags,
    ww_driver_fn *fn, void *user, ww_handle *timer)
{
	struct order order = {.period = period, .fn = fn, .user = user};
	int error;

	if (!driver || !fn || period == 0 || (flags & ~WW_EVERY_OVERLAP))
		return WW_EINVAL;
	order.flags = flags & WW_EVERY_OVERLAP ? RECORD_OVERLAP : 0;
	error = ww_driver_refuses(driver);
	if (!error && period > WW_DRIVER_TIME_MAX)
		error = WW_EOVERFLOW;
	if (!error)
		error = deadline_in(driver, delay, &order.deadline);
	return error ? error : schedule(driver, &order, timer);
}

int ww_driver_reserve(struct ww_driver *driver, size_t timers)
{
	int error;

	if (!driver)
		return WW_EINVAL;
	error = ww_driver_refuses(driver);
	if (error)
		return error;
	struct shard *shard = &driver->shards[ww_driver_home(&driver->timers)];
	ww_source_lock(&shard->source);
	error = ww_slab_reserve(&shard->slab, timers);
	ww_source_unlock(&shard->source);
	return error;
}

/* ---- Moving and cancelling */

int ww_driver_reschedule(struct ww_driver *driver, ww_handle timer, uint64_t delay)
{
	struct shard *shard;
	struct record *record;
	uint64_t deadline;
	int moved = 1;
	int error = lock_record(driver, timer, &shard, &record);

	if (error)
		return error;
	error = deadline_in(driver, delay, &deadline);
	if (error) {
		ww_source_unlock(&shard->source);
		return error;
	}
	record->deadline = deadline;
	if (record->state == RECORD_PENDING)
		ww_source_schedule(&shard->source, &record->as.timer, deadline);
	else if ((record->flags & RECORD_OVERLAP) || take_from_queue(shard, record))
		place_record(shard, record);
	else {
		record->flags |= RECORD_AGAIN;
		moved = record->state == RECORD_QUEUED;
	}
	ww_source_unlock(&shard->source);
	return moved;
}

/* Whether a callback of the timer runs. */
static int runs(const struct record *record)
{
	return record->flags & RECORD_OVERLAP ? record->begun > 0 : record->state == RECORD_RUNNING;
}

/* Nothing will make the timer fire any more: its record goes when the calls that name it have ended. */
static void end_timer(struct shard *shard, struct record *record)
{
	if (record->calls)
		record->state = RECORD_RUNNING;
	else
		give_record(shard, record);
}

/* The shard's lock is held, the record is found: what ww_driver_cancel returns. */
static int cancel_record(struct shard *shard, struct record *record)
{
	int in_time = !runs(record);

	record->flags |= RECORD_CANCELLED;
	if (record->state == RECORD_PENDING) {
		unplace_record(shard, record);
		end_timer(shard, record);
	} else if (take_from_queue(shard, record))
		give_record(shard, record);
	shard->cancelled += (uint64_t)in_time;
	return in_time;
}

int ww_driver_cancel(struct ww_driver *driver, ww_handle timer)
{
	struct shard *shard;
	struct record *record;
	int result = lock_record(driver, timer, &shard, &record);

	if (result)
		return result;
	result = cancel_record(shard, record);
	ww_source_unlock(&shard->source);
	return result;
}

static void unlock_shard(void *argument)
{
	struct shard *shard = argument;

	shard->watchers--;
	ww_source_unlock(&shard->source);
}

/* The shard's lock is held: wait until the timer of this handle, which was cancelled while it ran, runs no more. */
static void wait_for_end(struct shard *shard, const struct record *record, ww_handle timer)
{
	shard->watchers++;
	pthread_cleanup_push(unlock_shard, shard);
	while (record->generation == (uint32_t)timer && runs(record))
		pthread_cond_wait(&shard->ended, &shard->source.lock);
	pthread_cleanup_pop(1);
}

/* Whether this thread is in a callback of the timer. */
static int is_inside(const struct ww_driver *driver, const struct record *record)
{
	for (const struct running *here = ww_queue_here(); here; here = here->outer) {
		if (here->group != &driver->timers)
			continue;
		const struct record *other = (const void *)here->job;
		if (other->shard == record->shard && other->of == record->index)
			return 1;
	}
	return 0;
}

/*
 * The timer is cancelled already, or the driver stopped: only wait until its callback runs no more. One that a worker has
 * taken and not begun when the driver stops does not begin, and is left for the stop to hand over.
 */
static void wait_for_remains(struct ww_driver *driver, ww_handle timer)
{
	struct shard *shard = shard_of(driver, timer);
	struct record *record;

	if (!shard)
		return;
	ww_source_lock(&shard->source);
	record = find_remains(shard, timer);
	if (record && !is_inside(driver, record))
		wait_for_end(shard, record, timer);
	else
		ww_source_unlock(&shard->source);
}

int ww_driver_cancel_wait(struct ww_driver *driver, ww_handle timer)
{
	struct shard *shard;
	struct record *record;
	int result = lock_record(driver, timer, &shard, &record);

	if (result == WW_ESTALE || (result == WW_ECLOSED && !ww_driver_forked(driver)))
		wait_for_remains(driver, timer);
	if (result)
		return result;
	if (is_inside(driver, record)) {
		ww_source_unlock(&shard->source);
		return WW_EBUSY;
	}
	result = cancel_record(shard, record);
	if (result == 0)
		wait_for_end(shard, record, timer);
	else
		ww_source_unlock(&shard->source);
	return result;
}

int ww_driver_time_left(struct ww_driver *driver, ww_handle timer, uint64_t *ns)
{
	struct shard *shard;
	struct record *record;
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
	ww_source_unlock(&shard->source);
	if (again)
		*ns = deadline > now ? deadline - now : 0;
	return again;
}

/* ---- Firing */

/* Set a periodic timer's deadline to the first one whose tick is still to come, and count those that it passes over. */
static void step_period(struct record *record, uint64_t time, uint64_t tick_ns)
{
	uint64_t tick = time - time % tick_ns;
	uint64_t missed = tick > record->deadline ? (tick - record->deadline) / record->period : 0;

	record->missed = missed;
	record->deadline += (missed + 1) * record->period;
}

/* Let a periodic timer wait for its next deadline. */
static void renew(struct shard *shard, struct record *record)
{
	const struct ww_driver *driver = shard->source.group->driver;

	step_period(record, ww_driver_time(driver), driver->tick_ns);
	if (record->deadline > WW_DRIVER_TIME_MAX)
		end_timer(shard, record);
	else
		place_record(shard, record);
}

/*
 * The driver is stopped, and the timer's callback runs or has ended: whether it would be called again. Then its deadline is
 * that of the next call.
 */
static int would_go_on(struct record *record, uint64_t now, uint64_t tick_ns)
{
	if (record->flags & RECORD_AGAIN)
		return 1;
	if (record->period == 0)
		return 0;
	step_period(record, now, tick_ns);
	return record->deadline <= WW_DRIVER_TIME_MAX;
}

/*
 * The driver is stopped, and a worker, which had taken the timer before, has done with it. The stop knows of all that was
 * taken, and has not come to this one yet, or would have cancelled it: what it is to hand over is left to it.
 */
static void leave_to_stop(struct shard *shard, struct record *record)
{
	const struct ww_driver *driver = shard->source.group->driver;

	if (record->state == RECORD_QUEUED || would_go_on(record, ww_driver_time(driver), driver->tick_ns)) {
		record->state = RECORD_QUEUED;
		record->flags |= RECORD_LEFT;
	} else
		give_record(shard, record);
}

/* A timer's call has ended, or did not begin: what comes next for it. */
static void pass_on(struct shard *shard, struct record *record)
{
	if (record->flags & RECORD_CANCELLED)
		give_record(shard, record);
	else if (shard->source.group->driver->closed)
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
static struct record *make_call(struct shard *shard, struct record *record)
{
	struct record *call = take_record(shard, record->shard);

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
static void drop(struct shard *shard, struct record *record)
{
	uint64_t missed = record->missed;

	shard->dropped++;
	if (record->period) {
		renew(shard, record);
		record->missed += missed + 1;
	} else
		give_record(shard, record);
}

static uint32_t expire(
    struct source *source, const struct ww_expiry *batch, size_t count, uint64_t time, struct job **jobs)
{
	struct shard *shard = (struct shard *)(void *)source;
	struct ww_driver *driver = source->group->driver;
	uint32_t room = driver->flags & WW_DRIVER_DROP ? ww_queue_room(&driver->queue) : UINT32_MAX;
	uint32_t queued = 0;

	for (size_t i = 0; i < count; i++) {
		struct record *record = (struct record *)(void *)batch[i].timer;
		struct record *call = record;
		shard->pending--;
		if (record->flags & RECORD_OVERLAP)
			call = queued < room ? make_call(shard, record) : NULL;
		if (queued == room || !call) {
			drop(shard, record);
			continue;
		}
		if (call != record)
			renew(shard, record);
		call->state = RECORD_QUEUED;
		call->as.job = (struct job){.group = source->group, .since = time};
		*jobs = &call->as.job;
		jobs = &call->as.job.next;
		queued++;
	}
	return queued;
}

/* The record's call begins: returns 0 when it was cancelled or moved while a worker took it, or all was stopped. */
static int begin_call(struct shard *shard, struct record *record, struct ww_firing *firing)
{
	struct record *timer = record_at(shard, record->of);

	if (shard->source.group->driver->closed || (timer->flags & (RECORD_CANCELLED | RECORD_AGAIN)))
		return 0;
	record->state = RECORD_RUNNING;
	if (timer != record)
		timer->begun++;
	shard->fired++;
	*firing = (struct ww_firing){handle_of(timer), record->deadline, record->missed};
	return 1;
}

/* The record's call has ended, or did not come to pass. */
static void end_call(struct shard *shard, struct record *record, int began)
{
	struct record *timer = record_at(shard, record->of);

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

static void run(struct group *group, struct job *job)
{
	struct record *record = (struct record *)(void *)job;
	struct shard *shard = (struct shard *)(void *)group_source(group, record->shard);
	struct ww_firing firing;
	int begun;

	ww_source_lock(&shard->source);
	begun = begin_call(shard, record, &firing);
	ww_source_unlock(&shard->source);
	if (begun)
		record->fn(group->driver, &firing, record->user);
	ww_source_lock(&shard->source);
	end_call(shard, record, begun);
	ww_source_unlock(&shard->source);
}

const struct group_ops ww_driver_timer_ops = {.expire = expire, .run = run, .queues = 1, .drops = 1};

/* ---- Stopping */

/* One timer taken back by a stop. */
struct taken {
	ww_handle handle;
	ww_driver_fn *fn;
	void *user;
	uint64_t left;
};

/* The shard's lock is held: the timer is neither in the wheel nor in the queue any more. */
static struct taken take_back(struct shard *shard, struct record *record, uint64_t now)
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
		ww_source_lock(&shard->source);
		(void)ww_wheel_drain(shard->source.wheel, batch, SOURCE_BATCH, &count);
		shard->pending -= count;
		for (size_t i = 0; i < count; i++) {
			struct record *record = (struct record *)(void *)batch[i].timer;
			taken[i] = take_back(shard, record, now);
			end_timer(shard, record);
		}
		ww_source_unlock(&shard->source);
		total += hand_over(taken, count, drain, context);
	} while (count);
	return total;
}

/* A job that was still in the queue. A call of a timer whose calls may overlap is no timer, and is forgotten. */
static size_t drain_queued(
    struct ww_driver *driver, struct job *job, uint64_t now, ww_driver_drain_fn *drain, void *context)
{
	struct record *record = (struct record *)(void *)job;
	struct shard *shard = &driver->shards[record->shard];
	size_t count = record->of == record->index;
	struct taken taken;

	ww_source_lock(&shard->source);
	if (count)
		taken = take_back(shard, record, now);
	end_call(shard, record, 0);
	ww_source_unlock(&shard->source);
	return hand_over(&taken, count, drain, context);
}

/*
 * A job that a worker had taken when the queue was closed, or one that has its memory since. If its callback did not begin,
 * or runs or ran and its timer would have gone on, the timer is taken back. Its record is the worker's to give, unless that
 * has left it here.
 */
static size_t drain_taken(
    struct ww_driver *driver, struct job *job, uint64_t now, ww_driver_drain_fn *drain, void *context)
{
	struct record *record = (struct record *)(void *)job;
	struct shard *shard = &driver->shards[record->shard];
	struct taken taken;
	size_t count = 0;

	ww_source_lock(&shard->source);
	if (record->of == record->index && !(record->flags & (RECORD_CANCELLED | RECORD_OVERLAP))) {
		int runs_on = record->state == RECORD_RUNNING && would_go_on(record, now, driver->tick_ns);
		count = record->state == RECORD_QUEUED || runs_on;
	}
	if (count)
		taken = take_back(shard, record, now);
	if (count && (record->flags & RECORD_LEFT))
		give_record(shard, record);
	ww_source_unlock(&shard->source);
	return hand_over(&taken, count, drain, context);
}

size_t ww_driver_timer_drain(
    struct ww_driver *driver, struct job *const *taken, uint32_t taken_count, ww_driver_drain_fn *drain, void *context)
{
	uint64_t now = ww_driver_time(driver);
	size_t count = 0;
	struct job *next;

	for (uint32_t i = 0; i < driver->timers.count; i++)
		count += drain_wheel(&driver->shards[i], now, drain, context);
	/* With the wheels empty nothing comes into the queue any more. */
	for (struct job *job = ww_queue_take_back(&driver->queue, &driver->timers); job; job = next) {
		next = job->prev;
		count += drain_queued(driver, job, now, drain, context);
	}
	for (uint32_t i = 0; i < taken_count; i++)
		count += drain_taken(driver, taken[i], now, drain, context);
	return count;
}
