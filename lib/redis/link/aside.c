/* Nodes that answer "later" or are silent, and slots that move: setting them aside alone (see link_internal.h). */
#include <stdio.h>
#include <string.h>

#include "lib/base/random.h"
#include "lib/redis/link/link_internal.h"

/* ns of the first pause, and of the longest: a probe of a server that answers is cheap, and a slot moves soon. */
#define FIRST UINT64_C(10000000)
#define NODE_MOST UINT64_C(500000000)
#define SLOT_MOST UINT64_C(100000000)
/* A slot without a call during this time is forgotten. */
#define FORGET UINT64_C(10000000000)

/* Between half the pause and all of it: processes that lost a server together do not come back together. */
uint64_t ww_redis_aside_pause_locked(struct redis_link *link, uint64_t first, uint64_t most, unsigned count)
{
	uint64_t pause = count > 16 ? UINT64_MAX : first << (count - 1);

	if (pause > most)
		pause = most;
	return pause - random_below(&link->random, pause / 2 + 1);
}

/* ---- Silence */

uint64_t ww_redis_aside_silence_locked(const struct redis_node *node)
{
	const struct redis_wire *wire;
	uint64_t now, heard, asked = REDIS_OWES_NOTHING;

	TAILQ_FOREACH(wire, &node->busy, busy)
	{
		asked = atomic_load_explicit(&wire->asked, memory_order_relaxed);
		if (asked != REDIS_OWES_NOTHING)
			break;
	}
	if (asked == REDIS_OWES_NOTHING)
		return 0;
	heard = atomic_load_explicit(&node->heard, memory_order_relaxed);
	heard = heard > asked ? heard : asked;
	now = time_now(CLOCK_MONOTONIC);
	return now > heard ? now - heard : 0;
}

int ww_redis_aside_others_serve_locked(const struct redis_link *link, const struct redis_node *node)
{
	for (uint32_t i = 0; i < link->count; i++) {
		const struct redis_node *other = link->nodes[i];
		if (other != node && other->has_slots && !other->failures && !other->pause.count &&
		    ww_redis_aside_silence_locked(other) < redis_silence(link))
			return 1;
	}
	return 0;
}

/* ---- Pauses */

static struct redis_pause *slot_pause_locked(struct redis_link *link, int slot)
{
	for (unsigned i = 0; i < link->moving_count; i++) {
		if (link->moving[i].slot == (unsigned)slot)
			return &link->moving[i].pause;
	}
	return NULL;
}

/* NULL: too many slots move at once; calls to this one wait as if it had just begun. */
static struct redis_pause *make_slot_pause_locked(struct redis_link *link, int slot)
{
	struct redis_pause *pause = slot_pause_locked(link, slot);
	uint64_t now = ww_redis_link_now(link);

	if (pause)
		return pause;
	for (unsigned i = link->moving_count; i-- > 0;) {
		if (now > link->moving[i].pause.until + FORGET) {
			link->moving[i] = link->moving[--link->moving_count];
			atomic_fetch_sub(&link->asides, 1);
		}
	}
	if (link->moving_count == REDIS_MOVING_MAX)
		return NULL;
	link->moving[link->moving_count] = (struct redis_moving){.slot = (unsigned)slot};
	return &link->moving[link->moving_count++].pause;
}

/* How long calls wait after it has begun, ns. node NULL: a slot, next to which others are served. */
static uint64_t window_locked(const struct redis_link *link, const struct redis_node *node, unsigned flags)
{
	if (node && !ww_redis_aside_others_serve_locked(link, node))
		return link->config.timeout;
	return flags & REDIS_CALL_SOON ? 0 : link->config.timeout / 8;
}

static void grow_locked(struct redis_link *link, struct redis_pause *pause, int is_slot)
{
	uint64_t most = is_slot ? SLOT_MOST : NODE_MOST;

	if (most > link->config.backoff_max)
		most = link->config.backoff_max;
	pause->count++;
	pause->until = ww_redis_link_now(link) + ww_redis_aside_pause_locked(link, FIRST, most, pause->count);
}

/* ---- Reports, without the lock */

static void log_aside(struct redis_link *link, const struct redis_node *node, const char *why)
{
	if (node)
		ww_redis_link_log(link,
		    "Redis at %s is set aside: %s. Calls to it are refused, and one after each pause asks it again; "
		    "other nodes go on.",
		    node->place, why);
	else
		ww_redis_link_log(link,
		    "A slot of Redis is set aside while it moves: %s. Calls to it are refused, and one after each "
		    "pause asks again; other slots go on.",
		    why);
}

static void log_back(struct redis_link *link, const struct redis_node *node, const struct redis_pause *ended)
{
	double seconds = (double)(ww_redis_link_now(link) - ended->since) / 1e9;

	if (node)
		ww_redis_link_log(link, "Redis at %s is back after %.1f s, in which %llu calls were refused.",
		    node->place, seconds, (unsigned long long)ended->refused);
	else
		ww_redis_link_log(link,
		    "The slots of Redis that moved are back after %.1f s, in which %llu calls were refused.", seconds,
		    (unsigned long long)ended->refused);
}

/* A call is refused. Returns 1 if that has to be reported. */
static int refuse_locked(struct redis_link *link, struct redis_pause *pause, int is_slot)
{
	pause->refused++;
	if (!is_slot)
		return pause->refused == 1;
	if (link->moves.refused == 0)
		link->moves.since = pause->since;
	return ++link->moves.refused == 1;
}

/* ---- What calls do */

/* Returns whether the call may go; *is_new: report that it may not. */
static int pass_locked(
    struct redis_link *link, struct redis_pause *pause, struct redis_node *node, unsigned flags, int *is_new)
{
	uint64_t now = ww_redis_link_now(link);

	if (!pause || !pause->count || (pause->is_writing && flags & REDIS_CALL_AGAIN))
		return 1;
	if (now - pause->since < window_locked(link, node, flags))
		return 1;
	if (now >= pause->until) {
		grow_locked(link, pause, !node);
		return 1;
	}
	*is_new = refuse_locked(link, pause, !node);
	return 0;
}

int ww_redis_aside_gate(struct redis_link *link, struct redis_node *node, int slot, unsigned flags)
{
	int is_new_node = 0, is_new_slot = 0, may_go;
	char why[sizeof node->pause.why] = "";

	if (!atomic_load(&link->asides))
		return WW_OK;
	pthread_mutex_lock(&link->lock);
	struct redis_pause *moving = slot < 0 ? NULL : slot_pause_locked(link, slot);
	may_go = pass_locked(link, &node->pause, node, flags, &is_new_node);
	may_go = may_go && pass_locked(link, moving, NULL, flags, &is_new_slot);
	if (is_new_node || is_new_slot)
		memcpy(why, is_new_node ? node->pause.why : moving->why, sizeof why);
	pthread_mutex_unlock(&link->lock);
	if (is_new_node || is_new_slot)
		log_aside(link, is_new_node ? node : NULL, why);
	return may_go ? WW_OK : WW_EAGAIN;
}

/* The words of an error up to its full stop, without control characters. */
static void copy_why(char to[96], const char *why)
{
	size_t count = strcspn(why, ".\r\n");

	(void)snprintf(to, 96, "%.*s", (int)count, why);
	for (; *to; to++)
		*to = (unsigned char)*to < ' ' || *to == 0x7f ? '?' : *to;
}

static int is_of_slot(const char *why)
{
	return strncmp(why, "TRYAGAIN ", 9) == 0 || strncmp(why, "CLUSTERDOWN Hash slot", 21) == 0;
}

static int later_locked(struct redis_link *link, struct redis_pause *pause, struct redis_node *node, unsigned flags,
    const char *why, int *is_new)
{
	uint64_t now = ww_redis_link_now(link);

	if (!pause->count) {
		*pause = (struct redis_pause){.since = now, .is_writing = strncmp(why, "NOREPLICAS ", 11) == 0};
		copy_why(pause->why, why);
		atomic_fetch_add(&link->asides, 1);
	}
	if (!pause->count || now >= pause->until)
		grow_locked(link, pause, !node);
	if (now - pause->since < window_locked(link, node, flags))
		return 1;
	*is_new = refuse_locked(link, pause, !node);
	return 0;
}

int ww_redis_aside_later(struct redis_link *link, struct redis_node *node, int slot, unsigned flags, const char *why)
{
	struct redis_pause *pause;
	char text[sizeof pause->why];
	int may_wait = 1, is_new = 0, is_first = 0;

	if (slot >= 0 && (!node || is_of_slot(why)))
		node = NULL;
	if (!node && slot < 0)
		return 1;
	pthread_mutex_lock(&link->lock);
	pause = node ? &node->pause : make_slot_pause_locked(link, slot);
	if (pause) {
		is_first = node && !pause->count;
		may_wait = later_locked(link, pause, node, flags, why, &is_new);
		memcpy(text, pause->why, sizeof text);
	}
	pthread_mutex_unlock(&link->lock);
	if (is_new)
		log_aside(link, node, text);
	if (is_first && link->config.aside)
		link->config.aside(link->config.aside_context);
	return may_wait;
}

void ww_redis_aside_silent(struct redis_link *link, struct redis_node *node)
{
	char why[sizeof node->pause.why];

	(void)snprintf(
	    why, sizeof why, "it has been silent for %llu ms", (unsigned long long)(redis_silence(link) / 1000000));
	(void)ww_redis_aside_later(link, node, -1, REDIS_CALL_SOON, why);
}

/* End a slot's pause. Returns 1 if no slot is set aside any more, which has to be reported. */
static int end_slot_locked(struct redis_link *link, int slot, struct redis_pause *ended)
{
	unsigned i = 0;

	while (i < link->moving_count && link->moving[i].slot != (unsigned)slot)
		i++;
	if (i == link->moving_count)
		return 0;
	link->moving[i] = link->moving[--link->moving_count];
	atomic_fetch_sub(&link->asides, 1);
	if (link->moving_count > 0 || link->moves.refused == 0)
		return 0;
	*ended = link->moves;
	link->moves.refused = 0;
	return 1;
}

void ww_redis_aside_serves(struct redis_link *link, struct redis_node *node, int slot, unsigned flags)
{
	struct redis_pause ended = {0}, moved = {0};
	int has_moved;

	if (!atomic_load(&link->asides))
		return;
	pthread_mutex_lock(&link->lock);
	if (node->pause.count && !(node->pause.is_writing && flags & REDIS_CALL_AGAIN)) {
		ended = node->pause;
		node->pause.count = 0;
		atomic_fetch_sub(&link->asides, 1);
	}
	has_moved = slot >= 0 && end_slot_locked(link, slot, &moved);
	pthread_mutex_unlock(&link->lock);
	if (ended.refused)
		log_back(link, node, &ended);
	if (has_moved)
		log_back(link, NULL, &moved);
}

/* ---- What is so */

int ww_redis_link_serves(struct redis_link *link, const char *key)
{
	int slot;
	struct redis_node *node = ww_redis_cluster_route(link, key, &slot);
	int serves;

	if (!node)
		return 0;
	pthread_mutex_lock(&link->lock);
	serves = !node->failures && !node->pause.count && (slot < 0 || !slot_pause_locked(link, slot)) &&
	         ww_redis_aside_silence_locked(node) < redis_silence(link);
	pthread_mutex_unlock(&link->lock);
	return serves;
}

static struct redis_node_report report_locked(struct redis_link *link, const struct redis_node *node)
{
	struct redis_node_report report = {.state = REDIS_NODE_SERVES};
	uint64_t now = ww_redis_link_now(link);
	uint64_t probe = now, since = now;

	(void)snprintf(report.place, sizeof report.place, "%s", node->place);
	if (node->failures) {
		report.state = REDIS_NODE_LOST;
		memcpy(report.why, node->why, sizeof report.why);
		since = node->lost, probe = node->retry_at, report.refused = node->lost_calls;
	} else if (node->pause.count) {
		report.state = REDIS_NODE_ASIDE;
		memcpy(report.why, node->pause.why, sizeof report.why);
		since = node->pause.since, probe = node->pause.until, report.refused = node->pause.refused;
	}
	report.since = now - since;
	report.probe = probe > now ? probe - now : 0;
	return report;
}

size_t ww_redis_link_nodes(struct redis_link *link, struct redis_node_report *nodes, size_t room,
    const char *(*key)(size_t i, void *context), size_t count, void *context)
{
	uint32_t places[REDIS_NODES_MAX];
	size_t found = 0;

	pthread_mutex_lock(&link->lock);
	for (uint32_t i = 0; i < link->count; i++) {
		places[i] = (uint32_t)found;
		if (!link->nodes[i]->has_slots)
			continue;
		if (found < room)
			nodes[found] = report_locked(link, link->nodes[i]);
		found++;
	}
	for (size_t i = 0; i < count; i++) {
		const char *name = key(i, context);
		const struct redis_node *node =
		    link->slots ? link->slots[ww_redis_link_slot(name, strlen(name))] : link->nodes[0];
		if (node && node->has_slots && places[node->index] < room)
			nodes[places[node->index]].keys++;
	}
	pthread_mutex_unlock(&link->lock);
	return found;
}
