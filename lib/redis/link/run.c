/*
 * A run: rounds until each call is answered or lost. A round goes as follows.
 *   1. Group: each call that is left joins the group of its node: the one that a redirection named, or else the one
 *      that has its key's slot. A call whose slot nobody has waits for the next round. One whose node or slot is set
 *      aside ends (aside.c).
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
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "lib/redis/link/link_internal.h"

/* Rounds without a pause; broken connections that a call survives; replies that come later are slow. */
enum { ROUNDS = 24, BREAKS = 2, SLOW_MS = 1 };
/* ns */
#define PAUSE UINT64_C(2000000)
#define PAUSE_MAX UINT64_C(100000000)

/*
 * A round of a run: calls in groups, one group for each node, in the order of the nodes' indices.
 *
 *     groups:  node 0 [wire] -> call 2 -> call 5        by the index of the next call
 *              node 3 [wire] -> call 0 -> call 1 -> call 7
 */

#define REDIS_NO_CALL SIZE_MAX

/* A call on its way. */
struct errand {
	struct redis_node *node; /* where it goes next; NULL: by its key */
	size_t next;             /* of the group */
	uint8_t is_done;
	uint8_t is_asking;  /* send an ASKING before it */
	uint8_t is_loading; /* send a SCRIPT LOAD before it */
	uint8_t before;     /* replies still to come before its own */
	uint8_t readonly;   /* how often a replica got it */
	uint8_t breaks;     /* how often the connection broke */
	int slot;           /* -1: none */
};

struct node_calls {
	struct redis_node *node;
	struct redis_wire *wire; /* NULL: none could be had */
	size_t head;             /* the first call without a reply; REDIS_NO_CALL: all have one */
	size_t tail;
	size_t first;
	int error;       /* why the calls from head on have no reply */
	int is_silent;   /* because time ran out */
	int is_soon;     /* all its calls are to end soon (REDIS_CALL_SOON) */
	int is_harmless; /* and may happen twice: silence ends them early */
	int is_suspect;  /* because others would wait too long */
	int is_waiting;  /* a WAIT was sent, and its reply is still to come */
	int is_safe;     /* enough replicas have confirmed the calls */
	int is_new;      /* it has just got a connection */
	int is_stale;    /* close the connection: the server turned out to be a replica */
};

struct link_run {
	struct redis_link *link;
	struct redis_call *calls;
	size_t count;
	size_t left;
	uint64_t deadline;
	struct errand *errands;
	struct node_calls *groups;
	struct pollfd *polled;
	size_t group_room;
	size_t group_count;
	const char **argv; /* room for the longest call */
	size_t *lengths;
	unsigned round;
	int is_later; /* a call waits for a pause */
	int is_soon;  /* silence may end a call before the deadline */
	int is_slow;  /* config.slow was called */
	uint64_t commands, redirections, loads;
};

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
		end(run, i, WW_EAGAIN);
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
		if (ww_redis_aside_gate(run->link, node, errand->slot, run->calls[i].flags)) {
			end(run, i, WW_EAGAIN);
			continue;
		}
		/* NULL: there are more nodes than room: in the next round. */
		group = group_of(run, node);
		if (group)
			join(run, group, i);
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

/* Before this thread waits: for a connection, in a pause, or for replies that have not come within SLOW_MS. */
static void slow(struct link_run *run)
{
	if (!run->is_slow && run->link->config.slow)
		run->link->config.slow(run->link->config.context);
	run->is_slow = 1;
}

/* Take a connection for each group that has none; those that must make one first have their turn in the second wave. */
static void connect_groups(struct link_run *run, int wave)
{
	for (size_t g = 0; g < run->group_count; g++) {
		struct node_calls *group = &run->groups[g];
		unsigned how = (wave ? 0 : REDIS_TAKE_IDLE) | (group->is_soon ? REDIS_TAKE_SOON : 0);
		if (group->wire || group->error)
			continue;
		if (wave)
			slow(run);
		group->error = ww_redis_node_take(run->link, group->node, run->deadline, how, &group->wire);
		if (group->error)
			group->wire = NULL;
		group->is_new = group->wire != NULL;
	}
}

/* How long replicas may take, ms. */
static int wait_ms(const struct link_run *run)
{
	int half = (int)(run->link->config.timeout / 2000000);
	int left = time_left_ms(run->deadline) / 2;

	/* To Redis, 0 means for ever. */
	return left < 1 || half < 1 ? 1 : left < half ? left : half;
}

/* After the calls of a group, if replicas shall have one of them. */
static int append_wait(struct link_run *run, struct node_calls *group)
{
	char replicas[16], ms[16];
	const char *argv[] = {"WAIT", replicas, ms};
	size_t i = run->link->config.replicas ? group->head : REDIS_NO_CALL;

	while (i != REDIS_NO_CALL && !(run->calls[i].flags & REDIS_CALL_SAFE))
		i = run->errands[i].next;
	if (i == REDIS_NO_CALL)
		return WW_OK;
	(void)snprintf(replicas, sizeof replicas, "%u", run->link->config.replicas);
	(void)snprintf(ms, sizeof ms, "%d", wait_ms(run));
	group->is_waiting = 1;
	run->commands++;
	return ww_redis_wire_append(group->wire, 3, argv, NULL);
}

/* Returns how many groups have something to send. */
static size_t prepare(struct link_run *run, int wave)
{
	size_t count = 0;

	connect_groups(run, wave);
	for (size_t g = 0; g < run->group_count; g++) {
		struct node_calls *group = &run->groups[g];
		if (!group->is_new)
			continue;
		group->is_new = 0;
		count++;
		for (size_t i = group->head; i != REDIS_NO_CALL && !group->error; i = run->errands[i].next)
			group->error = append_call(run, group, i);
		if (!group->error)
			group->error = append_wait(run, group);
		atomic_store_explicit(&group->wire->asked, time_now(CLOCK_MONOTONIC), memory_order_relaxed);
		if (!group->error)
			group->error = ww_redis_wire_send(group->wire);
	}
	return count;
}

/* ---- Exchanging */

static int is_error(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR;
}

/*
 * Take the next reply of a group. Replies to an ASKING or a SCRIPT LOAD come before that of their call. The first error
 * among them is kept in place of the call's own error, which it caused.
 */
static void take_reply(struct link_run *run, struct node_calls *group, struct redisReply *reply)
{
	size_t i = group->head;
	struct errand *errand = &run->errands[i];
	struct redis_call *call = &run->calls[i];

	if (errand->before > 0) {
		errand->before--;
		if (is_error(reply) && !call->reply)
			call->reply = reply;
		else
			ww_redis_reply_free(reply);
		return;
	}
	if (call->reply && is_error(reply)) {
		ww_redis_reply_free(reply);
	} else {
		ww_redis_reply_free(call->reply);
		call->reply = reply;
	}
	group->head = errand->next;
}

/* The reply to a WAIT: how many replicas have all that came before it. */
static void take_wait(struct link_run *run, struct node_calls *group, struct redisReply *reply)
{
	struct redis_link *link = run->link;

	group->is_waiting = 0;
	group->is_safe = reply->type == REDIS_REPLY_INTEGER && reply->integer >= (long long)link->config.replicas;
	if (is_error(reply))
		ww_redis_error_tell(link, group->node, "WAIT", reply);
	else if (!group->is_safe)
		ww_redis_link_complain(link,
		    "Redis at %s: fewer than %u replicas confirm what is put, in time. Such puts are answered with an "
		    "error, and are stored all the same, unless the node is lost.",
		    group->node->place, link->config.replicas);
	ww_redis_reply_free(reply);
}

static int is_owed(const struct node_calls *group)
{
	return group->head != REDIS_NO_CALL || group->is_waiting;
}

static void take_replies(struct link_run *run, struct node_calls *group)
{
	struct redisReply *reply;
	int result = 0;

	while (is_owed(group)) {
		result = ww_redis_wire_reply(group->wire, &reply);
		if (result <= 0)
			break;
		if (group->head == REDIS_NO_CALL)
			take_wait(run, group, reply);
		else
			take_reply(run, group, reply);
	}
	if (result < 0)
		group->error = result;
}

static void step(struct link_run *run, struct node_calls *group, short events)
{
	int error = WW_OK;

	if (events & ~POLLOUT) {
		error = ww_redis_wire_receive(group->wire);
		if (!error)
			atomic_store_explicit(&group->node->heard, time_now(CLOCK_MONOTONIC), memory_order_relaxed);
		/* What came before the connection broke is good. */
		take_replies(run, group);
	}
	if (!error && !group->error && is_owed(group) && events & POLLOUT)
		error = ww_redis_wire_send(group->wire);
	if (error && !group->error && is_owed(group))
		group->error = error;
	if (group->error || group->head == REDIS_NO_CALL)
		atomic_store_explicit(&group->wire->asked, REDIS_OWES_NOTHING, memory_order_relaxed);
}

static int is_open(const struct node_calls *group)
{
	return group->wire && !group->error && is_owed(group);
}

static void fall_silent(struct node_calls *group, int is_suspect)
{
	group->error = WW_EIO;
	group->is_silent = 1;
	group->is_suspect = is_suspect;
	(void)snprintf(group->wire->why, sizeof group->wire->why, "the server does not answer in time");
}

/*
 * Give up the groups for which others should not wait any longer. Returns when the next one is to be looked at, by the
 * monotonic clock, but not after the deadline.
 */
static uint64_t give_up(struct link_run *run)
{
	uint64_t most = redis_silence(run->link);
	uint64_t now = time_now(CLOCK_MONOTONIC);
	uint64_t next = run->deadline;

	for (size_t g = 0; g < run->group_count; g++) {
		struct node_calls *group = &run->groups[g];
		uint64_t silence;
		int others;
		if (!is_open(group) || !group->is_soon || !group->is_harmless)
			continue;
		pthread_mutex_lock(&run->link->lock);
		silence = ww_redis_aside_silence_locked(group->node);
		others = silence >= most && ww_redis_aside_others_serve_locked(run->link, group->node);
		pthread_mutex_unlock(&run->link->lock);
		if (others)
			fall_silent(group, 1);
		else if (now + (silence < most ? most - silence : most) < next)
			next = now + (silence < most ? most - silence : most);
	}
	return next;
}

static size_t watch(struct link_run *run)
{
	size_t open = 0;

	for (size_t g = 0; g < run->group_count; g++) {
		struct node_calls *group = &run->groups[g];
		int is_polled = is_open(group);
		open += (size_t)is_polled;
		run->polled[g] = (struct pollfd){.fd = is_polled ? group->wire->context->fd : -1, .events = POLLIN};
		if (is_polled && !ww_redis_wire_is_sent(group->wire))
			run->polled[g].events |= POLLOUT;
	}
	return open;
}

/* Wait for replies until a time. */
static int wait(struct link_run *run, uint64_t until)
{
	int left = time_left_ms(until);
	int is_first = !run->is_slow && run->link->config.slow && left > SLOW_MS;
	int ready = poll(run->polled, run->group_count, is_first ? SLOW_MS : left);

	if (ready != 0 || !is_first)
		return ready;
	slow(run);
	return poll(run->polled, run->group_count, time_left_ms(until));
}

/* Send the rest and take all replies, from all groups side by side, until each has its replies or an error. */
static void exchange(struct link_run *run)
{
	uint64_t next = run->is_soon ? give_up(run) : run->deadline;

	for (;;) {
		int ready;
		if (watch(run) == 0)
			return;
		ready = wait(run, run->is_soon ? next : run->deadline);
		/* A reply that came in time counts, even if this thread looks late. */
		if (ready == 0 && time_left_ms(run->deadline) == 0) {
			for (size_t g = 0; g < run->group_count; g++)
				if (is_open(&run->groups[g]))
					fall_silent(&run->groups[g], 0);
			return;
		}
		for (size_t g = 0; g < run->group_count && ready > 0; g++) {
			if (run->polled[g].fd >= 0 && run->polled[g].revents)
				step(run, &run->groups[g], run->polled[g].revents);
		}
		if (run->is_soon)
			next = give_up(run);
	}
}

/* ---- Judging */

static void refuse(struct link_run *run, size_t i, const struct redis_node *node, int error)
{
	const struct redis_call *call = &run->calls[i];

	if (error == WW_EDENIED && strncmp(call->reply->str, "READONLY ", 9) == 0)
		ww_redis_link_complain(
		    run->link, "Redis at %s is a replica: give the address of the primary.", node->place);
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
	} else if (meaning == REDIS_IS_LATER &&
	           !ww_redis_aside_later(run->link, group->node, errand->slot, call->flags, call->reply->str)) {
		end(run, i, WW_EAGAIN);
	} else if (meaning == REDIS_IS_LATER || meaning == REDIS_IS_UNKNOWN) {
		run->is_later = 1;
	} else if (meaning == REDIS_IS_ANSWER) {
		ww_redis_aside_serves(run->link, group->node, errand->slot, call->flags);
		call->is_sent = run->link->config.replicas && call->flags & REDIS_CALL_SAFE && !group->is_safe;
		end(run, i, call->is_sent ? WW_ETIMEOUT : WW_OK);
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
	run->calls[i].is_sent |= !is_untouched;
	errand->is_asking = 0;
	errand->is_loading = 0;
	errand->node = NULL;
	if (group->error == WW_EIO && !group->is_silent && may_repeat && (group->wire || run->link->slots) &&
	    errand->breaks++ < BREAKS)
		return;
	end(run, i, group->error);
}

static void judge_group(struct link_run *run, struct node_calls *group)
{
	void (*take)(struct link_run *, struct node_calls *, size_t) = judge;
	size_t next;

	for (size_t i = group->first; i != REDIS_NO_CALL; i = next) {
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
	if (group->is_suspect) {
		ww_redis_aside_silent(run->link, group->node);
		ww_redis_node_close(run->link, group->wire);
		return;
	}
	if (group->error == WW_ECORRUPT)
		ww_redis_link_complain(
		    run->link, "What Redis at %s answers cannot be read: %s.", group->node->place, group->wire->why);
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
	slow(run);
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
	run->is_later = 0;
	run->is_soon = 0;
	group_calls(run);
	for (size_t g = 0; g < run->group_count; g++)
		run->is_soon |= run->groups[g].is_soon && run->groups[g].is_harmless;
	/* The nodes that are connected do not wait for those that are not. */
	for (int wave = 0; wave < 2; wave++)
		if (prepare(run, wave))
			exchange(run);
	for (size_t g = 0; g < run->group_count; g++) {
		judge_group(run, &run->groups[g]);
		release(run, &run->groups[g]);
	}
	run->round++;
	if (run->left > 0)
		slow(run);
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
