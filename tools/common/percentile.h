#ifndef TOOLS_COMMON_PERCENTILE_H
#define TOOLS_COMMON_PERCENTILE_H

/* Percentiles of measured values, for programs that report how long something took. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline int percentile_compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

static inline void percentile_sort(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof *values, percentile_compare);
}

/* Return the sorted value that `part` of them, 0 to 1, do not exceed; ns become ms. */
static inline double percentile_ms(const uint64_t *sorted, size_t count, double part)
{
	return count ? (double)sorted[(size_t)((double)(count - 1) * part)] / 1e6 : 0;
}

#endif
