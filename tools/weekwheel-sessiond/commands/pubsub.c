/* The table of channels, publishing, and the commands for both. */
#include "tools/weekwheel-sessiond/commands/pubsub.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/seeded.h"
#include "tools/common/glob.h"
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/server/bounds.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "tools/weekwheel-sessiond/server/walk.h"

/* The number of subscriptions removed at a time. */
enum { PIECE = 1000 };
/* The cost of a message for each receiver, in steps of patterns, and how many bytes are copied in a step. */
enum { MESSAGE_STEPS = 100, STEP_BYTES = 8 };
/* What others wait for: the bytes copied for one message, with its channel's name, and the steps of comparing that. */
enum { COPIES_BYTES = 256 << 20, STEPS_MOST = 32 << 20 };

/* A client may subscribe to millions. A table of them grows in so many portions, by the highest byte of a hash. */
enum { PORTIONS = 256 };
#define PORTION_OF(hash) ((hash) >> 24)

/* A channel or pattern with subscribers. */
struct channel {
	UT_hash_handle hh;
	TAILQ_ENTRY(channel) next; /* of its kind */
	enum pubsub_kind kind;
	size_t count;
	unsigned pins; /* it stays without subscriptions */
	LIST_HEAD(, subscription) subscriptions;
	size_t length;
	char name[];
};

struct pair {
	struct channel *channel;
	struct conn *conn;
};

struct subscription {
	LIST_ENTRY(subscription) of_channel;
	TAILQ_ENTRY(subscription) of_conn; /* and of its kind, in their order */
	UT_hash_handle hh;
	struct pair pair;
};

/* Publishers take it to read, subscribers to write. While somebody holds it to read, no client found here can go. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct channel *names[PUBSUB_KINDS][PORTIONS];
static struct subscription *pairs[PORTIONS];
static struct channels {
	TAILQ_HEAD(, channel) list;
	_Atomic size_t count;
} channels[PUBSUB_KINDS] = {{TAILQ_HEAD_INITIALIZER(channels[PUBSUB_CHANNEL].list), 0},
    {TAILQ_HEAD_INITIALIZER(channels[PUBSUB_PATTERN].list), 0},
    {TAILQ_HEAD_INITIALIZER(channels[PUBSUB_SHARD].list), 0}};
static _Atomic size_t listeners;

static const struct kind {
	const char *subscribe, *unsubscribe, *message;
} kinds[] = {{"subscribe", "unsubscribe", "message"}, {"psubscribe", "punsubscribe", "pmessage"},
    {"ssubscribe", "sunsubscribe", "smessage"}};

int pubsub_has_listeners(void)
{
	return listeners != 0;
}

static struct channel *find_channel(enum pubsub_kind kind, struct pubsub_text name)
{
	struct channel *channel;
	unsigned hash;

	HASH_VALUE(name.data, name.size, hash);
	HASH_FIND_BYHASHVALUE(hh, names[kind][PORTION_OF(hash)], name.data, name.size, hash, channel);
	return channel;
}

/* ---- Publishing */

/* The message in the form that clients get. Its first byte depends on their protocol. */
static struct buffer make_message(const struct channel *channel, struct pubsub_text name, struct pubsub_text message)
{
	struct buffer made = {0};
	int is_pattern = channel->kind == PUBSUB_PATTERN;

	(void)reply_add_header(&made, '*', is_pattern ? 4 : 3);
	(void)reply_add_bulk(&made, kinds[channel->kind].message, strlen(kinds[channel->kind].message));
	if (is_pattern)
		(void)reply_add_bulk(&made, channel->name, channel->length);
	(void)reply_add_bulk(&made, name.data, name.size);
	if (reply_add_bulk(&made, message.data, message.size) != 0)
		buffer_free(&made);
	return made;
}

/*
 * A message to many clients may need more memory than there is. Close those that it has no room for. Returns 0, or -1
 * if this client has to be closed.
 */
static int add_message(struct conn *conn, struct buffer *to, const struct buffer *message)
{
	size_t at = to->size;

	if (message->size == 0 || at + message->size > MAIL_MAX ||
	    bounds_are_passed(conn->loop->server, message->size) ||
	    buffer_append(to, message->data, message->size) != 0)
		return -1;
	if (conn->protocol == 3)
		to->data[at] = '>';
	return 0;
}

static void post(struct conn *conn, const struct buffer *message)
{
	struct loop *loop = conn->loop;

	if (loop == mail_here()) {
		/* Mail that others posted earlier comes first. */
		mail_take(loop);
		if (conn->life < CONN_DEAD && add_message(conn, &conn->stream.out, message) != 0)
			conn_fail(conn);
		reply_flush(conn);
		return;
	}
	pthread_mutex_lock(&loop->lock);
	if (add_message(conn, &conn->mail, message) != 0)
		conn->is_killed = 1;
	mail_post(conn);
	pthread_mutex_unlock(&loop->lock);
}

static size_t publish_in(
    const struct channel *channel, const struct pubsub_text *name, const struct pubsub_text *message)
{
	const struct subscription *subscription;

	if (message) {
		struct buffer made = make_message(channel, *name, *message);
		LIST_FOREACH(subscription, &channel->subscriptions, of_channel)
		post(subscription->pair.conn, &made);
		buffer_free(&made);
	}
	return channel->count;
}

/* How many clients listen. They get the message unless it is NULL: then the search ends after STEPS_MOST. */
static size_t publish(
    enum pubsub_kind kind, const struct pubsub_text *name, const struct pubsub_text *message, size_t *steps)
{
	struct channel *channel;
	size_t heard = 0;

	if (!listeners)
		return 0;
	pthread_rwlock_rdlock(&lock);
	channel = find_channel(kind, *name);
	if (channel)
		heard += publish_in(channel, name, message);
	if (kind == PUBSUB_CHANNEL)
		for (channel = TAILQ_FIRST(&channels[PUBSUB_PATTERN].list);
		     channel && (message || *steps <= STEPS_MOST); channel = TAILQ_NEXT(channel, next))
			if (glob_matches_count(channel->name, channel->length, name->data, name->size, steps))
				heard += publish_in(channel, name, message);
	pthread_rwlock_unlock(&lock);
	return heard;
}

size_t pubsub_publish(enum pubsub_kind kind, struct pubsub_text name, struct pubsub_text message, size_t *steps)
{
	size_t heard = publish(kind, &name, &message, steps);

	*steps += heard * MESSAGE_STEPS + pubsub_weigh_bytes(heard, name.size + message.size);
	return heard;
}

size_t pubsub_weigh(struct pubsub_text name, size_t *steps)
{
	size_t heard = publish(PUBSUB_CHANNEL, &name, NULL, steps);

	*steps += heard * MESSAGE_STEPS + pubsub_weigh_bytes(heard, name.size);
	return heard;
}

size_t pubsub_weigh_bytes(size_t heard, size_t bytes)
{
	return heard * (bytes / STEP_BYTES);
}

const char *pubsub_refuses(enum pubsub_kind kind, struct pubsub_text name, struct pubsub_text message, size_t *steps)
{
	size_t bytes = name.size + message.size;
	size_t taken = 0;
	size_t heard;

	/* Most messages are so short that nobody needs to count. */
	if (bytes <= COPIES_BYTES / (listeners + 1) && name.size * channels[PUBSUB_PATTERN].count <= STEPS_MOST / 4)
		return NULL;
	heard = publish(kind, &name, NULL, &taken);
	*steps += taken;
	if (taken > STEPS_MOST)
		return "comparing a name of this length with all patterns takes too long";
	if (bytes * heard <= COPIES_BYTES)
		return NULL;
	return "too many clients listen for a message of this length: all their copies may have 256 MiB, so publish where it is to be found";
}

/* ---- Subscribing: the lock is held for writing */

static struct channel *make_channel(enum pubsub_kind kind, struct pubsub_text name)
{
	struct channel *channel = calloc(1, sizeof *channel + name.size);
	unsigned hash;

	if (!channel)
		return NULL;
	channel->kind = kind;
	channel->length = name.size;
	memcpy(channel->name, name.data, name.size);
	HASH_VALUE(channel->name, channel->length, hash);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, names[kind][PORTION_OF(hash)], channel->name, channel->length, hash, channel);
	if (!channel->hh.tbl) {
		free(channel);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&channels[kind].list, channel, next);
	channels[kind].count++;
	return channel;
}

static struct subscription *find(const struct conn *conn, enum pubsub_kind kind, struct pubsub_text name)
{
	struct pair pair = {find_channel(kind, name), (struct conn *)(uintptr_t)conn};
	struct subscription *found = NULL;
	unsigned hash;

	if (!pair.channel)
		return NULL;
	HASH_VALUE(&pair, sizeof pair, hash);
	HASH_FIND_BYHASHVALUE(hh, pairs[PORTION_OF(hash)], &pair, sizeof pair, hash, found);
	return found;
}

/* Charge each subscriber for the channel, and twice: tables grow, and a command below the bound takes all of its names. */
static size_t size_of(const struct channel *channel)
{
	return (sizeof(struct subscription) + sizeof *channel + channel->length) * 2;
}

static void drop_channel(struct channel *channel)
{
	if (channel->count > 0 || channel->pins > 0)
		return;
	HASH_DEL(names[channel->kind][PORTION_OF(channel->hh.hashv)], channel);
	TAILQ_REMOVE(&channels[channel->kind].list, channel, next);
	channels[channel->kind].count--;
	free(channel);
}

/* Returns NULL without memory. */
static struct subscription *make_subscription(struct conn *conn, struct channel *channel)
{
	struct subscription *made = calloc(1, sizeof *made);
	unsigned hash;

	if (!made)
		return NULL;
	made->pair = (struct pair){channel, conn};
	HASH_VALUE(&made->pair, sizeof made->pair, hash);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, pairs[PORTION_OF(hash)], &made->pair, sizeof made->pair, hash, made);
	if (!made->hh.tbl) {
		free(made);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&conn->subscriptions[channel->kind], made, of_conn);
	return made;
}

/* Returns 0, or -1 at the limit. */
static int add(struct conn *conn, enum pubsub_kind kind, struct pubsub_text name)
{
	struct channel *channel = find_channel(kind, name);
	struct subscription *made;

	if (find(conn, kind, name))
		return 0;
	/* Each message is compared with all patterns while other clients wait: hence the limit. */
	if (!channel && kind == PUBSUB_PATTERN &&
	    !bounds_have_pattern(conn->loop->server, channels[kind].count, conn->channels[kind]))
		return -1;
	if (!channel)
		channel = make_channel(kind, name);
	made = channel ? make_subscription(conn, channel) : NULL;
	if (!made) {
		conn_fail(conn);
		if (channel)
			drop_channel(channel);
		return 0;
	}
	LIST_INSERT_HEAD(&channel->subscriptions, made, of_channel);
	channel->count++;
	conn->channels[kind]++;
	bounds_count(conn, size_of(channel));
	listeners++;
	return 0;
}

static void drop(struct conn *conn, struct subscription *old)
{
	struct channel *channel = old->pair.channel;

	HASH_DEL(pairs[PORTION_OF(old->hh.hashv)], old);
	TAILQ_REMOVE(&conn->subscriptions[channel->kind], old, of_conn);
	LIST_REMOVE(old, of_channel);
	bounds_count_out(conn, size_of(channel));
	channel->count--;
	conn->channels[channel->kind]--;
	listeners--;
	drop_channel(channel);
	free(old);
}

void pubsub_enter(struct conn *conn)
{
	for (int kind = 0; kind < PUBSUB_KINDS; kind++)
		TAILQ_INIT(&conn->subscriptions[kind]);
}

int pubsub_leave_some(struct conn *conn)
{
	struct subscription *one;
	int left = PIECE;

	if (!conn_listens(conn))
		return 0;
	pthread_rwlock_wrlock(&lock);
	for (int kind = 0; kind < PUBSUB_KINDS; kind++)
		while (left > 0 && (one = TAILQ_FIRST(&conn->subscriptions[kind]))) {
			drop(conn, one);
			left--;
		}
	pthread_rwlock_unlock(&lock);
	return conn_listens(conn);
}

/* ---- Commands */

/* As in Redis, this is sent even after CLIENT REPLY OFF. */
static void reply_state(struct conn *conn, enum pubsub_kind kind, const char *word, const struct pubsub_text *name)
{
	struct reply_silence silence = conn->silence;
	unsigned count = kind == PUBSUB_SHARD ? conn->channels[PUBSUB_SHARD]
	                                      : conn->channels[PUBSUB_CHANNEL] + conn->channels[PUBSUB_PATTERN];

	conn->silence = (struct reply_silence){0};
	reply_push(conn, 3);
	reply_string(conn, word);
	if (name)
		reply_bulk(conn, name->data, name->size);
	else
		reply_null(conn);
	reply_integer(conn, count);
	conn->silence = silence;
}

void command_subscribe(struct request *request)
{
	enum pubsub_kind kind = (enum pubsub_kind)request->command->way;

	/* As Redis says it. */
	if (kind == PUBSUB_SHARD && request->conn->is_in_exec) {
		reply_error(request->conn, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
		return;
	}
	for (size_t i = 1; i < request->count; i++) {
		struct pubsub_text name = {request->arg[i].data, request->arg[i].size};
		pthread_rwlock_wrlock(&lock);
		/* Answer under the lock, so that no message can come first. */
		if (add(request->conn, kind, name) == 0)
			reply_state(request->conn, kind, kinds[kind].subscribe, &name);
		else
			reply_error(request->conn, "ERR max number of patterns reached");
		pthread_rwlock_unlock(&lock);
	}
}

/* Many subscriptions take several turns, except in a transaction, which may not end many. */
static void unsubscribe_all(struct conn *conn, enum pubsub_kind kind)
{
	struct subscription *one;
	int left = PIECE;

	if (conn->channels[kind] == 0)
		reply_state(conn, kind, kinds[kind].unsubscribe, NULL);
	while ((one = TAILQ_FIRST(&conn->subscriptions[kind]))) {
		struct channel *channel = one->pair.channel;
		struct pubsub_text name = {channel->name, channel->length};
		if (left-- == 0 && !conn->is_in_exec) {
			conn->is_again = 1;
			return;
		}
		channel->count++;
		drop(conn, one);
		reply_state(conn, kind, kinds[kind].unsubscribe, &name);
		channel->count--;
		drop_channel(channel);
	}
}

void command_unsubscribe(struct request *request)
{
	enum pubsub_kind kind = (enum pubsub_kind)request->command->way;
	struct conn *conn = request->conn;

	pthread_rwlock_wrlock(&lock);
	if (request->count == 1 && request_may_look(conn, conn->channels[kind]))
		unsubscribe_all(conn, kind);
	for (size_t i = 1; i < request->count; i++) {
		struct pubsub_text name = {request->arg[i].data, request->arg[i].size};
		struct subscription *found = find(conn, kind, name);
		if (found)
			drop(conn, found);
		reply_state(conn, kind, kinds[kind].unsubscribe, &name);
	}
	pthread_rwlock_unlock(&lock);
}

void command_publish(struct request *request)
{
	enum pubsub_kind kind = (enum pubsub_kind)request->command->way;
	struct pubsub_text name = {request->arg[1].data, request->arg[1].size};
	struct pubsub_text message = {request->arg[2].data, request->arg[2].size};
	const char *why;

	if (!request_may_look(request->conn, 0))
		return;
	if ((why = pubsub_refuses(kind, name, message, &request->conn->exec_steps)))
		reply_error(request->conn, "ERR %s", why);
	else
		reply_integer(request->conn, (int64_t)pubsub_publish(kind, name, message, &request->conn->exec_steps));
}

/* ---- PUBSUB CHANNELS, in pieces: a client may have subscribed to millions, and each may take long to be compared */

/* The names found so far are in the client's `aside`. */
struct channel_walk {
	struct key_walk walk;
	struct channel *at; /* comes next, and is pinned; NULL: none is left */
	size_t count;
	int failed; /* without memory */
	int has_pattern;
	size_t size; /* of the pattern */
	char pattern[];
};

/* The lock is held for writing. */
static void go_to(struct channel_walk *walk, struct channel *channel)
{
	struct channel *former = walk->at;

	walk->at = channel;
	if (channel)
		channel->pins++;
	if (!former)
		return;
	former->pins--;
	drop_channel(former);
}

static void leave_channels(struct key_walk *pointer)
{
	struct channel_walk *walk = (struct channel_walk *)(void *)pointer;

	pthread_rwlock_wrlock(&lock);
	go_to(walk, NULL);
	pthread_rwlock_unlock(&lock);
}

static void note_channel(struct channel_walk *walk, const struct channel *channel)
{
	if (channel->count == 0 || (walk->has_pattern && !glob_matches_count(walk->pattern, walk->size, channel->name,
	                                                     channel->length, &walk->walk.conn->exec_steps)))
		return;
	walk->failed |= reply_add_bulk(&walk->walk.conn->aside, channel->name, channel->length);
	walk->count++;
}

static void answer_channels(const struct channel_walk *walk)
{
	struct conn *conn = walk->walk.conn;

	if (walk->failed)
		conn_fail(conn);
	if (request_took_long(conn)) {
		request_refuse_long(conn);
		return;
	}
	reply_array(conn, walk->count);
	reply_bytes(conn, conn->aside.data, conn->aside.size);
}

static int take_channels(struct key_walk *pointer)
{
	struct channel_walk *walk = (struct channel_walk *)(void *)pointer;
	struct conn *conn = walk->walk.conn;
	uint64_t end = uv_hrtime() + WALK_PIECE;
	struct channel *channel;

	pthread_rwlock_wrlock(&lock);
	for (channel = walk->at; channel && !walk->failed && !request_took_long(conn);
	     channel = TAILQ_NEXT(channel, next)) {
		if (!conn->is_in_exec && uv_hrtime() >= end)
			break;
		note_channel(walk, channel);
	}
	go_to(walk, channel);
	pthread_rwlock_unlock(&lock);
	if (channel && !walk->failed && !request_took_long(conn))
		return 0;
	answer_channels(walk);
	buffer_free(&conn->aside);
	return 1;
}

static void reply_channels(struct request *request, enum pubsub_kind kind)
{
	const struct resp_arg *pattern = request->count > 2 ? &request->arg[2] : NULL;
	struct channel_walk *walk;

	if (request->count > 3) {
		reply_error(request->conn,
		    "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try PUBSUB HELP.",
		    (int)request->arg[1].size, request->arg[1].data);
		return;
	}
	if (!request_may_look(request->conn, channels[kind].count))
		return;
	walk = malloc(sizeof *walk + (pattern ? pattern->size : 0));
	if (!walk) {
		(void)request_failed(request, WW_ENOMEM);
		return;
	}
	*walk = (struct channel_walk){
	    .walk.conn = request->conn, .walk.take_piece = take_channels, .walk.leave = leave_channels};
	if (pattern) {
		walk->has_pattern = 1;
		walk->size = pattern->size;
		memcpy(walk->pattern, pattern->data, pattern->size);
	}
	pthread_rwlock_wrlock(&lock);
	go_to(walk, TAILQ_FIRST(&channels[kind].list));
	pthread_rwlock_unlock(&lock);
	if (take_channels(&walk->walk)) {
		leave_channels(&walk->walk);
		free(walk);
	} else {
		walk_begin(&walk->walk);
	}
}

/* ---- The other words of PUBSUB */

static void reply_numbers(struct request *request, enum pubsub_kind kind)
{
	reply_array(request->conn, 2 * (request->count - 2));
	for (size_t i = 2; i < request->count; i++) {
		struct channel *channel =
		    find_channel(kind, (struct pubsub_text){request->arg[i].data, request->arg[i].size});
		reply_bulk(request->conn, request->arg[i].data, request->arg[i].size);
		reply_integer(request->conn, channel ? (int64_t)channel->count : 0);
	}
}

void command_pubsub(struct request *request)
{
	if (request_is(request, 1, "CHANNELS")) {
		reply_channels(request, PUBSUB_CHANNEL);
		return;
	}
	if (request_is(request, 1, "SHARDCHANNELS")) {
		reply_channels(request, PUBSUB_SHARD);
		return;
	}
	pthread_rwlock_rdlock(&lock);
	if (request_is(request, 1, "NUMSUB"))
		reply_numbers(request, PUBSUB_CHANNEL);
	else if (request_is(request, 1, "SHARDNUMSUB"))
		reply_numbers(request, PUBSUB_SHARD);
	else if (request_is(request, 1, "NUMPAT"))
		reply_integer(request->conn, (int64_t)channels[PUBSUB_PATTERN].count);
	else
		request_help(request);
	pthread_rwlock_unlock(&lock);
}
