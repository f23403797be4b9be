/* Counting all sessions: see census.h. */
#include "tools/weekwheel-sessiond/http/census.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { FRESH_MS = 5000, SHARE = 20, LARGEST = 20 };

struct takes {
	uv_loop_t *loop;
	struct data *data;
	void (*done)(void *context);
	void *context;
	uv_work_t work;
	struct census *taken; /* by the thread */
	struct census *last;
	int is_busy;
	_Atomic int is_stopping;
};

/* ---- In the thread */

static int count_one(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct takes *takes = context;
	struct census *census = takes->taken;
	struct data_entry entry;
	int64_t left = -1;

	data_entry_fill(&entry, found);
	if (entry.deadline != DATA_NEVER) {
		uint64_t second = entry.deadline < census->at ? 0 : (entry.deadline - census->at) / WW_SECOND;
		if (second < CENSUS_SECONDS)
			census->by_second[second]++;
		left = (int64_t)(found->left / WW_MILLISECOND);
	}
	survey_add(&census->survey, key, length, left, (int64_t)entry.size);
	return takes->is_stopping;
}

static void count_all(uv_work_t *work)
{
	struct takes *takes = work->data;

	for (unsigned i = 0; i < data_databases(takes->data) && !takes->is_stopping; i++) {
		takes->taken->survey.database = i;
		/* To ask for its map would make one. */
		if (data_count(takes->data, i) > 0)
			(void)ww_session_walk(data_map(takes->data, i), count_one, takes, NULL);
	}
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
	takes->taken->at = data_now(takes->data);
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
	uint64_t first = now < census->at ? 0 : (now - census->at) / WW_SECOND;

	for (size_t i = 0; i < count; i++) {
		uint64_t second = first + i * span;

		counts[i] = 0;
		for (uint64_t end = second + span; second < end && second < CENSUS_SECONDS; second++)
			counts[i] += census->by_second[second];
	}
}

/* ---- Beginning and end */

struct takes *census_start(uv_loop_t *loop, struct data *data, void (*done)(void *context), void *context)
{
	struct takes *takes = calloc(1, sizeof *takes);

	if (takes)
		*takes = (struct takes){.loop = loop, .data = data, .done = done, .context = context};
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
