/* What a node reports: states, the log, and its numbers. See node_internal.h. */
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-expirer/node/node_internal.h"

/* A smaller step of Redis's clock is slewing, and not worth a report. */
enum { STEP_MS = 50 };

const char *node_state(const struct expirer_node *node, const char *state)
{
	static _Thread_local char key[STATE_KEY_MAX];

	if (node->address.port)
		(void)snprintf(key, sizeof key, "%s %.40s:%u", state, node->address.host, node->address.port);
	else
		(void)snprintf(key, sizeof key, "%s %.40s", state, node->address.host);
	return key;
}

/* A state is logged when it begins. The reason why Redis stays away may change, for example to a changed password. */
void node_log_lost(struct expirer_node *node, const char *why)
{
	if (*node->lost && strcmp(node->lost, why) != 0)
		message_warning("Redis at %s is still lost: %s.", node->place, why);
	(void)snprintf(node->lost, sizeof node->lost, "%s", why);
	state_begin(node_state(node, "redis"), STATE_STOPS_READING,
	    "Redis at %s is lost: %s. Until it is back, nobody asks for its keys at their deadlines.", node->place,
	    why);
}

void node_end_states(const struct expirer_node *node, int is_left)
{
	if (is_left)
		state_end(node_state(node, "redis"), "Redis at %s is left: it is asked no more.", node->place);
	state_end(node_state(node, "silent"), "Redis at %s is left.", node->place);
	state_end(node_state(node, "behind"), "Redis at %s is left.", node->place);
	state_end(node_state(node, "down"), "Redis at %s is left.", node->place);
	state_end(node_state(node, "window"), "Redis at %s is left.", node->place);
}

void node_log_exact(struct expirer_node *node)
{
	if (!node->is_awaited || !node->keeper.is_exact || node->keeper.is_down)
		return;
	node->is_awaited = 0;
	message_info("Exact from now on at %s: %zu keys have a deadline, found in %.1f s.", node->place,
	    deadlines_count(node->keeper.deadlines), (double)(now_ns() - node->began) / 1e9);
}

void node_log_down(struct expirer_node *node)
{
	if (node->is_down == node->keeper.is_down)
		return;
	node->is_down = node->keeper.is_down;
	if (node->is_down)
		state_begin(node_state(node, "down"), STATE_STOPS_READING,
		    "The cluster is down at %s: most masters, or the master of some slots, are away. Keys that end meanwhile "
		    "are asked for when it serves again.",
		    node->place);
	else
		state_end(node_state(node, "down"), "The cluster serves again at %s.", node->place);
}

void node_log_outrun(const struct expirer_node *node)
{
	if (node->keeper.is_outrun)
		state_begin(node_state(node, "window"), STATE_STOPS_READING,
		    "It takes longer than half of --window to go through the keys at %s: some may end late. Give a "
		    "longer window.",
		    node->place);
	else
		state_end(node_state(node, "window"), "The keys at %s are gone through in time again.", node->place);
}

void node_log_step(struct expirer_node *node)
{
	int64_t step = node->keeper.step_ns;

	node->keeper.step_ns = 0;
	if (step > STEP_MS * (int64_t)MS || step < -STEP_MS * (int64_t)MS)
		message_warning("The clock of Redis at %s was stepped by %+.3f s. It is followed.", node->place,
		    (double)step / 1e9);
}

void node_show(struct expirer_node *node)
{
	const struct waiting *waiting = &node->keeper.waiting;

	pthread_mutex_lock(&node->lock);
	keeper_read_stats(&node->keeper, &node->shown.keeper);
	node->shown.keeper.is_exact &= !node->is_behind && !node->keeper.is_down;
	node->shown.has_reason = node->is_behind || node->keeper.is_down || node->keeper.is_outrun;
	node->shown.is_connected = node->talk.line != NULL;
	strcpy(node->shown.place, node->place);
	node->shown.waiting = waiting->added - waiting->dropped;
	node->shown.waiting_bytes = waiting->end - waiting->head;
	pthread_mutex_unlock(&node->lock);
}

void node_read_numbers(struct expirer_node *node, struct node_numbers *numbers)
{
	pthread_mutex_lock(&node->lock);
	*numbers = node->shown;
	pthread_mutex_unlock(&node->lock);
}

/* ---- A walk */

struct key_walk {
	const struct deadlines *deadlines;
	node_fn *fn;
	void *context;
};

static void walk_one(void *context, uint32_t index)
{
	const struct key_walk *walk = context;
	uint64_t now = deadlines_now(walk->deadlines);
	struct known_key known;
	size_t length;
	const char *key = deadlines_key(walk->deadlines, index, &length);

	deadlines_look(walk->deadlines, index, &known);
	if (!known.is_guess)
		walk->fn(walk->context, key, length, known.at > now ? known.at - now : 0);
}

/* The ms that Redis's clock has reached. While Redis is silent, the wheel waits for it. */
static uint64_t reached_ms(const struct expirer_node *node)
{
	uint64_t wheel = deadlines_now(node->keeper.deadlines);
	int64_t ms = node->keeper.estimate.count ? estimate_reached(&node->keeper.estimate, now_ns()) / (int64_t)MS : 0;

	return ms > 0 && (uint64_t)ms > wheel ? (uint64_t)ms : wheel;
}

/* A deadline is the ms before the key is due. */
static void describe(const struct expirer_node *node, const struct known_key *known, struct node_key *found)
{
	uint64_t now = reached_ms(node);

	*found = (struct node_key){.deadline = (int64_t)known->at - 1,
	    .left_ms = known->at > now ? known->at - now : 0,
	    .is_sure = known->is_sure && !node->keeper.by_events,
	    .is_asked = known->is_idle || known->at <= now,
	    .is_guess = known->is_guess};
	strcpy(found->place, node->place);
}

int node_find(struct expirer_node *node, const char *key, size_t length, struct node_key *found)
{
	struct known_key known;
	int is_known;

	pthread_mutex_lock(&node->busy);
	is_known = deadlines_find(node->keeper.deadlines, key, length, &known);
	if (is_known)
		describe(node, &known, found);
	pthread_mutex_lock(&node->lock);
	if (is_known && !node->shown.is_connected)
		found->is_sure = 0;
	pthread_mutex_unlock(&node->lock);
	pthread_mutex_unlock(&node->busy);
	return is_known;
}

int node_walk(struct expirer_node *node, uint32_t *from, node_fn *fn, void *context)
{
	struct key_walk walk = {.deadlines = node->keeper.deadlines, .fn = fn, .context = context};
	int is_more;

	pthread_mutex_lock(&node->busy);
	is_more = deadlines_walk(walk.deadlines, from, walk_one, &walk);
	pthread_mutex_unlock(&node->busy);
	return is_more;
}
