#ifndef TOOLS_WEEKWHEEL_REPLAY_HISTOGRAM_H
#define TOOLS_WEEKWHEEL_REPLAY_HISTOGRAM_H

/*
 * A log-linear histogram of durations in ns, over the whole range of 64 bits. It is exact below 64 ns, and to within 1/32
 * (3 %) above. Adding a value costs a few instructions, and the memory does not grow.
 */

#include <stdint.h>

enum { HISTOGRAM_STEPS = 32, HISTOGRAM_BUCKETS = (64 - 4) * HISTOGRAM_STEPS };

/* All zero bytes are an empty histogram. */
struct histogram {
	uint64_t bucket[HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t largest;
};

void histogram_add(struct histogram *histogram, uint64_t value);

/*
 * Return the value that at least `share` (0 to 1) of the values do not exceed. It is at most 1/32 too large, and never
 * above the largest value. An empty histogram gives 0.
 */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
