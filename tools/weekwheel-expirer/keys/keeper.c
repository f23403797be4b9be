/* What is known of one Redis, and what it is asked next: see keeper.h. */
#include "tools/weekwheel-expirer/keys/keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tools/common/glob.h"
#include "tools/weekwheel-expirer/keys/ends.h"
#include "tools/weekwheel-expirer/keys/learn.h"
#include "tools/weekwheel-expirer/keys/slots.h"
#include "tools/weekwheel-expirer/keys/values.h"

#define MS INT64_C(1000000)

/*
 * How often Redis is asked for its time, in ns; and which of these requests also ask for its role, and for its events.
 */
enum { CLOCK_NS = 200 * 1000 * 1000, ROLE_EVERY = 5 };
/* Keys of a page, and how many of these one request looks up: a third of a millisecond of Redis's time for each. */
enum { PAGE = 256, PAGE_LOOKS = 128, BATCH_FIRST = 128 };
/* How long a change waits for others, in ns: one pipeline costs Redis much less than a call for each. */
enum { GATHER_NS = 2 * 1000 * 1000 };

/* After a longer turn or answer, in ns, as of a stopped process, messages are late. Until when, in ms. */
enum { HELD_UP_NS = 600 * 1000 * 1000, LATE_MS = 200 };

const uint32_t keeper_bounds[KEEPER_BUCKETS] = {1000, 2000, 3000, 5000, 10000, 20000, 50000, 100000, 1000000, 10000000};

/* ---- Beginning */

int keeper_begin(struct keeper *keeper, const struct keeper_config *config)
{
	*keeper = (struct keeper){.config = *config, .batch = BATCH_FIRST};
	keeper->deadlines = config->deadlines ? config->deadlines : deadlines_make();
	if (!keeper->deadlines)
		return -1;
	deadlines_set_lead(keeper->deadlines, config->lead_ms);
	if (config->watch && config->watch->joined)
		config->watch->joined(config->watch->context, keeper);
	return 0;
}

void keeper_end(struct keeper *keeper)
{
	const struct keeper_watch *watch = keeper->config.watch;

	if (watch && watch->left && keeper->deadlines)
		watch->left(watch->context, keeper);
	values_free(keeper);
	deadlines_free(keeper->deadlines);
	waiting_free(&keeper->waiting);
	free(keeper->held);
}

void keeper_pass(struct keeper *keeper)
{
	keeper->begins_pass = 1;
	keeper->is_passing = 0;
	keeper->is_exact = 0;
	keeper->is_sweeping = 0;
	/* What was missed may be a deletion. */
	deadlines_doubt_all(keeper->deadlines);
}

static void begin_pass(struct keeper *keeper, uint64_t now)
{
	deadlines_pass(keeper->deadlines);
	keeper->begins_pass = 0;
	keeper->is_passing = 1;
	keeper->is_last = 0;
	strcpy(keeper->cursor, "0");
	keeper->page_from = keeper->page = keeper->waiting.dropped;
	keeper->page_at = keeper->pass_began = now;
	keeper->stats.passes++;
}

void keeper_connected(struct keeper *keeper, uint64_t now, int has_times)
{
	/* The answers in flight are lost: ask for these keys again. */
	if (keeper->kind == KEEPER_ASK)
		(void)slots_hold(keeper, keeper->asked, keeper->due_count, now);
	if (keeper->kind == KEEPER_READ)
		values_lose(keeper);
	keeper->kind = KEEPER_IDLE;
	keeper->estimate = (struct estimate){.count = 0};
	keeper->has_times = has_times;
	keeper->is_master = keeper->is_told = 1;
	keeper->is_down = 0;
	keeper->clock_at = keeper->turned = now;
	keeper_pass(keeper);
}

/* Whether a lookup of the key has been sent: its answer may be older than a change reported now. */
static int is_looked_at(const struct keeper *keeper, const char *key, size_t length)
{
	size_t at = keeper->waiting.head;
	size_t sent_length;
	const char *sent;

	if (keeper->kind != KEEPER_LOOK)
		return 0;
	for (unsigned i = 0; i < keeper->owed && (sent = waiting_at(&keeper->waiting, &at, &sent_length)) != NULL; i++)
		if (sent_length == length && memcmp(sent, key, length) == 0)
			return 1;
	return 0;
}

/* Whether a change is no news. A due key is not pending: an answer or a lookup is awaited. Nor is a guess what is known. */
static int is_known(const struct keeper *keeper, const char *key, size_t length)
{
	struct known_key known;

	return deadlines_find(keeper->deadlines, key, length, &known) && !known.is_idle && !known.is_guess &&
	       !is_looked_at(keeper, key, length);
}

int keeper_heard(struct keeper *keeper, const char *key, size_t length)
{
	const char *match = keeper->config.match;

	keeper->stats.heard++;
	if (match && !glob_matches(match, strlen(match), key, length))
		return 0;
	if (length == 0)
		return 0;
	if (length > DEADLINES_KEY_MAX) {
		keeper->stats.too_long++;
		return 0;
	}
	ends_hear(keeper, key, length);
	if (keeper->config.only_later && is_known(keeper, key, length))
		return 0;
	return waiting_add(&keeper->waiting, key, length);
}

/* ---- Requests */

static int append(struct keeper *keeper, size_t argc, const char *const *argv, const size_t *lengths)
{
	return keeper->config.append(keeper->config.context, argc, argv, lengths);
}

/* All waiting keys, and those of the page among them. */
static uint64_t page_left(const struct keeper *keeper)
{
	uint64_t from = keeper->waiting.dropped > keeper->page_from ? keeper->waiting.dropped : keeper->page_from;

	return keeper->page > from ? keeper->page - from : 0;
}

static uint64_t changes_left(const struct keeper *keeper)
{
	return keeper->waiting.added - keeper->waiting.dropped - page_left(keeper);
}

static int begin_request(struct keeper *keeper, enum keeper_kind kind, unsigned owed, uint64_t now)
{
	keeper->kind = kind;
	keeper->owed = owed;
	keeper->sent = now;
	keeper->last = kind;
	return 0;
}

static int send_clock(struct keeper *keeper, uint64_t now)
{
	int asks_role = keeper->clocks++ % ROLE_EVERY == 0;
	int asks_events = asks_role && keeper->by_events;
	int error = append(keeper, 1, (const char *[]){"TIME"}, NULL);

	if (!error && asks_role)
		error = append(keeper, 2, (const char *[]){"HELLO", "2"}, NULL);
	if (!error && asks_events)
		error = append(keeper, 3, (const char *[]){"CONFIG", "GET", KEEPER_EVENTS}, NULL);
	keeper->clock_at = now + CLOCK_NS;
	return error ? error
	             : begin_request(keeper, KEEPER_CLOCK, 1U + (unsigned)asks_role + (unsigned)asks_events, now);
}

static int send_ask(struct keeper *keeper, uint64_t now)
{
	unsigned owed = 0;
	int error = slots_ask(keeper, now, &owed);

	return error ? error : begin_request(keeper, KEEPER_ASK, owed, now);
}

static int send_look(struct keeper *keeper, uint64_t now)
{
	const char *argv[2] = {keeper->has_times ? "PEXPIRETIME" : "PTTL"};
	size_t lengths[2] = {strlen(argv[0])};
	size_t at = keeper->waiting.head;
	unsigned most = changes_left(keeper) > 0 ? KEEPER_LOOKS : PAGE_LOOKS;
	unsigned count = 0;
	unsigned owed = !keeper->has_times;
	int error = keeper->has_times ? 0 : append(keeper, 1, (const char *[]){"TIME"}, NULL);

	keeper->shown_ms = 0;
	slots_begin(keeper, now);
	while (!error && count < most && (argv[1] = waiting_at(&keeper->waiting, &at, &lengths[1])) != NULL) {
		error = slots_append(keeper, 2, argv, lengths, &owed);
		count++;
	}
	keeper->is_paced = keeper->waiting.dropped < keeper->page;
	keeper->stats.looks += count;
	keeper->look_at = 0;
	return error ? error : begin_request(keeper, KEEPER_LOOK, owed, now);
}

/* Returns as append, or 1 if nothing has to be read. */
static int send_read(struct keeper *keeper, uint64_t now)
{
	int owed = values_ask(keeper);

	if (owed <= 0)
		return owed < 0 ? owed : 1;
	return begin_request(keeper, KEEPER_READ, (unsigned)owed, now);
}

static int send_scan(struct keeper *keeper, uint64_t now)
{
	char count[16];
	const char *argv[6] = {"SCAN", keeper->cursor, "COUNT", count, "MATCH", keeper->config.match};
	int error;

	(void)snprintf(count, sizeof count, "%d", PAGE);
	error = append(keeper, keeper->config.match ? 6 : 4, argv, NULL);
	keeper->is_paced = 1;
	return error ? error : begin_request(keeper, KEEPER_SCAN, 1, now);
}

/* ---- What comes next */

/* The ms that Redis's clock has surely reached. It stands still when the estimate goes backwards. */
static uint64_t reached_ms(struct keeper *keeper, uint64_t now)
{
	int64_t ms = estimate_reached(&keeper->estimate, now) / MS;
	uint64_t was = deadlines_now(keeper->deadlines);

	return ms > 0 && (uint64_t)ms > was ? (uint64_t)ms : was;
}

/* When that reaches `ms`, in local time. */
static uint64_t local_at(const struct keeper *keeper, uint64_t now, uint64_t ms)
{
	int64_t left;

	if (ms >= INT64_MAX / MS)
		return KEEPER_NEVER;
	left = (int64_t)ms * MS - estimate_reached(&keeper->estimate, now);
	return left > 0 ? now + (uint64_t)left : now;
}

/* Whether to look up keys: the pass goes on with its page, or enough changes wait, or one has waited for long. */
static int is_look_due(struct keeper *keeper, uint64_t now)
{
	uint64_t changes = changes_left(keeper);

	if (changes > 0 && keeper->look_at == 0)
		keeper->look_at = now + GATHER_NS;
	return (changes > 0 && (now >= keeper->look_at || changes >= KEEPER_LOOKS)) ||
	       (page_left(keeper) > 0 && now >= keeper->page_at);
}

/* Whether the pass goes on with another page. */
static int is_scan_next(const struct keeper *keeper)
{
	return keeper->is_passing && keeper->waiting.dropped >= keeper->page;
}

static int is_page_due(const struct keeper *keeper, uint64_t now)
{
	return is_scan_next(keeper) && now >= keeper->page_at;
}

static int is_due(struct keeper *keeper, uint64_t now)
{
	uint64_t reached = reached_ms(keeper, now);
	size_t fresh;
	size_t room;

	/* Changes and the page get a turn even while very many keys are due. */
	if (keeper->last == KEEPER_ASK && (is_look_due(keeper, now) || is_page_due(keeper, now)))
		return 0;
	keeper->due_count = slots_take_held(keeper, now);
	room = keeper->batch - keeper->due_count;
	if (room > KEEPER_BATCH - keeper->early_count)
		room = KEEPER_BATCH - keeper->early_count;
	fresh = deadlines_due(keeper->deadlines, reached, keeper->due + keeper->due_count, room);
	fresh = values_take_early(keeper, keeper->due + keeper->due_count, fresh, reached);
	keeper->due_count += fresh;
	return keeper->due_count > 0;
}

/* With a window, when the next pass begins. */
static uint64_t next_pass(const struct keeper *keeper)
{
	return keeper->config.window_ms && !keeper->is_passing && !keeper->is_sweeping
	           ? keeper->pass_began + keeper->config.window_ms * (uint64_t)MS / 2
	           : KEEPER_NEVER;
}

static uint64_t earlier(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* Nothing can be sent now. */
static uint64_t wait_until(struct keeper *keeper, uint64_t now)
{
	uint64_t at = earlier(keeper->clock_at, local_at(keeper, now, deadlines_next(keeper->deadlines)));

	at = earlier(at, next_pass(keeper));
	if (changes_left(keeper) > 0)
		at = earlier(at, keeper->look_at);
	if (keeper->held_count > keeper->held_head)
		at = earlier(at, keeper->held_at);
	return page_left(keeper) > 0 || is_scan_next(keeper) ? earlier(at, keeper->page_at) : at;
}

static int send_next(struct keeper *keeper, uint64_t now, uint64_t *again)
{
	int error;

	if (keeper->begins_pass || now >= next_pass(keeper))
		begin_pass(keeper, now);
	if (now >= keeper->clock_at)
		return send_clock(keeper, now);
	/* The page gets a turn even if changes never end. */
	if (keeper->last == KEEPER_LOOK && is_page_due(keeper, now))
		return send_scan(keeper, now);
	if (is_due(keeper, now))
		return send_ask(keeper, now);
	if (keeper->early_count > 0 && (error = send_read(keeper, now)) <= 0)
		return error;
	if (is_look_due(keeper, now))
		return send_look(keeper, now);
	if (is_page_due(keeper, now))
		return send_scan(keeper, now);
	*again = wait_until(keeper, now);
	return 0;
}

static void drop(void *context, uint32_t index)
{
	if (slots_is_served(context, index))
		ends_drop(context, index);
	else
		ends_leave(context, index);
}

/* Ask for a key whose deadline may have passed: it may have ended before the pass reached it. */
static void sweep(struct keeper *keeper, uint64_t now)
{
	int64_t latest_ms = estimate_latest(&keeper->estimate, now) / MS;

	keeper->is_sweeping = deadlines_sweep(keeper->deadlines, latest_ms > 0 ? (uint64_t)latest_ms : 0, drop, keeper);
}

void keeper_doubt(struct keeper *keeper, uint64_t now)
{
	keeper->doubted = reached_ms(keeper, now) + LATE_MS;
	keeper->stats.doubts++;
}

/* Changes reported since the last turn have come since then. */
static void turn(struct keeper *keeper, uint64_t now)
{
	const struct keeper_watch *watch = keeper->config.watch;

	if (now - keeper->turned > HELD_UP_NS)
		keeper_doubt(keeper, now);
	keeper->turned = now;
	keeper->reached = reached_ms(keeper, now);
	if (keeper->config.window_ms && keeper->is_exact && now >= keeper->covered) {
		keeper->is_exact = 0;
		keeper->is_outrun = 1;
	}
	if (watch && watch->turned)
		watch->turned(watch->context, keeper);
}

int keeper_next(struct keeper *keeper, uint64_t now, uint64_t *again)
{
	int error = 0;

	*again = KEEPER_NEVER;
	turn(keeper, now);
	if (keeper->kind == KEEPER_IDLE)
		error = send_next(keeper, now, again);
	/* Redis answers meanwhile. */
	if (keeper->is_sweeping) {
		sweep(keeper, now);
		*again = earlier(*again, now + (uint64_t)MS);
	}
	return error;
}

/* ---- Replies */

int keeper_takes_error(const struct keeper *keeper, const struct redisReply *reply)
{
	if (slots_is_elsewhere(keeper, reply))
		return 1;
	/* It is no string, or the user may not read it: the report says so. */
	if (keeper->kind == KEEPER_READ && reply->type == REDIS_REPLY_ERROR)
		return 1;
	/* "No permissions to access a key", but not "no permissions to run the command". */
	return keeper->kind == KEEPER_LOOK && reply->type == REDIS_REPLY_ERROR &&
	       strncmp(reply->str, "NOPERM ", 7) == 0 && strstr(reply->str, " to access ") != NULL;
}

int keeper_reply(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	static int (*const learn[])(struct keeper *, const struct redisReply *, uint64_t) = {
	    [KEEPER_CLOCK] = learn_clock,
	    [KEEPER_ASK] = learn_ask,
	    [KEEPER_LOOK] = learn_look,
	    [KEEPER_SCAN] = learn_scan,
	    [KEEPER_READ] = values_learn};
	int result;

	if (keeper->kind == KEEPER_IDLE)
		return -1;
	if (now - keeper->sent > HELD_UP_NS)
		keeper_doubt(keeper, now);
	result = learn[keeper->kind](keeper, reply, now);
	if (--keeper->owed == 0) {
		if (keeper->kind == KEEPER_LOOK || keeper->kind == KEEPER_SCAN)
			learn_page(keeper, now);
		keeper->kind = KEEPER_IDLE;
	}
	return result;
}

void keeper_read_stats(const struct keeper *keeper, struct keeper_stats *stats)
{
	*stats = keeper->stats;
	stats->known = deadlines_count(keeper->deadlines) - deadlines_guesses(keeper->deadlines);
	stats->bytes = deadlines_bytes(keeper->deadlines);
	stats->is_exact = keeper->is_exact;
}
