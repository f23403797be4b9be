#ifndef TOOLS_BENCH_REPORT_H
#define TOOLS_BENCH_REPORT_H

/* Writes the results of the benchmark as tables and as JSON. */

#include <stdio.h>

#include "tools/bench/result.h"

/* Write the results as tables for a person. */
void bench_report_table(FILE *out, const struct results *results);

/* Write the results as a JSON object; docs/benchmark.md lists its keys. "results" has an object a line. */
void bench_report_json(FILE *out, const struct results *results);

#endif
