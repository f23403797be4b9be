#ifndef TOOLS_BENCH_PAGE_TABLE_H
#define TOOLS_BENCH_PAGE_TABLE_H

/* The tables of the page. Each writes nothing if it has nothing to show. */

#include <stdio.h>

#include "tools/bench/result.h"

/* The structures with their markers and what they are. */
void table_write_structures(FILE *out, const struct results *results);

/* How many times weekwheel's cost each other has, at the largest number of timers. */
void table_write_ratios(FILE *out, const struct results *results);

/* All that was measured. */
void table_write_results(FILE *out, const struct results *results);

/* What was not, and why. */
void table_write_left_out(FILE *out, const struct results *results);

/* What the correctness run said: a structure that is wrong is nowhere else on the page. */
void table_write_checked(FILE *out, const struct results *results);

#endif
