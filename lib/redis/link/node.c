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
	memcpy(node->address.host, host, length);
	if (port == 0)
		memcpy(node->place, host, length);
	else
		(void)snprintf(node->place, sizeof node->place, memchr(host, ':', length) ? "[%s]:%u" : "%s:%u",
		    node->address.host, port);
	link->nodes[link->count++] = node;
	return node;
}

/* ---- Backing off */

/* Between half the pause and all of it: processes that lost a server together do not come back together. */
uint64_t ww_redis_node_pause_locked(struct redis_link *link, unsigned failures)
{
	uint64_t pause = failures > 16 ? UINT64_MAX : BACKOFF << (failures - 1);

	if (pause > link->config.backoff_max)
		pause = link->config.backoff_max;
	return pause - random_below(&link->random, pause / 2 + 1);
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

static void say_lost(struct redis_link *link, const struct redis_node *node, int error, const char *why)
{
	size_t length = strlen(why);
	/* Some sentences of Redis already have their full stop. */
	const char *end = length > 0 && strchr(".?", why[length - 1]) ? "" : ".";

	if (error == WW_EDENIED || error == WW_EINVAL)
		ww_redis_link_say(link, "Redis at %s refuses: %s%s", node->place, why, end);
	else
		ww_redis_link_say(link, "Redis at %s cannot be reached: %s%s", node->place, why, end);
}

/* The attempt failed, or the node fell silent. */
static void note_failure(struct redis_link *link, struct redis_node *node, int error, const char *why)
{
	int was_lost;

	pthread_mutex_lock(&link->lock);
	node->failures++;
	node->error = error;
	node->retry_at = ww_redis_link_now(link) + ww_redis_node_pause_locked(link, node->failures);
	was_lost = node->is_lost;
	node->is_lost = 1;
	link->is_stale = 1;
	pthread_mutex_unlock(&link->lock);
	if (!was_lost)
		say_lost(link, node, error, why);
}

static void note_success(struct redis_link *link, struct redis_node *node)
{
	int was_lost;

	pthread_mutex_lock(&link->lock);
	was_lost = node->is_lost;
	node->is_lost = 0;
	node->failures = 0;
	pthread_mutex_unlock(&link->lock);
	if (was_lost)
		ww_redis_link_say(link, "Redis at %s is back.", node->place);
}

/* ---- Connecting */

/* A command that a new connection begins with, and the error when Redis refuses it. */
struct hello {
	size_t argc;
	const char *argv[3];
	int refusal; /* 0: forbidding it is harmless */
};

/* Whether the reply to a hello leaves a usable connection. */
static int judge_hello(struct redis_wire *wire, const struct redisReply *reply, int refusal)
{
	int error;

	if (reply->type != REDIS_REPLY_ERROR && reply->type != REDIS_REPLY_STATUS) {
		(void)snprintf(wire->why, sizeof wire->why, "it answers otherwise than Redis does");
		return WW_ECORRUPT;
	}
	/* A server that is not ready is one all the same, and so is one that forbids PING. */
	if (ww_redis_error_meaning(reply, &error) == REDIS_IS_LATER && strncmp(reply->str, "ERR ", 4) != 0)
		return WW_OK;
	if (!refusal && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM ", 7) == 0)
		return WW_OK;
	ww_redis_error_copy(wire->why, sizeof wire->why, reply);
	return error == WW_ECORRUPT && refusal ? refusal : error;
}

static int greet(struct redis_link *link, struct redis_wire *wire, uint64_t deadline)
{
	const struct redis_url *url = &link->url;
	struct hello hellos[3];
	struct redisReply *reply;
	char db[16];
	int count = 0;
	int error = WW_OK;

	(void)snprintf(db, sizeof db, "%u", url->db);
	if (url->has_password && url->user[0])
		hellos[count++] = (struct hello){3, {"AUTH", url->user, url->password}, WW_EDENIED};
	else if (url->has_password)
		hellos[count++] = (struct hello){2, {"AUTH", url->password}, WW_EDENIED};
	if (url->db > 0)
		hellos[count++] = (struct hello){2, {"SELECT", db}, WW_EINVAL};
	hellos[count++] = (struct hello){1, {"PING"}, WW_OK};
	for (int i = 0; i < count && !error; i++)
		error = ww_redis_wire_append(wire, hellos[i].argc, hellos[i].argv, NULL);
	for (int i = 0; i < count && !error; i++) {
		error = ww_redis_wire_wait(wire, deadline, &reply);
		if (error)
			break;
		error = judge_hello(wire, reply, hellos[i].refusal);
		ww_redis_reply_free(reply);
	}
	return error;
}

int ww_redis_node_connect(struct redis_link *link, struct redis_node *node, uint64_t deadline, struct redis_wire **wire)
{
	struct redis_budget budget = {.allocator = link->allocator, .max = link->config.reply_max};
	uint64_t now = time_now(CLOCK_MONOTONIC);
	char why[160];
	int error;

	/* Half of the time: a run that needs other nodes, too, has the rest for them. */
	if (now < deadline)
		deadline = now + (deadline - now) / 2;
	error = ww_redis_wire_connect(wire, &node->address, &budget, deadline, why, sizeof why);
	if (!error) {
		error = greet(link, *wire, deadline);
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
	pthread_mutex_unlock(&link->lock);
	if (error)
		note_failure(link, node, error, why);
	else
		note_success(link, node);
	return error;
}

/* ---- The pool */

/* Gives an idle connection, or the right to make one (WW_OK and NULL), or the error of the last attempt. */
static int take_locked(struct redis_link *link, struct redis_node *node, uint64_t deadline, struct redis_wire **wire)
{
	for (;;) {
		uint64_t now = ww_redis_link_now(link);
		*wire = node->idle;
		if (*wire) {
			node->idle = (*wire)->next;
			(*wire)->next = NULL;
			return WW_OK;
		}
		if (node->failures && now < node->retry_at)
			return node->error;
		if (node->open < link->config.connections)
			break;
		if (time_left_ms(deadline) == 0)
			return WW_EAGAIN;
		(void)time_wait(&link->freed, &link->lock, deadline);
	}
	/* One attempt at a time. */
	if (node->failures)
		node->retry_at = ww_redis_link_now(link) + ww_redis_node_pause_locked(link, node->failures);
	node->open++;
	link->stats.open++;
	return WW_OK;
}

int ww_redis_node_take(struct redis_link *link, struct redis_node *node, uint64_t deadline, struct redis_wire **wire)
{
	int error;

	for (;;) {
		pthread_mutex_lock(&link->lock);
		error = take_locked(link, node, deadline, wire);
		pthread_mutex_unlock(&link->lock);
		if (error)
			return error;
		if (!*wire)
			break;
		(*wire)->has_sent = 0;
		if (ww_redis_wire_is_quiet(*wire))
			return WW_OK;
		close_wires(link, *wire);
	}
	error = ww_redis_node_connect(link, node, deadline, wire);
	if (!error) {
		(*wire)->node = node;
		(*wire)->has_sent = 0;
		return WW_OK;
	}
	pthread_mutex_lock(&link->lock);
	node->open--;
	link->stats.open--;
	pthread_cond_broadcast(&link->freed);
	pthread_mutex_unlock(&link->lock);
	return error;
}

void ww_redis_node_give(struct redis_link *link, struct redis_wire *wire)
{
	struct redis_node *node = wire->node;

	pthread_mutex_lock(&link->lock);
	wire->next = node->idle;
	node->idle = wire;
	pthread_cond_broadcast(&link->freed);
	pthread_mutex_unlock(&link->lock);
}

void ww_redis_node_drop(struct redis_link *link, struct redis_wire *wire, int is_failure, int error)
{
	struct redis_node *node = wire->node;

	if (is_failure)
		note_failure(link, node, error, wire->why);
	pthread_mutex_lock(&link->lock);
	link->stats.failures++;
	link->is_stale = 1;
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
