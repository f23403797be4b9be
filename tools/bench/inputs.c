/* Draws the inputs of the workloads. */
#include "tools/bench/workload.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/random.h"
#include "tools/common/memory.h"

enum { LIVES_PER_TIMER = 4, CANCELS_PER_EXPIRY = 4 };

static void shuffle(uint32_t *array, uint64_t n, uint64_t *random)
{
	for (uint64_t i = n; i > 1; i--) {
		uint64_t j = random_below(random, i);
		uint32_t swap = array[i - 1];

		array[i - 1] = array[j];
		array[j] = swap;
	}
}

static uint32_t draw_week(uint64_t *random)
{
	return (uint32_t)(1 + random_below(random, BENCH_WEEK - 1));
}

void inputs_draw(struct inputs *inputs, uint64_t n, uint64_t seed)
{
	uint64_t random = seed;

	memset(inputs, 0, sizeof *inputs);
	inputs->n = n;
	inputs->delay = memory_zeroed(n, sizeof *inputs->delay);
	for (uint64_t i = 0; i < n; i++)
		inputs->delay[i] = draw_week(&random);
	for (int k = 0; k < ORDERS; k++) {
		inputs->order[k] = memory_zeroed(n, sizeof **inputs->order);
		for (uint64_t i = 0; i < n; i++)
			inputs->order[k][i] = (uint32_t)i;
		shuffle(inputs->order[k], n, &random);
	}
}

/* 70 % half a minute, 20 % half an hour, 10 % anything up to a week. */
static uint32_t draw_mixed(uint64_t *random)
{
	uint64_t pick = random_below(random, 10);

	return pick < 7 ? 30 : pick < 9 ? 1800 : draw_week(random);
}

/* A flat wheel plays the script while it is written, and reports what expires. */
struct rehearsal {
	struct object *objects;
	uint64_t n;
	struct sink sink;
	void *state;
	uint64_t random;
	uint32_t *expired;
};

static void rehearse_life(struct rehearsal *rehearsal, struct churn *churn, uint32_t object)
{
	uint32_t delay = draw_mixed(&rehearsal->random);

	churn->object[churn->lives] = object;
	churn->delay[churn->lives++] = delay;
	structure_flat.schedule(rehearsal->state, &rehearsal->objects[object], delay);
}

static void rehearse_tick(struct rehearsal *rehearsal, struct churn *churn, uint64_t most)
{
	uint64_t expired, cancelled;

	rehearsal->sink.count = 0;
	structure_flat.advance(rehearsal->state, churn->ticks + 1);
	expired = rehearsal->sink.count;
	for (uint64_t i = 0; i < expired; i++)
		rehearsal->expired[i] = (uint32_t)(rehearsal->sink.expired[i] - rehearsal->objects);
	/* In no structure's own order of expiry. */
	shuffle(rehearsal->expired, expired, &rehearsal->random);
	for (uint64_t i = 0; i < expired; i++)
		rehearse_life(rehearsal, churn, rehearsal->expired[i]);
	for (cancelled = 0; cancelled < CANCELS_PER_EXPIRY * expired && churn->lives < most; cancelled++) {
		uint32_t object = (uint32_t)random_below(&rehearsal->random, rehearsal->n);

		structure_flat.cancel(rehearsal->state, &rehearsal->objects[object]);
		rehearse_life(rehearsal, churn, object);
	}
	churn->expired[churn->ticks] = (uint32_t)expired;
	churn->cancelled[churn->ticks++] = (uint32_t)cancelled;
}

static void rehearse(struct rehearsal *rehearsal, struct churn *churn, uint64_t most)
{
	size_t capacity = 0, capacity_too = 0;

	for (uint64_t i = 0; i < rehearsal->n; i++) {
		churn->first_delay[i] =
		    (uint32_t)(1 + random_below(&rehearsal->random, draw_mixed(&rehearsal->random)));
		structure_flat.schedule(rehearsal->state, &rehearsal->objects[i], churn->first_delay[i]);
	}
	while (churn->lives < most) {
		churn->expired = memory_grow(churn->expired, &capacity, churn->ticks, sizeof *churn->expired);
		churn->cancelled = memory_grow(churn->cancelled, &capacity_too, churn->ticks, sizeof *churn->cancelled);
		rehearse_tick(rehearsal, churn, most);
	}
}

void inputs_draw_churn(struct inputs *inputs, uint64_t seed)
{
	struct rehearsal rehearsal = {.n = inputs->n, .random = ~seed};
	struct churn *churn = &inputs->churn;
	uint64_t most = LIVES_PER_TIMER * inputs->n;

	rehearsal.objects = memory_aligned(inputs->n, sizeof *rehearsal.objects);
	rehearsal.sink.expired = memory_zeroed(inputs->n, sizeof(struct object *));
	rehearsal.sink.room = inputs->n;
	rehearsal.expired = memory_zeroed(inputs->n, sizeof *rehearsal.expired);
	rehearsal.state = structure_flat.create(rehearsal.objects, inputs->n, &rehearsal.sink);
	churn->first_delay = memory_zeroed(inputs->n, sizeof *churn->first_delay);
	/* The expiries of the last tick may exceed it. */
	churn->object = memory_zeroed(most + inputs->n, sizeof *churn->object);
	churn->delay = memory_zeroed(most + inputs->n, sizeof *churn->delay);
	rehearse(&rehearsal, churn, most);
	structure_flat.destroy(rehearsal.state);
	free(rehearsal.objects);
	free(rehearsal.sink.expired);
	free(rehearsal.expired);
}

void inputs_free(struct inputs *inputs)
{
	free(inputs->delay);
	for (int k = 0; k < ORDERS; k++)
		free(inputs->order[k]);
	free(inputs->churn.first_delay);
	free(inputs->churn.object);
	free(inputs->churn.delay);
	free(inputs->churn.expired);
	free(inputs->churn.cancelled);
	memset(inputs, 0, sizeof *inputs);
}
