/* The masters that the url names, and their nodes: see masters.h. */
#include "tools/weekwheel-expirer/masters/masters.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-expirer/masters/find.h"

/* How often the masters are looked up: at most; while one is in doubt; otherwise. */
enum { LEAST_MS = 100, DOUBT_MS = 200, USUAL_MS = 1000 };

struct master {
	struct expirer_node *node;
	struct redis_address address;
	uint8_t slots[KEEPER_SLOTS / 8];
	int is_found; /* in the map */
};

struct expirer_masters {
	struct masters_config config;
	struct redis_url url;
	int is_known;            /* of what kind they are */
	struct cluster *cluster; /* NULL: it is none */
	struct sentinels *sentinels;
	struct redis_map map;
	uint8_t is_served[REDIS_NODES_MAX]; /* a node of the map has a master in the list */
	char why[FIND_WHY];
	int has_thread;
	pthread_t thread;
	int wake; /* an eventfd: a master is in doubt, or the program ends */
	_Atomic int is_ending;
	pthread_mutex_t lock; /* of the list, which the thread alone changes */
	struct master *list;
	size_t count;
	size_t room;
	struct expirer_node **leaving; /* they end */
	size_t leaving_count;
	size_t leaving_room;
};

/* Make room for one more. Returns the array, or NULL after a message. */
static void *grow(void *array, size_t count, size_t *room, size_t size)
{
	void *grown;

	if (count < *room)
		return array;
	grown = realloc(array, (2 * count + 4) * size);
	if (grown)
		*room = 2 * count + 4;
	else
		message_error("no memory");
	return grown;
}

static int is_same(const struct redis_address *one, const struct redis_address *other)
{
	return one->port == other->port && strcmp(one->host, other->host) == 0;
}

/* ---- Following the map */

static void slots_of(const struct redis_map *map, uint16_t place, uint8_t slots[KEEPER_SLOTS / 8])
{
	memset(slots, 0, KEEPER_SLOTS / 8);
	for (unsigned slot = 0; slot < KEEPER_SLOTS; slot++)
		if (map->slots[slot] == place)
			slots[slot / 8] |= (uint8_t)(1 << slot % 8);
}

static unsigned common_slots(const uint8_t one[KEEPER_SLOTS / 8], const uint8_t other[KEEPER_SLOTS / 8])
{
	unsigned count = 0;

	for (size_t i = 0; i < KEEPER_SLOTS / 8; i++)
		count += (unsigned)__builtin_popcount(one[i] & other[i]);
	return count;
}

static struct master *master_at(struct expirer_masters *masters, const struct redis_address *address)
{
	for (size_t i = 0; i < masters->count; i++)
		if (is_same(&masters->list[i].address, address))
			return &masters->list[i];
	return NULL;
}

/* The former master that had most of these slots. */
static struct master *find_former(struct expirer_masters *masters, const uint8_t slots[KEEPER_SLOTS / 8])
{
	struct master *former = NULL;
	unsigned most = masters->sentinels ? 0 : 1;

	for (size_t i = 0; i < masters->count; i++) {
		unsigned common = common_slots(masters->list[i].slots, slots);

		if (masters->list[i].is_found || common < most)
			continue;
		former = &masters->list[i];
		most = common + 1;
	}
	return former;
}

/* ---- What was known before. What is of slots without a master waits until a node comes that serves them. */

struct part {
	struct deadlines *from;
	struct deadlines *to;
	const uint8_t *slots;
	int is_short; /* there is no memory */
};

static void hand_over(void *context, uint32_t index)
{
	struct part *part = context;
	struct known_key known;
	size_t length;
	const char *key = deadlines_key(part->from, index, &length);
	unsigned slot = ww_redis_link_slot(key, length);

	if (!(part->slots[slot / 8] >> slot % 8 & 1))
		return;
	deadlines_look(part->from, index, &known);
	if (deadlines_set(part->to, key, length, known.at) == 0)
		deadlines_drop(part->from, index);
	else
		part->is_short = 1;
}

/* Take what is known about these slots. Returns NULL if nothing is. */
static struct deadlines *take_part(struct expirer_masters *masters, const uint8_t slots[KEEPER_SLOTS / 8])
{
	struct part part = {.from = masters->config.node.deadlines, .slots = slots};
	uint32_t from = 0;

	if (!part.from || !masters->cluster) {
		masters->config.node.deadlines = NULL;
		return part.from;
	}
	part.to = deadlines_make();
	part.is_short = !part.to;
	while (!part.is_short && deadlines_walk(part.from, &from, hand_over, &part))
		;
	if (part.is_short)
		message_error("no memory for all keys of --data");
	if (deadlines_count(part.from) == 0) {
		deadlines_free(part.from);
		masters->config.node.deadlines = NULL;
	}
	return part.to;
}

static void settle(const struct expirer_masters *masters)
{
	const struct keeper_watch *watch = masters->config.node.watch;

	if (watch && watch->settled && !masters->config.node.deadlines && masters->count > 0)
		watch->settled(watch->context);
}

/* ---- The list */

static int add(struct expirer_masters *masters, const struct redis_address *address,
    const uint8_t slots[KEEPER_SLOTS / 8], int is_first)
{
	struct master *list = grow(masters->list, masters->count, &masters->room, sizeof *list);
	struct node_config node = masters->config.node;
	struct master *added;

	if (!list)
		return -1;
	masters->list = list;
	added = &masters->list[masters->count];
	*added = (struct master){.address = *address, .is_found = 1};
	memcpy(added->slots, slots, sizeof added->slots);
	node.deadlines = take_part(masters, slots);
	added->node = node_start(&node, address, slots, is_first);
	masters->count += added->node != NULL;
	return added->node ? 0 : -1;
}

/* A node of the map that is not in the list. */
static int follow_new(struct expirer_masters *masters, uint16_t place, int is_first)
{
	const struct redis_address *address = &masters->map.nodes[place];
	uint8_t slots[KEEPER_SLOTS / 8];
	struct master *former;

	slots_of(&masters->map, place, slots);
	former = find_former(masters, slots);
	if (!former)
		return add(masters, address, slots, is_first);
	former->address = *address;
	former->is_found = 1;
	memcpy(former->slots, slots, sizeof slots);
	node_serve(former->node, slots);
	node_move(former->node, address);
	return 0;
}

static int remove_lost(struct expirer_masters *masters)
{
	for (size_t i = masters->count; i-- > 0;) {
		struct expirer_node **leaving;

		if (masters->list[i].is_found)
			continue;
		leaving = grow(masters->leaving, masters->leaving_count, &masters->leaving_room, sizeof *leaving);
		if (!leaving)
			return -1;
		masters->leaving = leaving;
		(void)node_end(masters->list[i].node);
		masters->leaving[masters->leaving_count++] = masters->list[i].node;
		masters->list[i] = masters->list[--masters->count];
	}
	return 0;
}

static void find_known(struct expirer_masters *masters)
{
	for (size_t i = 0; i < masters->count; i++)
		masters->list[i].is_found = 0;
	for (uint16_t place = 0; place < masters->map.count; place++) {
		struct master *master = master_at(masters, &masters->map.nodes[place]);

		masters->is_served[place] = master != NULL;
		if (!master)
			continue;
		master->is_found = 1;
		slots_of(&masters->map, place, master->slots);
		node_serve(master->node, master->slots);
	}
}

/* Returns -1 after a message. */
static int follow_map(struct expirer_masters *masters, int is_first)
{
	int result = 0;

	pthread_mutex_lock(&masters->lock);
	find_known(masters);
	for (uint16_t place = 0; place < masters->map.count && result == 0; place++)
		if (!masters->is_served[place])
			result = follow_new(masters, place, is_first);
	if (result == 0)
		result = remove_lost(masters);
	settle(masters);
	pthread_mutex_unlock(&masters->lock);
	return result;
}

static void reap(struct expirer_masters *masters)
{
	for (size_t i = masters->leaving_count; i-- > 0;) {
		if (!node_end(masters->leaving[i]))
			continue;
		node_stop(masters->leaving[i]);
		masters->leaving[i] = masters->leaving[--masters->leaving_count];
	}
}

/* ---- Finding */

static int is_connected(const struct master *master)
{
	struct node_numbers numbers;

	node_read_numbers(master->node, &numbers);
	return numbers.is_connected;
}

static int is_doubted(const struct redis_address *address, void *context)
{
	const struct master *master = master_at(context, address);

	return master && !is_connected(master);
}

static int is_any_lost(const struct expirer_masters *masters)
{
	for (size_t i = 0; i < masters->count; i++)
		if (!is_connected(&masters->list[i]))
			return 1;
	return masters->count == 0;
}

static enum talk_result wrong_hosts(struct expirer_masters *masters, const char *place)
{
	(void)snprintf(masters->why, sizeof masters->why,
	    "The url names several hosts, but Redis at %s is no node of a cluster: give the address of the master alone, "
	    "or those of Sentinels as redis+sentinel://HOST:PORT,HOST:PORT/NAME.",
	    place);
	return TALK_WRONG;
}

/* Ask the first host that answers whether it is a node of a cluster. */
static enum talk_result find_kind(struct expirer_masters *masters)
{
	enum talk_result result = TALK_AGAIN;
	char place[REDIS_PLACE_MAX];
	struct talk talk;
	int is_cluster = 0;

	for (size_t i = 0; i < masters->url.count && result == TALK_AGAIN; i++) {
		ww_redis_address_write(&masters->url.hosts[i], place);
		result =
		    talk_find_cluster(&talk, &masters->config.node, &masters->url.hosts[i], masters->wake, &is_cluster);
	}
	if (result == TALK_WRONG)
		(void)snprintf(masters->why, sizeof masters->why, "Redis at %s: %s", place, talk.why);
	else if (result == TALK_AGAIN)
		(void)snprintf(masters->why, sizeof masters->why, "Redis at %s is lost: %s.", place, talk.why);
	else if (!is_cluster && masters->url.count > 1)
		return wrong_hosts(masters, place);
	if (result != TALK_WORKS)
		return result;
	masters->config.node.kind = is_cluster ? NODE_OF_CLUSTER : NODE_ALONE;
	masters->cluster = is_cluster ? cluster_make(&masters->config) : NULL;
	masters->is_known = !is_cluster || masters->cluster;
	return masters->is_known ? TALK_WORKS : TALK_AGAIN;
}

static enum talk_result find(struct expirer_masters *masters)
{
	enum talk_result result = masters->is_known ? TALK_WORKS : find_kind(masters);

	if (result != TALK_WORKS)
		return result;
	if (masters->sentinels)
		return sentinels_find(masters->sentinels, &masters->map, is_any_lost(masters), masters->why);
	if (masters->cluster)
		return cluster_find(masters->cluster, &masters->map, is_doubted, masters, masters->why);
	masters->map.count = 1;
	masters->map.nodes[0] = masters->url.hosts[0];
	memset(masters->map.slots, 0xff, sizeof masters->map.slots);
	return TALK_WORKS;
}

static void log_uncovered(const struct expirer_masters *masters)
{
	char place[REDIS_PLACE_MAX];
	unsigned count = 0;

	if (!masters->cluster || masters->map.count == 0)
		return;
	for (unsigned slot = 0; slot < KEEPER_SLOTS; slot++)
		count += masters->map.slots[slot] == UINT16_MAX;
	ww_redis_address_write(&masters->map.nodes[0], place);
	if (count > 0)
		state_begin("uncovered", STATE_STOPS_READING,
		    "Nobody serves %u of the cluster's %d slots: it is only a part of a cluster. Its keys may not end "
		    "until \"redis-cli --cluster fix %s\" has given the slots to masters.",
		    count, KEEPER_SLOTS, place);
	else
		state_end("uncovered", "Each slot of the cluster has a master again.");
}

/* Report what was found, or not, by the states. */
static void log_found(const struct expirer_masters *masters, enum talk_result result)
{
	if (result == TALK_WORKS) {
		state_end("start", "It is known which masters there are.");
		state_end("masters", "It is known again which masters there are.");
		log_uncovered(masters);
	} else if (masters->count == 0) {
		state_begin("start", STATE_STOPS_READING,
		    "%s Until it is back, nobody asks for keys at their deadlines.", masters->why);
	} else {
		state_begin("masters", 0,
		    "Nobody says which masters there are: %s Those that were known are asked for keys.", masters->why);
	}
}

/* ---- Life */

static void doubt(void *context)
{
	const struct expirer_masters *masters = context;
	const uint64_t one = 1;

	(void)!write(masters->wake, &one, sizeof one);
}

static int wait_for_doubt(const struct expirer_masters *masters, int ms)
{
	struct pollfd polled = {.fd = masters->wake, .events = POLLIN};
	uint64_t count;

	if (poll(&polled, 1, ms) <= 0)
		return 0;
	(void)!read(masters->wake, &count, sizeof count);
	return 1;
}

/* A Redis alone stays one. */
static int is_settled(const struct expirer_masters *masters)
{
	return masters->is_known && !masters->cluster && !masters->sentinels && masters->count > 0;
}

static void *run(void *context)
{
	struct expirer_masters *masters = context;
	int pause = LEAST_MS;

	while (!masters->is_ending) {
		int is_doubtful = wait_for_doubt(masters, is_settled(masters) ? -1 : pause);

		if (masters->is_ending || is_settled(masters))
			continue;
		/* Others report the same. */
		if (is_doubtful)
			(void)poll(NULL, 0, LEAST_MS);
		enum talk_result result = find(masters);

		if (result == TALK_WORKS)
			(void)follow_map(masters, 0);
		if (!masters->is_ending)
			log_found(masters, result);
		reap(masters);
		pause = is_doubtful || result != TALK_WORKS || is_any_lost(masters) ? DOUBT_MS : USUAL_MS;
	}
	return NULL;
}

static int start_thread(struct expirer_masters *masters)
{
	sigset_t all, before;

	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	masters->has_thread = pthread_create(&masters->thread, NULL, run, masters) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return masters->has_thread ? 0 : message_error("cannot start a thread");
}

static int start(struct expirer_masters *masters)
{
	enum talk_result result;
	const char *why;

	if (masters->wake < 0)
		return message_error("no descriptor");
	if (ww_redis_url_parse(&masters->url, masters->config.node.url, &why))
		return message_error("%s", why);
	if (masters->url.master[0]) {
		masters->config.node.kind = NODE_OF_SENTINEL;
		masters->sentinels = sentinels_make(&masters->config, &masters->url);
		masters->is_known = 1;
		if (!masters->sentinels)
			return message_error("no memory");
	}
	result = find(masters);
	if (result == TALK_WRONG)
		return message_error("%s", masters->why);
	if (result == TALK_WORKS && follow_map(masters, 1) != 0)
		return -1;
	log_found(masters, result);
	return start_thread(masters);
}

struct expirer_masters *masters_start(const struct masters_config *config)
{
	struct expirer_masters *masters = calloc(1, sizeof *masters);

	if (!masters) {
		message_error("no memory");
		return NULL;
	}
	masters->config = *config;
	masters->config.node.doubt = doubt;
	masters->config.node.context = masters;
	masters->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&masters->lock, NULL);
	if (start(masters) == 0)
		return masters;
	masters_stop(masters);
	return NULL;
}

void masters_stop(struct expirer_masters *masters)
{
	if (!masters)
		return;
	masters->is_ending = 1;
	doubt(masters);
	if (masters->has_thread)
		pthread_join(masters->thread, NULL);
	/* All at once: each may be waiting for its Redis. */
	for (size_t i = 0; i < masters->count; i++)
		(void)node_end(masters->list[i].node);
	for (size_t i = 0; i < masters->count; i++)
		node_stop(masters->list[i].node);
	for (size_t i = 0; i < masters->leaving_count; i++)
		node_stop(masters->leaving[i]);
	deadlines_free(masters->config.node.deadlines);
	cluster_free(masters->cluster);
	sentinels_free(masters->sentinels);
	if (masters->wake >= 0)
		(void)close(masters->wake);
	pthread_mutex_destroy(&masters->lock);
	free(masters->list);
	free(masters->leaving);
	free(masters);
}

int masters_read_numbers(struct expirer_masters *masters, size_t place, struct node_numbers *numbers)
{
	int is_there;

	pthread_mutex_lock(&masters->lock);
	is_there = place < masters->count;
	if (is_there)
		node_read_numbers(masters->list[place].node, numbers);
	pthread_mutex_unlock(&masters->lock);
	return is_there;
}

int masters_walk(struct expirer_masters *masters, struct masters_walk *walk, node_fn *fn, void *context)
{
	int is_more;

	pthread_mutex_lock(&masters->lock);
	if (walk->place < masters->count && !node_walk(masters->list[walk->place].node, &walk->from, fn, context))
		*walk = (struct masters_walk){.place = walk->place + 1};
	is_more = walk->place < masters->count;
	pthread_mutex_unlock(&masters->lock);
	return is_more;
}

int masters_find(struct expirer_masters *masters, const char *key, size_t length, struct node_key *found)
{
	struct node_key one;
	int is_found = 0;

	pthread_mutex_lock(&masters->lock);
	for (size_t i = 0; i < masters->count && !(is_found && found->is_sure); i++)
		if (node_find(masters->list[i].node, key, length, &one) && (!is_found || one.is_sure)) {
			*found = one;
			is_found = 1;
		}
	pthread_mutex_unlock(&masters->lock);
	return is_found;
}
