/* The comparison behind --verify: of each expiry, then of what is pending, then of the counts. */
#include "tools/weekwheel/replay/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "weekwheel/wheel.h"

static int compare_expiries(const void *left, const void *right)
{
	const struct replay_expiry *a = left;
	const struct replay_expiry *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static int different(struct difference *difference, const struct keys *keys, uint64_t time, uint32_t id,
    const char *wheel, const char *oracle)
{
	char excerpt[120];
	size_t size;
	const char *key = keys_text(keys, id, &size);

	snprintf(difference->text, sizeof difference->text, "at %" PRIu64 ", key %s: the wheel %s; the oracle %s", time,
	    message_excerpt(excerpt, sizeof excerpt, key, size), wheel, oracle);
	return 1;
}

/* The wheel must report expiries in order of time. Sorting would hide a fault. */
static int compare_order(const struct outcome *wheel, const struct keys *keys, struct difference *difference)
{
	for (size_t i = 1; i < wheel->expiries.count; i++) {
		const struct replay_expiry *expiry = &wheel->expiries.at[i];

		if (expiry->time < expiry[-1].time)
			return different(difference, keys, expiry->time, expiry->id, "expired it after a later timer",
			    "expires in order of time");
	}
	return 0;
}

static int compare_sorted(
    const struct expiries *wheel, const struct expiries *oracle, const struct keys *keys, struct difference *difference)
{
	for (size_t i = 0; i < wheel->count || i < oracle->count; i++) {
		const struct replay_expiry *ours = i < wheel->count ? &wheel->at[i] : NULL;
		const struct replay_expiry *theirs = i < oracle->count ? &oracle->at[i] : NULL;
		int order = !ours ? 1 : !theirs ? -1 : compare_expiries(ours, theirs);

		if (order < 0)
			return different(
			    difference, keys, ours->time, ours->id, "expired it", "does not expire it then");
		if (order > 0)
			return different(
			    difference, keys, theirs->time, theirs->id, "did not expire it", "expires it then");
	}
	return 0;
}

static int compare_all_expiries(
    const struct outcome *wheel, struct outcome *oracle, const struct keys *keys, struct difference *difference)
{
	struct expiries sorted = wheel->expiries;
	int result;

	if (compare_order(wheel, keys, difference))
		return 1;
	sorted.at = memory_resize(NULL, sorted.count, sizeof *sorted.at);
	if (sorted.count > 0)
		memcpy(sorted.at, wheel->expiries.at, sorted.count * sizeof *sorted.at);
	qsort(sorted.at, sorted.count, sizeof *sorted.at, compare_expiries);
	if (oracle->expiries.count > 0)
		qsort(oracle->expiries.at, oracle->expiries.count, sizeof *sorted.at, compare_expiries);
	result = compare_sorted(&sorted, &oracle->expiries, keys, difference);
	free(sorted.at);
	return result;
}

static int compare_pending(
    const struct outcome *wheel, const struct outcome *oracle, const struct keys *keys, struct difference *difference)
{
	static const char idle[] = "has it idle at the end", pending[] = "has it pending at the end";

	for (size_t i = 0; wheel->deadline && i < wheel->keys; i++) {
		uint64_t ours = wheel->deadline[i];
		uint64_t theirs = oracle->deadline[i];

		if (ours != theirs)
			return different(difference, keys, ours < theirs ? ours : theirs, (uint32_t)i,
			    ours == WW_NEVER ? idle : pending,
			    theirs == WW_NEVER ? idle
			    : ours == WW_NEVER ? pending
			                       : "has it pending at another deadline");
	}
	return 0;
}

static int compare_count(const char *what, uint64_t wheel, uint64_t oracle, struct difference *difference)
{
	if (wheel == oracle)
		return 0;
	snprintf(difference->text, sizeof difference->text, "%s: the wheel says %" PRIu64 "; the oracle %" PRIu64, what,
	    wheel, oracle);
	return 1;
}

static int compare_tallies(const struct tally *wheel, const struct tally *oracle, struct difference *difference)
{
	return compare_count("timers set", wheel->scheduled, oracle->scheduled, difference) ||
	       compare_count("timers refreshed", wheel->refreshed, oracle->refreshed, difference) ||
	       compare_count("timers cancelled", wheel->cancelled, oracle->cancelled, difference) ||
	       compare_count("cancels of idle timers", wheel->idle_cancels, oracle->idle_cancels, difference) ||
	       compare_count("timers expired", wheel->expired, oracle->expired, difference) ||
	       compare_count("timers pending", wheel->pending, oracle->pending, difference) ||
	       compare_count("the most timers at once", wheel->peak, oracle->peak, difference);
}

int verify_compare(
    const struct outcome *wheel, struct outcome *oracle, const struct keys *keys, struct difference *difference)
{
	return compare_all_expiries(wheel, oracle, keys, difference) ||
	       compare_pending(wheel, oracle, keys, difference) ||
	       compare_tallies(&wheel->tally, &oracle->tally, difference);
}
