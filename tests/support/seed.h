#ifndef TESTS_SUPPORT_SEED_H
#define TESTS_SUPPORT_SEED_H

/*
 * Random numbers for tests. The seed comes from the environment variable WW_SEED, or otherwise from the clock, and is
 * always printed: it repeats a failure.
 */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/random.h"

/* The libraries' generator under the tests' names. */
static inline uint64_t seed_next(uint64_t *state)
{
	return random_next(state);
}

/* Return a number from 0 to below - 1. */
static inline uint64_t seed_below(uint64_t *state, uint64_t below)
{
	return random_below(state, below);
}

/* Return the seed of this run, and print it. */
static inline uint64_t seed_of_run(const char *program)
{
	const char *text = getenv("WW_SEED");
	uint64_t seed;

	if (text != NULL && *text != '\0') {
		char *end;
		seed = strtoull(text, &end, 0);
		if (*end != '\0') {
			(void)fprintf(stderr, "%s: WW_SEED=%s is not a number\n", program, text);
			exit(2);
		}
	} else {
		struct timespec now;
		(void)timespec_get(&now, TIME_UTC);
		seed = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
		seed = seed_next(&seed) >> 32;
	}
	printf("%s: seed %" PRIu64 "\n", program, seed);
	(void)fflush(stdout);
	return seed;
}

/* So many rounds of a random test, or with WW_SHARE=N in the environment an Nth: what is slow says as much with fewer. */
static inline int seed_rounds(int rounds)
{
	const char *share = getenv("WW_SHARE");
	int part = share ? atoi(share) : 1;

	return part > 1 ? (rounds + part - 1) / part : rounds;
}

#endif
