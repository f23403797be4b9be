/* The ready jobs that have a code: a heap for each code of a group, and trees that find the best up to a code. */
#include "lib/jobs/local/coded.h"

#include <stddef.h>

#include "lib/base/random.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"

/* The empty heaps that one batch looks at. */
enum { LOOKS = 16 };

static struct limits *limits_of(const struct group *group)
{
	return group->limiter.tube->limits;
}

static struct coded_heap *heap_at(const struct code_node *in_group)
{
	return (struct coded_heap *)((uintptr_t)in_group - offsetof(struct coded_heap, in_group));
}

static struct coded_heap *heap_of(const struct group *group, uint32_t code)
{
	struct code_node *node = ww_jobs_codes_find(group->coded.heaps, code, 0);

	return node ? heap_at(node) : NULL;
}

/* ---- Made and forgotten */

static void be_idle(struct coded_heap *heap)
{
	if (heap->is_idle)
		return;
	heap->is_idle = 1;
	TAILQ_INSERT_TAIL(&heap->group->limiter.tube->jobs->idle_coded, heap, in_idle);
}

static struct coded_heap *make_heap(struct group *group, uint32_t code)
{
	struct jobs_local *jobs = group->limiter.tube->jobs;
	struct coded_heap *heap = ww_jobs_resize(jobs, NULL, 0, sizeof *heap);

	if (!heap)
		return NULL;
	heap->group = group;
	heap->in_group.code = heap->in_tube.code = code;
	heap->in_tube.tie = group->number;
	ww_jobs_codes_add(&group->coded.heaps, &heap->in_group, random_next(&jobs->random));
	ww_jobs_codes_add(&limits_of(group)->coded, &heap->in_tube, random_next(&jobs->random));
	be_idle(heap);
	return heap;
}

static void forget(struct coded_heap *heap)
{
	struct group *group = heap->group;
	struct jobs_local *jobs = group->limiter.tube->jobs;

	if (heap->is_idle)
		TAILQ_REMOVE(&jobs->idle_coded, heap, in_idle);
	ww_jobs_codes_remove(&group->coded.heaps, &heap->in_group);
	ww_jobs_codes_remove(&limits_of(group)->coded, &heap->in_tube);
	ww_jobs_give(jobs, heap->heap.at, heap->heap.room * sizeof(struct entry *));
	ww_jobs_give(jobs, heap, sizeof *heap);
}

void ww_jobs_coded_forget(struct group *group)
{
	ww_jobs_coded_leave(group);
	while (group->coded.heaps)
		forget(heap_at(group->coded.heaps));
}

void ww_jobs_coded_settle(struct jobs_local *jobs)
{
	struct coded_heap *heap;

	for (int i = 0; i < LOOKS && (heap = TAILQ_FIRST(&jobs->idle_coded)); i++) {
		TAILQ_REMOVE(&jobs->idle_coded, heap, in_idle);
		heap->is_idle = 0;
		if (!heap->heap.count)
			forget(heap);
	}
}

int ww_jobs_coded_reserve(struct group *group, uint32_t code)
{
	struct coded_heap *heap = heap_of(group, code);

	if (!heap)
		heap = make_heap(group, code);
	return heap ? ww_jobs_heap_reserve(group->limiter.tube->jobs, &heap->heap) : WW_ENOMEM;
}

/* ---- Turns */

void ww_jobs_coded_leave(struct group *group)
{
	if (group->coded.is_in)
		ww_jobs_codes_remove(&limits_of(group)->turns, &group->coded.turn);
	group->coded.is_in = 0;
}

void ww_jobs_coded_join(struct group *group, struct turn turn)
{
	struct coded_group *coded = &group->coded;

	if (!coded->ready || coded->is_in)
		return;
	(void)ww_jobs_codes_above(coded->heaps, 0, &coded->turn.code);
	coded->turn.first = turn.at;
	coded->turn.tie = coded->turn.then = turn.number;
	coded->turn.count = 1;
	coded->is_in = 1;
	ww_jobs_codes_add(&limits_of(group)->turns, &coded->turn, random_next(&group->limiter.tube->jobs->random));
}

/* ---- Ready jobs */

/* Its jobs have changed: so may have their first one, and the lowest code of the group. */
static void show_change(struct coded_heap *heap)
{
	struct coded_group *coded = &heap->group->coded;
	uint64_t lowest = coded->turn.code;

	heap->in_group.count = heap->in_tube.count = heap->heap.count;
	if (heap->heap.count) {
		heap->in_group.first = heap->heap.at[0]->is.priority;
		heap->in_group.then = heap->heap.at[0]->id;
	}
	ww_jobs_codes_changed(coded->heaps, &heap->in_group);
	ww_jobs_codes_changed(limits_of(heap->group)->coded, &heap->in_tube);
	if (!coded->is_in)
		return;
	(void)ww_jobs_codes_above(coded->heaps, 0, &lowest);
	if (coded->ready && lowest == coded->turn.code)
		return;
	ww_jobs_coded_leave(heap->group);
	ww_jobs_coded_join(heap->group, (struct turn){coded->turn.first, coded->turn.then});
}

void ww_jobs_coded_add(struct group *group, struct entry *entry)
{
	struct coded_heap *heap = heap_of(group, entry->is.code);

	group->coded.ready++;
	ww_jobs_heap_add(&heap->heap, entry);
	show_change(heap);
}

void ww_jobs_coded_remove(struct group *group, struct entry *entry)
{
	struct coded_heap *heap = heap_of(group, entry->is.code);

	group->coded.ready--;
	ww_jobs_heap_remove(&heap->heap, entry);
	show_change(heap);
	if (!heap->heap.count)
		be_idle(heap);
}

struct entry *ww_jobs_coded_best(const struct group *group, uint32_t code)
{
	const struct code_node *best = ww_jobs_codes_best(group->coded.heaps, code);

	return best ? heap_at(best)->heap.at[0] : NULL;
}
