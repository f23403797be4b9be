/*
 * Redis Cluster: which node has which slot.
 *
 * How the map stays true:
 *   1. Opening a link asks a seed for INFO; if it is a cluster, CLUSTER SLOTS gives the whole map.
 *   2. A call goes to the node of its key's slot.
 *   3. "MOVED slot host:port" says that the slot is elsewhere for good. The link corrects this slot at once, sends the
 *      call there, and marks the map stale, since more slots have probably moved.
 *   4. "ASK slot host:port" says that the slot is on its way. The call goes there once, after an ASKING, and the map
 *      stays as it is.
 *   5. A slot that no node has and a broken connection also make the map stale.
 *   6. The end of a round reads a stale map again, by one thread, from the first node that answers.
 */
#include <stdio.h>
#include <string.h>

#include "lib/redis/link/link_internal.h"

/* ns between two readings of the map. */
#define GAP UINT64_C(100000000)

/* ---- Slots */

/* The polynomial of XMODEM, x^16 + x^12 + x^5 + 1. */
static unsigned crc16(const char *bytes, size_t length)
{
	unsigned crc = 0;

	for (size_t i = 0; i < length; i++) {
		crc ^= (unsigned)(unsigned char)bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021U : 0U)) & 0xffff;
	}
	return crc;
}

unsigned ww_redis_link_slot(const char *key, size_t length)
{
	const char *open = memchr(key, '{', length);
	const char *close = open ? memchr(open + 1, '}', length - (size_t)(open + 1 - key)) : NULL;

	/* An empty tag is none. */
	if (close && close > open + 1)
		return crc16(open + 1, (size_t)(close - open) - 1) % REDIS_SLOTS;
	return crc16(key, length) % REDIS_SLOTS;
}

static int is_away(const struct redis_node *node)
{
	return node->failures > 0 || node->pause.count > 0 || node->is_doubted;
}

static struct redis_node *any_node_locked(struct redis_link *link)
{
	struct redis_node *found = NULL;

	for (uint32_t i = 0; i < link->count; i++) {
		struct redis_node *node = link->nodes[i];
		if (node->has_slots && (!found || (is_away(found) && !is_away(node))))
			found = node;
	}
	return found;
}

struct redis_node *ww_redis_cluster_route(struct redis_link *link, const char *key, int *slot)
{
	struct redis_node *node;

	*slot = link->slots && key ? (int)ww_redis_link_slot(key, strlen(key)) : -1;
	if (!link->slots)
		return link->nodes[0];
	pthread_mutex_lock(&link->lock);
	node = key ? link->slots[*slot] : any_node_locked(link);
	link->is_stale |= !node;
	pthread_mutex_unlock(&link->lock);
	return node;
}

/* ---- Redirections: "MOVED 3999 host:port" */

/* A node that a reply names. No host means that of the node that replied. */
static struct redis_node *named_node_locked(
    struct redis_link *link, const struct redis_node *from, const char *host, size_t length, unsigned port)
{
	if (length == 0) {
		host = from->address.port ? from->address.host : "127.0.0.1";
		length = strlen(host);
	}
	return ww_redis_node_find_locked(link, host, length, port);
}

struct redis_node *ww_redis_cluster_follow(struct redis_link *link, const struct redis_node *from, const char *text)
{
	const char *port_at = strrchr(text, ':');
	struct redis_node *node;
	const char *host;
	unsigned slot, port;

	if (!link->slots || !port_at || sscanf(port_at, ":%5u", &port) != 1 || port == 0 || port > 65535)
		return NULL;
	if (sscanf(text, "%*s %5u", &slot) != 1 || slot >= REDIS_SLOTS)
		return NULL;
	host = strchr(text, ' ') + 1;
	host = strchr(host, ' ');
	if (!host || host > port_at)
		return NULL;
	host++;
	pthread_mutex_lock(&link->lock);
	node = named_node_locked(link, from, host, (size_t)(port_at - host), port);
	if (node && text[0] == 'M') {
		link->slots[slot] = node;
		node->has_slots = 1;
		link->is_stale = 1;
	}
	pthread_mutex_unlock(&link->lock);
	return node;
}

/* ---- The map: CLUSTER SLOTS gives [[first, last, [host, port, ...], replicas...], ...] */

static int is_type(const struct redisReply *reply, int type, size_t elements)
{
	return reply && reply->type == type && reply->elements >= elements;
}

/* The primary of an entry; *node NULL: its address is unknown. */
static int node_of_locked(
    struct redis_link *link, const struct redis_node *from, const struct redisReply *entry, struct redis_node **node)
{
	const struct redisReply *place;
	const char *host;

	if (!is_type(entry, REDIS_REPLY_ARRAY, 3) || !is_type(entry->element[0], REDIS_REPLY_INTEGER, 0) ||
	    !is_type(entry->element[1], REDIS_REPLY_INTEGER, 0) || !is_type(entry->element[2], REDIS_REPLY_ARRAY, 2))
		return WW_ECORRUPT;
	if (entry->element[0]->integer < 0 || entry->element[1]->integer >= REDIS_SLOTS)
		return WW_ECORRUPT;
	place = entry->element[2];
	if (!is_type(place->element[1], REDIS_REPLY_INTEGER, 0) || place->element[1]->integer < 0 ||
	    place->element[1]->integer > 65535)
		return WW_ECORRUPT;
	host = place->element[0]->type == REDIS_REPLY_STRING ? place->element[0]->str : "";
	*node = NULL;
	if (strcmp(host, "?") == 0 || place->element[1]->integer == 0)
		return WW_OK;
	*node = named_node_locked(link, from, host, strlen(host), (unsigned)place->element[1]->integer);
	return *node ? WW_OK : WW_ENOMEM;
}

/* Check the whole map before the first change: an error leaves the old one. */
static int read_map_locked(struct redis_link *link, const struct redis_node *from, const struct redisReply *map)
{
	struct redis_node *node;
	int error = is_type(map, REDIS_REPLY_ARRAY, 0) && map->elements <= REDIS_SLOTS ? WW_OK : WW_ECORRUPT;

	for (size_t i = 0; i < (error ? 0 : map->elements) && !error; i++)
		error = node_of_locked(link, from, map->element[i], &node);
	if (error)
		return error;
	for (uint32_t i = 0; i < link->count; i++)
		link->nodes[i]->has_slots = 0;
	memset(link->slots, 0, REDIS_SLOTS * sizeof *link->slots);
	for (size_t i = 0; i < map->elements; i++) {
		const struct redisReply *entry = map->element[i];
		(void)node_of_locked(link, from, entry, &node);
		if (!node)
			continue;
		node->has_slots = 1;
		for (long long slot = entry->element[0]->integer; slot <= entry->element[1]->integer; slot++)
			link->slots[slot] = node;
	}
	return WW_OK;
}

/* ---- Asking */

/* Send one of the link's own commands, of two words. A reply that is an error counts as one. */
static int ask(
    struct redis_link *link, struct redis_node *node, uint64_t deadline, const char *command, struct redisReply **reply)
{
	const char *space = strchr(command, ' ');
	const char *argv[2] = {command, space + 1};
	const size_t lengths[2] = {(size_t)(space - command), strlen(space + 1)};
	struct redis_wire *wire;
	int error = ww_redis_node_take(link, node, deadline, 0, &wire);

	if (error)
		return error;
	error = ww_redis_wire_append(wire, 2, argv, lengths);
	error = error ? error : ww_redis_wire_wait(wire, deadline, reply);
	pthread_mutex_lock(&link->lock);
	link->stats.commands++;
	pthread_mutex_unlock(&link->lock);
	if (error) {
		ww_redis_node_drop(link, wire, 1, error);
		return error;
	}
	ww_redis_node_give(link, wire);
	if (ww_redis_error_meaning(*reply, &error) != REDIS_IS_ANSWER) {
		ww_redis_link_report(link, node, command, *reply);
		ww_redis_reply_free(*reply);
	}
	return error;
}

static int refresh_from(struct redis_link *link, struct redis_node *node, uint64_t deadline)
{
	uint64_t soon = time_now(CLOCK_MONOTONIC) + link->config.timeout / 4;
	struct redisReply *map;
	int error = ask(link, node, soon < deadline ? soon : deadline, "CLUSTER SLOTS", &map);

	if (error)
		return error;
	pthread_mutex_lock(&link->lock);
	error = read_map_locked(link, node, map);
	if (!error)
		link->is_stale = 0;
	link->stats.refreshes++;
	pthread_mutex_unlock(&link->lock);
	ww_redis_reply_free(map);
	if (error == WW_ECORRUPT)
		ww_redis_link_complain(link, "Redis answers CLUSTER SLOTS with something else than a map of slots.");
	return error;
}

/* The node at that place of the table, if its last attempt did or did not fail. */
static struct redis_node *node_at(struct redis_link *link, uint32_t at, int has_failed)
{
	struct redis_node *node = NULL;

	pthread_mutex_lock(&link->lock);
	if (at < link->count && is_away(link->nodes[at]) == has_failed)
		node = link->nodes[at];
	pthread_mutex_unlock(&link->lock);
	return node;
}

/* Ask one node after another, those that work first. */
static int refresh(struct redis_link *link, uint64_t deadline)
{
	int error = WW_EIO;

	for (int has_failed = 0; has_failed < 2; has_failed++) {
		for (uint32_t at = 0; at < REDIS_NODES_MAX && time_left_ms(deadline) > 0; at++) {
			struct redis_node *node = node_at(link, at, has_failed);
			if (!node)
				continue;
			error = refresh_from(link, node, deadline);
			if (!error)
				return WW_OK;
		}
	}
	return error;
}

void ww_redis_cluster_refresh(struct redis_link *link, uint64_t deadline)
{
	uint64_t now = ww_redis_link_now(link);
	int is_due;

	if (!link->slots)
		return;
	pthread_mutex_lock(&link->lock);
	is_due = link->is_stale && !link->is_refreshing && now - link->refreshed >= GAP;
	if (is_due) {
		link->is_refreshing = 1;
		link->refreshed = now;
	}
	pthread_mutex_unlock(&link->lock);
	if (!is_due)
		return;
	(void)refresh(link, deadline);
	pthread_mutex_lock(&link->lock);
	link->is_refreshing = 0;
	pthread_mutex_unlock(&link->lock);
}

/* ---- For others */

static void copy_map_locked(const struct redis_link *link, struct redis_map *map)
{
	uint16_t places[REDIS_NODES_MAX];

	map->count = 0;
	for (uint32_t i = 0; i < link->count; i++) {
		places[i] = map->count;
		if (link->nodes[i]->has_slots)
			map->nodes[map->count++] = link->nodes[i]->address;
	}
	for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
		map->slots[slot] = link->slots[slot] ? places[link->slots[slot]->index] : UINT16_MAX;
}

int ww_redis_link_map(struct redis_link *link, struct redis_map *map,
    int (*is_doubted)(const struct redis_address *address, void *context), void *context)
{
	int error;

	if (!link->slots)
		return WW_EINVAL;
	pthread_mutex_lock(&link->lock);
	for (uint32_t i = 0; i < link->count; i++)
		link->nodes[i]->is_doubted = is_doubted && is_doubted(&link->nodes[i]->address, context);
	pthread_mutex_unlock(&link->lock);
	error = refresh(link, time_now(CLOCK_MONOTONIC) + link->config.timeout);
	if (error)
		return error;
	pthread_mutex_lock(&link->lock);
	copy_map_locked(link, map);
	pthread_mutex_unlock(&link->lock);
	return WW_OK;
}

/* ---- Beginning */

static int begin_cluster(struct redis_link *link, uint64_t deadline)
{
	int error;

	link->slots = memory_take_zeroed(link->allocator, REDIS_SLOTS * sizeof *link->slots);
	if (!link->slots)
		return WW_ENOMEM;
	error = refresh(link, deadline);
	if (error)
		return error;
	if (!any_node_locked(link)) {
		ww_redis_link_log(link, "The cluster of Redis has no slots yet: give its nodes theirs.");
		return WW_EAGAIN;
	}
	return WW_OK;
}

int ww_redis_cluster_discover(struct redis_link *link, uint64_t deadline)
{
	uint32_t seeds = link->count;
	struct redisReply *info;
	int error = WW_EIO;
	int is_cluster;

	if (link->config.is_cluster)
		return begin_cluster(link, deadline);
	for (uint32_t i = 0; i < seeds && error; i++)
		error = ask(link, link->nodes[i], deadline, "INFO cluster", &info);
	if (error)
		return error;
	is_cluster = info->type == REDIS_REPLY_STRING && strstr(info->str, "cluster_enabled:1") != NULL;
	if (info->type != REDIS_REPLY_STRING) {
		ww_redis_link_log(link, "What answers INFO is no Redis.");
		error = WW_ECORRUPT;
	}
	ww_redis_reply_free(info);
	if (error || is_cluster)
		return error ? error : begin_cluster(link, deadline);
	if (seeds > 1) {
		ww_redis_link_log(link, "The url of Redis has several hosts, but they are not a cluster: give one.");
		return WW_EINVAL;
	}
	link->nodes[0]->has_slots = 1;
	return WW_OK;
}
