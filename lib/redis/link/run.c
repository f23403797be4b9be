/*
 * A run: rounds until each call is answered or lost. A round goes as follows.
 *   1. Group: each call that is left joins the group of its node: the one that a redirection named, or else the one
 *      that has its key's slot. A call whose slot nobody has waits for the next round. One whose node or slot is set
 *      aside ends (aside.c), unless it is a probe that is sent again.
 *   2. Send: in the order of the nodes, take a connection for each group and send its calls, with a SCRIPT LOAD or an
 *      ASKING before those that need one. Groups whose node must be connected first have this step and the next one
 *      after the others.
 *   3. Exchange: send the rest and read the replies of all groups side by side, until each has all of them, its
 *      connection breaks, the deadline passes, or the others should not wait for a silent node (REDIS_CALL_SOON).
 *   4. Judge the replies. An answer or a final error ends its call. The others stay for the next round:
 *        MOVED, ASK     at the node that it names, for ASK with an ASKING
 *        NOSCRIPT       at the same node, with a SCRIPT LOAD; all calls of a script in a group share one
 *        READONLY       once, after closing the connection: the primary has perhaps changed; the second time is final
 *        LOADING, BUSY, TRYAGAIN and the like: after a pause, while this has just begun
 *   5. Lose those without a reply. A call that was never sent, or that may be repeated (REDIS_CALL_AGAIN), survives
 *      two breaks if another server may have taken over: there was a connection, or this is a cluster. All
 *      others end with the error, and a call that was sent may have happened. Silence until the deadline always ends.
 *   6. Give the connections back, read the map of slots if it is stale, and pause if a call asks for that. A pause
 *      doubles with each round; one that would pass the deadline ends what is left with WW_EAGAIN.
 */
#include <string.h>
#include <time.h>

#include "lib/redis/link/run.h"

/* Rounds without a pause. */
enum { ROUNDS = 24 };
/* ns */
#define PAUSE UINT64_C(2000000)
#define PAUSE_MAX UINT64_C(100000000)

void ww_redis_run_forget(struct redis_call *call)
{
	ww_redis_reply_free(call->reply);
	call->reply = NULL;
}

void ww_redis_run_end(struct link_run *run, size_t i, int error)
{
	run->errands[i].is_done = 1;
	run->calls[i].error = error;
	run->left--;
	if (error)
		ww_redis_run_forget(&run->calls[i]);
}

void ww_redis_run_slow(struct link_run *run)
{
	if (!run->is_slow && run->link->config.slow)
		run->link->config.slow(run->link->config.context);
	run->is_slow = 1;
}

/* ---- Grouping */

static struct node_calls *group_of(struct link_run *run, struct redis_node *node)
{
	size_t low = 0;
	size_t high = run->group_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (run->groups[middle].node->index < node->index)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < run->group_count && run->groups[low].node == node)
		return &run->groups[low];
	if (run->group_count == run->group_room)
		return NULL;
	memmove(&run->groups[low + 1], &run->groups[low], (run->group_count - low) * sizeof *run->groups);
	run->groups[low] = (struct node_calls){
	    .node = node, .head = REDIS_NO_CALL, .tail = REDIS_NO_CALL, .is_soon = 1, .is_harmless = 1};
	run->group_count++;
	return &run->groups[low];
}

static void join(struct link_run *run, struct node_calls *group, size_t i)
{
	unsigned flags = run->calls[i].flags;

	run->errands[i].next = REDIS_NO_CALL;
	if (group->tail == REDIS_NO_CALL)
		group->first = group->head = i;
	else
		run->errands[group->tail].next = i;
	group->tail = i;
	group->is_soon &= (flags & REDIS_CALL_SOON) != 0;
	group->is_harmless &= (flags & REDIS_CALL_AGAIN) != 0;
}

/* No node has the slot. */
static void await_slot(struct link_run *run, size_t i)
{
	if (ww_redis_aside_later(
	        run->link, NULL, run->errands[i].slot, run->calls[i].flags, "no node has it, as far as is known"))
		run->is_later = 1;
	else
		ww_redis_run_end(run, i, WW_EAGAIN);
}

/*
 * Whether a call may go to a node, as far as that and its slot are set aside. A probe that must be sent again, with its
 * script or elsewhere, is still the same probe: refused now, it would never come to its answer.
 */
static int may_go(struct link_run *run, size_t i, struct redis_node *node)
{
	const struct errand *errand = &run->errands[i];
	int is_sent_on = errand->node != NULL;

	return errand->is_loading ||
	       ww_redis_aside_gate(run->link, node, is_sent_on ? -1 : errand->slot, run->calls[i].flags) == WW_OK;
}

static void group_calls(struct link_run *run)
{
	run->group_count = 0;
	for (size_t i = 0; i < run->count; i++) {
		struct errand *errand = &run->errands[i];
		struct redis_node *node;
		struct node_calls *group;
		if (errand->is_done)
			continue;
		node = ww_redis_cluster_route(run->link, run->calls[i].key, &errand->slot);
		node = errand->node ? errand->node : node;
		if (!node) {
			await_slot(run, i);
			continue;
		}
		if (!may_go(run, i, node)) {
			ww_redis_run_end(run, i, WW_EAGAIN);
			continue;
		}
		/* NULL: there are more nodes than room: in the next round. */
		group = group_of(run, node);
		if (group)
			join(run, group, i);
	}
}

/* ---- Rounds */

static void rest(struct link_run *run)
{
	uint64_t pause = PAUSE << (run->round < 10 ? run->round : 10);
	struct timespec time;

	pause = pause > PAUSE_MAX ? PAUSE_MAX : pause;
	time = time_spec(pause);
	ww_redis_run_slow(run);
	if (time_now(CLOCK_MONOTONIC) + pause < run->deadline) {
		(void)nanosleep(&time, NULL);
		return;
	}
	for (size_t i = 0; i < run->count; i++) {
		if (!run->errands[i].is_done)
			ww_redis_run_end(run, i, WW_EAGAIN);
	}
}

static void one_round(struct link_run *run)
{
	run->is_later = 0;
	run->is_soon = 0;
	group_calls(run);
	for (size_t g = 0; g < run->group_count; g++)
		run->is_soon |= run->groups[g].is_soon && run->groups[g].is_harmless;
	/* The nodes that are connected do not wait for those that are not. */
	for (int wave = 0; wave < 2; wave++)
		ww_redis_exchange(run, wave);
	ww_redis_judge(run);
	run->round++;
	if (run->left > 0)
		ww_redis_run_slow(run);
	if (run->left > 0)
		ww_redis_cluster_refresh(run->link, run->deadline);
	if (run->left > 0 && (run->is_later || run->round > ROUNDS))
		rest(run);
}

static int is_valid(const struct redis_call *call)
{
	if (call->argc > REDIS_ARGS_MAX || (call->argc > 0 && !call->argv))
		return 0;
	return call->script ? call->script->sha[0] != '\0' : call->argc > 0;
}

/* Malformed calls end here. */
static void begin(struct link_run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		run->errands[i] = (struct errand){.next = REDIS_NO_CALL};
		run->calls[i].reply = NULL;
		run->calls[i].error = WW_OK;
		run->calls[i].is_sent = 0;
		if (!is_valid(&run->calls[i]))
			ww_redis_run_end(run, i, WW_EINVAL);
	}
}

static void note(struct link_run *run)
{
	struct redis_link *link = run->link;

	pthread_mutex_lock(&link->lock);
	link->stats.commands += run->commands;
	link->stats.round_trips += run->round;
	link->stats.redirections += run->redirections;
	link->stats.loads += run->loads;
	pthread_mutex_unlock(&link->lock);
}

static size_t words_of(const struct redis_call *calls, size_t count)
{
	size_t words = 0;

	for (size_t i = 0; i < count; i++) {
		if (calls[i].argc <= REDIS_ARGS_MAX && calls[i].argc > words)
			words = calls[i].argc;
	}
	return words + 5;
}

static size_t room_of(struct redis_link *link, size_t count)
{
	size_t room;

	/* A cluster may name more nodes during the run. */
	pthread_mutex_lock(&link->lock);
	room = link->count + 8;
	pthread_mutex_unlock(&link->lock);
	return count < room ? count : room;
}

int ww_redis_link_run(struct redis_link *link, struct redis_call *calls, size_t count)
{
	max_align_t few[128]; /* enough for most runs */
	struct link_run run = {.link = link, .calls = calls, .count = count, .left = count};

	if (count == 0)
		return WW_OK;
	run.deadline = time_now(CLOCK_MONOTONIC) + link->config.timeout;
	run.group_room = room_of(link, count);
	size_t words = words_of(calls, count);
	size_t size = count * sizeof *run.errands + run.group_room * (sizeof *run.groups + sizeof *run.polled) +
	              words * (sizeof *run.argv + sizeof *run.lengths);
	void *block = size > sizeof few ? memory_take(link->allocator, size) : few;
	if (block) {
		run.errands = block;
		run.groups = (struct node_calls *)(run.errands + count);
		run.argv = (const char **)(run.groups + run.group_room);
		run.lengths = (size_t *)(run.argv + words);
		run.polled = (struct pollfd *)(run.lengths + words);
		begin(&run);
		while (run.left > 0)
			one_round(&run);
		note(&run);
	}
	for (size_t i = 0; i < count && !block; i++) {
		calls[i].reply = NULL;
		calls[i].error = WW_ENOMEM;
	}
	if (block != few)
		memory_give(link->allocator, block, size);
	for (size_t i = 0; i < count; i++) {
		if (calls[i].error)
			return calls[i].error;
	}
	return WW_OK;
}
