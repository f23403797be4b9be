/*
 * A run: rounds until each call is answered or lost. A round goes as follows.
 *   1. Group: each call that is left joins the group of its node: the one that a redirection named, or else the one
 *      that has its key's slot. A call whose slot nobody has waits for the next round.
 *   2. Send: in the order of the nodes, take a connection for each group and send its calls, with a SCRIPT LOAD or an
 *      ASKING before those that need one.
 *   3. Exchange (redis_exchange.c): send the rest and read the replies of all groups side by side, until each has all
 *      of them, its connection breaks, or the deadline passes.
 *   4. Judge the replies. An answer or a final error ends its call. The others stay for the next round:
 *        MOVED, ASK     at the node that it names, for ASK with an ASKING
 *        NOSCRIPT       at the same node, with a SCRIPT LOAD; all calls of a script in a group share one
 *        READONLY       once, after closing the connection: the primary has perhaps changed; the second time is final
 *        LOADING, BUSY, TRYAGAIN and the like: after a pause
 *   5. Lose those without a reply. A call that was never sent, or that may be repeated (REDIS_CALL_AGAIN), survives
 *      two breaks if another server may have taken over: there was a connection, or this is a cluster. All
 *      others end with the error, and a call that was sent may have happened. Silence until the deadline always ends.
 *   6. Give the connections back, read the map of slots if it is stale, and pause if a call asks for that. A pause
 *      doubles with each round; one that would pass the deadline ends what is left with WW_EAGAIN.
 */
#include <string.h>

#include "lib/redis/link/run.h"

/* Rounds without a pause; broken connections that a call survives. */
enum { ROUNDS = 24, BREAKS = 2 };
/* ns */
#define PAUSE UINT64_C(2000000)
#define PAUSE_MAX UINT64_C(100000000)

static void forget_reply(struct redis_call *call)
{
	ww_redis_reply_free(call->reply);
	call->reply = NULL;
}

static void end(struct link_run *run, size_t i, int error)
{
	run->errands[i].is_done = 1;
	run->calls[i].error = error;
	run->left--;
	if (error)
		forget_reply(&run->calls[i]);
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
	run->groups[low] = (struct node_calls){.node = node, .head = REDIS_NO_CALL, .tail = REDIS_NO_CALL};
	run->group_count++;
	return &run->groups[low];
}

static void group_calls(struct link_run *run)
{
	run->group_count = 0;
	for (size_t i = 0; i < run->count; i++) {
		struct errand *errand = &run->errands[i];
		struct redis_node *node = errand->node;
		struct node_calls *group;
		if (errand->is_done)
			continue;
		if (!node)
			node = ww_redis_cluster_route(run->link, run->calls[i].key);
		group = node ? group_of(run, node) : NULL;
		if (!group) {
			/* No node has the slot, or there are more nodes than room: in the next round. */
			run->is_later |= !node;
			continue;
		}
		errand->next = REDIS_NO_CALL;
		if (group->tail == REDIS_NO_CALL)
			group->head = i;
		else
			run->errands[group->tail].next = i;
		group->tail = i;
	}
}

/* ---- Sending */

static int append_script(struct link_run *run, struct node_calls *group, size_t i)
{
	const struct redis_call *call = &run->calls[i];
	static const char *const counts[] = {"0", "1", "2"};
	size_t keys = !call->key ? 0 : call->also ? 2 : 1;

	run->argv[0] = "EVALSHA";
	run->argv[1] = call->script->sha;
	run->argv[2] = counts[keys];
	run->argv[3] = call->key;
	run->argv[4] = call->also;
	for (size_t word = 0; word < 3 + keys; word++)
		run->lengths[word] = strlen(run->argv[word]);
	for (size_t word = 0; word < call->argc; word++) {
		run->argv[3 + keys + word] = call->argv[word];
		run->lengths[3 + keys + word] = call->lengths ? call->lengths[word] : strlen(call->argv[word]);
	}
	return ww_redis_wire_append(group->wire, 3 + keys + call->argc, run->argv, run->lengths);
}

/* Whether an earlier call of the group loads the same script. */
static int is_loaded(const struct link_run *run, const struct node_calls *group, size_t i)
{
	for (size_t other = group->head; other != i; other = run->errands[other].next) {
		if (run->errands[other].is_loading && run->calls[other].script == run->calls[i].script)
			return 1;
	}
	return 0;
}

static int append_before(struct link_run *run, struct node_calls *group, size_t i)
{
	struct errand *errand = &run->errands[i];
	const struct redis_script *script = run->calls[i].script;
	int error = WW_OK;

	errand->before = 0;
	if (errand->is_loading && is_loaded(run, group, i))
		errand->is_loading = 0;
	if (errand->is_loading) {
		const char *load[3] = {"SCRIPT", "LOAD", script->text};
		const size_t lengths[3] = {6, 4, script->length};
		error = ww_redis_wire_append(group->wire, 3, load, lengths);
		errand->before++;
		run->loads++;
	}
	if (!error && errand->is_asking) {
		const char *asking = "ASKING";
		error = ww_redis_wire_append(group->wire, 1, &asking, NULL);
		errand->before++;
	}
	run->commands += 1U + errand->before;
	return error;
}

static int append_call(struct link_run *run, struct node_calls *group, size_t i)
{
	const struct redis_call *call = &run->calls[i];
	int error = append_before(run, group, i);

	if (error)
		return error;
	if (call->script)
		return append_script(run, group, i);
	return ww_redis_wire_append(group->wire, call->argc, call->argv, call->lengths);
}

static void prepare(struct link_run *run)
{
	for (size_t g = 0; g < run->group_count; g++) {
		struct node_calls *group = &run->groups[g];
		group->error = ww_redis_node_take(run->link, group->node, run->deadline, &group->wire);
		if (group->error) {
			group->wire = NULL;
			continue;
		}
		for (size_t i = group->head; i != REDIS_NO_CALL && !group->error; i = run->errands[i].next)
			group->error = append_call(run, group, i);
		/* This node works while the next is perhaps connected. */
		if (!group->error)
			group->error = ww_redis_wire_send(group->wire);
	}
}

/* ---- Judging */

static void refuse(struct link_run *run, size_t i, const struct redis_node *node, int error)
{
	const struct redis_call *call = &run->calls[i];
	char place[REDIS_PLACE_MAX];

	ww_redis_node_place(node, place);
	if (error == WW_EDENIED && strncmp(call->reply->str, "READONLY ", 9) == 0)
		ww_redis_link_complain(run->link, "Redis at %s is a replica: give the address of the primary.", place);
	else if (error == WW_EDENIED || error == WW_ECORRUPT)
		ww_redis_error_tell(run->link, node, call->script ? call->script->name : call->argv[0], call->reply);
	end(run, i, error);
}

static void move(struct link_run *run, size_t i, const struct node_calls *group, int is_asking)
{
	struct errand *errand = &run->errands[i];

	run->redirections++;
	errand->node = ww_redis_cluster_follow(run->link, group->node, run->calls[i].reply->str);
	if (!errand->node) {
		refuse(run, i, group->node, WW_ECORRUPT);
		return;
	}
	errand->is_asking = (uint8_t)is_asking;
	/* Two nodes that each name the other are asked more slowly. */
	run->is_later |= run->round > 4;
}

/* The call has a reply: step 4. */
static void judge(struct link_run *run, struct node_calls *group, size_t i)
{
	struct errand *errand = &run->errands[i];
	struct redis_call *call = &run->calls[i];
	int error;
	enum redis_meaning meaning = ww_redis_error_meaning(call->reply, &error);
	int was_loading = errand->is_loading;
	uint8_t was_asking = errand->is_asking;

	errand->is_asking = 0;
	errand->is_loading = 0;
	errand->node = NULL;
	if (meaning == REDIS_IS_MOVED || meaning == REDIS_IS_ASK) {
		move(run, i, group, meaning == REDIS_IS_ASK);
	} else if (meaning == REDIS_IS_UNKNOWN && call->script && !was_loading) {
		errand->is_loading = 1;
		errand->is_asking = was_asking;
		errand->node = group->node;
	} else if (meaning == REDIS_IS_READONLY && errand->readonly++ == 0) {
		group->is_stale = 1;
	} else if (meaning == REDIS_IS_LATER || meaning == REDIS_IS_UNKNOWN) {
		run->is_later = 1;
	} else if (meaning == REDIS_IS_ANSWER) {
		end(run, i, WW_OK);
	} else {
		refuse(run, i, group->node, error);
	}
	if (!errand->is_done)
		forget_reply(call);
}

/* The call has no reply: step 5. */
static void lose(struct link_run *run, struct node_calls *group, size_t i)
{
	struct errand *errand = &run->errands[i];
	int is_untouched = !group->wire || !group->wire->has_sent;
	int may_repeat = is_untouched || run->calls[i].flags & REDIS_CALL_AGAIN;

	forget_reply(&run->calls[i]);
	errand->is_asking = 0;
	errand->is_loading = 0;
	errand->node = NULL;
	if (group->error == WW_EIO && !group->is_silent && may_repeat && (group->wire || run->link->slots) &&
	    errand->breaks++ < BREAKS)
		return;
	end(run, i, group->error);
}

static void judge_group(struct link_run *run, struct node_calls *group, size_t first)
{
	void (*take)(struct link_run *, struct node_calls *, size_t) = judge;
	size_t next;

	for (size_t i = first; i != REDIS_NO_CALL; i = next) {
		next = run->errands[i].next;
		/* The calls from head on have no reply. */
		if (i == group->head)
			take = lose;
		take(run, group, i);
	}
}

static void release(struct link_run *run, struct node_calls *group)
{
	int is_bad = group->is_silent || group->error == WW_ECORRUPT;

	if (!group->wire)
		return;
	if (group->error == WW_ECORRUPT) {
		char place[REDIS_PLACE_MAX];
		ww_redis_node_place(group->node, place);
		ww_redis_link_complain(
		    run->link, "What Redis at %s answers cannot be read: %s.", place, group->wire->why);
	}
	if (group->error || group->is_stale)
		ww_redis_node_drop(run->link, group->wire, is_bad, group->error);
	else
		ww_redis_node_give(run->link, group->wire);
}

/* ---- Rounds */

static void rest(struct link_run *run)
{
	uint64_t pause = PAUSE << (run->round < 10 ? run->round : 10);
	struct timespec time;

	pause = pause > PAUSE_MAX ? PAUSE_MAX : pause;
	time = time_spec(pause);
	if (time_now(CLOCK_MONOTONIC) + pause < run->deadline) {
		(void)nanosleep(&time, NULL);
		return;
	}
	for (size_t i = 0; i < run->count; i++) {
		if (!run->errands[i].is_done)
			end(run, i, WW_EAGAIN);
	}
}

static void one_round(struct link_run *run)
{
	size_t *firsts = run->lengths; /* free while replies are judged */

	run->is_later = 0;
	group_calls(run);
	prepare(run);
	for (size_t g = 0; g < run->group_count; g++)
		firsts[g] = run->groups[g].head;
	ww_redis_exchange(run);
	for (size_t g = 0; g < run->group_count; g++) {
		judge_group(run, &run->groups[g], firsts[g]);
		release(run, &run->groups[g]);
	}
	run->round++;
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
		if (!is_valid(&run->calls[i]))
			end(run, i, WW_EINVAL);
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

static int do_run(struct link_run *run)
{
	begin(run);
	while (run->left > 0)
		one_round(run);
	note(run);
	for (size_t i = 0; i < run->count; i++) {
		if (run->calls[i].error)
			return run->calls[i].error;
	}
	return WW_OK;
}

/* Calls, and words of one, that the stack has room for: enough for most runs. */
enum { FEW = 8, FEW_WORDS = 32 };

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

static int run_many(struct link_run *run)
{
	const struct ww_allocator *allocator = run->link->allocator;
	size_t words = run->words > run->group_room ? run->words : run->group_room;
	size_t size = run->count * sizeof *run->errands +
	              run->group_room * (sizeof *run->groups + sizeof *run->polled) +
	              words * (sizeof *run->argv + sizeof *run->lengths);
	void *block = memory_take(allocator, size);
	int error = WW_ENOMEM;

	if (block) {
		run->errands = block;
		run->groups = (struct node_calls *)(run->errands + run->count);
		run->argv = (const char **)(run->groups + run->group_room);
		run->lengths = (size_t *)(run->argv + words);
		run->polled = (struct pollfd *)(run->lengths + words);
		error = do_run(run);
		memory_give(allocator, block, size);
		return error;
	}
	for (size_t i = 0; i < run->count; i++) {
		run->calls[i].reply = NULL;
		run->calls[i].error = error;
	}
	return error;
}

int ww_redis_link_run(struct redis_link *link, struct redis_call *calls, size_t count)
{
	struct errand errands[FEW];
	struct node_calls groups[FEW];
	struct pollfd polled[FEW];
	const char *argv[FEW_WORDS];
	size_t lengths[FEW_WORDS];
	struct link_run run = {.link = link, .calls = calls, .count = count, .left = count};

	if (count == 0)
		return WW_OK;
	run.deadline = time_now(CLOCK_MONOTONIC) + link->config.timeout;
	run.words = words_of(calls, count);
	run.group_room = room_of(link, count);
	if (count > FEW || run.words > FEW_WORDS)
		return run_many(&run);
	run.errands = errands;
	run.groups = groups;
	run.polled = polled;
	run.argv = argv;
	run.lengths = lengths;
	return do_run(&run);
}
