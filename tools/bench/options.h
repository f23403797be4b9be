#ifndef TOOLS_BENCH_OPTIONS_H
#define TOOLS_BENCH_OPTIONS_H

/* The command line of the benchmark. */

#include <stdio.h>

#include "tools/bench/run.h"

#define BENCH_ANY_CPU UINT64_MAX

struct bench_request {
	struct plan plan;
	int json;
	const char *save;  /* NULL, or the file for the results as JSON */
	uint64_t cpu;      /* or BENCH_ANY_CPU */
	char command[400]; /* as it was called */
};

enum bench_request_kind { BENCH_REQUEST_RUN, BENCH_REQUEST_HELP, BENCH_REQUEST_WRONG };

/* Read the command line; BENCH_REQUEST_WRONG after a message. */
enum bench_request_kind bench_request_parse(struct bench_request *request, char **arguments);

void bench_request_help(FILE *out);

#endif
