/* The groups of a tube, which take turns: their names, their row, and their ready jobs. */
#include "lib/jobs/local/group.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/random.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/heap.h"
#include "lib/jobs/local/limiter.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/rule.h"

enum {
	/* The idle groups that one batch looks at. */
	LOOKS = 16,
	/* From one turn to the next with weight 1. All weights up to 16 divide it. */
	STRIDE = 720720
};

/* ---- Made and found */

static struct group *make_group(struct tube *tube, struct store_bytes name)
{
	struct group *group = ww_jobs_resize(tube->jobs, NULL, 0, sizeof *group + name.size);

	if (!group)
		return NULL;
	group->limiter.tube = tube;
	group->limiter.group = group;
	group->heap = name.size ? &group->own : &tube->heap;
	group->length = (uint32_t)name.size;
	if (name.size)
		memcpy(group->name, name.data, name.size);
	return group;
}

static void give_group(struct jobs_local *jobs, struct group *group)
{
	if (!group)
		return;
	if (group->is_idle)
		STAILQ_REMOVE(&jobs->idle_groups, group, group, in_idle);
	ww_jobs_limiter_forget(&group->limiter);
	ww_jobs_coded_forget(group);
	ww_jobs_give(jobs, group->own.at, group->own.room * sizeof(struct entry *));
	ww_jobs_give(jobs, group->weighed, group->weighed ? sizeof *group->weighed : 0);
	ww_jobs_give(jobs, group, sizeof *group + group->length);
}

int ww_jobs_limits_make(struct tube *tube, struct limits **limits)
{
	struct limits *made = tube->limits;

	*limits = made;
	if (made)
		return WW_OK;
	made = ww_jobs_resize(tube->jobs, NULL, 0, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	made->whole.tube = tube;
	made->free_number = 1;
	TAILQ_INIT(&made->row);
	made->none = make_group(tube, (struct store_bytes){NULL, 0});
	if (!made->none) {
		ww_jobs_give(tube->jobs, made, sizeof *made);
		return WW_ENOMEM;
	}
	tube->limits = made;
	made->none->running = tube->reserved;
	ww_jobs_group_let(made->none);
	*limits = made;
	return WW_OK;
}

void ww_jobs_limits_free(struct tube *tube)
{
	struct jobs_local *jobs = tube->jobs;
	struct limits *limits = tube->limits;
	struct group *group;
	struct group *next;

	if (!limits)
		return;
	HASH_ITER(hh, limits->named, group, next) {
		HASH_DELETE(hh, limits->named, group);
		give_group(jobs, group);
	}
	give_group(jobs, limits->none);
	ww_jobs_limiter_forget(&limits->whole);
	ww_jobs_give(jobs, limits->numbered, limits->numbered_room * sizeof *limits->numbered);
	ww_jobs_give(jobs, limits, sizeof *limits);
}

struct group *ww_jobs_group_find(const struct tube *tube, struct store_bytes name)
{
	struct group *group = NULL;

	if (tube->limits)
		HASH_FIND(hh, tube->limits->named, name.data, name.size, group);
	return group;
}

/* Numbers are those of an array. The lowest free one is taken. */
static int number_group(struct jobs_local *jobs, struct limits *limits, struct group *group)
{
	while (limits->free_number < limits->numbered_room && limits->numbered[limits->free_number])
		limits->free_number++;
	if (limits->free_number >= limits->numbered_room) {
		uint32_t room = limits->numbered_room ? 2 * limits->numbered_room : 8;
		struct group **more =
		    ww_jobs_resize(jobs, limits->numbered, limits->numbered_room * sizeof *more, room * sizeof *more);
		if (!more)
			return WW_ENOMEM;
		limits->numbered = more;
		limits->numbered_room = room;
	}
	group->number = limits->free_number;
	return WW_OK;
}

static int add_group(struct tube *tube, struct store_bytes name, struct group **group)
{
	struct jobs_local *jobs = tube->jobs;
	struct limits *limits;

	if (ww_jobs_limits_make(tube, &limits))
		return WW_ENOMEM;
	*group = make_group(tube, name);
	if (!*group)
		return WW_ENOMEM;
	if (number_group(jobs, limits, *group)) {
		give_group(jobs, *group);
		return WW_ENOMEM;
	}
	HASH_ADD_KEYPTR(hh, limits->named, (*group)->name, (*group)->length, *group);
	if (!(*group)->hh.tbl) {
		give_group(jobs, *group);
		return WW_ENOMEM;
	}
	limits->numbered[(*group)->number] = *group;
	ww_jobs_limiter_use_up(&(*group)->limiter, limits->each_used);
	ww_jobs_group_idle(*group);
	return WW_OK;
}

int ww_jobs_group_get(struct tube *tube, struct store_bytes name, uint32_t *number)
{
	struct group *group;

	*number = 0;
	if (!name.size || !tube)
		return WW_OK;
	group = ww_jobs_group_find(tube, name);
	if (!group && add_group(tube, name, &group))
		return WW_ENOMEM;
	*number = group->number;
	return WW_OK;
}

int ww_jobs_group_weigh(struct group *group)
{
	if (!group->weighed)
		group->weighed = ww_jobs_resize(group->limiter.tube->jobs, NULL, 0, sizeof *group->weighed);
	if (!group->weighed)
		return WW_ENOMEM;
	group->weighed->group = group;
	return WW_OK;
}

struct group *ww_jobs_group_of(const struct image *image)
{
	const struct limits *limits = image->tube ? image->tube->limits : NULL;

	if (!limits)
		return NULL;
	return image->group ? limits->numbered[image->group] : limits->none;
}

/* ---- Forgotten */

void ww_jobs_group_idle(struct group *group)
{
	if (group->is_idle || !group->number)
		return;
	group->is_idle = 1;
	STAILQ_INSERT_TAIL(&group->limiter.tube->jobs->idle_groups, group, in_idle);
}

static void forget_group(struct group *group)
{
	struct limits *limits = group->limiter.tube->limits;

	HASH_DELETE(hh, limits->named, group);
	limits->numbered[group->number] = NULL;
	if (group->number < limits->free_number)
		limits->free_number = group->number;
	give_group(group->limiter.tube->jobs, group);
}

void ww_jobs_groups_settle(struct jobs_local *jobs)
{
	struct group *group;

	for (int i = 0; i < LOOKS && (group = STAILQ_FIRST(&jobs->idle_groups)); i++) {
		STAILQ_REMOVE_HEAD(&jobs->idle_groups, in_idle);
		group->is_idle = 0;
		if (group->entries || rule_is_set(&group->limiter.rule))
			continue;
		/* A late callback may look at it. */
		if (group->limiter.timer || jobs->late || !ww_jobs_limiter_is_rested(&group->limiter))
			ww_jobs_group_idle(group);
		else
			forget_group(group);
	}
}

/* ---- The row */

static uint64_t weight_of(const struct group *group)
{
	return group->limiter.rule.limit.weight;
}

/* The turn that comes by its weight from now on. */
static struct turn next_turn(const struct group *group)
{
	struct limits *limits = group->limiter.tube->limits;
	uint64_t stride = weight_of(group) > 1 ? STRIDE / weight_of(group) : STRIDE;

	return (struct turn){limits->now + stride, ++limits->last_turn};
}

static void join_row(struct group *group)
{
	struct limits *limits = group->limiter.tube->limits;

	group->turn = next_turn(group);
	if (weight_of(group) <= 1) {
		group->place = GROUP_IN_ROW;
		TAILQ_INSERT_TAIL(&limits->row, group, in_row);
		return;
	}
	group->place = GROUP_IN_TREE;
	group->weighed->node = (struct code_node){
	    .tie = group->turn.number, .first = group->turn.at, .then = group->turn.number, .count = 1};
	ww_jobs_codes_add(&limits->weighed, &group->weighed->node, random_next(&group->limiter.tube->jobs->random));
}

static void leave_row(struct group *group)
{
	struct limits *limits = group->limiter.tube->limits;

	if (group->place == GROUP_IN_ROW)
		TAILQ_REMOVE(&limits->row, group, in_row);
	else if (group->place == GROUP_IN_TREE)
		ww_jobs_codes_remove(&limits->weighed, &group->weighed->node);
	else
		return;
	group->place = GROUP_OUT;
}

static void leave(struct group *group)
{
	if (group->place == GROUP_HELD) {
		group->limiter.tube->limits->held -= ww_jobs_group_ready(group);
		group->place = GROUP_OUT;
	}
	leave_row(group);
	ww_jobs_coded_leave(group);
}

void ww_jobs_group_let(struct group *group)
{
	if (group->place == GROUP_HELD)
		leave(group);
	if (group->place == GROUP_OUT && group->heap->count)
		join_row(group);
	if (group->coded.ready)
		ww_jobs_coded_join(group, next_turn(group));
}

void ww_jobs_group_comes(const struct group *group)
{
	struct limits *limits = group->limiter.tube->limits;
	const struct code_node *coded = group->coded.is_in ? &group->coded.turn : NULL;
	uint64_t at = coded ? coded->first : limits->now;

	if ((group->place == GROUP_IN_ROW || group->place == GROUP_IN_TREE) && (!coded || group->turn.at < at))
		at = group->turn.at;
	if (at > limits->now)
		limits->now = at;
}

void ww_jobs_group_turn(struct group *group)
{
	if (group->place == GROUP_HELD)
		return;
	leave(group);
	ww_jobs_group_let(group);
}

void ww_jobs_group_hold(struct group *group)
{
	leave(group);
	group->place = GROUP_HELD;
	group->limiter.tube->limits->held += ww_jobs_group_ready(group);
}

static int is_before(struct turn turn, const struct code_node *other)
{
	return turn.at < other->first || (turn.at == other->first && turn.number < other->then);
}

/* The next one of the row and the tree. */
static struct group *next_in_row(const struct limits *limits)
{
	struct group *group = TAILQ_FIRST(&limits->row);
	const struct code_node *node = limits->weighed ? ww_jobs_codes_best(limits->weighed, 0) : NULL;

	if (!node || (group && is_before(group->turn, node)))
		return group;
	return ((const struct weighed *)node)->group;
}

struct group *ww_jobs_group_next(const struct limits *limits, uint32_t code)
{
	struct group *group = next_in_row(limits);
	const struct code_node *coded;

	if (!limits->turns)
		return group;
	coded = ww_jobs_codes_best(limits->turns, code);
	if (!coded || (group && is_before(group->turn, coded)))
		return group;
	return (struct group *)((uintptr_t)coded - offsetof(struct group, coded.turn));
}

/* ---- Ready jobs */

uint64_t ww_jobs_group_ready(const struct group *group)
{
	return group->heap->count + group->coded.ready;
}

struct entry *ww_jobs_group_first(const struct group *group, uint32_t code)
{
	struct entry *plain = group->heap->count ? group->heap->at[0] : NULL;
	struct entry *coded = group->coded.ready ? ww_jobs_coded_best(group, code) : NULL;

	if (!plain || !coded)
		return plain ? plain : coded;
	return ww_jobs_heap_is_less(plain, coded) ? plain : coded;
}

static struct ready_heap *heap_of(const struct image *image)
{
	return image->group ? ww_jobs_group_of(image)->heap : &image->tube->heap;
}

int ww_jobs_ready_reserve(const struct image *image)
{
	struct limits *limits;

	if (!image->code)
		return ww_jobs_heap_reserve(image->tube->jobs, heap_of(image));
	if (ww_jobs_limits_make(image->tube, &limits))
		return WW_ENOMEM;
	return ww_jobs_coded_reserve(ww_jobs_group_of(image), image->code);
}

void ww_jobs_ready_add(struct entry *entry)
{
	struct group *group = ww_jobs_group_of(&entry->is);

	if (entry->is.code)
		ww_jobs_coded_add(group, entry);
	else
		ww_jobs_heap_add(heap_of(&entry->is), entry);
	entry->is.tube->ready++;
	if (group && group->place == GROUP_HELD)
		group->limiter.tube->limits->held++;
	else if (group)
		ww_jobs_group_let(group);
}

void ww_jobs_ready_remove(struct entry *entry)
{
	struct group *group = ww_jobs_group_of(&entry->is);

	if (entry->is.code)
		ww_jobs_coded_remove(group, entry);
	else
		ww_jobs_heap_remove(heap_of(&entry->is), entry);
	entry->is.tube->ready--;
	if (group && group->place == GROUP_HELD)
		group->limiter.tube->limits->held--;
	if (group && !group->heap->count)
		leave_row(group);
	if (group && !ww_jobs_group_ready(group))
		leave(group);
}
