/* A round's calls are sent, and its replies read: of all nodes side by side (steps 2 and 3 of run.c). */
#include <stdio.h>
#include <string.h>

#include "lib/redis/link/run.h"

/* Replies that come later are slow. */
enum { SLOW_MS = 1 };

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

/* Take a connection for each group that has none; those that must make one first have their turn in the second wave. */
static void connect_groups(struct link_run *run, int wave)
{
	for (size_t g = 0; g < run->group_count; g++) {
		struct node_calls *group = &run->groups[g];
		unsigned how = (wave ? 0 : REDIS_TAKE_IDLE) | (group->is_soon ? REDIS_TAKE_SOON : 0);
		if (group->wire || group->error)
			continue;
		if (wave)
			ww_redis_run_slow(run);
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
		ww_redis_link_report(link, group->node, "WAIT", reply);
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
 * Give up the groups for which others should not wait any longer. Returns when to look at the next one, by the
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
	ww_redis_run_slow(run);
	return poll(run->polled, run->group_count, time_left_ms(until));
}

/* Send the rest and take all replies, from all groups side by side, until each has its replies or an error. */
static void take_all(struct link_run *run)
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

void ww_redis_exchange(struct link_run *run, int wave)
{
	if (prepare(run, wave))
		take_all(run);
}
