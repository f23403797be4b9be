/*
 * An ear: one connection that is subscribed to a channel.
 *
 * How it notices that it is deaf, since then messages are missed, and the owner must poll instead:
 *   1. A closed connection, an error or a reply that cannot be read ends it at once.
 *   2. After a timeout without a word it sends PING; after one more without an answer it is lost.
 * 3. It ends, too, when its node passes on nothing while others do: it is set aside or lost, or has no slots any
 * more,
 *      and may have left the cluster. wake_fd wakes a waiting owner for that (config.aside).
 * The owner closes a lost ear and opens another, on the next node.
 */
#include <errno.h>
#include <string.h>

#include "lib/redis/link/link_internal.h"

/* An ear that lived this many ns, or as long as the longest pause, was not cut off soon. */
#define SETTLED UINT64_C(60000000000)

struct redis_ear {
	struct redis_link *link;
	struct redis_wire *wire;
	struct redis_node *node;
	uint64_t opened; /* by the link's clock */
	uint64_t heard;  /* when something came last */
	uint64_t pinged; /* when the server was pinged; 0: no answer is due */
	int error;       /* why it is lost */
	int is_lost;     /* and that was counted */
};

static int is_text(const struct redisReply *reply, const char *text)
{
	return reply && reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

/* ---- Opening */

static int subscribe(struct redis_ear *ear, struct redis_node *node, const char *channel, uint64_t deadline)
{
	const char *argv[2] = {"SUBSCRIBE", channel};
	struct redis_link *link = ear->link;
	struct redisReply *reply;
	int error = ww_redis_wire_append(ear->wire, 2, argv, NULL);

	error = error ? error : ww_redis_wire_wait(ear->wire, deadline, &reply);
	if (error)
		return error;
	if (reply->type == REDIS_REPLY_ERROR) {
		(void)ww_redis_error_meaning(reply, &error);
		ww_redis_link_report(link, node, "SUBSCRIBE", reply);
	} else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
	           !is_text(reply->element[0], "subscribe")) {
		ww_redis_link_complain(link, "Redis answers SUBSCRIBE with something else than a confirmation.");
		error = WW_ECORRUPT;
	}
	ww_redis_reply_free(reply);
	return error;
}

/* It passes on nothing, while others do: it is silent, lost, or has left the cluster. */
static int is_deaf_locked(struct redis_link *link, const struct redis_node *node)
{
	int is_away = node->failures > 0 || (node->pause.count > 0 && !node->pause.is_writing);

	return !node->has_slots || (is_away && ww_redis_aside_others_serve_locked(link, node));
}

static int may_try_locked(struct redis_link *link, const struct redis_node *node, int *error)
{
	uint64_t now = ww_redis_link_now(link);

	if (!node->has_slots)
		return 0;
	if (node->failures > 0 && now < node->retry_at)
		*error = node->error;
	else if (is_deaf_locked(link, node))
		*error = WW_EAGAIN;
	else if (now < node->hear_at)
		*error = WW_EIO;
	else
		return 1;
	return 0;
}

/* The next node, after the last ear's, that may be used. NULL: none is left, and *error says why. */
static struct redis_node *next_node(struct redis_link *link, uint32_t *tried, int *error)
{
	struct redis_node *node = NULL;

	pthread_mutex_lock(&link->lock);
	while (!node && *tried < link->count) {
		struct redis_node *next = link->nodes[link->next_node++ % link->count];
		++*tried;
		if (may_try_locked(link, next, error))
			node = next;
	}
	pthread_mutex_unlock(&link->lock);
	return node;
}

static int open_at(struct redis_ear *ear, struct redis_node *node, const char *channel, uint64_t deadline)
{
	int error = ww_redis_node_connect(ear->link, node, deadline, &ear->wire);

	if (error)
		return error;
	error = subscribe(ear, node, channel, deadline);
	if (error)
		ww_redis_wire_close(ear->wire);
	ear->node = node;
	ear->opened = ww_redis_link_now(ear->link);
	ear->heard = time_now(CLOCK_MONOTONIC);
	return error;
}

int ww_redis_ear_open(struct redis_ear **ear, struct redis_link *link, const char *channel)
{
	struct redis_ear *made = memory_take(link->allocator, sizeof *made);
	struct redis_node *node;
	uint64_t deadline = time_now(CLOCK_MONOTONIC) + link->config.timeout;
	uint32_t tried = 0;
	int error = WW_EIO;

	if (!made)
		return WW_ENOMEM;
	*made = (struct redis_ear){.link = link};
	ww_redis_cluster_refresh(link, deadline);
	while (time_left_ms(deadline) > 0 && (node = next_node(link, &tried, &error)) != NULL) {
		error = open_at(made, node, channel, deadline);
		if (!error) {
			*ear = made;
			return WW_OK;
		}
	}
	memory_give(link->allocator, made, sizeof *made);
	return error;
}

void ww_redis_ear_close(struct redis_ear *ear)
{
	if (!ear)
		return;
	ww_redis_wire_close(ear->wire);
	memory_give(ear->link->allocator, ear, sizeof *ear);
}

/* ---- Hearing */

/* Hand out the messages that came. Returns how many. */
static int hand_out(
    struct redis_ear *ear, void (*hear)(const char *message, size_t length, void *context), void *context)
{
	struct redisReply *reply;
	int count = 0;
	int result;

	while ((result = ww_redis_wire_reply(ear->wire, &reply)) > 0) {
		ear->heard = time_now(CLOCK_MONOTONIC);
		ear->pinged = 0;
		if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && is_text(reply->element[0], "message") &&
		    reply->element[2]->type == REDIS_REPLY_STRING) {
			hear(reply->element[2]->str, reply->element[2]->len, context);
			count++;
		}
		if (reply->type == REDIS_REPLY_ERROR)
			result = WW_EIO;
		ww_redis_reply_free(reply);
		if (result < 0)
			break;
	}
	ear->error = result < 0 ? result : WW_OK;
	return count;
}

static int keep_alive(struct redis_ear *ear, uint64_t now)
{
	const char *ping = "PING";
	uint64_t timeout = ear->link->config.timeout;

	if (ear->pinged)
		return now - ear->pinged > timeout ? WW_EIO : WW_OK;
	if (now - ear->heard < timeout)
		return WW_OK;
	ear->pinged = now;
	return ww_redis_wire_append(ear->wire, 1, &ping, NULL);
}

/* Returns how many ears in a row the node cut off soon, this one included. */
static unsigned count_cuts(struct redis_ear *ear)
{
	struct redis_link *link = ear->link;
	struct redis_node *node = ear->node;
	uint64_t now = ww_redis_link_now(link);
	uint64_t lived = now - ear->opened;
	unsigned cuts;

	pthread_mutex_lock(&link->lock);
	cuts = lived >= SETTLED || lived >= link->config.backoff_max ? 1 : node->cuts + 1;
	node->cuts = cuts;
	/* The first may be a restart. */
	if (cuts > 1)
		node->hear_at = now + ww_redis_node_pause_locked(link, cuts - 1);
	pthread_mutex_unlock(&link->lock);
	return cuts;
}

static int lose(struct redis_ear *ear)
{
	if (ear->is_lost)
		return ear->error;
	ear->is_lost = 1;
	if (count_cuts(ear) > 2)
		ww_redis_link_complain(ear->link,
		    "Redis at %s cuts off who subscribes, again and again: see its log, its "
		    "client-output-buffer-limit, and what is between.",
		    ear->node->place);
	return ear->error;
}

static int is_deaf(struct redis_ear *ear)
{
	int is_deaf;

	pthread_mutex_lock(&ear->link->lock);
	is_deaf = is_deaf_locked(ear->link, ear->node);
	pthread_mutex_unlock(&ear->link->lock);
	return is_deaf;
}

/* Wait until the wire is readable (1), wake_fd is, or time is over (0), or something else has to be done (2). */
static int wait_once(struct redis_ear *ear, int wake_fd, uint64_t deadline)
{
	struct pollfd polled[2] = {{.fd = ear->wire->context->fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
	uint64_t next = (ear->pinged ? ear->pinged : ear->heard) + ear->link->config.timeout;

	if (!ww_redis_wire_is_sent(ear->wire))
		polled[0].events |= POLLOUT;
	if (poll(polled, 2, time_left_ms(next < deadline ? next + 1000000 : deadline)) < 0 && errno != EINTR)
		return WW_EIO;
	if (polled[0].revents & ~POLLOUT)
		return 1;
	return polled[1].revents ? 0 : time_now(CLOCK_MONOTONIC) < deadline ? 2 : 0;
}

int ww_redis_ear_wait(struct redis_ear *ear, int wake_fd, uint64_t timeout,
    void (*hear)(const char *message, size_t length, void *context), void *context)
{
	uint64_t deadline = time_add(time_now(CLOCK_MONOTONIC), timeout);

	for (;;) {
		int count = ear->error ? 0 : hand_out(ear, hear, context);
		int woken;
		if (count > 0)
			return count;
		if (!ear->error && is_deaf(ear))
			ear->error = WW_EIO;
		if (!ear->error)
			ear->error = keep_alive(ear, time_now(CLOCK_MONOTONIC));
		if (!ear->error)
			ear->error = ww_redis_wire_send(ear->wire);
		if (ear->error)
			return lose(ear);
		woken = wait_once(ear, wake_fd, deadline);
		if (woken <= 0)
			return woken;
		if (woken == 1)
			ear->error = ww_redis_wire_receive(ear->wire);
	}
}
