/* One Redis, and the thread that keeps its deadlines: see node.h. */
#include "tools/weekwheel-expirer/node/node.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "lib/base/time.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-expirer/node/talk.h"
#include "weekwheel/error.h"

#define MS UINT64_C(1000000)

/* Silence, in ns: after the first the ear is pinged and a state begins, after the second the connections are lost. */
enum { QUIET_MS = 1000, LOST_MS = 10000 };
/* A change that has waited for longer may make a key end late. */
enum { BEHIND_MS = 1000 };
/* Flushes begin a pass once in this time. */
enum { FLUSH_MS = 1000 };
/* A smaller step of Redis's clock is slewing, which no one has to hear of. */
enum { STEP_MS = 50 };
enum { BACKOFF_FIRST_MS = 100, BACKOFF_MOST_MS = 2000 };
/* Bytes of keys that wait. Beyond them the ear is not read, and Redis cuts it off if that goes on. */
static const size_t waiting_most = (size_t)64 << 20;

struct expirer_node {
	struct node_config config;
	char place[REDIS_LINE_PLACE];
	unsigned db;
	struct talk talk;
	struct keeper keeper;
	int is_awaited;     /* the log tells when it is exact */
	int is_appended;    /* something is to be sent at once */
	int is_flushed;     /* a pass is to begin */
	int is_behind;      /* the oldest change has waited for too long */
	uint64_t marked;    /* how many keys had begun to wait */
	uint64_t marked_at; /* at that time */
	uint64_t began;     /* the pass */
	uint64_t heard[2];  /* when something came at the line, and at the ear */
	uint64_t pinged;    /* when the ear was; 0: it owes no answer */
	pthread_t thread;
	int wake; /* an eventfd that ends the thread */
	pthread_mutex_t lock;
	struct node_numbers shown; /* under the lock */
};

static uint64_t now_ns(void)
{
	return time_now(CLOCK_MONOTONIC);
}

static int append(void *context, size_t argc, const char *const *argv, const size_t *lengths)
{
	struct expirer_node *node = context;

	node->is_appended = 1;
	return ww_redis_line_append(node->talk.line, argc, argv, lengths);
}

/* ---- What the log says */

static void say_lost(const struct expirer_node *node, const char *why)
{
	state_begin("redis", STATE_STOPS_READING,
	    "Redis at %s is lost: %s. Until it is back, nobody asks for keys at their deadlines.", node->place, why);
}

static void say_exact(struct expirer_node *node)
{
	if (!node->is_awaited || !node->keeper.is_exact)
		return;
	node->is_awaited = 0;
	message_info("Exact from now on: %zu keys have a deadline, found in %.1f s.",
	    deadlines_count(node->keeper.deadlines), (double)(now_ns() - node->began) / 1e9);
}

static void say_step(struct expirer_node *node)
{
	int64_t step = node->keeper.step_ns;

	node->keeper.step_ns = 0;
	if (step > STEP_MS * (int64_t)MS || step < -STEP_MS * (int64_t)MS)
		message_warning("The clock of Redis at %s was stepped by %+.3f s. It is followed.", node->place,
		    (double)step / 1e9);
}

static void show(struct expirer_node *node)
{
	const struct waiting *waiting = &node->keeper.waiting;

	pthread_mutex_lock(&node->lock);
	keeper_read_stats(&node->keeper, &node->shown.keeper);
	node->shown.keeper.is_exact &= !node->is_behind;
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

/* ---- Replies. NULL: all is well, otherwise why the connections are of no use */

static const char *take_line(struct expirer_node *node)
{
	static char text[200];
	struct redisReply *reply;
	const char *why = NULL;
	int result;

	while (!why && (result = ww_redis_line_reply(node->talk.line, &reply)) != 0) {
		if (result < 0)
			return ww_redis_line_why(node->talk.line);
		node->heard[0] = now_ns();
		if (ww_redis_line_judge(reply, text, sizeof text) && !keeper_takes_error(&node->keeper, reply))
			why = text;
		else if (keeper_reply(&node->keeper, reply, node->heard[0]) != 0)
			why = "its answer makes no sense, or there is no memory";
		else if (!node->keeper.is_master)
			why = "it is a replica now: give the address of the master";
		ww_redis_line_free(reply);
	}
	return why;
}

static void hear_flush(struct expirer_node *node)
{
	node->is_flushed = 1;
	state_seen("flush",
	    "A database was flushed at %s: the keys of database %u are gone through again, at most once a second.",
	    node->place, node->db);
}

static const char *take_ear(struct expirer_node *node)
{
	struct redisReply *reply;
	int result;

	while ((result = ww_redis_line_reply(node->talk.ear, &reply)) != 0) {
		if (result < 0)
			return ww_redis_line_why(node->talk.ear);
		node->heard[1] = now_ns();
		node->pinged = 0;
		result = talk_hear(reply, &node->keeper);
		ww_redis_line_free(reply);
		if (result < 0)
			return "no memory";
		if (result > 0)
			hear_flush(node);
	}
	return NULL;
}

/* ---- Being late */

/* Keys wait in order: if one that waited at the mark still does, it has since then. */
static void watch_waiting(struct expirer_node *node, uint64_t now)
{
	const struct waiting *waiting = &node->keeper.waiting;
	int is_late = now - node->marked_at > BEHIND_MS * MS;

	if (waiting->dropped < node->marked && is_late && !node->is_behind) {
		node->is_behind = 1;
		state_begin("behind", STATE_STOPS_READING,
		    "The oldest change of a key at %s has waited for a second to be looked up. Changed keys may end late.",
		    node->place);
	}
	if (waiting->dropped < node->marked)
		return;
	if (node->is_behind && (!is_late || waiting_is_empty(waiting))) {
		node->is_behind = 0;
		state_end("behind", "Changes of keys at %s are looked up in time again.", node->place);
	}
	node->marked = waiting->added;
	node->marked_at = now;
}

static void follow_flush(struct expirer_node *node, uint64_t now)
{
	if (!node->is_flushed || now - node->began < FLUSH_MS * MS)
		return;
	node->is_flushed = 0;
	node->began = now;
	keeper_pass(&node->keeper);
}

/* Whether the ear is left unread. */
static int is_deaf(const struct expirer_node *node)
{
	return node->keeper.waiting.end - node->keeper.waiting.head > waiting_most;
}

static const char *keep_alive(struct expirer_node *node, uint64_t now)
{
	uint64_t silent = node->keeper.kind != KEEPER_IDLE ? now - node->keeper.sent : 0;

	if (is_deaf(node)) {
		node->heard[1] = now;
		node->pinged = 0;
	}
	if (node->pinged && now - node->pinged > silent)
		silent = now - node->pinged;
	if (silent > LOST_MS * MS)
		return "it does not answer";
	if (silent > QUIET_MS * MS)
		state_begin("silent", STATE_STOPS_READING,
		    "Redis at %s has been silent for a second. Keys that end meanwhile are asked for when it answers.",
		    node->place);
	else
		state_end("silent", "Redis at %s answers again.", node->place);
	if (node->pinged || now - node->heard[1] < QUIET_MS * MS)
		return NULL;
	node->pinged = now;
	return ww_redis_line_append(node->talk.ear, 1, (const char *[]){"PING"}, NULL) ? "no memory" : NULL;
}

/* ---- Waiting */

/* Wait until something can be done. Returns which of the connections can, or -1: the thread ends. */
static int wait_for(struct expirer_node *node, uint64_t until)
{
	struct pollfd polled[3] = {
	    {.fd = ww_redis_line_fd(node->talk.line), .events = ww_redis_line_events(node->talk.line)},
	    {.fd = is_deaf(node) ? -1 : ww_redis_line_fd(node->talk.ear),
	        .events = ww_redis_line_events(node->talk.ear)},
	    {.fd = node->wake, .events = POLLIN}};
	uint64_t now = now_ns();
	struct timespec left = time_spec(until > now ? until - now : 0);

	if (ppoll(polled, 3, &left, NULL) < 0 && errno != EINTR)
		return -1;
	if (polled[2].revents)
		return -1;
	return (polled[0].revents ? 1 : 0) | (polled[1].revents ? 2 : 0);
}

/* Move both connections. Returns NULL, or why they are of no use. */
static const char *move(struct expirer_node *node, int which)
{
	const char *why = NULL;

	if (which & 2) {
		if (ww_redis_line_move(node->talk.ear))
			return ww_redis_line_why(node->talk.ear);
		why = take_ear(node);
	}
	if (!why && which & 1) {
		if (ww_redis_line_move(node->talk.line))
			return ww_redis_line_why(node->talk.line);
		why = take_line(node);
	}
	return why;
}

/* Append the next request, send it at once, and wait until something can be done. Returns what wait_for does. */
static int step(struct expirer_node *node, const char **why)
{
	uint64_t now = now_ns();
	uint64_t again;

	if (keeper_next(&node->keeper, now, &again) != 0)
		*why = "no memory";
	else
		*why = keep_alive(node, now);
	if (!*why && node->is_appended) {
		*why = move(node, 1);
		/* The answer may be here already. */
		again = node->keeper.kind == KEEPER_IDLE ? now : again;
	}
	node->is_appended = 0;
	return *why ? 0 : wait_for(node, again < now + QUIET_MS * MS / 4 ? again : now + QUIET_MS * MS / 4);
}

/* Keep the deadlines while the connections live. Returns why they do not any more, or NULL: the thread ends. */
static const char *serve(struct expirer_node *node)
{
	const char *why = NULL;

	while (!why) {
		int which = step(node, &why);

		if (which < 0)
			return NULL;
		why = why ? why : move(node, which);
		follow_flush(node, now_ns());
		watch_waiting(node, now_ns());
		say_exact(node);
		say_step(node);
		show(node);
	}
	return why;
}

/* ---- Life */

static void pause_for(const struct expirer_node *node, uint64_t ms)
{
	struct pollfd polled = {.fd = node->wake, .events = POLLIN};

	(void)poll(&polled, 1, (int)ms);
}

static void connected(struct expirer_node *node)
{
	uint64_t now = now_ns();

	state_end("redis", "Redis at %s is there.", node->place);
	keeper_connected(&node->keeper, now, node->talk.has_times);
	node->heard[0] = node->heard[1] = now;
	node->pinged = 0;
	node->is_appended = node->is_flushed = 0;
	node->marked_at = now;
	node->is_awaited = 1;
	node->began = now;
	message_info(
	    "Connected, and told of changes by client tracking: going through the keys of database %u. Keys that "
	    "are not found yet may end late.",
	    node->db);
}

static void *run(void *context)
{
	struct expirer_node *node = context;
	uint64_t pause = BACKOFF_FIRST_MS;
	int is_open = node->talk.line != NULL;

	while (!talk_is_ended(node->wake)) {
		const char *why = NULL;

		if (is_open || talk_open(&node->talk, &node->config, node->wake) == TALK_WORKS) {
			uint64_t began = now_ns();

			connected(node);
			why = serve(node);
			/* One that was cut off soon will be again. */
			if (now_ns() - began > LOST_MS * MS)
				pause = BACKOFF_FIRST_MS;
			if (!why)
				break;
			say_lost(node, why);
			node->keeper.is_exact = 0;
			show(node);
			talk_close(&node->talk);
			state_end("silent", "Redis at %s is lost.", node->place);
			state_end("behind", "Redis at %s is lost.", node->place);
			node->is_behind = 0;
		} else if (!talk_is_ended(node->wake)) {
			say_lost(node, node->talk.why);
		}
		is_open = 0;
		pause_for(node, pause);
		pause = 2 * pause < BACKOFF_MOST_MS ? 2 * pause : BACKOFF_MOST_MS;
	}
	talk_close(&node->talk);
	return NULL;
}

static int start_thread(struct expirer_node *node)
{
	sigset_t all, before;
	int error;

	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&node->thread, NULL, run, node);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? message_error("cannot start a thread") : 0;
}

static void node_free(struct expirer_node *node)
{
	talk_close(&node->talk);
	keeper_end(&node->keeper);
	if (node->wake >= 0)
		(void)close(node->wake);
	pthread_mutex_destroy(&node->lock);
	free(node);
}

static int start(struct expirer_node *node)
{
	const struct keeper_config config = {
	    .match = node->config.match, .only_later = node->config.only_later, .append = append, .context = node};
	const char *why;

	if (node->wake < 0 || keeper_begin(&node->keeper, &config) != 0)
		return message_error("no memory, or no descriptor");
	if (ww_redis_line_read(node->config.url, node->place, &node->db, &why))
		return message_error("%s", why);
	switch (talk_open(&node->talk, &node->config, node->wake)) {
	case TALK_WRONG:
		return message_error("Redis at %s: %s", node->place, node->talk.why);
	case TALK_AGAIN:
		say_lost(node, node->talk.why);
		break;
	case TALK_WORKS:
		break;
	}
	return start_thread(node);
}

struct expirer_node *node_start(const struct node_config *config)
{
	struct expirer_node *node = calloc(1, sizeof *node);

	if (!node) {
		message_error("no memory");
		return NULL;
	}
	node->config = *config;
	node->wake = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&node->lock, NULL);
	if (start(node) == 0)
		return node;
	node_free(node);
	return NULL;
}

void node_stop(struct expirer_node *node)
{
	const uint64_t one = 1;

	if (!node)
		return;
	(void)!write(node->wake, &one, sizeof one);
	pthread_join(node->thread, NULL);
	node_free(node);
}
