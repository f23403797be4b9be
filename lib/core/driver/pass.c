/*
 * Passes, and the alarm for the next one. A pass looks at every wheel in which a timer is due. It gives each group a
 * share, so that other groups' timers do not wait for the end of a burst. The rest of the burst comes in the next pass,
 * which follows at once.
 */

#include "lib/core/driver/driver_internal.h"

/* Batches of a group in a pass: of 256 expiries together, which take some 0.1 ms. */
#define PASS_SHARE 4u

struct driver_pass {
	struct ww_driver *driver;
	uint64_t time;
	uint64_t tick;
	uint64_t number;
	int starved; /* something that is due waits for room in its lane */
	int shared;  /* something that is due waits until other groups have had their share */
	/* Sources that were done in this pass. What is due there was scheduled since: it must not make it endless. */
	struct timer_source *again;
};

/* Whether what is due in the source, which the pass holds, is left for later. Then it is set aside. */
static int is_left(struct driver_pass *pass, struct timer_source *source)
{
	const struct timer_group *group = source->group;

	/* Another source of the group waits for room in the lane, and what is due later here must not overtake it. */
	if (group->starved == pass->number)
		ww_agenda_set_aside(&pass->driver->agenda.waiting, source);
	else if (group->looked == pass->number && group->share == 0) {
		pass->shared = 1;
		ww_agenda_set_aside(&pass->again, source);
	} else if (source->done == pass->number)
		ww_agenda_set_aside(&pass->again, source);
	else
		return 0;
	return 1;
}

/*
 * Take out the source whose next tick is the earliest, or return NULL when there is nothing more to do. *until is the
 * tick up to which it comes first: that of the next source, or the time.
 */
static struct timer_source *take_first(struct driver_pass *pass, uint64_t *until)
{
	struct agenda *agenda = &pass->driver->agenda;
	struct timer_source *source = ww_agenda_first(agenda);

	for (; source && source->at <= pass->tick; source = ww_agenda_first(agenda)) {
		ww_agenda_take(agenda, source);
		if (is_left(pass, source))
			continue;
		const struct timer_source *second = ww_agenda_first(agenda);
		*until = second && second->at < pass->tick ? second->at : pass->tick;
		return source;
	}
	return NULL;
}

/* The source's lock is held: queue the firings of the batch. */
static void fire_batch(
    struct driver_pass *pass, struct timer_source *source, const struct ww_expiry *batch, size_t count)
{
	struct timer_group *group = source->group;
	struct queue *queue = &pass->driver->queue;
	uint32_t room = group->drops ? ww_queue_room(queue, &group->lane) : UINT32_MAX;
	struct firing *first = NULL;
	struct firing **link = &first;
	uint32_t queued = 0;

	for (size_t i = 0; i < count; i++) {
		struct firing *firing;
		source->met = batch[i].deadline;
		if (queued >= room)
			firing = group->ops->drop(source->shard, batch[i].timer);
		else
			firing = group->ops->expire(source->shard, batch[i].timer);
		if (!firing)
			continue;
		*firing = (struct firing){.group = group, .since = pass->time};
		*link = firing;
		link = &firing->next;
		queued++;
	}
	if (queued)
		ww_queue_push(queue, first, queued);
}

/* The source's lock is held: expire a batch that is due by the tick. Returns 1 when more is due. */
static int expire_batch(struct driver_pass *pass, struct timer_source *source, uint64_t tick)
{
	struct timer_group *group = source->group;
	struct ww_expiry batch[SOURCE_BATCH];
	uint32_t room = group->waits ? ww_queue_room(&pass->driver->queue, &group->lane) : SOURCE_BATCH;
	size_t count = 0;
	int more;

	if (room > SOURCE_BATCH)
		room = SOURCE_BATCH;
	more = ww_wheel_advance_batch(source->wheel, tick, batch, room, &count);
	fire_batch(pass, source, batch, count);
	if (count)
		pass->driver->expired += count;
	if (more > 0 && count == 0) {
		pass->starved = 1;
		group->starved = pass->number;
	}
	group->share--;
	return more > 0 && count > 0 && group->share > 0;
}

/*
 * The source's lock is held. The clock may have been stepped back since the pass began, and a deadline that counts from
 * the new time must not be judged by the old one. Whoever read the new time and filed a timer had the lock before, so
 * the new time is read here, too. Returns the tick up to which the source may expire, at most `until`.
 */
static uint64_t judge(struct driver_pass *pass, struct timer_source *source, uint64_t until)
{
	uint64_t time = ww_driver_time(pass->driver);

	if (time < pass->time) {
		pass->time = time;
		pass->tick = time / pass->driver->tick_ns;
	}
	if (pass->tick < ww_wheel_now(source->wheel))
		ww_source_rewind(source, pass->tick);
	if (until < ww_wheel_now(source->wheel))
		until = ww_wheel_now(source->wheel);
	return until < pass->tick ? until : pass->tick;
}

static void look_at(struct driver_pass *pass, struct timer_source *source, uint64_t until)
{
	struct timer_group *group = source->group;
	uint64_t next;

	if (group->looked != pass->number) {
		group->looked = pass->number;
		group->share = PASS_SHARE;
	}
	pthread_mutex_lock(&source->lock);
	while (expire_batch(pass, source, judge(pass, source, until))) {
		pthread_mutex_unlock(&source->lock);
		pthread_mutex_lock(&source->lock);
	}
	/*
	 * Where something due is left, the source stays in its place, which is not after that. To the wheel, what is
	 * left is due at the time it has come to, but the clock may be stepped back to before that.
	 */
	(void)ww_wheel_next(source->wheel, &next);
	if (next > ww_wheel_now(source->wheel))
		source->next = next;
	if (until >= pass->tick && group->share && group->starved != pass->number)
		source->done = pass->number;
	pthread_mutex_unlock(&source->lock);
	ww_agenda_file(&pass->driver->agenda, source);
}

/* Ask for a call of room_made for each lane that is waited for. Returns 0 if one of them has room already. */
static int wait_for_room(struct ww_driver *driver)
{
	int full = 1;

	for (struct timer_source *source = driver->agenda.waiting; source; source = source->sibling)
		full &= ww_queue_starve(&driver->queue, &source->group->lane);
	return full;
}

/* File what waited for room: it may have been cancelled, or there is some. */
static void stop_waiting(struct ww_driver *driver)
{
	for (struct timer_source *source = driver->agenda.waiting; source; source = source->sibling)
		ww_queue_feed(&driver->queue, &source->group->lane);
	ww_agenda_resume(&driver->agenda, &driver->agenda.waiting);
}

/* The agenda's lock is held. */
static void pass_all(struct ww_driver *driver)
{
	struct driver_pass pass = {.driver = driver};
	struct timer_source *source;
	uint64_t until;

	do {
		stop_waiting(driver);
		pass.time = ww_driver_time(driver);
		pass.tick = pass.time / driver->tick_ns;
		pass.number = ++driver->passes;
		pass.starved = pass.shared = 0;
		while ((source = take_first(&pass, &until)))
			look_at(&pass, source, until);
		ww_agenda_resume(&driver->agenda, &pass.again);
		driver->last = pass.tick;
	} while (pass.shared || (pass.starved && !wait_for_room(driver)));
}

void ww_driver_pass(struct ww_driver *driver)
{
	pthread_mutex_lock(&driver->agenda.lock);
	pass_all(driver);
	pthread_mutex_unlock(&driver->agenda.lock);
	ww_queue_looked(&driver->queue);
}

/* The agenda's lock is held. */
static uint64_t next_tick(struct ww_driver *driver)
{
	const struct timer_source *source = ww_agenda_first(&driver->agenda);
	uint64_t next = source ? source->at : WW_NEVER;

	/* There may be room by now, or the clock was stepped back. */
	for (source = driver->agenda.waiting; source; source = source->sibling) {
		uint64_t wanted = source->next;
		if (wanted < next && !awaits_room(source, wanted))
			next = wanted;
	}
	return next;
}

void ww_driver_catch_up(struct ww_driver *driver)
{
	pthread_mutex_lock(&driver->agenda.lock);
	if (ww_driver_refuses(driver) == WW_OK && next_tick(driver) <= ww_driver_time(driver) / driver->tick_ns)
		pass_all(driver);
	pthread_mutex_unlock(&driver->agenda.lock);
}

uint64_t ww_driver_next_tick(struct ww_driver *driver)
{
	uint64_t next;

	pthread_mutex_lock(&driver->agenda.lock);
	next = next_tick(driver);
	pthread_mutex_unlock(&driver->agenda.lock);
	return next;
}

/* ---- The alarm: see driver_internal.h */

/* The time to which the alarm has to be set. */
static uint64_t wanted(const struct ww_driver *driver)
{
	uint64_t tick = driver->armed;

	/* Otherwise a loop nested in a callback would find the descriptor readable, again and again. */
	if (driver->awake)
		return UINT64_MAX;
	if (driver->kicked)
		return 0;
	return tick > WW_CLOCK_MAX / driver->tick_ns ? UINT64_MAX : tick * driver->tick_ns;
}

static void set_alarm(struct ww_driver *driver)
{
	uint64_t time;

	do {
		time = wanted(driver);
		(void)ww_alarm_set(driver->alarm, time);
	} while (wanted(driver) != time);
}

/* Returns whether this made it earlier. */
static int arm(struct ww_driver *driver, uint64_t tick)
{
	uint64_t armed = driver->armed;

	while (tick < armed)
		if (atomic_compare_exchange_weak(&driver->armed, &armed, tick))
			return 1;
	return 0;
}

void ww_driver_wake_up(struct ww_driver *driver)
{
	driver->awake = 1;
	driver->armed = 0;
	/* A kick after this asks for another pass than the one that comes now. */
	driver->kicked = 0;
	(void)ww_alarm_clear(driver->alarm);
	driver->wakeups++;
}

/* The agenda's lock is held. While `armed` is 0 no other thread writes it. */
static void fall_asleep(struct ww_driver *driver)
{
	driver->armed = next_tick(driver);
	(void)arm(driver, next_tick(driver));
	driver->awake = 0;
}

void ww_driver_sleep(struct ww_driver *driver)
{
	pthread_mutex_lock(&driver->agenda.lock);
	fall_asleep(driver);
	pthread_mutex_unlock(&driver->agenda.lock);
	set_alarm(driver);
}

void ww_driver_pass_and_sleep(struct ww_driver *driver)
{
	pthread_mutex_lock(&driver->agenda.lock);
	pass_all(driver);
	fall_asleep(driver);
	pthread_mutex_unlock(&driver->agenda.lock);
	ww_queue_looked(&driver->queue);
	set_alarm(driver);
}

void ww_driver_rearm(struct ww_driver *driver, uint64_t tick)
{
	if (arm(driver, tick) && !driver->awake)
		set_alarm(driver);
}

void ww_driver_wake(struct ww_driver *driver)
{
	driver->kicked = 1;
	if (!driver->awake)
		set_alarm(driver);
}

int ww_driver_is_settled(struct ww_driver *driver, uint64_t time)
{
	uint64_t now = ww_driver_time(driver);

	return ww_driver_next_tick(driver) > (now < time ? now : time) / driver->tick_ns;
}
