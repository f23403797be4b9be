/* The correctness run. A structure passes it before it is timed. */
#include <stdlib.h>

#include "lib/base/random.h"
#include "tools/bench/structure.h"
#include "tools/common/memory.h"

enum { OBJECTS = 250, CHANCES = 8 };
/* After the last deadline, with time for a structure that is late. */
#define END (2 * BENCH_WEEK + 10000)

static const char *const expired_again = "a timer expired twice, or after it was cancelled";

struct trial {
	const struct structure *structure;
	void *state;
	struct object *objects;
	struct sink sink;
	uint64_t deadline[OBJECTS]; /* 0: idle */
	uint64_t now;
	uint64_t random;
	uint64_t latest;
};

static uint64_t trial_delay(struct trial *trial)
{
	static const uint64_t around[] = {1, 59, 60, 61, 300, 3599, 3600, 3601, 86399, 86400, 86401, BENCH_WEEK - 1};
	uint64_t longest = trial->structure->longest ? trial->structure->longest : BENCH_WEEK;
	uint64_t pick = random_below(&trial->random, 4);
	uint64_t delay;

	if (pick == 0)
		delay = around[random_below(&trial->random, sizeof around / sizeof *around)];
	else if (pick == 1)
		delay = 1 + random_below(&trial->random, 120);
	else if (pick == 2)
		delay = 1 + random_below(&trial->random, 7200);
	else
		delay = 1 + random_below(&trial->random, BENCH_WEEK - 1);
	return delay <= longest ? delay : 1 + delay % longest;
}

/* Do something to one object. */
static void trial_act(struct trial *trial)
{
	uint64_t i = random_below(&trial->random, OBJECTS);
	struct object *object = &trial->objects[i];
	uint64_t delay = trial_delay(trial);

	if (!trial->deadline[i])
		trial->structure->schedule(trial->state, object, delay);
	else if (random_below(&trial->random, 3) != 0)
		trial->structure->touch(trial->state, object, delay);
	else {
		trial->structure->cancel(trial->state, object);
		trial->deadline[i] = 0;
		return;
	}
	trial->deadline[i] = trial->now + delay;
}

static const char *trial_expiry(struct trial *trial, const struct object *object)
{
	uint64_t i = (uint64_t)(object - trial->objects);

	if (object < trial->objects || i >= OBJECTS)
		return "something expired that was never scheduled";
	if (!trial->deadline[i])
		return expired_again;
	if (trial->deadline[i] > trial->now)
		return "a timer expired early";
	trial->deadline[i] = 0;
	return NULL;
}

/* Check what has expired, and note how late the others are by now. */
static const char *trial_look(struct trial *trial)
{
	const char *wrong = NULL;

	for (uint64_t i = 0; i < trial->sink.count && i < trial->sink.room && !wrong; i++)
		wrong = trial_expiry(trial, trial->sink.expired[i]);
	if (!wrong && trial->sink.count > trial->sink.room)
		wrong = expired_again;
	for (uint64_t i = 0; i < OBJECTS; i++)
		if (trial->deadline[i] && trial->now >= trial->deadline[i] &&
		    trial->now - trial->deadline[i] + 1 > trial->latest)
			trial->latest = trial->now - trial->deadline[i] + 1;
	return wrong;
}

static const char *trial_step(struct trial *trial)
{
	uint64_t jump = random_below(&trial->random, 5000) == 0 ? random_below(&trial->random, 7200) : 1;

	trial->now += jump ? jump : 1;
	trial->sink.count = 0;
	trial->structure->advance(trial->state, trial->now);
	return trial_look(trial);
}

static const char *trial_run(struct trial *trial)
{
	const char *wrong = NULL;

	while (!wrong && trial->now < BENCH_WEEK) {
		if (random_below(&trial->random, CHANCES) == 0)
			trial_act(trial);
		wrong = trial_step(trial);
	}
	while (!wrong && trial->now < END)
		wrong = trial_step(trial);
	for (uint64_t i = 0; i < OBJECTS && !wrong; i++)
		if (trial->deadline[i])
			wrong = "a timer never expired";
	return wrong;
}

const char *correct_run(const struct structure *structure, uint64_t seed, uint64_t *latest)
{
	struct trial trial = {.structure = structure, .random = seed};
	struct object *expired[OBJECTS];
	const char *wrong;

	trial.objects = memory_aligned(OBJECTS, sizeof *trial.objects);
	trial.sink = (struct sink){expired, OBJECTS, 0};
	trial.state = structure->create(trial.objects, OBJECTS, &trial.sink);
	wrong = trial_run(&trial);
	structure->destroy(trial.state);
	free(trial.objects);
	*latest = trial.latest;
	return wrong;
}
