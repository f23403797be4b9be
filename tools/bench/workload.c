/*
 * The workloads. All timed work is in functions timed_*, which a profiler recognizes by name:
 * scripts/count-instructions counts them.
 */
#include "tools/bench/workload.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/bench/interrupt.h"
#include "tools/common/memory.h"

#define TIMED __attribute__((noinline))

enum { TOUCHES_PER_TIMER = 10, TICKS_PER_ROUND = 5, LIMIT_TICKS = 1024 };
/* 6.9 days. */
#define LONELY_DELAY UINT64_C(596160)
/* Jumps are repeated for this long. One alone is too short for the clock. */
#define LONELY_NS UINT64_C(10000000)

const char *const workload_too_long = "not done within the limit";
static const char *const not_all_expired = "not every timer expired";
static const char *const expired_otherwise = "other timers expired than the deadlines say";

/* A pass under way. */
struct pass {
	const struct structure *structure;
	void *state;
	struct arena *arena;
	struct object *objects;
	uint64_t n;
	uint64_t began;
	/* For calls that take many: what is scheduled, with the delays, and what is cancelled then; else NULL. */
	struct object **first, **second;
	uint64_t *delays;
};

static struct pass pass_begin(struct arena *arena, const struct structure *structure)
{
	uint64_t n = arena->inputs->n;
	struct pass pass = {.structure = structure, .arena = arena, .objects = arena->objects, .n = n};

	memset(arena->objects, 0, n * sizeof *arena->objects);
	arena->sink.count = 0;
	pass.state = structure->create(arena->objects, n, &arena->sink);
	return pass;
}

/* Make the arrays for a structure whose calls take many. order NULL: in the order of memory. */
static void pass_gather(struct pass *pass, const uint32_t *first, const uint32_t *second)
{
	if (!pass->structure->cancel_many)
		return;
	pass->first = memory_zeroed(pass->n, sizeof(struct object *));
	pass->second = memory_zeroed(pass->n, sizeof(struct object *));
	pass->delays = memory_zeroed(pass->n, sizeof *pass->delays);
	for (uint64_t i = 0; i < pass->n; i++) {
		pass->first[i] = &pass->objects[first ? first[i] : i];
		pass->second[i] = &pass->objects[second ? second[i] : i];
		pass->delays[i] = pass->arena->inputs->delay[i];
	}
}

/* Return the sample of a pass of one part, and end it. */
static struct sample pass_end(struct pass *pass, const char *why, uint64_t operations)
{
	struct sample sample = {.timed_ns = time_now(CLOCK_MONOTONIC) - pass->began, .why = why};

	sample.ns_per_op = (double)sample.timed_ns / (double)operations;
	pass->structure->destroy(pass->state);
	free(pass->first);
	free(pass->second);
	free(pass->delays);
	return sample;
}

/* Split the time of a pass of two parts, of which the first took first_ns. */
static void sample_split(struct sample *sample, uint64_t first_ns, uint64_t operations, uint64_t others)
{
	sample->ns_per_op = (double)first_ns / (double)operations;
	sample->ns_per_other = (double)(sample->timed_ns - first_ns) / (double)others;
}

static int pass_is_late(const struct pass *pass)
{
	return time_now(CLOCK_MONOTONIC) - pass->began > pass->arena->limit_ns || interrupt_signal();
}

/* order NULL: in the order of memory. */
static TIMED void timed_schedule(const struct pass *pass, const uint32_t *order, const uint32_t *delay)
{
	void (*schedule)(void *, struct object *, uint64_t) = pass->structure->schedule;
	void *state = pass->state;
	struct object *objects = pass->objects;
	uint64_t n = pass->n;

	if (pass->structure->schedule_many)
		pass->structure->schedule_many(state, pass->first, pass->delays, n);
	else if (order)
		for (uint64_t i = 0; i < n; i++)
			schedule(state, &objects[order[i]], delay[i]);
	else
		for (uint64_t i = 0; i < n; i++)
			schedule(state, &objects[i], delay[i]);
}

static TIMED void timed_cancel(const struct pass *pass, const uint32_t *order)
{
	void (*cancel)(void *, struct object *) = pass->structure->cancel;
	void *state = pass->state;
	struct object *objects = pass->objects;
	uint64_t n = pass->n;

	if (pass->structure->cancel_many)
		pass->structure->cancel_many(state, pass->second, n);
	else if (order)
		for (uint64_t i = 0; i < n; i++)
			cancel(state, &objects[order[i]]);
	else
		for (uint64_t i = 0; i < n; i++)
			cancel(state, &objects[i]);
}

struct sample workload_schedule_cancel(struct arena *arena, const struct structure *structure)
{
	struct pass pass = pass_begin(arena, structure);
	struct sample sample;
	uint64_t middle;

	pass_gather(&pass, NULL, arena->inputs->order[0]);
	pass.began = time_now(CLOCK_MONOTONIC);
	timed_schedule(&pass, NULL, arena->inputs->delay);
	middle = time_now(CLOCK_MONOTONIC);
	timed_cancel(&pass, arena->inputs->order[0]);
	sample = pass_end(&pass, NULL, pass.n);
	sample_split(&sample, middle - pass.began, pass.n, pass.n);
	return sample;
}

struct sample workload_cancel_in_order(struct arena *arena, const struct structure *structure)
{
	struct pass pass = pass_begin(arena, structure);

	pass_gather(&pass, NULL, NULL);
	timed_schedule(&pass, NULL, arena->inputs->delay);
	pass.began = time_now(CLOCK_MONOTONIC);
	timed_cancel(&pass, NULL);
	return pass_end(&pass, NULL, pass.n);
}

/* Touch objects[order[from .. to-1]]. */
static TIMED void timed_touch(
    const struct pass *pass, const uint32_t *order, uint64_t from, uint64_t to, uint64_t timeout)
{
	void (*touch)(void *, struct object *, uint64_t) = pass->structure->touch;
	void *state = pass->state;
	struct object *objects = pass->objects;

	for (uint64_t i = from; i < to; i++)
		touch(state, &objects[order[i]], timeout);
}

static TIMED void timed_tick(const struct pass *pass, uint64_t now)
{
	pass->structure->advance(pass->state, now);
}

static const char *heartbeat(const struct pass *pass, uint64_t timeout)
{
	uint64_t now = 0;

	for (unsigned round = 0; round < TOUCHES_PER_TIMER; round++)
		for (unsigned fifth = 0; fifth < TICKS_PER_ROUND; fifth++) {
			timed_touch(pass, pass->arena->inputs->order[round % ORDERS], pass->n * fifth / TICKS_PER_ROUND,
			    pass->n * (fifth + 1) / TICKS_PER_ROUND, timeout);
			timed_tick(pass, ++now);
			if (pass_is_late(pass))
				return workload_too_long;
		}
	return pass->arena->sink.count ? expired_otherwise : NULL;
}

struct sample workload_heartbeat(struct arena *arena, const struct structure *structure, uint64_t timeout)
{
	struct pass pass = pass_begin(arena, structure);

	for (uint64_t i = 0; i < pass.n; i++)
		structure->schedule(pass.state, &pass.objects[i], timeout);
	pass.began = time_now(CLOCK_MONOTONIC);
	return pass_end(&pass, heartbeat(&pass, timeout), pass.n * TOUCHES_PER_TIMER);
}

static TIMED const char *timed_ticks(const struct pass *pass)
{
	void (*advance)(void *, uint64_t) = pass->structure->advance;
	void *state = pass->state;

	for (uint64_t now = 1; now <= BENCH_WEEK; now++) {
		advance(state, now);
		if (now % LIMIT_TICKS == 0 && pass_is_late(pass))
			return workload_too_long;
	}
	return NULL;
}

static TIMED const char *timed_ticks_each(const struct pass *pass, uint32_t *tick_ns)
{
	void (*advance)(void *, uint64_t) = pass->structure->advance;
	void *state = pass->state;
	uint64_t before = time_now(CLOCK_MONOTONIC);

	for (uint64_t now = 1; now <= BENCH_WEEK; now++) {
		uint64_t after, ns;

		advance(state, now);
		after = time_now(CLOCK_MONOTONIC);
		ns = after - before;
		before = after;
		tick_ns[now - 1] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
		if (now % LIMIT_TICKS == 0 && pass_is_late(pass))
			return workload_too_long;
	}
	return NULL;
}

struct sample workload_life(struct arena *arena, const struct structure *structure, int shuffled, uint32_t *tick_ns)
{
	struct pass pass = pass_begin(arena, structure);
	struct sample sample;

	pass_gather(&pass, shuffled ? arena->inputs->order[0] : NULL, arena->inputs->order[0]);
	pass.began = time_now(CLOCK_MONOTONIC);
	timed_schedule(&pass, shuffled ? arena->inputs->order[0] : NULL, arena->inputs->delay);
	sample = pass_end(&pass, tick_ns ? timed_ticks_each(&pass, tick_ns) : timed_ticks(&pass), pass.n);
	if (!sample.why && arena->sink.count != pass.n)
		sample.why = not_all_expired;
	return sample;
}

static TIMED void timed_lonely_ticks(const struct pass *pass)
{
	void (*advance)(void *, uint64_t) = pass->structure->advance;
	void *state = pass->state;

	for (uint64_t now = 1; now <= LONELY_DELAY; now++)
		advance(state, now);
}

/* A jump with the schedule that makes it one; return how many there were. */
static TIMED uint64_t timed_jumps(const struct pass *pass, uint64_t began)
{
	uint64_t now = LONELY_DELAY;
	uint64_t jumps = 0;

	do {
		pass->structure->schedule(pass->state, pass->objects, LONELY_DELAY);
		now += LONELY_DELAY;
		pass->structure->advance(pass->state, now);
		pass->arena->sink.count = 0;
		jumps++;
	} while (jumps % 16 || time_now(CLOCK_MONOTONIC) - began < LONELY_NS);
	return jumps;
}

struct sample workload_lonely(struct arena *arena, const struct structure *structure)
{
	struct pass pass = pass_begin(arena, structure);
	const char *why = NULL;
	struct sample sample;
	uint64_t middle, jumps;

	structure->schedule(pass.state, pass.objects, LONELY_DELAY);
	pass.began = time_now(CLOCK_MONOTONIC);
	timed_lonely_ticks(&pass);
	middle = time_now(CLOCK_MONOTONIC);
	if (arena->sink.count != 1)
		why = not_all_expired;
	arena->sink.count = 0;
	jumps = timed_jumps(&pass, middle);
	sample = pass_end(&pass, why, LONELY_DELAY);
	sample_split(&sample, middle - pass.began, LONELY_DELAY, jumps);
	return sample;
}

/* Play the next lives of the script: first those whose timer has expired, then those that are cancelled. */
static TIMED void timed_lives(const struct pass *pass, uint64_t from, uint64_t expired, uint64_t cancelled)
{
	const struct structure *structure = pass->structure;
	const struct churn *churn = &pass->arena->inputs->churn;
	void *state = pass->state;
	struct object *objects = pass->objects;
	uint64_t middle = from + expired;
	uint64_t end = middle + cancelled;
	uint64_t i;

	for (i = from; i < middle; i++)
		structure->schedule(state, &objects[churn->object[i]], churn->delay[i]);
	for (; i < end; i++) {
		structure->cancel(state, &objects[churn->object[i]]);
		structure->schedule(state, &objects[churn->object[i]], churn->delay[i]);
	}
}

static const char *churn_run(const struct pass *pass)
{
	const struct churn *churn = &pass->arena->inputs->churn;
	struct sink *sink = &pass->arena->sink;
	uint64_t life = 0;

	for (uint64_t tick = 0; tick < churn->ticks; tick++) {
		sink->count = 0;
		timed_tick(pass, tick + 1);
		if (sink->count != churn->expired[tick] && pass->structure != &structure_floor)
			return expired_otherwise;
		timed_lives(pass, life, churn->expired[tick], churn->cancelled[tick]);
		life += churn->expired[tick] + churn->cancelled[tick];
		if (pass_is_late(pass))
			return workload_too_long;
	}
	return NULL;
}

struct sample workload_churn(struct arena *arena, const struct structure *structure)
{
	struct pass pass = pass_begin(arena, structure);
	const struct churn *churn = &arena->inputs->churn;

	for (uint64_t i = 0; i < pass.n; i++)
		structure->schedule(pass.state, &pass.objects[i], churn->first_delay[i]);
	pass.began = time_now(CLOCK_MONOTONIC);
	return pass_end(&pass, churn_run(&pass), churn->lives);
}
