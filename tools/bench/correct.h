#ifndef TOOLS_BENCH_CORRECT_H
#define TOOLS_BENCH_CORRECT_H

/* Checks that a structure of the benchmark expires its timers as it promises. */

#include <stdint.h>

#include "tools/bench/structure.h"

/*
 * Drive the structure through random schedules, touches, cancels, ticks and jumps, and compare it with a plain array of
 * deadlines. Return NULL, or a sentence that says what was wrong: a timer expired early, twice, after its cancel or
 * never. *latest gets the most ticks by which a timer was late.
 */
const char *correct_run(const struct structure *structure, uint64_t seed, uint64_t *latest);

#endif
