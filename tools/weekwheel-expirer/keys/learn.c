/* What a keeper learns from replies: see learn.h. */
#include "tools/weekwheel-expirer/keys/learn.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tools/weekwheel-expirer/keys/ends.h"
#include "tools/weekwheel-expirer/keys/slots.h"

#define MS INT64_C(1000000)

/* How long one EXISTS may take Redis, in ns, and how many keys it may have in any case. */
enum { WORK_NS = 800 * 1000, BATCH_LEAST = 16 };
/*
 * An answer that took this much longer than twice the quickest one says little about Redis's clock: ask again so soon, in
 * ns.
 */
enum { SLOW_NS = 200 * 1000, CLOCK_SOON_NS = 20 * 1000 * 1000 };
/* The longest pause of a pass between two requests. */
enum { PAUSE_MOST_MS = 50 };

static int is_text(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
}

/* ---- Time and role */

/* The answer to TIME in us, or -1. */
static int64_t read_time(const struct redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !is_text(reply->element[0]) ||
	    !is_text(reply->element[1]))
		return -1;
	return strtoll(reply->element[0]->str, NULL, 10) * 1000000 + strtoll(reply->element[1]->str, NULL, 10);
}

static void follow_step(struct keeper *keeper, uint64_t now)
{
	int64_t ms = estimate_reached(&keeper->estimate, now) / MS;
	uint64_t back = deadlines_step_back(keeper->deadlines, ms > 0 ? (uint64_t)ms : 0);

	keeper->doubted -= back < keeper->doubted ? back : keeper->doubted;
}

static int learn_role(struct keeper *keeper, const struct redisReply *reply)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (is_text(reply->element[i]) && is_text(reply->element[i + 1]) &&
		    strcmp(reply->element[i]->str, "role") == 0)
			keeper->is_master = strcmp(reply->element[i + 1]->str, "master") == 0;
	return 0;
}

static int is_of_events(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && is_text(reply->element[0]) &&
	       strcmp(reply->element[0]->str, KEEPER_EVENTS) == 0;
}

int keeper_are_events_on(const struct redisReply *reply)
{
	const char *flags;

	if (!is_of_events(reply) || !is_text(reply->element[1]))
		return 0;
	flags = reply->element[1]->str;
	return strchr(flags, 'E') && strpbrk(flags, "gA");
}

int learn_clock(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	int is_first = keeper->estimate.count == 0;
	int64_t shown = read_time(reply);
	int64_t step;

	if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 2)
		return learn_role(keeper, reply);
	if (is_of_events(reply)) {
		keeper->is_told = keeper_are_events_on(reply);
		return 0;
	}
	if (shown < 0)
		return -1;
	step = estimate_add(&keeper->estimate, keeper->sent, now, shown);
	if (now - keeper->sent > 2 * estimate_trip(&keeper->estimate) + SLOW_NS)
		keeper->clock_at = now + CLOCK_SOON_NS;
	if (step) {
		keeper->step_ns = step;
		keeper->stats.steps++;
	}
	if (step < 0 || is_first)
		follow_step(keeper, now);
	return 0;
}

/* ---- Keys that were due */

/* This many keys that were due at `at` have expired. The deadline is the ms before. */
static void count_late(struct keeper *keeper, uint64_t at, uint64_t now, uint64_t count)
{
	int64_t due_ms = (int64_t)at - 1;
	int64_t late = estimate_latest(&keeper->estimate, now) - due_ms * MS;
	int bucket = 0;

	if (late < 0)
		late = 0;
	while (bucket < KEEPER_BUCKETS && late > (int64_t)keeper_bounds[bucket] * 1000)
		bucket++;
	keeper->stats.late[bucket] += count;
	keeper->stats.late_ns += (uint64_t)late * count;
	keeper->stats.expired += count;
}

/* Of these keys so many are there. Those that have ended before are counted already. */
static void count_due(struct keeper *keeper, size_t from, size_t end, uint64_t there, uint64_t now)
{
	uint64_t count = 0;
	uint64_t at = 0;

	for (size_t i = from; i < end; i++) {
		struct known_key known;

		deadlines_look(keeper->deadlines, keeper->due[i].index, &known);
		/* The oldest is first, so that no key is counted as less late than it was. */
		at = count == 0 ? keeper->due[i].at : at;
		count += !known.is_guess;
	}
	there = there < count ? there : count;
	keeper->stats.due += count;
	keeper->stats.later += there;
	count_late(keeper, at, now, count - there);
}

/* How long Redis worked for the request, without the round trip. */
static uint64_t took(const struct keeper *keeper, uint64_t now)
{
	uint64_t whole = now - keeper->sent;
	uint64_t trip = estimate_trip(&keeper->estimate);

	return whole > trip ? whole - trip : 0;
}

/*
 * A slow answer may have waited for a processor, here or there: smaller requests would wait more often. The time that
 * Redis needs for a key is the least of the last answers. It grows by a quarter with each slower answer.
 */
static void fit_batch(struct keeper *keeper, uint64_t now)
{
	uint64_t each = took(keeper, now) / keeper->due_count + 1;
	uint64_t most = keeper->key_ns ? keeper->key_ns + keeper->key_ns / 4 + 1 : each;
	uint64_t batch;

	if (keeper->due_count < BATCH_LEAST)
		return;
	keeper->key_ns = each < most ? each : most;
	batch = WORK_NS / keeper->key_ns;
	keeper->batch = batch < BATCH_LEAST ? BATCH_LEAST : batch < KEEPER_BATCH ? (unsigned)batch : KEEPER_BATCH;
}

int learn_ask(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	size_t from = keeper->asked;
	size_t end = slots_group(keeper, from);
	int result = 0;

	if (slots_is_to_asking(keeper, reply))
		return 0;
	keeper->asked = end;
	/* Also MOVED comes only from a node that serves: after it, nothing may be left that could be asked for again. */
	keeper->is_down = slots_is_down(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		return slots_missed(keeper, from, end, reply, now);
	if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 || (size_t)reply->integer > end - from)
		return -1;
	count_due(keeper, from, end, (uint64_t)reply->integer, now);
	for (size_t i = from; i < end; i++) {
		size_t length;
		const char *key = deadlines_key(keeper->deadlines, keeper->due[i].index, &length);

		/* Some are still there. Only a lookup says which, and until when. */
		if (reply->integer > 0)
			result |= waiting_add(&keeper->waiting, key, length);
		else
			ends_outlive(keeper, keeper->due[i].index);
	}
	if (end == keeper->due_count)
		fit_batch(keeper, now);
	return result;
}

/* ---- Keys that were looked up */

/* The key is gone. If the request was sent after its deadline, it ended late. If Redis's clock had surely not reached
 * that when it answered, the key was deleted. */
static void forget(struct keeper *keeper, const char *key, size_t length, uint64_t now)
{
	int64_t sent_ms = estimate_reached(&keeper->estimate, keeper->sent) / MS;
	int64_t latest_ms = estimate_latest(&keeper->estimate, now) / MS;
	struct known_key known;

	if (!deadlines_find(keeper->deadlines, key, length, &known))
		return;
	/* One that was due is counted already. */
	if (!known.is_idle && !known.is_guess && (int64_t)known.at <= sent_ms) {
		keeper->stats.due++;
		count_late(keeper, known.at, now, 1);
	}
	if ((int64_t)known.at <= latest_ms)
		ends_report(keeper, known.index, (int64_t)known.at <= sent_ms);
	else
		ends_drop(keeper, known.index);
}

/* Whether such a key need not be kept: it is due in centuries, or after the window. */
static int is_far(const struct keeper *keeper, int64_t until, uint64_t now)
{
	int64_t window = (int64_t)keeper->config.window_ms;

	return until >= INT64_MAX / MS || (window && until > estimate_latest(&keeper->estimate, now) / MS + window);
}

int learn_look(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	size_t at = keeper->waiting.head;
	size_t length;
	const char *key;
	int64_t until;
	int result = 0;

	if (!keeper->has_times && keeper->shown_ms == 0) {
		keeper->shown_ms = read_time(reply) / 1000;
		return keeper->shown_ms > 0 ? 0 : -1;
	}
	if (slots_is_to_asking(keeper, reply))
		return 0;
	if (reply->type != REDIS_REPLY_INTEGER && !keeper_takes_error(keeper, reply))
		return -1;
	keeper->is_down = slots_is_down(reply);
	if (slots_is_elsewhere(keeper, reply))
		return slots_lost(keeper, reply, now);
	key = waiting_at(&keeper->waiting, &at, &length);
	keeper->stats.refused += reply->type == REDIS_REPLY_ERROR;
	until = reply->type == REDIS_REPLY_ERROR || reply->integer < 0 ? -1 : reply->integer + keeper->shown_ms;
	if (reply->type == REDIS_REPLY_INTEGER && reply->integer == -2)
		forget(keeper, key, length, now);
	else if (until < 0 || is_far(keeper, until, now))
		ends_remove(keeper, key, length);
	else
		result = ends_keep(keeper, key, length, until);
	waiting_drop(&keeper->waiting);
	return result;
}

/* ---- Passes */

int learn_scan(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	const struct redisReply *keys;
	int result = 0;

	(void)now;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !is_text(reply->element[0]) ||
	    reply->element[0]->len >= sizeof keeper->cursor || reply->element[1]->type != REDIS_REPLY_ARRAY)
		return -1;
	keys = reply->element[1];
	keeper->page_from = keeper->waiting.added;
	strcpy(keeper->cursor, reply->element[0]->str);
	keeper->is_last = strcmp(keeper->cursor, "0") == 0;
	for (size_t i = 0; i < keys->elements && result == 0; i++) {
		if (!is_text(keys->element[i]))
			return -1;
		if (keys->element[i]->len > DEADLINES_KEY_MAX)
			keeper->stats.too_long++;
		else if (keys->element[i]->len > 0)
			result = waiting_add(&keeper->waiting, keys->element[i]->str, keys->element[i]->len);
	}
	keeper->page = keeper->waiting.added;
	return result;
}

static void end_pass(struct keeper *keeper, uint64_t now)
{
	keeper->is_passing = 0;
	keeper->is_sweeping = 1;
	keeper->covered = keeper->pass_began + keeper->config.window_ms * (uint64_t)MS;
	keeper->is_outrun = keeper->config.window_ms && now >= keeper->covered;
	keeper->is_exact = !keeper->is_outrun;
}

/*
 * Between two requests of a pass, others have Redis for as long as the request took, beyond the round trip. If others
 * keep Redis busy, a request takes longer, and the pass slows down.
 */
void learn_page(struct keeper *keeper, uint64_t now)
{
	uint64_t work = took(keeper, now);
	uint64_t trip = estimate_trip(&keeper->estimate);
	uint64_t pause = work > trip ? work - trip : 0;

	if (!keeper->is_passing || !keeper->is_paced)
		return;
	keeper->page_at = now + (pause < PAUSE_MOST_MS * (uint64_t)MS ? pause : PAUSE_MOST_MS * (uint64_t)MS);
	if (keeper->is_last && keeper->waiting.dropped >= keeper->page)
		end_pass(keeper, now);
}
