#ifndef TOOLS_BENCH_LAYERS_H
#define TOOLS_BENCH_LAYERS_H

/*
 * What is measured of the layers above the wheel: they read clocks, take locks and run threads, so that they have no
 * place in the table of operations that wheels and heaps share. Each workload here has contestants of its own.
 *
 *     K   n sessions, keys of 16 bytes, in random order: refresh by key, against a lookup in a library's table
 *     T   schedule and cancel on the driver: one thread, and two
 *     L   the driver with 100,000 expiries a second at ticks of 1 ms: how late callbacks start
 *     H   1,000 of n sessions have one deadline: by how many ticks the last of them is late
 */

#include "tools/bench/run.h"

/* Run the planned ones of them that do not depend on the number of timers, and those that do for a number. */
void layers_run_once(const struct plan *plan, struct results *results);
void layers_run_size(const struct plan *plan, uint64_t n, struct results *results);

/* One pass each. A map holds n keys; returns ns a lookup, and in *bytes, if it is known, what an entry takes. */
struct layer_map {
	const struct structure *structure;
	double (*measure)(uint64_t n, uint64_t seed, double *bytes);
};
extern const struct layer_map layer_session;
extern const struct layer_map layer_uthash;
#ifdef HAVE_KHASH
extern const struct layer_map layer_khash;
#endif

/* ns a schedule and cancel, of so many threads together. */
double layer_threads(unsigned threads);

/* Microseconds by which the callbacks started late: half of them by less, and all but one in a thousand. */
struct layer_lateness {
	double median_us;
	double p999_us;
};
enum { LAYER_FIRINGS = 300000 };
struct layer_lateness layer_late(void);
/*
 * The same if the driver cost nothing: a thread sleeps until each tick, and what is due by then counts as started when
 * it wakes. What the machine itself is late, and the rounding up to ticks, is in it.
 */
struct layer_lateness layer_sleep(void);

/* Ticks between the deadline and the last of the 1,000. */
double layer_herd(uint64_t n, uint64_t seed);

/* The key of the i-th entry: 16 bytes that look random. */
void layer_key(uint64_t i, uint64_t seed, unsigned char key[16]);
/* End the program, for which nothing of this may fail. */
void layer_check(int error, const char *what);

#endif
