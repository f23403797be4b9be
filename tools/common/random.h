#ifndef TOOLS_COMMON_RANDOM_H
#define TOOLS_COMMON_RANDOM_H

/* Pseudo-random numbers, the same on every machine for the same seed (G. Steele et al., SplitMix, OOPSLA 2014). */

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Return 0 to below - 1. `below` is at least 1, and small compared with 2^64. */
static inline uint64_t random_below(uint64_t *state, uint64_t below)
{
	return random_next(state) % below;
}

#endif
