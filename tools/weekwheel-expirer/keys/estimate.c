/* What time it is at Redis: see estimate.h. */
#include "tools/weekwheel-expirer/keys/estimate.h"

/* Two clocks differ by at most this part: time services change the rate of each by a 2,000th at most. */
enum { DRIFT = 1000 };
/* Redis shows whole us. */
enum { SHOWN_NS = 1000 };

static int64_t widened(const struct estimate *estimate, unsigned i, uint64_t local)
{
	return (int64_t)(local - estimate->sample[i].at) / DRIFT;
}

static int64_t best_low(const struct estimate *estimate, uint64_t local)
{
	int64_t best = INT64_MIN;

	for (unsigned i = 0; i < estimate->count; i++) {
		int64_t low = estimate->sample[i].low - widened(estimate, i, local);

		best = low > best ? low : best;
	}
	return best;
}

static int64_t best_high(const struct estimate *estimate, uint64_t local)
{
	int64_t best = INT64_MAX;

	for (unsigned i = 0; i < estimate->count; i++) {
		int64_t high = estimate->sample[i].high + widened(estimate, i, local);

		best = high < best ? high : best;
	}
	return best;
}

int64_t estimate_add(struct estimate *estimate, uint64_t sent, uint64_t received, int64_t shown_us)
{
	int64_t low = shown_us * 1000 - (int64_t)received;
	int64_t high = shown_us * 1000 + SHOWN_NS - (int64_t)sent;
	int64_t step = 0;

	if (estimate->count && high < best_low(estimate, received))
		step = high - best_low(estimate, received);
	else if (estimate->count && low > best_high(estimate, received))
		step = low - best_high(estimate, received);
	if (step)
		*estimate = (struct estimate){.count = 0};
	estimate->sample[estimate->next].low = low;
	estimate->sample[estimate->next].high = high;
	estimate->sample[estimate->next].at = received;
	estimate->next = (estimate->next + 1) % ESTIMATE_SAMPLES;
	estimate->count += estimate->count < ESTIMATE_SAMPLES;
	return step;
}

uint64_t estimate_trip(const struct estimate *estimate)
{
	int64_t least = INT64_MAX;

	for (unsigned i = 0; i < estimate->count; i++) {
		int64_t trip = estimate->sample[i].high - estimate->sample[i].low - SHOWN_NS;

		least = trip < least ? trip : least;
	}
	return estimate->count ? (uint64_t)least : 0;
}

int64_t estimate_reached(const struct estimate *estimate, uint64_t local)
{
	return (int64_t)local + best_low(estimate, local);
}

int64_t estimate_latest(const struct estimate *estimate, uint64_t local)
{
	return (int64_t)local + best_high(estimate, local);
}
