#ifndef TESTS_SIMULATE_FAILURES_H
#define TESTS_SIMULATE_FAILURES_H

/* What happens to the server: lives, deaths, an ill disk, a clock that is set. */

#include <stdint.h>
#include <stdio.h>

struct failures {
	unsigned lives, powers;
};

extern struct failures failures;

/* Play a run of so many weeks, up to the last of its history. */
void failures_play(uint64_t seed, uint64_t weeks, int verbose, FILE *history);
/* Let the server die within so long, unless the weeks are over by then. */
void failures_soon(uint64_t within);
/* Give back what it has. */
void failures_end(void);

#endif
