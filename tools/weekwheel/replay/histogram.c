/*
 * The histogram divides each power of two into HISTOGRAM_STEPS equal buckets. The number of a bucket consists of a
 * value's exponent and its first bits after the leading one.
 */
#include "tools/weekwheel/replay/histogram.h"

enum { STEP_BITS = 5 };

_Static_assert(1 << STEP_BITS == HISTOGRAM_STEPS, "the steps are a power of two");

static unsigned bucket_of(uint64_t value)
{
	unsigned exponent;

	if (value < HISTOGRAM_STEPS)
		return (unsigned)value;
	exponent = 63u - (unsigned)__builtin_clzll(value) - STEP_BITS;
	return exponent * HISTOGRAM_STEPS + (unsigned)(value >> exponent);
}

/* Return the largest value of a bucket. */
static uint64_t bucket_end(unsigned bucket)
{
	unsigned exponent;
	uint64_t first;

	if (bucket < 2 * HISTOGRAM_STEPS)
		return bucket;
	exponent = bucket / HISTOGRAM_STEPS - 1;
	first = (uint64_t)(bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS) << exponent;
	return first + ((UINT64_C(1) << exponent) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->bucket[bucket_of(value)]++;
	histogram->count++;
	if (value > histogram->largest)
		histogram->largest = value;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
	double exact = share * (double)histogram->count;
	uint64_t wanted = (uint64_t)exact;
	uint64_t seen = 0;

	if ((double)wanted < exact)
		wanted++;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->bucket[i];
		if (seen >= wanted && seen > 0)
			return bucket_end(i) < histogram->largest ? bucket_end(i) : histogram->largest;
	}
	return histogram->largest;
}
