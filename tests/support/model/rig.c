/* Does each operation to a wheel and to its oracle, and compares the results. */
#include "tests/support/model/rig.h"

#include <inttypes.h>
#include <stdio.h>

#include "tests/support/model/draw.h"

/* Timers of a call that takes many: more than it prefetches ahead. */
#define MANY 40

#define GUARD UINT64_C(0x6a09e667f3bcc908)

/* ---- Failing ---------------------------------------------------------------------------------------------------- */

static void fail(struct rig *rig, const char *what)
{
	rig->failed(rig, what);
}

static void expect(struct rig *rig, int good, const char *what)
{
	if (!good) {
		fail(rig, what);
	}
}

static void judge(struct rig *rig, const char *complaint)
{
	if (complaint != NULL) {
		fail(rig, complaint);
	}
}

static struct rig_trace *trace(struct rig *rig, const char *what, int64_t timer, uint64_t first, uint64_t second)
{
	struct rig_trace *entry = &rig->trace[rig->traced++ % RIG_TRACE];

	*entry = (struct rig_trace){what, timer, first, second, INT64_MIN};
	return entry;
}

void rig_print(const struct rig *rig)
{
	uint64_t from = rig->traced > RIG_TRACE ? rig->traced - RIG_TRACE : 0;

	(void)fprintf(stderr, "  wheel of");
	for (uint32_t i = 0; i < rig->config.levels; i++) {
		(void)fprintf(stderr, " %" PRIu32, rig->config.slots[i]);
	}
	(void)fprintf(stderr, " slots, start %" PRIu64 "%s; step %" PRIu64 ", time %" PRIu64 ", hand %" PRIu64,
	    rig->config.start, rig->config.flags & WW_WHEEL_BOUNDED ? ", bounded" : "", rig->steps, rig->oracle.now,
	    rig->oracle.hand);
	(void)fprintf(stderr, "; the last operations, in callbacks too:\n");
	for (uint64_t i = from; i < rig->traced; i++) {
		const struct rig_trace *entry = &rig->trace[i % RIG_TRACE];

		(void)fprintf(stderr, "    %-14s timer %4" PRId64 "  %" PRIu64 " %" PRIu64, entry->what, entry->timer,
		    entry->first, entry->second);
		if (entry->answer != INT64_MIN) {
			(void)fprintf(stderr, "  answers %" PRId64, entry->answer);
		}
		(void)fprintf(stderr, "\n");
	}
}

/* ---- Operations on a timer -------------------------------------------------------------------------------------- */

static uint32_t index_of(const struct rig *rig, const struct ww_timer *timer)
{
	return (uint32_t)(WW_TIMER_OWNER(timer, const struct rig_object, timer) - rig->object);
}

/* Whether this answer, which is no success, is right for the deadline. */
static int is_right_refusal(const struct rig *rig, uint64_t deadline, uint64_t period, int answer)
{
	const struct oracle *oracle = &rig->oracle;
	int bounded = (rig->config.flags & WW_WHEEL_BOUNDED) != 0;

	if (deadline > WW_TIME_MAX && answer == WW_EOVERFLOW) {
		return 1;
	}
	return bounded && answer == WW_ERANGE &&
	       ((deadline > oracle->now && deadline - oracle->now > rig->horizon) || period > rig->horizon);
}

static int is_refused(const struct rig *rig, uint64_t deadline, uint64_t period)
{
	return is_right_refusal(rig, deadline, period, WW_EOVERFLOW) ||
	       is_right_refusal(rig, deadline, period, WW_ERANGE);
}

static void do_schedule(struct rig *rig)
{
	uint32_t i = (uint32_t)draw(rig, rig->timers);
	struct ww_timer *timer = &rig->object[i].timer;
	uint64_t kind = draw(rig, 8);
	uint64_t time = kind % 2 ? draw_deadline(rig) : draw_delay(rig);
	uint64_t deadline = kind % 2 ? time : time <= WW_TIME_MAX ? rig->oracle.now + time : WW_NEVER;
	uint64_t period = 0;
	struct rig_trace *entry;
	int answer;

	if (kind >= 6) {
		period = 1 + draw_delay(rig) % WW_TIME_MAX;
	}
	entry = trace(rig, kind % 2 ? "schedule at" : "schedule", i, time, period);
	if (kind == 6) {
		answer = ww_wheel_schedule_every(rig->wheel, timer, time, period);
	} else if (kind == 7) {
		answer = ww_wheel_schedule_every_at(rig->wheel, timer, time, period);
	} else if (kind % 2) {
		answer = ww_wheel_schedule_at(rig->wheel, timer, time);
	} else {
		answer = ww_wheel_schedule(rig->wheel, timer, time);
	}
	entry->answer = answer;
	if (is_refused(rig, deadline, period)) {
		expect(rig, is_right_refusal(rig, deadline, period, answer),
		    "schedule must be refused, with another answer");
	} else {
		expect(rig, answer == WW_OK, "schedule is refused");
		oracle_schedule(&rig->oracle, i, deadline, period);
	}
}

/* Some timers in a call, of which one may be refused. One may come twice: it is rescheduled. */
static void do_schedule_many(struct rig *rig)
{
	struct ww_timer *timers[MANY];
	uint64_t delays[MANY];
	uint32_t index[MANY];
	size_t count = (size_t)draw(rig, MANY + 1), good = 0, done = 4711;
	uint64_t deadline = 0;
	int answer;

	for (size_t k = 0; k < count; k++) {
		index[k] = (uint32_t)draw(rig, rig->timers);
		timers[k] = &rig->object[index[k]].timer;
		delays[k] = draw_delay(rig);
	}
	answer = ww_wheel_schedule_many(rig->wheel, timers, delays, count, &done);
	for (; good < count; good++) {
		deadline = delays[good] <= WW_TIME_MAX ? rig->oracle.now + delays[good] : WW_NEVER;
		if (is_refused(rig, deadline, 0)) {
			break;
		}
		trace(rig, "  of many", index[good], delays[good], 0);
		oracle_schedule(&rig->oracle, index[good], deadline, 0);
	}
	trace(rig, "schedule many", -1, count, done)->answer = answer;
	expect(rig, done == good, "schedule_many tells a wrong number");
	expect(rig, good < count ? is_right_refusal(rig, deadline, 0, answer) : answer == WW_OK,
	    "schedule_many answers wrongly");
}

static void do_reschedule(struct rig *rig)
{
	uint32_t i = (uint32_t)draw(rig, rig->timers);
	struct ww_timer *timer = &rig->object[i].timer;
	uint64_t kind = draw(rig, 4);
	uint64_t time = kind % 2 ? draw_deadline(rig) : draw_delay(rig);
	uint64_t deadline = kind % 2 ? time : time <= WW_TIME_MAX ? rig->oracle.now + time : WW_NEVER;
	int pending = oracle_pending(&rig->oracle, i);
	struct rig_trace *entry = trace(rig, kind % 2 ? "reschedule at" : "reschedule", i, time, 0);
	int answer;

	/* Call the functions themselves as often as the header's macros of the same name. */
	if (kind == 0) {
		answer = ww_wheel_reschedule(rig->wheel, timer, time);
	} else if (kind == 1) {
		answer = ww_wheel_reschedule_at(rig->wheel, timer, time);
	} else if (kind == 2) {
		answer = (ww_wheel_reschedule)(rig->wheel, timer, time);
	} else {
		answer = (ww_wheel_reschedule_at)(rig->wheel, timer, time);
	}
	entry->answer = answer;
	if (is_refused(rig, deadline, 0)) {
		/* An idle timer may get this answer too. */
		expect(rig, is_right_refusal(rig, deadline, 0, answer) || (answer == 0 && !pending),
		    "reschedule must be refused, with another answer");
	} else {
		expect(rig, answer == pending, "reschedule answers wrongly whether the timer was pending");
		if (pending) {
			oracle_schedule(&rig->oracle, i, deadline, rig->oracle.period[i]);
		}
	}
}

static void do_cancel(struct rig *rig)
{
	uint32_t i = (uint32_t)draw(rig, rig->timers);
	struct rig_trace *entry = trace(rig, "cancel", i, 0, 0);
	int answer = ww_wheel_cancel(rig->wheel, &rig->object[i].timer);

	entry->answer = answer;
	expect(rig, answer == oracle_pending(&rig->oracle, i), "cancel answers wrongly whether the timer was pending");
	if (answer == 1) {
		oracle_cancel(&rig->oracle, i);
	}
}

static void do_cancel_many(struct rig *rig)
{
	struct ww_timer *timers[MANY];
	size_t count = (size_t)draw(rig, MANY + 1), pending = 0, done = 4711;
	int answer;

	for (size_t k = 0; k < count; k++) {
		uint32_t i = (uint32_t)draw(rig, rig->timers);

		trace(rig, "  of many", i, 0, 0);
		timers[k] = &rig->object[i].timer;
		if (oracle_pending(&rig->oracle, i)) {
			oracle_cancel(&rig->oracle, i);
			pending++;
		}
	}
	answer = ww_wheel_cancel_many(rig->wheel, timers, count, &done);
	trace(rig, "cancel many", -1, count, done)->answer = answer;
	expect(rig, answer == WW_OK && done == pending, "cancel_many tells a wrong number");
	for (size_t k = 0; k < count; k++) {
		expect(rig, ww_timer_pending(timers[k]) == 0, "a timer of cancel_many is pending");
	}
}

static void do_ask(struct rig *rig)
{
	uint32_t i = (uint32_t)draw(rig, rig->timers);
	const struct ww_timer *timer = &rig->object[i].timer;
	int pending = oracle_pending(&rig->oracle, i);
	uint64_t deadline = 4711;
	uint64_t left = 4711;
	uint64_t told = rig->oracle.deadline[i];

	expect(rig, ww_timer_pending(timer) == pending, "pending is wrong");
	expect(rig, ww_timer_deadline(timer, &deadline) == pending, "deadline answers wrongly");
	expect(rig, ww_wheel_time_left(rig->wheel, timer, &left) == pending, "time_left answers wrongly");
	expect(rig, deadline == (pending ? told : 4711), "deadline is wrong");
	told = told > rig->oracle.now ? told - rig->oracle.now : 0;
	expect(rig, left == (pending ? told : 4711), "time_left is wrong");
	expect(rig, rig->object[i].before == GUARD && rig->object[i].after == GUARD, "something wrote beside a timer");
}

/* ---- Operations on all timers ----------------------------------------------------------------------------------- */

static void do_drain(struct rig *rig)
{
	static struct ww_expiry batch[ORACLE_TIMERS_MAX];
	size_t capacity = 1 + (size_t)(draw(rig, 8) > 0 ? draw(rig, 4) : draw(rig, rig->timers));
	uint64_t pending = rig->oracle.pending;
	struct rig_trace *entry = trace(rig, "drain", -1, capacity, pending);
	size_t count = SIZE_MAX;
	int answer = ww_wheel_drain(rig->wheel, batch, capacity, &count);

	entry->answer = answer;
	expect(rig, count == (pending < capacity ? pending : capacity), "drain hands over a wrong number of timers");
	expect(rig, answer == (pending > capacity), "drain answers wrongly whether more are pending");
	for (size_t k = 0; k < count; k++) {
		uint32_t i = index_of(rig, batch[k].timer);

		expect(
		    rig, i < rig->timers && oracle_pending(&rig->oracle, i), "drain hands over a timer that is idle");
		expect(rig, batch[k].deadline == rig->oracle.deadline[i] && batch[k].missed == 0,
		    "drain tells a wrong deadline");
		expect(rig, ww_timer_pending(batch[k].timer) == 0, "a drained timer is pending");
		oracle_drain(&rig->oracle, i);
	}
}

struct walk {
	struct rig *rig;
	uint64_t seen;
	uint64_t stop_at; /* stop after this many; 0: never */
	uint64_t spare;   /* cancel one in this many; 0: none */
};

static int look(struct ww_timer *timer, uint64_t deadline, void *user)
{
	struct walk *walk = user;
	struct rig *rig = walk->rig;
	uint32_t i = index_of(rig, timer);

	expect(rig, i < rig->timers && oracle_pending(&rig->oracle, i), "each shows a timer that is idle");
	expect(rig, deadline == rig->oracle.deadline[i], "each shows a wrong deadline");
	walk->seen++;
	if (walk->spare > 0 && draw(rig, walk->spare) == 0) {
		trace(rig, "cancel in each", i, deadline, 0);
		expect(rig, ww_wheel_cancel(rig->wheel, timer) == 1, "a timer cannot be cancelled in each");
		oracle_cancel(&rig->oracle, i);
	}
	return walk->seen == walk->stop_at ? 4711 : 0;
}

static void do_each(struct rig *rig)
{
	uint64_t pending = rig->oracle.pending;
	struct walk walk = {rig, 0, draw(rig, 2) ? 0 : 1 + draw(rig, rig->timers), draw(rig, 4) ? 0 : 8};
	int stops = walk.stop_at > 0 && walk.stop_at <= pending;
	int answer = ww_wheel_each(rig->wheel, look, &walk);

	expect(rig, answer == (stops ? 4711 : 0), "each does not return what stopped it");
	expect(rig, walk.seen == (stops ? walk.stop_at : pending), "each shows a wrong number of timers");
}

static void do_stats(struct rig *rig)
{
	const struct oracle *oracle = &rig->oracle;
	struct ww_stats stats;
	uint64_t sum;

	expect(rig, ww_wheel_stats(rig->wheel, &stats) == WW_OK, "stats fails");
	expect(rig, stats.now == oracle->now && ww_wheel_now(rig->wheel) == oracle->now, "the time is wrong");
	expect(rig, stats.pending == oracle->pending, "stats.pending is wrong");
	expect(rig, stats.scheduled == oracle->scheduled, "stats.scheduled is wrong");
	expect(rig, stats.cancelled == oracle->cancelled, "stats.cancelled is wrong");
	expect(rig, stats.drained == oracle->drained, "stats.drained is wrong");
	expect(rig, stats.expired == oracle->expired, "stats.expired is wrong");
	sum = stats.outside + stats.due;
	for (uint32_t i = 0; i < stats.levels; i++) {
		const struct ww_level_stats *level = &stats.level[i];

		sum += level->pending;
		expect(rig,
		    level->largest <= level->pending && level->occupied <= level->slots &&
		        level->occupied <= level->pending && (level->occupied == 0) == (level->largest == 0),
		    "the statistics of a level contradict each other");
	}
	expect(rig, sum == stats.pending, "the levels, outside and due do not add up to pending");
}

static void do_check(struct rig *rig)
{
	char text[512] = "";

	if (ww_wheel_check(rig->wheel, text, sizeof text) != WW_OK) {
		fail(rig, text);
	}
}

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static void do_next(struct rig *rig)
{
	uint64_t earliest = oracle_earliest(&rig->oracle);
	uint64_t when = 4711;
	int answer = ww_wheel_next(rig->wheel, &when);

	expect(rig, answer == (rig->oracle.pending > 0), "next answers wrongly whether something is pending");
	if (answer == 0) {
		expect(rig, when == WW_NEVER, "next of an empty wheel is not WW_NEVER");
	} else {
		earliest = earliest > rig->oracle.now ? earliest : rig->oracle.now;
		expect(rig, when >= rig->oracle.now, "next lies in the past");
		expect(rig, when <= earliest, "next is later than an expiry");
	}
}

static void do_wrong_time(struct rig *rig)
{
	uint64_t now = rig->oracle.now;
	size_t count = 4711;

	if (now > 0) {
		uint64_t back = now - 1 - draw_log(rig, now);

		expect(rig, ww_wheel_advance(rig->wheel, back, 1, &count) == WW_EBACKWARDS, "time may go backwards");
	}
	expect(rig, ww_wheel_advance(rig->wheel, WW_TIME_MAX + 1 + draw(rig, 100), 1, &count) == WW_EOVERFLOW,
	    "time may go beyond its end");
	expect(rig, count == 4711, "a refused advance writes its count");
}

static void do_advance_batch(struct rig *rig, uint64_t now)
{
	static struct ww_expiry batch[ORACLE_TIMERS_MAX];
	size_t capacity = (size_t)draw(rig, draw(rig, 2) ? 8 : ORACLE_TIMERS_MAX + 1);
	struct rig_trace *entry = trace(rig, "advance batch", -1, now, capacity);
	size_t count = SIZE_MAX;
	int answer;

	oracle_begin(&rig->oracle, now, capacity);
	if (draw(rig, 2)) {
		answer = ww_wheel_advance_batch(rig->wheel, now, batch, capacity, &count);
	} else {
		answer = (ww_wheel_advance_batch)(rig->wheel, now, batch, capacity, &count);
	}
	entry->answer = answer;
	expect(rig, answer >= 0, "advance fails");
	expect(rig, count <= capacity, "advance writes more than the batch holds");
	for (size_t k = 0; k < count; k++) {
		uint32_t i = index_of(rig, batch[k].timer);

		expect(rig, i < rig->timers && batch[k].deadline == rig->oracle.deadline[i],
		    "a batch tells a wrong deadline");
		trace(rig, "  expires", i, batch[k].deadline, batch[k].missed);
		judge(rig, oracle_expire(&rig->oracle, i, batch[k].missed));
	}
	judge(rig, oracle_end(&rig->oracle, answer, count));
}

static void do_advance_calls(struct rig *rig, uint64_t now)
{
	size_t budget = draw(rig, 4) ? WW_UNLIMITED : (size_t)draw(rig, 10);
	struct rig_trace *entry = trace(rig, "advance", -1, now, budget);
	size_t count = SIZE_MAX;
	int answer;

	oracle_begin(&rig->oracle, now, budget);
	rig->inner = 0;
	if (draw(rig, 2)) {
		answer = ww_wheel_advance(rig->wheel, now, budget, &count);
	} else {
		answer = (ww_wheel_advance)(rig->wheel, now, budget, &count);
	}
	entry->answer = answer;
	judge(rig, oracle_end(&rig->oracle, answer, count));
}

static void do_advance(struct rig *rig)
{
	uint64_t now = draw_target(rig);

	if (draw(rig, 3) == 0) {
		do_advance_batch(rig, now);
	} else {
		do_advance_calls(rig, now);
	}
	expect(rig, ww_wheel_now(rig->wheel) == now, "advance leaves a wrong time");
}

/* ---- Callbacks -------------------------------------------------------------------------------------------------- */

static void do_forbidden(struct rig *rig)
{
	size_t count = 4711;
	struct ww_expiry one;
	uint64_t now = rig->oracle.now + draw(rig, 3);

	if (now <= WW_TIME_MAX) {
		expect(rig, ww_wheel_advance(rig->wheel, now, 1, &count) == WW_EBUSY, "advance enters itself");
		expect(rig, ww_wheel_advance_batch(rig->wheel, now, &one, 1, &count) == WW_EBUSY,
		    "advance_batch enters advance");
	}
	expect(rig, ww_wheel_destroy(rig->wheel) == WW_EBUSY, "a wheel is destroyed in its callback");
	expect(rig, count == 4711, "a refused advance writes its count");
}

static void do_inside(struct rig *rig)
{
	switch (draw(rig, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		do_schedule(rig);
		break;
	case 4:
		if (draw(rig, 8) > 0) {
			do_schedule(rig);
		} else if (draw(rig, 2) > 0) {
			do_schedule_many(rig);
		} else {
			do_cancel_many(rig);
		}
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		do_reschedule(rig);
		break;
	case 9:
	case 10:
		do_cancel(rig);
		break;
	case 11:
		do_ask(rig);
		break;
	case 12:
		do_forbidden(rig);
		break;
	case 13:
		do_next(rig);
		break;
	case 14:
		do_stats(rig);
		break;
	default:
		if (draw(rig, 4) == 0) {
			do_drain(rig);
		}
	}
}

static void called(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct rig *rig = WW_TIMER_OWNER(timer, struct rig_object, timer)->rig;
	uint32_t i = index_of(rig, timer);

	trace(rig, "  expires", i, rig->oracle.deadline[i], missed);
	expect(rig, wheel == rig->wheel && i < rig->timers, "a callback gets another wheel or timer");
	expect(rig, ww_wheel_now(wheel) == rig->oracle.now, "in a callback the time is not that of the call");
	judge(rig, oracle_expire(&rig->oracle, i, missed));
	expect(rig, ww_timer_pending(timer) == oracle_pending(&rig->oracle, i),
	    "a timer is pending wrongly in its callback");
	/* Bound the operations of one advance: one that makes work for itself must end. */
	while (rig->inner < 200 && !rig->dry(rig->source) && draw(rig, 3) == 0) {
		rig->inner++;
		do_inside(rig);
		if (rig->check_every == 1) {
			do_check(rig);
		}
	}
}

/* ---- The life of a rig ------------------------------------------------------------------------------------------ */

void rig_open(struct rig *rig)
{
	rig->wheel = NULL;
	rig->steps = rig->traced = rig->hot = 0;
	expect(rig, ww_wheel_create(&rig->wheel, &rig->config) == WW_OK, "the wheel cannot be made");
	rig->horizon = draw_span(rig, rig->config.levels);
	expect(rig, ww_wheel_horizon(rig->wheel) == rig->horizon, "the horizon is wrong");
	oracle_init(&rig->oracle, rig->timers, rig->config.start);
	for (uint32_t i = 0; i < rig->timers; i++) {
		rig->object[i].before = rig->object[i].after = GUARD;
		rig->object[i].rig = rig;
		(void)ww_timer_init(&rig->object[i].timer, called);
	}
}

void rig_step(struct rig *rig)
{
	uint64_t kind = draw(rig, 64);

	rig->steps++;
	if (kind < 19) {
		do_schedule(rig);
	} else if (kind < 20) {
		do_schedule_many(rig);
	} else if (kind < 32) {
		do_reschedule(rig);
	} else if (kind < 36) {
		if (draw(rig, 16) > 0) {
			do_cancel(rig);
		} else {
			do_cancel_many(rig);
		}
	} else if (kind < 56) {
		do_advance(rig);
	} else if (kind < 59) {
		do_ask(rig);
	} else if (kind < 61) {
		do_next(rig);
	} else if (kind == 61) {
		do_stats(rig);
	} else if (kind == 62) {
		do_wrong_time(rig);
	} else if (draw(rig, 4) > 0) {
		do_each(rig);
	} else {
		do_drain(rig);
	}
	if (rig->check_every > 0 && rig->steps % rig->check_every == 0) {
		do_check(rig);
	}
}

void rig_close(struct rig *rig)
{
	static struct ww_expiry batch[ORACLE_TIMERS_MAX];
	uint64_t how = draw(rig, 3);
	size_t count = 0;
	int answer;

	do_check(rig);
	do_stats(rig);
	if (how == 0) {
		/* All that is left expires by the end of time, except timers that wait for a call of their own. */
		trace(rig, "advance batch", -1, WW_TIME_MAX, ORACLE_TIMERS_MAX);
		oracle_begin(&rig->oracle, WW_TIME_MAX, ORACLE_TIMERS_MAX);
		answer = ww_wheel_advance_batch(rig->wheel, WW_TIME_MAX, batch, ORACLE_TIMERS_MAX, &count);
		expect(rig, answer == 0, "the end of time leaves something to do");
		for (size_t k = 0; k < count; k++) {
			judge(rig, oracle_expire(&rig->oracle, index_of(rig, batch[k].timer), batch[k].missed));
		}
		judge(rig, oracle_end(&rig->oracle, answer, count));
		expect(rig, rig->oracle.pending == 0, "a timer was lost");
		do_stats(rig);
	} else if (how == 1) {
		expect(rig, ww_wheel_drain(rig->wheel, batch, ORACLE_TIMERS_MAX, &count) == 0, "drain leaves timers");
		expect(rig, count == rig->oracle.pending, "drain hands over a wrong number of timers");
	}
	expect(rig, ww_wheel_destroy(rig->wheel) == WW_OK, "the wheel cannot be destroyed");
	rig->wheel = NULL;
}
