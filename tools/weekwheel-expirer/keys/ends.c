/* What a keeper reports to its owner about keys: see ends.h. */
#include "tools/weekwheel-expirer/keys/ends.h"

#include "tools/weekwheel-expirer/keys/values.h"

/*
 * A key that Redis says is gone, but has not deleted, is asked for again after this time, then after twice as long each
 * time, until so long after its deadline.
 */
enum { OUTLIVE_MS = 2000, OUTLIVE_MOST_MS = 60 * 1000 };

/* A key is due when the ms of its deadline is over. */
static int64_t deadline_of(uint64_t at)
{
	return (int64_t)at - 1;
}

int ends_keep(struct keeper *keeper, const char *key, size_t length, int64_t until)
{
	const struct keeper_watch *watch = keeper->config.watch;
	struct known_key known;

	if (keeper->values && deadlines_find(keeper->deadlines, key, length, &known))
		values_drop(keeper, known.index);
	if (deadlines_set(keeper->deadlines, key, length, (uint64_t)until + 1) != 0)
		return -1;
	if (watch && watch->kept)
		watch->kept(watch->context, key, length, until);
	return 0;
}

static void report_dropped(struct keeper *keeper, uint32_t index)
{
	const struct keeper_watch *watch = keeper->config.watch;
	size_t length;
	const char *key = deadlines_key(keeper->deadlines, index, &length);

	if (watch && watch->dropped)
		watch->dropped(watch->context, key, length);
}

void ends_leave(struct keeper *keeper, uint32_t index)
{
	values_drop(keeper, index);
	deadlines_drop(keeper->deadlines, index);
}

void ends_drop(struct keeper *keeper, uint32_t index)
{
	report_dropped(keeper, index);
	ends_leave(keeper, index);
}

void ends_remove(struct keeper *keeper, const char *key, size_t length)
{
	struct known_key known;

	if (deadlines_find(keeper->deadlines, key, length, &known))
		ends_drop(keeper, known.index);
}

static void report(struct keeper *keeper, uint32_t index, int is_sure)
{
	const struct keeper_watch *watch = keeper->config.watch;
	struct ended_key ended = {.key = deadlines_key(keeper->deadlines, index, &ended.length)};
	struct known_key known;

	deadlines_look(keeper->deadlines, index, &known);
	ended.deadline = deadline_of(known.at);
	/* No event reports a flush. */
	ended.is_sure = is_sure && known.is_sure && known.at > keeper->doubted && !keeper->by_events;
	values_show(keeper, index, &ended);
	keeper->stats.unread += keeper->config.lead_ms && !ended.value && !known.is_guess;
	if (watch && !known.is_guess)
		watch->ended(watch->context, &ended);
}

void ends_report(struct keeper *keeper, uint32_t index, int is_sure)
{
	report(keeper, index, is_sure);
	ends_drop(keeper, index);
}

void ends_outlive(struct keeper *keeper, uint32_t index)
{
	uint64_t now = deadlines_now(keeper->deadlines);
	struct known_key known;

	deadlines_look(keeper->deadlines, index, &known);
	if (keeper->by_events || (known.is_guess && now > known.at + OUTLIVE_MOST_MS)) {
		ends_report(keeper, index, 1);
		return;
	}
	report(keeper, index, 1);
	if (!known.is_guess)
		report_dropped(keeper, index);
	values_drop(keeper, index);
	deadlines_outlive(keeper->deadlines, index,
	    known.is_guess && now > known.at + OUTLIVE_MS ? 2 * now - known.at : now + OUTLIVE_MS);
}

static void report_kept(void *context, uint32_t index)
{
	struct keeper *keeper = context;
	const struct keeper_watch *watch = keeper->config.watch;
	struct known_key known;
	size_t length;
	const char *key = deadlines_key(keeper->deadlines, index, &length);

	deadlines_look(keeper->deadlines, index, &known);
	if (!known.is_guess)
		watch->kept(watch->context, key, length, deadline_of(known.at));
}

int ends_report_again(struct keeper *keeper, uint32_t *from)
{
	return deadlines_walk(keeper->deadlines, from, report_kept, keeper);
}

void ends_hear(struct keeper *keeper, const char *key, size_t length)
{
	struct known_key known;

	if (!deadlines_find(keeper->deadlines, key, length, &known))
		return;
	/* A change after the deadline mostly means that Redis has expired the key. */
	if (known.at > keeper->reached)
		deadlines_doubt(keeper->deadlines, known.index);
}
