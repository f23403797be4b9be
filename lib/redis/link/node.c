/* The nodes of a link: their pools of connections, and backing off from a lost one (see link_internal.h). */
#include <stdio.h>
#include <string.h>

#include "lib/base/random.h"
#include "lib/redis/link/link_internal.h"

/* ns of the first pause. */
#define BACKOFF UINT64_C(50000000)

/* ---- The table of nodes */

static int grow(struct redis_link *link)
{
	uint32_t room = link->room ? 2 * link->room : 8;
	struct redis_node **nodes;

	if (link->count < link->room)
		return WW_OK;
	if (link->count >= REDIS_NODES_MAX)
		return WW_ENOMEM;
	nodes = memory_take(link->allocator, room * sizeof *nodes);
	if (!nodes)
		return WW_ENOMEM;
	if (link->count > 0)
		memcpy(nodes, link->nodes, link->count * sizeof *nodes);
	memory_give(link->allocator, link->nodes, link->room * sizeof *nodes);
	link->nodes = nodes;
	link->room = room;
	return WW_OK;
}

struct redis_node *ww_redis_node_find_locked(struct redis_link *link, const char *host, size_t length, unsigned port)
{
	struct redis_node *node;

	if (length == 0 || length > REDIS_HOST_MAX)
		return NULL;
	for (uint32_t i = 0; i < link->count; i++) {
		node = link->nodes[i];
		if (node->address.port == port && strlen(node->address.host) == length &&
		    memcmp(node->address.host, host, length) == 0)
			return node;
	}
	if (grow(link))
		return NULL;
	node = memory_take(link->allocator, sizeof *node);
	if (!node)
		return NULL;
	*node = (struct redis_node){.index = link->count, .address.port = port};
	TAILQ_INIT(&node->busy);
	memcpy(node->address.host, host, length);
	ww_redis_address_write(&node->address, node->place);
	link->nodes[link->count++] = node;
	return node;
}

/* ---- Backing off */

uint64_t ww_redis_node_pause_locked(struct redis_link *link, unsigned failures)
{
	return ww_redis_aside_pause_locked(link, BACKOFF, link->config.backoff_max, failures);
}

/* Close a list of connections of one node, and take them out of its count. */
static void close_wires(struct redis_link *link, struct redis_wire *wires)
{
	unsigned count = 0;
	struct redis_node *node = wires ? wires->node : NULL;

	while (wires) {
		struct redis_wire *next = wires->next;
		ww_redis_wire_close(wires);
		wires = next;
		count++;
	}
	if (!node)
		return;
	pthread_mutex_lock(&link->lock);
	node->open -= count;
	link->stats.open -= count;
	pthread_cond_broadcast(&link->freed);
	pthread_mutex_unlock(&link->lock);
}

static void log_lost(struct redis_link *link, const struct redis_node *node, int error, const char *why)
{
	size_t length = strlen(why);
	/* Some sentences of Redis already have their full stop. */
	const char *end = length > 0 && strchr(".?", why[length - 1]) ? "" : ".";

	if (error == WW_EDENIED || error == WW_EINVAL)
		ww_redis_link_log(link, "Redis at %s refuses: %s%s", node->place, why, end);
	else
		ww_redis_link_log(link, "Redis at %s cannot be reached: %s%s", node->place, why, end);
}

/* The attempt failed, or the node fell silent. */
static void note_failure(struct redis_link *link, struct redis_node *node, int error, const char *why)
{
	int was_lost;

	pthread_mutex_lock(&link->lock);
	if (!node->failures++) {
		node->lost = ww_redis_link_now(link);
		node->lost_calls = 0;
	}
	(void)snprintf(node->why, sizeof node->why, "%s", why);
	node->error = error;
	node->retry_at = ww_redis_link_now(link) + ww_redis_node_pause_locked(link, node->failures);
	was_lost = node->is_lost;
	node->is_lost = 1;
	link->is_stale = 1;
	pthread_mutex_unlock(&link->lock);
	if (was_lost)
		return;
	log_lost(link, node, error, why);
	if (link->config.aside)
		link->config.aside(link->config.aside_context);
}

/*
 * The node took a connection, or answered. What began before it was lost (by the link's clock) says nothing of it now:
 * it may have died meanwhile.
 */
static void note_success(struct redis_link *link, struct redis_node *node, uint64_t began)
{
	uint64_t away, refused;
	int is_back;

	pthread_mutex_lock(&link->lock);
	is_back = node->is_lost && began >= node->lost;
	if (is_back)
		node->is_lost = 0, node->failures = 0;
	away = ww_redis_link_now(link) - node->lost;
	refused = node->lost_calls;
	pthread_mutex_unlock(&link->lock);
	if (is_back)
		ww_redis_link_log(link, "Redis at %s is back after %.1f s, in which %llu calls were refused.",
		    node->place, (double)away / 1e9, (unsigned long long)refused);
}

/* ---- Connecting */

/*
 * Half of the time: a run that needs other nodes, too, has the rest for them. A node that was reached before, while
 * others serve, has less: a frozen server takes connections, but never answers.
 */
static uint64_t limit(struct redis_link *link, const struct redis_node *node, uint64_t now, uint64_t deadline)
{
	uint64_t most = now < deadline ? (deadline - now) / 2 : 0;
	uint64_t soon;

	pthread_mutex_lock(&link->lock);
	soon = 4 * node->reach > 2 * redis_silence(link) ? 4 * node->reach : 2 * redis_silence(link);
	/* After many failures the machines may be slow rather than the node frozen. */
	if (node->failures)
		soon = (4 * node->reach > redis_silence(link) ? 4 * node->reach : redis_silence(link))
		       << (node->failures < 8 ? node->failures / 4 : 2);
	if (node->reach && soon < most && ww_redis_aside_others_serve_locked(link, node))
		most = soon;
	pthread_mutex_unlock(&link->lock);
	return now + most;
}

int ww_redis_node_connect(struct redis_link *link, struct redis_node *node, uint64_t deadline, struct redis_wire **wire)
{
	struct redis_budget budget = {.allocator = link->allocator, .max = link->config.reply_max};
	uint64_t now = time_now(CLOCK_MONOTONIC);
	uint64_t began = ww_redis_link_now(link);
	char why[160];
	int error;

	deadline = limit(link, node, now, deadline);
	error = ww_redis_wire_connect(wire, &node->address, &budget, link->tls, deadline, why, sizeof why);
	if (!error) {
		error = ww_redis_greet(&link->url, *wire, deadline);
		if (error) {
			memcpy(why, (*wire)->why, sizeof why);
			ww_redis_wire_close(*wire);
		}
	}
	if (error == WW_ENOMEM)
		return error;
	pthread_mutex_lock(&link->lock);
	link->stats.connections += !error;
	link->stats.failures += error != WW_OK;
	if (!error)
		node->reach = time_now(CLOCK_MONOTONIC) - now;
	pthread_mutex_unlock(&link->lock);
	if (error)
		note_failure(link, node, error, why);
	else
		note_success(link, node, began);
	return error;
}

/* ---- The pool */

static void use_locked(struct redis_node *node, struct redis_wire *wire, uint64_t now)
{
	wire->next = NULL;
	wire->taken = now;
	wire->has_sent = 0;
	atomic_store_explicit(&wire->asked, time_now(CLOCK_MONOTONIC), memory_order_relaxed);
	TAILQ_INSERT_TAIL(&node->busy, wire, busy);
	node->busy_count++;
}

static void unuse_locked(struct redis_node *node, struct redis_wire *wire)
{
	TAILQ_REMOVE(&node->busy, wire, busy);
	node->busy_count--;
}

/*
 * Whether a node that owes replies has been silent for so long that it gets no more calls while others serve: callers
 * would be caught with it, one after the other. Returns 1; 0: it is not; -1: soon, and a quarter of its connections
 * have callers already: *until becomes the time when it is.
 */
static int is_silent_locked(struct redis_link *link, const struct redis_node *node, uint64_t *until)
{
	uint64_t most = redis_silence(link);
	uint64_t silence = ww_redis_aside_silence_locked(node);
	unsigned crowd = link->config.connections / 4 > 2 ? link->config.connections / 4 : 2;

	if (silence < most / 4 || !ww_redis_aside_others_serve_locked(link, node))
		return 0;
	if (silence >= most)
		return 1;
	*until = time_now(CLOCK_MONOTONIC) + most - silence;
	return node->busy_count >= crowd ? -1 : 0;
}

/* Gives an idle connection, or the right to make one (WW_OK and NULL), or the error of the last attempt. */
static int take_locked(struct redis_link *link, struct redis_node *node, uint64_t deadline, unsigned how,
    struct redis_wire **wire, int *is_silent)
{
	for (;;) {
		uint64_t now = ww_redis_link_now(link);
		uint64_t until = deadline;
		int silent = is_silent_locked(link, node, &until);
		*wire = NULL;
		*is_silent = silent > 0;
		if (silent > 0 || (silent < 0 && how & REDIS_TAKE_SOON))
			return WW_EAGAIN;
		*wire = silent ? NULL : node->idle;
		if (*wire) {
			node->idle = (*wire)->next;
			use_locked(node, *wire, now);
			return WW_OK;
		}
		if (how & REDIS_TAKE_IDLE)
			return WW_OK;
		if (node->failures && now < node->retry_at) {
			node->lost_calls++;
			return node->error;
		}
		if (!silent && node->open < link->config.connections)
			break;
		if (time_left_ms(deadline) == 0)
			return WW_EAGAIN;
		if (until == deadline && ww_redis_aside_others_serve_locked(link, node)) {
			uint64_t soon = time_now(CLOCK_MONOTONIC) + redis_silence(link);
			until = soon < deadline ? soon : deadline;
		}
		(void)time_wait(&link->freed, &link->lock, until < deadline ? until : deadline);
	}
	/* One attempt at a time. */
	if (node->failures)
		node->retry_at = ww_redis_link_now(link) + ww_redis_node_pause_locked(link, node->failures);
	node->open++;
	link->stats.open++;
	return WW_OK;
}

int ww_redis_node_take(
    struct redis_link *link, struct redis_node *node, uint64_t deadline, unsigned how, struct redis_wire **wire)
{
	int is_silent;
	int error;

	for (;;) {
		pthread_mutex_lock(&link->lock);
		error = take_locked(link, node, deadline, how, wire, &is_silent);
		pthread_mutex_unlock(&link->lock);
		if (is_silent)
			ww_redis_aside_silent(link, node);
		if (error)
			return error;
		if (!*wire)
			break;
		if (ww_redis_wire_is_quiet(*wire))
			return WW_OK;
		ww_redis_node_close(link, *wire);
	}
	if (how & REDIS_TAKE_IDLE)
		return WW_OK;
	error = ww_redis_node_connect(link, node, deadline, wire);
	pthread_mutex_lock(&link->lock);
	if (error) {
		node->open--;
		link->stats.open--;
		pthread_cond_broadcast(&link->freed);
	} else {
		(*wire)->node = node;
		use_locked(node, *wire, ww_redis_link_now(link));
	}
	pthread_mutex_unlock(&link->lock);
	return error;
}

void ww_redis_node_give(struct redis_link *link, struct redis_wire *wire)
{
	struct redis_node *node = wire->node;
	uint64_t taken = wire->taken;
	int is_lost;

	pthread_mutex_lock(&link->lock);
	unuse_locked(node, wire);
	wire->next = node->idle;
	node->idle = wire;
	is_lost = node->is_lost;
	pthread_cond_broadcast(&link->freed);
	pthread_mutex_unlock(&link->lock);
	/* While there is an idle connection, no further attempt is made. */
	if (is_lost)
		note_success(link, node, taken);
}

void ww_redis_node_close(struct redis_link *link, struct redis_wire *wire)
{
	pthread_mutex_lock(&link->lock);
	unuse_locked(wire->node, wire);
	pthread_mutex_unlock(&link->lock);
	wire->next = NULL;
	close_wires(link, wire);
}

void ww_redis_node_drop(struct redis_link *link, struct redis_wire *wire, int is_failure, int error)
{
	struct redis_node *node = wire->node;

	if (is_failure)
		note_failure(link, node, error, wire->why);
	pthread_mutex_lock(&link->lock);
	link->stats.failures++;
	link->is_stale = 1;
	unuse_locked(node, wire);
	wire->next = node->idle;
	node->idle = NULL;
	pthread_mutex_unlock(&link->lock);
	close_wires(link, wire);
}

void ww_redis_node_close_all(struct redis_link *link)
{
	for (uint32_t i = 0; i < link->count; i++) {
		close_wires(link, link->nodes[i]->idle);
		memory_give(link->allocator, link->nodes[i], sizeof *link->nodes[i]);
	}
	memory_give(link->allocator, link->nodes, link->room * sizeof *link->nodes);
}
