/* A master, and the thread that keeps its deadlines: see node.h. */
#include "tools/weekwheel-expirer/node/node_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "lib/redis/link/link.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "weekwheel/error.h"

/*
 * Silence, in ns: after the first time the ear is pinged and a state begins, after the second the connections are
 * given up.
 */
enum { QUIET_MS = 1000, LOST_MS = 10000 };
/* A change that has waited longer may make a key end late. */
enum { BEHIND_MS = 1000 };
/* Flushes begin at most one pass in this time. */
enum { FLUSH_MS = 1000 };
/* New slots begin a pass when none has come for the first time, at the latest after the second. */
enum { SLOTS_MS = 1000, SLOTS_MOST_MS = 10000 };
/* Where replicas may take over, a node that comes back is tried again soon. */
enum { BACKOFF_FIRST_MS = 100, BACKOFF_MOST_MS = 2000, BACKOFF_SOON_MS = 200 };
/* The most bytes of waiting keys. Beyond it the ear is not read, and if that goes on, Redis disconnects it. */
static const size_t waiting_most = (size_t)64 << 20;

static int append(void *context, size_t argc, const char *const *argv, const size_t *lengths)
{
	struct expirer_node *node = context;

	node->is_appended = 1;
	return ww_redis_line_append(node->talk.line, argc, argv, lengths);
}

/* ---- Replies. NULL: all is well, otherwise why the connections are of no use */

/* What has arrived by that time. */
static const char *take_line(struct expirer_node *node, uint64_t came)
{
	struct redisReply *reply;
	const char *why = NULL;
	int result;

	while (!why && (result = ww_redis_line_reply(node->talk.line, &reply)) != 0) {
		if (result < 0)
			return ww_redis_line_why(node->talk.line);
		node->heard[0] = came;
		if (ww_redis_line_judge(reply, node->error, sizeof node->error) &&
		    !keeper_takes_error(&node->keeper, reply))
			why = node->error;
		else if (keeper_reply(&node->keeper, reply, node->heard[0]) != 0)
			why = "its answer makes no sense, or there is no memory";
		else if (!node->keeper.is_told)
			why = KEEPER_EVENTS " has no E or no g any more";
		else if (!node->keeper.is_master)
			why = node->config.kind == NODE_ALONE ? "it is a replica now: give the address of the master"
			                                      : "it is a replica now";
		ww_redis_line_free(reply);
	}
	return why;
}

static void hear_flush(struct expirer_node *node)
{
	node->is_flushed = 1;
	state_seen(node_state(node, "flush"),
	    "A database was flushed at %s: the keys of database %u are gone through again, at most once a second.",
	    node->place, node->config.db);
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

/* Keys wait in order: if one that waited at the mark still waits, it has waited since then. */
static void watch_waiting(struct expirer_node *node, uint64_t now)
{
	const struct waiting *waiting = &node->keeper.waiting;
	int is_late = now - node->marked_at > BEHIND_MS * MS;

	if (waiting->dropped < node->marked && is_late && !node->is_behind) {
		node->is_behind = 1;
		state_begin(node_state(node, "behind"), STATE_STOPS_READING,
		    "The oldest change of a key at %s has waited for a second to be looked up. Changed keys may end late.",
		    node->place);
	}
	if (waiting->dropped < node->marked)
		return;
	if (node->is_behind && (!is_late || waiting_is_empty(waiting))) {
		node->is_behind = 0;
		state_end(
		    node_state(node, "behind"), "Changes of keys at %s are looked up in time again.", node->place);
	}
	node->marked = waiting->added;
	node->marked_at = now;
}

static void begin_pass(struct expirer_node *node, uint64_t now)
{
	node->is_flushed = 0;
	node->gained = 0;
	node->began = now;
	keeper_pass(&node->keeper);
}

static void follow_flush(struct expirer_node *node, uint64_t now)
{
	if (node->is_flushed && now - node->began >= FLUSH_MS * MS)
		begin_pass(node, now);
}

/* Others may serve what this node should serve. */
static void doubt(const struct expirer_node *node)
{
	if (node->config.doubt)
		node->config.doubt(node->config.context);
}

/* Redis reports each key of an arriving slot. A pass finds those that arrive in a way that it does not report. */
static void follow_slots(struct expirer_node *node, uint64_t now)
{
	if (node->keeper.is_misled)
		doubt(node);
	node->keeper.is_misled = 0;
	if (!node->gained || (now - node->gained_last < SLOTS_MS * MS && now - node->gained < SLOTS_MOST_MS * MS))
		return;
	state_seen(node_state(node, "slots"), "Slots came to %s: its keys are gone through again.", node->place);
	node->is_awaited = 1;
	begin_pass(node, now);
}

/* Whether reading from the ear is held back. */
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
		keeper_doubt(&node->keeper, now);
	}
	if (node->pinged && now - node->pinged > silent)
		silent = now - node->pinged;
	if (silent > LOST_MS * MS)
		return "it does not answer";
	if (silent > QUIET_MS * MS)
		keeper_doubt(&node->keeper, now);
	if (silent > QUIET_MS * MS)
		state_begin(node_state(node, "silent"), STATE_STOPS_READING,
		    "Redis at %s has been silent for a second. Keys that end meanwhile are asked for when it answers.",
		    node->place);
	else
		state_end(node_state(node, "silent"), "Redis at %s answers again.", node->place);
	if (node->pinged || now - node->heard[1] < QUIET_MS * MS)
		return NULL;
	node->pinged = now;
	return ww_redis_line_append(node->talk.ear, 1, (const char *[]){"PING"}, NULL) ? "no memory" : NULL;
}

/* ---- Orders */

static void give_order(struct expirer_node *node)
{
	const uint64_t one = 1;

	(void)!write(node->wake, &one, sizeof one);
}

/* Returns 1 if some are new. */
static int take_slots(struct expirer_node *node, const uint8_t serves[KEEPER_SLOTS / 8])
{
	int is_new = 0;

	for (size_t i = 0; i < KEEPER_SLOTS / 8; i++)
		is_new |= (serves[i] & ~node->keeper.serves[i]) != 0;
	memcpy(node->keeper.serves, serves, KEEPER_SLOTS / 8);
	return is_new;
}

static void take_address(struct expirer_node *node, const struct redis_address *address)
{
	char was[REDIS_PLACE_MAX];

	memcpy(was, node->place, sizeof was);
	node_end_states(node, 1);
	node->address = *address;
	ww_redis_address_write(address, node->place);
	message_info("Redis at %s is the master now, instead of %s.", node->place, was);
}

/* Returns 0 if the connections have to be given up. */
static int follow_orders(struct expirer_node *node)
{
	struct redis_address address;
	uint64_t now = now_ns();
	uint64_t count;
	int is_moved;

	(void)!read(node->wake, &count, sizeof count);
	pthread_mutex_lock(&node->lock);
	if (take_slots(node, node->orders.serves)) {
		node->gained = node->gained ? node->gained : now;
		node->gained_last = now;
	}
	address = node->orders.address;
	is_moved = node->orders.is_moved;
	node->orders.is_moved = 0;
	node->is_ending |= node->orders.is_ending;
	pthread_mutex_unlock(&node->lock);
	if (is_moved)
		take_address(node, &address);
	node->is_moved |= is_moved;
	return !is_moved && !node->is_ending;
}

void node_move(struct expirer_node *node, const struct redis_address *address)
{
	pthread_mutex_lock(&node->lock);
	node->orders.address = *address;
	node->orders.is_moved = 1;
	pthread_mutex_unlock(&node->lock);
	give_order(node);
}

void node_serve(struct expirer_node *node, const uint8_t slots[KEEPER_SLOTS / 8])
{
	int is_new;

	pthread_mutex_lock(&node->lock);
	is_new = memcmp(node->orders.serves, slots, KEEPER_SLOTS / 8) != 0;
	memcpy(node->orders.serves, slots, KEEPER_SLOTS / 8);
	pthread_mutex_unlock(&node->lock);
	if (is_new)
		give_order(node);
}

int node_end(struct expirer_node *node)
{
	int is_over;

	pthread_mutex_lock(&node->lock);
	node->orders.is_ending = 1;
	is_over = node->orders.is_over;
	pthread_mutex_unlock(&node->lock);
	give_order(node);
	return is_over;
}

/* ---- Waiting */

/* Wait until something can be done. Returns which of the connections are ready, or -1 for orders. */
static int wait_for(struct expirer_node *node, uint64_t until)
{
	struct pollfd polled[3] = {
	    {.fd = ww_redis_line_fd(node->talk.line), .events = ww_redis_line_events(node->talk.line)},
	    {.fd = is_deaf(node) ? -1 : ww_redis_line_fd(node->talk.ear),
	        .events = ww_redis_line_events(node->talk.ear)},
	    {.fd = node->wake, .events = POLLIN}};
	uint64_t now = now_ns();
	struct timespec left = time_spec(until > now ? until - now : 0);

	int result;

	pthread_mutex_unlock(&node->busy);
	result = ppoll(polled, 3, &left, NULL);
	pthread_mutex_lock(&node->busy);
	if ((result < 0 && errno != EINTR) || polled[2].revents)
		return -1;
	return (polled[0].revents ? 1 : 0) | (polled[1].revents ? 2 : 0);
}

/*
 * Read the ear. Redis reports very many changes at once in one message, whose end may come after the deadlines of its keys
 * have passed here, or after an answer. Returns as move.
 */
static const char *hear(struct expirer_node *node)
{
	const char *why;

	if (is_deaf(node))
		return NULL;
	why = ww_redis_line_move(node->talk.ear) ? ww_redis_line_why(node->talk.ear) : take_ear(node);
	if (!why && node->keeper.config.watch && ww_redis_line_is_amid(node->talk.ear))
		keeper_doubt(&node->keeper, now_ns());
	return why;
}

/* Read and write both connections. Returns NULL, or why they have to be given up. */
static const char *move(struct expirer_node *node, int which)
{
	const char *why = NULL;
	uint64_t came;

	if (which & 1 && ww_redis_line_move(node->talk.line))
		return ww_redis_line_why(node->talk.line);
	came = now_ns();
	/*
	 * Changes that Redis reported before it answered have arrived by now, and are read before the answer: ends.h
	 * relies on that.
	 */
	if (which)
		why = hear(node);
	return !why && which & 1 ? take_line(node, came) : why;
}

/* Of what a journal has: keeper_next has noted it, and no answer has come since. */
static void say(struct expirer_node *node, uint64_t now)
{
	watch_waiting(node, now);
	/* Whoever reads the log finds the same in the metrics. */
	node_show(node);
	node_log_exact(node);
	node_log_outrun(node);
	node_log_step(node);
	node_log_down(node);
}

/* Append the next request, send it at once, and wait until something can be done. Returns what wait_for does. */
static int step(struct expirer_node *node, const char **why)
{
	uint64_t now = now_ns();
	uint64_t again = now;

	/* What is heard later is from after the deadlines that have passed by now: ends_hear relies on that. */
	*why = hear(node);
	if (!*why && keeper_next(&node->keeper, now, &again) != 0)
		*why = "no memory";
	now = now_ns();
	if (!*why)
		*why = keep_alive(node, now);
	say(node, now);
	if (!*why && node->is_appended) {
		*why = move(node, 1);
		/* The answer may be here already. */
		again = node->keeper.kind == KEEPER_IDLE ? now : again;
	}
	node->is_appended = 0;
	return *why ? 0 : wait_for(node, again < now + QUIET_MS * MS / 4 ? again : now + QUIET_MS * MS / 4);
}

/* Keep the deadlines while the connections live. Returns why they no longer do, or NULL: by order. */
static const char *serve(struct expirer_node *node)
{
	const char *why = NULL;

	while (!why) {
		int which = step(node, &why);

		if (which < 0 && !follow_orders(node))
			return NULL;
		why = why ? why : move(node, which > 0 ? which : 0);
		follow_flush(node, now_ns());
		follow_slots(node, now_ns());
	}
	return why;
}

/* ---- Life */

static void pause_for(struct expirer_node *node, uint64_t ms)
{
	struct pollfd polled = {.fd = node->wake, .events = POLLIN};

	pthread_mutex_unlock(&node->busy);
	(void)poll(&polled, 1, (int)ms);
	pthread_mutex_lock(&node->busy);
}

static void connected(struct expirer_node *node)
{
	uint64_t now = now_ns();

	state_end(node_state(node, "redis"), "Redis at %s is there.", node->place);
	node->lost[0] = 0;
	node->keeper.by_events = node->talk.by_events;
	keeper_connected(&node->keeper, now, node->talk.has_times);
	node->heard[0] = node->heard[1] = now;
	node->pinged = node->gained = 0;
	node->is_appended = node->is_flushed = 0;
	node->marked_at = now;
	node->is_awaited = 1;
	node->began = now;
	message_info(
	    "Connected to %s, and told of changes by %s: going through the keys of database %u. Keys that are not "
	    "found yet may end late.",
	    node->place, node->talk.by_events ? "keyspace events" : "client tracking", node->config.db);
}

/* The connections are given up: why, or NULL: by order. */
static void disconnected(struct expirer_node *node, const char *why)
{
	if (why)
		node_log_lost(node, why);
	node->keeper.is_exact = 0;
	node->is_behind = node->is_down = 0;
	node_end_states(node, 0);
	talk_close(&node->talk);
	node_show(node);
}

static int open_talk(struct expirer_node *node)
{
	enum talk_result result = TALK_WORKS;

	if (!node->talk.line) {
		pthread_mutex_unlock(&node->busy);
		result = talk_open(&node->talk, &node->config, &node->address, node->wake);
		pthread_mutex_lock(&node->busy);
	}
	if (result == TALK_WORKS)
		return 1;
	if (!talk_is_ended(node->wake))
		node_log_lost(node, node->talk.why);
	return 0;
}

/* Connect, and keep deadlines while the connection lasts. Returns how long it did, in ns. */
static uint64_t try_once(struct expirer_node *node)
{
	uint64_t began = now_ns();

	if (open_talk(node)) {
		connected(node);
		disconnected(node, serve(node));
	}
	doubt(node);
	return now_ns() - began;
}

static void *run(void *context)
{
	struct expirer_node *node = context;
	uint64_t most = node->config.kind == NODE_ALONE ? BACKOFF_MOST_MS : BACKOFF_SOON_MS;
	uint64_t pause = BACKOFF_FIRST_MS;

	pthread_mutex_lock(&node->busy);
	while (!node->is_ending) {
		/* A connection that was soon cut off will be again. */
		if (try_once(node) > LOST_MS * MS)
			pause = BACKOFF_FIRST_MS;
		if (!node->is_ending && !node->is_moved)
			pause_for(node, pause);
		if (talk_is_ended(node->wake))
			(void)follow_orders(node);
		pause = node->is_moved ? BACKOFF_FIRST_MS : 2 * pause < most ? 2 * pause : most;
		node->is_moved = 0;
	}
	node_end_states(node, 1);
	talk_close(&node->talk);
	pthread_mutex_unlock(&node->busy);
	pthread_mutex_lock(&node->lock);
	node->orders.is_over = 1;
	pthread_mutex_unlock(&node->lock);
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
	pthread_mutex_destroy(&node->busy);
	free(node);
}

/* Connect for the first time. */
static int begin(struct expirer_node *node)
{
	switch (talk_open(&node->talk, &node->config, &node->address, node->wake)) {
	case TALK_WRONG:
		return message_error("Redis at %s: %s", node->place, node->talk.why);
	case TALK_AGAIN:
		node_log_lost(node, node->talk.why);
		break;
	case TALK_WORKS:
		break;
	}
	return 0;
}

static int start(struct expirer_node *node, int is_first)
{
	const struct keeper_config config = {.match = node->config.match,
	    .only_later = node->config.only_later,
	    .window_ms = node->config.window_ms,
	    .lead_ms = node->config.lead_ms,
	    .value_max = node->config.value_max,
	    .values_max = node->config.values_max,
	    .watch = node->config.watch,
	    .deadlines = node->config.deadlines,
	    .slot = node->config.kind == NODE_OF_CLUSTER ? ww_redis_link_slot : NULL,
	    .append = append,
	    .context = node};

	if (node->wake < 0 || keeper_begin(&node->keeper, &config) != 0)
		return message_error("no memory, or no descriptor");
	(void)take_slots(node, node->orders.serves);
	ww_redis_address_write(&node->address, node->place);
	strcpy(node->shown.place, node->place);
	if (is_first && begin(node) != 0)
		return -1;
	return start_thread(node);
}

struct expirer_node *node_start(const struct node_config *config, const struct redis_address *address,
    const uint8_t slots[KEEPER_SLOTS / 8], int is_first)
{
	struct expirer_node *node = calloc(1, sizeof *node);

	if (!node) {
		message_error("no memory");
		return NULL;
	}
	node->config = *config;
	node->address = *address;
	memcpy(node->orders.serves, slots, KEEPER_SLOTS / 8);
	node->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&node->lock, NULL);
	pthread_mutex_init(&node->busy, NULL);
	if (start(node, is_first) == 0)
		return node;
	node_free(node);
	return NULL;
}

void node_stop(struct expirer_node *node)
{
	if (!node)
		return;
	(void)node_end(node);
	pthread_join(node->thread, NULL);
	node_free(node);
}
