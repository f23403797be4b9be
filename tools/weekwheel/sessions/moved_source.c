/* Reads sessions that are copied, from a server or from the masters of a cluster: see moved.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/base/time.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/sessions/moved.h"

/* Keys that are named; how far deadlines of an older Redis may be off. */
enum { NAMED = 20, SLACK_MS = 1000 };

/* ---- Connecting */

static struct moved_node *add_node(struct moved *moved, const struct redis_address *address)
{
	struct moved_node *node = memory_zeroed(1, sizeof *node);
	char place[REDIS_PLACE_MAX];

	node->address = *address;
	ww_redis_address_write(address, place);
	snprintf(node->place, sizeof node->place, "%s%s",
	    address->port == 0  ? "unix:"
	    : moved->url.is_tls ? "tls:"
	                        : "",
	    place);
	moved->nodes = memory_grow(moved->nodes, &moved->node_room, moved->node_count, sizeof *moved->nodes);
	moved->nodes[moved->node_count++] = node;
	return node;
}

static void close_node(struct moved_node *node)
{
	peer_close(&node->peer);
	client_close(&node->client);
	node->is_open = 0;
}

/* It does not answer, or not as it should. Returns -1. */
static int lose(struct moved *moved, struct moved_node *node)
{
	close_node(node);
	moved->is_lost = 1;
	return -1;
}

static int log_in(const struct moved *moved, struct peer *peer)
{
	const struct redis_url *url = &moved->url;
	const char *password = url->has_password ? url->password : getenv("REDISCLI_AUTH");

	if (!password || !*password)
		return 0;
	if (*url->user)
		peer_ask(peer, "AUTH %s %s", url->user, password);
	else
		peer_ask(peer, "AUTH %s", password);
	return peer_done(peer);
}

static int begins(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* The key is at another node, or on its way there. */
static int is_elsewhere(const redisReply *reply)
{
	return begins(reply, "MOVED ") || begins(reply, "ASK ") || begins(reply, "TRYAGAIN ");
}

/* PEXPIRETIME came with Redis 7. */
static int find_times(struct moved *moved, struct peer *peer)
{
	redisReply *reply;

	peer_ask(peer, "PEXPIRETIME weekwheel");
	reply = peer_answer(peer);
	if (!reply)
		return -1;
	moved->has_times = reply->type == REDIS_REPLY_INTEGER || is_elsewhere(reply) || begins(reply, "CLUSTERDOWN ");
	moved->slack = moved->has_times ? 0 : SLACK_MS;
	freeReplyObject(reply);
	return 0;
}

static int open_node(struct moved *moved, struct moved_node *node)
{
	const struct redis_url *url = &moved->url;
	/* Not those of the target: its certificate and its authorities are no matter of the source. */
	const struct tls_files files = {
	    *url->certificate ? url->certificate : NULL, *url->key ? url->key : NULL, *url->ca ? url->ca : NULL};

	if (node->is_open)
		return 0;
	node->client =
	    (struct client){.server = node->place, .timeout_ms = moved->jobs.timeout_ms, .trust = "?ca=FILE in --from"};
	node->peer = (struct peer){.client = &node->client,
	    .address = node->place,
	    .remedy = "give the password in --from or set REDISCLI_AUTH in the environment to it"};
	node->is_open = 1;
	if (peer_open(&node->peer, &files, "is it the server that has the sessions?") || log_in(moved, &node->peer))
		return lose(moved, node);
	peer_ask(&node->peer, "SELECT %u", url->db);
	return peer_done(&node->peer) || find_times(moved, &node->peer) ? lose(moved, node) : 0;
}

/* ---- The masters of a cluster */

static struct moved_node *node_at(const struct moved *moved, const struct redis_address *address)
{
	for (size_t i = 0; i < moved->node_count; i++)
		if (moved->nodes[i]->address.port == address->port &&
		    strcmp(moved->nodes[i]->address.host, address->host) == 0)
			return moved->nodes[i];
	return NULL;
}

/* A range of slots: its first one, its last one, and its servers, the master first. Returns -1 if it is none. */
static int read_range(const struct moved_node *from, const redisReply *range, struct redis_address *address)
{
	const redisReply *master = range->type == REDIS_REPLY_ARRAY && range->elements > 2 ? range->element[2] : NULL;

	if (!master || master->type != REDIS_REPLY_ARRAY || master->elements < 2 ||
	    master->element[1]->type != REDIS_REPLY_INTEGER || range->element[0]->type != REDIS_REPLY_INTEGER ||
	    range->element[1]->type != REDIS_REPLY_INTEGER)
		return -1;
	*address = (struct redis_address){.port = (unsigned)master->element[1]->integer};
	/* A node that does not know its own address means the one that it was asked at. */
	snprintf(address->host, sizeof address->host, "%s",
	    master->element[0]->str && *master->element[0]->str ? master->element[0]->str : from->address.host);
	return 0;
}

static int take_range(struct moved *moved, const struct moved_node *from, const redisReply *range, uint64_t *map)
{
	struct redis_address address;
	struct moved_node *node;
	uint64_t part[3];

	if (read_range(from, range, &address) != 0)
		return peer_fail(&from->peer, "its map of slots makes no sense");
	node = node_at(moved, &address);
	node = node ? node : add_node(moved, &address);
	node->is_master = 1;
	part[0] = (uint64_t)range->element[0]->integer;
	part[1] = (uint64_t)range->element[1]->integer;
	part[2] = XXH3_64bits(node->place, strlen(node->place));
	/* Nodes list the ranges in different orders. */
	*map += XXH3_64bits(part, sizeof part);
	return 0;
}

/* Take the map of slots that a node has. Of what is no cluster, that node is all there is. */
static int take_map(struct moved *moved, struct moved_node *from, const redisReply *reply, int *is_new)
{
	uint64_t map = 0;

	if (reply->type != REDIS_REPLY_ARRAY) {
		if (moved->url.count > 1)
			return peer_fail(
			    &from->peer, "several servers in --from are those of a cluster, and this is none");
		from->is_master = 1;
		return 0;
	}
	moved->is_cluster = 1;
	for (size_t i = 0; i < moved->node_count; i++)
		moved->nodes[i]->is_master = 0;
	for (size_t i = 0; i < reply->elements; i++)
		if (take_range(moved, from, reply->element[i], &map) != 0)
			return -1;
	*is_new = map != moved->map;
	moved->map = map;
	return reply->elements ? 0 : peer_fail(&from->peer, "the cluster has no slots yet");
}

/* Ask one node who the masters are. */
static int ask_map(struct moved *moved, struct moved_node *node, int *is_new)
{
	redisReply *reply;
	int failed;

	if (open_node(moved, node) != 0)
		return -1;
	peer_ask(&node->peer, "CLUSTER SLOTS");
	reply = peer_answer(&node->peer);
	failed = !reply || take_map(moved, node, reply, is_new);
	freeReplyObject(reply);
	return failed ? lose(moved, node) : 0;
}

/* Find out whether slots are on their way from or to a master: it shows them in brackets, by itself alone. */
static int ask_moving(struct moved *moved, struct moved_node *node)
{
	redisReply *reply;

	peer_ask(&node->peer, "CLUSTER NODES");
	reply = peer_good(&node->peer);
	if (!reply)
		return lose(moved, node);
	moved->is_moving |= reply->str && strstr(reply->str, " [");
	freeReplyObject(reply);
	return 0;
}

int moved_find(struct moved *moved, int *is_new)
{
	int failed = -1;

	*is_new = moved->is_moving = 0;
	for (size_t i = moved->node_count; i < moved->url.count; i++)
		(void)add_node(moved, &moved->url.hosts[i]);
	for (size_t i = 0; i < moved->node_count && failed; i++)
		failed = ask_map(moved, moved->nodes[i], is_new);
	moved->is_lost = failed != 0;
	for (size_t i = 0; i < moved->node_count && !failed; i++)
		if (moved->nodes[i]->is_master)
			failed = open_node(moved, moved->nodes[i]) ||
			         (moved->is_cluster && ask_moving(moved, moved->nodes[i]));
	return failed;
}

int moved_count(struct moved *moved, uint64_t *count)
{
	*count = 0;
	for (size_t i = 0; i < moved->node_count; i++) {
		struct moved_node *node = moved->nodes[i];
		redisReply *reply;

		if (!node->is_master)
			continue;
		peer_ask(&node->peer, "DBSIZE");
		reply = peer_good(&node->peer);
		if (!reply)
			return lose(moved, node);
		*count += reply->type == REDIS_REPLY_INTEGER ? (uint64_t)reply->integer : 0;
		freeReplyObject(reply);
	}
	return 0;
}

void moved_close(struct moved *moved)
{
	for (size_t i = 0; i < moved->node_count; i++) {
		close_node(moved->nodes[i]);
		free(moved->nodes[i]);
	}
	free(moved->nodes);
}

/* ---- Keys */

redisReply *moved_scan(struct moved *moved, struct moved_node *node, char cursor[PEER_CURSOR])
{
	redisReply *page = peer_scan(&node->peer, cursor, moved->match, MOVED_PAGE);

	if (!page)
		(void)lose(moved, node);
	return page;
}

/*
 * Queue what reads a key at one moment, in a transaction. The last of four answers has both. Before it, a server that has keys
 * of slots which it does not serve yet is asked to read them nevertheless.
 */
static void ask_entry(const struct moved *moved, struct moved_node *node, const char *key, size_t size)
{
	struct peer *peer = &node->peer;

	if (node->is_receiving)
		peer_ask(peer, "ASKING");
	peer_ask(peer, "MULTI");
	peer_ask(peer, "GET %b", key, size);
	peer_ask(peer, moved->has_times ? "PEXPIRETIME %b" : "PTTL %b", key, size);
	peer_ask(peer, "EXEC");
}

/* Why a transaction was refused: by the first error, since EXEC says only that there was one. */
static int refused(struct moved_node *node, const redisReply *why)
{
	if (!is_elsewhere(why))
		return peer_fail(&node->peer, why->str);
	node->is_receiving |= begins(why, "MOVED ");
	return 1;
}

/* Read that many answers. Returns 0, 1 if the key is elsewhere, or -1 after a message. */
static int read_entry(struct moved_node *node, int answers, redisReply **entry)
{
	struct peer *peer = &node->peer;
	redisReply *why = NULL;
	int failed = 0;

	for (int i = 0; i < answers && !failed; i++) {
		freeReplyObject(*entry);
		*entry = peer_answer(peer);
		failed = !*entry;
		if (failed || why || (*entry)->type != REDIS_REPLY_ERROR)
			continue;
		why = *entry;
		*entry = NULL;
	}
	if (!failed && why)
		failed = refused(node, why);
	else if (!failed && ((*entry)->type != REDIS_REPLY_ARRAY || (*entry)->elements != 2))
		failed = peer_fail(peer, "this is not a server of sessions");
	freeReplyObject(why);
	return failed;
}

/* ---- What is known */

int64_t moved_number(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_INTEGER ? reply->integer : MOVED_NO_KEY;
}

uint64_t moved_hash(const redisReply *value)
{
	return XXH3_64bits(value->str, value->len);
}

static struct known *known_of(struct moved *moved, const char *key, size_t size, uint32_t *id)
{
	size_t before = keys_count(moved->keys);

	*id = keys_intern(moved->keys, key, size);
	if (*id == before) {
		moved->known = memory_grow(moved->known, &moved->room, before, sizeof *moved->known);
		moved->known[*id] = (struct known){.there = MOVED_NO_KEY};
	}
	return &moved->known[*id];
}

static void name_other(struct moved *moved, const struct moved_node *node, const redisReply *key)
{
	char excerpt[100];

	message_excerpt(excerpt, sizeof excerpt, key->str, key->len);
	if (moved->others++ < NAMED && moved->pass == 1) {
		progress_clear();
		message_line("%s: %s is no string, such as a hash, and is not taken", node->place, excerpt);
	}
}

void moved_name_rest(const struct moved *moved)
{
	if (moved->others > NAMED)
		message_line("%s: %" PRIu64 " more are no strings", moved->nodes[0]->place, moved->others - NAMED);
}

/* ---- Candidates */

static int is_candidate(const struct moved *moved, uint32_t id)
{
	for (size_t i = 0; i < moved->count; i++)
		if (moved->candidates[i].key == id)
			return 1;
	return 0;
}

/* Take an entry as a candidate, unless it is as it was. The reply of the value is taken out of the answer. */
static int take_entry(struct moved *moved, const struct moved_node *node, const redisReply *key, redisReply *entry)
{
	redisReply *value = entry->element[0];
	int64_t deadline = moved_number(entry->element[1]);
	struct known *known;
	uint32_t id;

	if (value->type == REDIS_REPLY_ERROR) {
		if (!begins(value, "WRONGTYPE"))
			return peer_fail(&node->peer, value->str);
		name_other(moved, node, key);
		return 0;
	}
	/* It has gone since. */
	if (value->type != REDIS_REPLY_STRING)
		return 0;
	if (!moved->has_times && deadline >= 0)
		deadline += (int64_t)(time_now(CLOCK_REALTIME) / 1000000);
	known = known_of(moved, key->str, key->len, &id);
	/* A page may have a key twice. */
	if (is_candidate(moved, id))
		return 0;
	moved->read += known->pass != moved->pass;
	if (known->pass && known->hash == moved_hash(value) && moved_is_same(moved, known->deadline, deadline)) {
		moved->same += known->pass != moved->pass;
		known->pass = moved->pass;
		return 0;
	}
	moved->candidates[moved->count++] =
	    (struct candidate){.key = id, .deadline = deadline, .value = value, .hash = moved_hash(value)};
	entry->element[0] = NULL;
	return 0;
}

int moved_take(struct moved *moved, struct moved_node *node, redisReply *const *keys, size_t count)
{
	int failed = 0, answers = node->is_receiving ? 5 : 4;

	for (size_t i = 0; i < count; i++)
		ask_entry(moved, node, keys[i]->str, keys[i]->len);
	for (size_t i = 0; i < count && !failed; i++) {
		redisReply *entry = NULL;
		int result = read_entry(node, answers, &entry);

		moved->on_move += result > 0;
		failed = result < 0 || (result == 0 && take_entry(moved, node, keys[i], entry));
		freeReplyObject(entry);
	}
	if (!failed)
		return 0;
	moved_drop(moved);
	return lose(moved, node);
}

void moved_drop(struct moved *moved)
{
	for (size_t i = 0; i < moved->count; i++)
		freeReplyObject(moved->candidates[i].value);
	moved->count = 0;
}

/* ---- What has gone */

/* Of the masters of a cluster, one alone answers without an error: the one that has the key's slot. */
int moved_is_gone(struct moved *moved, const char *key, size_t size, int *gone)
{
	*gone = 0;
	for (size_t i = 0; i < moved->node_count; i++) {
		struct moved_node *node = moved->nodes[i];
		redisReply *reply;

		if (!node->is_master)
			continue;
		peer_ask(&node->peer, "EXISTS %b", key, size);
		reply = peer_answer(&node->peer);
		if (!reply || (reply->type == REDIS_REPLY_ERROR && !is_elsewhere(reply))) {
			if (reply)
				(void)peer_fail(&node->peer, reply->str);
			freeReplyObject(reply);
			return lose(moved, node);
		}
		*gone |= reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
		freeReplyObject(reply);
	}
	return 0;
}
