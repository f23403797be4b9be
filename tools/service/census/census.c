/* Counting all sessions: see census.h. */
#include "tools/service/census/census.h"

#include <stdatomic.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum { FRESH_MS = 5000, SHARE = 20, LARGEST = 20 };

struct takes {
	uv_loop_t *loop;
	struct census_source source;
	void (*done)(void *context);
	void *context;
	uv_work_t work;
	struct census *taken; /* by the thread */
	struct census *last;
	int is_busy;
	_Atomic int is_stopping;
};

/* ---- In the thread */

int census_add(struct takes *takes, unsigned database, const char *key, size_t length, uint64_t deadline, int64_t size)
{
	struct census *census = takes->taken;
	int64_t left = -1;

	if (deadline != CENSUS_NEVER) {
		uint64_t ns = deadline < census->at ? 0 : deadline - census->at;

		if (ns / SECOND < CENSUS_SECONDS)
			census->by_second[ns / SECOND]++;
		left = (int64_t)(ns / MS);
	}
	census->survey.database = database;
	survey_add(&census->survey, key, length, left, size);
	return takes->is_stopping;
}

static void count_all(uv_work_t *work)
{
	struct takes *takes = work->data;

	takes->source.walk(takes->source.context, takes);
}

/* ---- In the loop */

static void counted(uv_work_t *work, int status)
{
	struct takes *takes = work->data;

	(void)status;
	takes->is_busy = 0;
	uv_update_time(takes->loop);
	takes->taken->ended = uv_now(takes->loop);
	free(takes->last);
	takes->last = takes->taken;
	takes->taken = NULL;
	if (takes->is_stopping) {
		free(takes->last);
		free(takes);
		return;
	}
	takes->done(takes->context);
}

static int is_fresh(const struct takes *takes)
{
	const struct census *last = takes->last;
	uint64_t most;

	if (!last)
		return 0;
	most = SHARE * (last->ended - last->began);
	return uv_now(takes->loop) - last->ended <= (most > FRESH_MS ? most : FRESH_MS);
}

static void begin(struct takes *takes)
{
	takes->taken = calloc(1, sizeof *takes->taken);
	if (!takes->taken)
		return;
	takes->taken->at = takes->source.now(takes->source.context);
	takes->taken->began = uv_now(takes->loop);
	takes->taken->survey.largest_most = LARGEST;
	takes->work.data = takes;
	takes->is_busy = uv_queue_work(takes->loop, &takes->work, count_all, counted) == 0;
	if (!takes->is_busy) {
		free(takes->taken);
		takes->taken = NULL;
	}
}

int census_refresh(struct takes *takes)
{
	if (!takes->is_busy && !is_fresh(takes))
		begin(takes);
	return takes->is_busy;
}

const struct census *census_last(const struct takes *takes)
{
	return takes->last;
}

void census_forecast(const struct census *census, uint64_t now, uint64_t span, uint64_t *counts, size_t count)
{
	uint64_t first = now < census->at ? 0 : (now - census->at) / SECOND;

	for (size_t i = 0; i < count; i++) {
		uint64_t second = first + i * span;

		counts[i] = 0;
		for (uint64_t end = second + span; second < end && second < CENSUS_SECONDS; second++)
			counts[i] += census->by_second[second];
	}
}

/* ---- Beginning and end */

struct takes *census_start(
    uv_loop_t *loop, const struct census_source *source, void (*done)(void *context), void *context)
{
	struct takes *takes = calloc(1, sizeof *takes);

	if (takes)
		*takes = (struct takes){.loop = loop, .source = *source, .done = done, .context = context};
	return takes;
}

void census_stop(struct takes *takes)
{
	if (!takes)
		return;
	takes->is_stopping = 1;
	if (takes->is_busy)
		return;
	free(takes->last);
	free(takes);
}
