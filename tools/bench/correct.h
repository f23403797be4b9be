#ifndef TOOLS_BENCH_CORRECT_H
#define TOOLS_BENCH_CORRECT_H

/* Checks that a structure of the benchmark expires its timers as it promises. */

#include <stdint.h>

#include "tools/bench/structure.h"

/*
 * Drive the structure through random schedules, touches, cancels and ticks, single ones and jumps, beside a plain array
 * of deadlines. Return NULL if no timer expired early, twice, after its cancel or never, or else a sentence that says
 * what did; *latest gets the most ticks by which a timer was late.
 */
const char *correct_run(const struct structure *structure, uint64_t seed, uint64_t *latest);

#endif
