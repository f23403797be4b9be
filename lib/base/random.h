#ifndef LIB_BASE_RANDOM_H
#define LIB_BASE_RANDOM_H

/*
 * The libraries' pseudo-random numbers: SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014). Any state is a good
 * seed, 0 included; the same seed gives the same sequence everywhere. Not for secrets: hash.h makes those.
 */

#include <stdatomic.h>
#include <stdint.h>

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t random_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline uint64_t random_next(uint64_t *state)
{
	return random_mix(*state += RANDOM_STEP);
}

/* The same for a state that several threads share. */
static inline uint64_t random_next_shared(_Atomic uint64_t *state)
{
	return random_mix(atomic_fetch_add(state, RANDOM_STEP) + RANDOM_STEP);
}

/* 0 to below - 1; below is at least 1 and small against 2^64. */
static inline uint64_t random_below(uint64_t *state, uint64_t below)
{
	return random_next(state) % below;
}

#endif
