/*
 * A run: rounds until each call is answered or lost.
 *
 * A round puts each call that is left into the group of its node, takes a connection a group in the order of the nodes,
 * sends all, reads all, and gives the connections back. Then each reply is judged: the call ends, or goes into the next
 * round, perhaps to another node, after a SCRIPT LOAD or an ASKING, or after a pause.
 */
#include <string.h>

#include "lib/redis/link/run.h"

enum { ROUNDS = 24, BREAKS = 2 };
#define PAUSE UINT64_C(2000000)
#define PAUSE_MAX UINT64_C(100000000)

static void end(struct run *run, size_t i, int error)
{
	run->errands[i].is_done = 1;
	run->calls[i].error = error;
	run->left--;
	if (error && run->calls[i].reply) {
		ww_redis_reply_free(run->calls[i].reply);
		run->calls[i].reply = NULL;
	}
}

/* ---- Grouping */

/* Groups lie in the order of the nodes' indices. */
static struct group *group_of(struct run *run, struct redis_node *node)
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
	run->groups[low] = (struct group){.node = node, .head = REDIS_NO_CALL, .tail = REDIS_NO_CALL};
	run->group_count++;
	return &run->groups[low];
}

static void group_calls(struct run *run)
{
	run->group_count = 0;
	for (size_t i = 0; i < run->count; i++) {
		struct errand *errand = &run->errands[i];
		struct redis_node *node = errand->node;
		struct group *group;
		if (errand->is_done)
			continue;
		if (!node)
			node = ww_redis_cluster_route(run->link, run->calls[i].key);
		group = node ? group_of(run, node) : NULL;
		if (!group) {
			/* Nobody has the slot, or more nodes than there were: in the next round. */
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

static int append_script(struct run *run, struct group *group, size_t i)
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

/* The first of the group that has this script loads it for all. */
static int is_loaded(const struct run *run, const struct group *group, size_t i)
{
	for (size_t other = group->head; other != i; other = run->errands[other].next) {
		if (run->errands[other].is_loading && run->calls[other].script == run->calls[i].script)
			return 1;
	}
	return 0;
}

static int append_before(struct run *run, struct group *group, size_t i)
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

static int append_call(struct run *run, struct group *group, size_t i)
{
	const struct redis_call *call = &run->calls[i];
	int error = append_before(run, group, i);

	if (error)
		return error;
	if (call->script)
		return append_script(run, group, i);
	return ww_redis_wire_append(group->wire, call->argc, call->argv, call->lengths);
}

/* Take the connections and send what goes over each. */
static void prepare(struct run *run)
{
	for (size_t g = 0; g < run->group_count; g++) {
		struct group *group = &run->groups[g];
		group->error = ww_redis_node_take(run->link, group->node, run->deadline, &group->wire);
		if (group->error) {
			group->wire = NULL;
			continue;
		}
		for (size_t i = group->head; i != REDIS_NO_CALL && !group->error; i = run->errands[i].next)
			group->error = append_call(run, group, i);
		/* This node is at work while the next is perhaps connected to. */
		if (!group->error)
			group->error = ww_redis_wire_send(group->wire);
	}
}

/* ---- Judging */

static void refuse(struct run *run, size_t i, const struct redis_node *node, int error)
{
	const struct redis_call *call = &run->calls[i];
	char text[200];
	char place[REDIS_PLACE_MAX];

	ww_redis_node_place(node, place);
	ww_redis_error_copy(text, sizeof text, call->reply->str, call->reply->len);
	if (error == WW_EDENIED && strncmp(text, "READONLY ", 9) == 0)
		ww_redis_link_complain(run->link, "Redis at %s is a replica: give the address of the primary.", place);
	else if (error == WW_EDENIED || error == WW_ECORRUPT)
		ww_redis_link_complain(run->link, "Redis at %s answers %s: %s", place,
		    call->script ? call->script->name : call->argv[0], text);
	end(run, i, error);
}

static void move(struct run *run, size_t i, const struct group *group, int is_asking)
{
	struct errand *errand = &run->errands[i];

	run->redirections++;
	errand->node = ww_redis_cluster_follow(run->link, group->node, run->calls[i].reply->str);
	if (!errand->node) {
		refuse(run, i, group->node, WW_ECORRUPT);
		return;
	}
	errand->is_asking = (uint8_t)(is_asking && errand->node);
	/* Two that each name the other are asked more slowly. */
	run->is_later |= run->round > 4;
}

/* A reply is there: end the call, or leave it for the next round. */
static void judge(struct run *run, struct group *group, size_t i)
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
	if (!errand->is_done) {
		ww_redis_reply_free(call->reply);
		call->reply = NULL;
	}
}

/* There is no reply. */
static void lose(struct run *run, struct group *group, size_t i)
{
	struct errand *errand = &run->errands[i];
	int is_untouched = !group->wire || !group->wire->has_sent;
	int may_repeat = is_untouched || run->calls[i].flags & REDIS_CALL_AGAIN;

	if (run->calls[i].reply) {
		ww_redis_reply_free(run->calls[i].reply);
		run->calls[i].reply = NULL;
	}
	errand->is_asking = 0;
	errand->is_loading = 0;
	errand->node = NULL;
	/* A server that is not there is asked again only if another may have taken its place. */
	if (group->error == WW_EIO && !group->is_silent && may_repeat && (group->wire || run->link->slots) &&
	    errand->breaks++ < BREAKS)
		return;
	end(run, i, group->error);
}

static void judge_group(struct run *run, struct group *group, size_t first)
{
	size_t i = first;

	while (i != REDIS_NO_CALL) {
		size_t next = run->errands[i].next;
		int is_answered = group->head == REDIS_NO_CALL;
		/* head is the first that has none. */
		if (!is_answered && i == group->head)
			break;
		judge(run, group, i);
		i = next;
	}
	while (i != REDIS_NO_CALL) {
		size_t next = run->errands[i].next;
		lose(run, group, i);
		i = next;
	}
}

static void release(struct run *run, struct group *group)
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

static void rest(struct run *run)
{
	uint64_t pause = PAUSE << (run->round < 10 ? run->round : 10);
	struct timespec time;

	pause = pause > PAUSE_MAX ? PAUSE_MAX : pause;
	time = (struct timespec){.tv_nsec = (long)pause};
	if (redis_now() + pause < run->deadline) {
		(void)nanosleep(&time, NULL);
		return;
	}
	for (size_t i = 0; i < run->count; i++) {
		if (!run->errands[i].is_done)
			end(run, i, WW_EAGAIN);
	}
}

static void one_round(struct run *run)
{
	size_t *firsts = run->lengths; /* not in use while replies are judged */

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

/* Begin with nothing answered. Calls that cannot be made end here. */
static void begin(struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		run->errands[i] = (struct errand){.next = REDIS_NO_CALL};
		run->calls[i].reply = NULL;
		run->calls[i].error = WW_OK;
		if (!is_valid(&run->calls[i]))
			end(run, i, WW_EINVAL);
	}
}

static void note(struct run *run)
{
	struct redis_link *link = run->link;

	pthread_mutex_lock(&link->lock);
	link->stats.commands += run->commands;
	link->stats.round_trips += run->round;
	link->stats.redirections += run->redirections;
	link->stats.loads += run->loads;
	pthread_mutex_unlock(&link->lock);
}

static int do_run(struct run *run)
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

/* Of these, few suffice for most runs. */
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

	/* A cluster may name more nodes while the run is under way. */
	pthread_mutex_lock(&link->lock);
	room = link->count + 8;
	pthread_mutex_unlock(&link->lock);
	return count < room ? count : room;
}

static int run_many(struct run *run)
{
	struct redis_link *link = run->link;
	size_t words = run->words > run->group_room ? run->words : run->group_room;
	int error = WW_ENOMEM;

	run->errands = ww_redis_link_take(link, run->count * sizeof *run->errands);
	run->groups = ww_redis_link_take(link, run->group_room * sizeof *run->groups);
	run->polled = ww_redis_link_take(link, run->group_room * sizeof *run->polled);
	run->argv = ww_redis_link_take(link, words * sizeof *run->argv);
	run->lengths = ww_redis_link_take(link, words * sizeof *run->lengths);
	if (run->errands && run->groups && run->polled && run->argv && run->lengths)
		error = do_run(run);
	else
		for (size_t i = 0; i < run->count; i++) {
			run->calls[i].reply = NULL;
			run->calls[i].error = WW_ENOMEM;
		}
	ww_redis_link_give(link, run->lengths, words * sizeof *run->lengths);
	ww_redis_link_give(link, run->argv, words * sizeof *run->argv);
	ww_redis_link_give(link, run->polled, run->group_room * sizeof *run->polled);
	ww_redis_link_give(link, run->groups, run->group_room * sizeof *run->groups);
	ww_redis_link_give(link, run->errands, run->count * sizeof *run->errands);
	return error;
}

int ww_redis_link_run(struct redis_link *link, struct redis_call *calls, size_t count)
{
	struct errand errands[FEW];
	struct group groups[FEW];
	struct pollfd polled[FEW];
	const char *argv[FEW_WORDS];
	size_t lengths[FEW_WORDS];
	struct run run = {.link = link, .calls = calls, .count = count, .left = count};

	if (count == 0)
		return WW_OK;
	run.deadline = redis_now() + link->config.timeout;
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
