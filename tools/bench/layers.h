#ifndef TOOLS_BENCH_LAYERS_H
#define TOOLS_BENCH_LAYERS_H

/*
 * What is measured of the layers above the wheel. They read clocks, take locks and run threads, and have no place in the
 * table of operations that wheels and heaps share. Each workload here has contestants of its own.
 *
 *     K   n sessions, keys of 16 bytes, in random order: refresh by key, against a lookup in a library's table
 *     T   schedule and cancel on the driver: one thread, and two
 *     L   the driver with 100,000 expiries a second at ticks of 1 ms: how late callbacks start
 *     H   1,000 of n sessions have one deadline: by how many ticks the last of them is late
 *     M   a session map in use on a driver, alone and among many that are not: what a tick costs
 *     S   n sessions are saved and loaded: ns a session, in memory that was touched before
 *     P   100,000 sessions with callbacks of 20 us, or 1,000 of 20 ms, expire at once: how late another timer is
 *     X   a million timers of a driver are due at once: ns a callback, of none and of 1 us, by the number of workers
 *     W   500 threads sleep, on the driver and in the kernel: how often the processors change threads
 */

#include "tools/bench/run.h"

/* Run the planned ones of them that do not depend on the number of timers, and those that do for a number. */
void layers_run_once(const struct plan *plan, struct results *results);
void layers_run_size(const struct plan *plan, uint64_t n, struct results *results);

/* What a pass measures: the two values of its contestant's metrics. */
struct layer_sample {
	double first, second;
};

/* K: ns a lookup in a map of n keys, and the bytes of an entry, 0 if they are not known. */
struct layer_sample layer_session(uint64_t n, uint64_t seed);
struct layer_sample layer_session_many(uint64_t n, uint64_t seed);
struct layer_sample layer_uthash(uint64_t n, uint64_t seed);
#ifdef HAVE_KHASH
struct layer_sample layer_khash(uint64_t n, uint64_t seed);
#endif

/* T: ns a schedule and cancel, of one thread and of two together. */
struct layer_sample layer_one_thread(uint64_t n, uint64_t seed);
struct layer_sample layer_two_threads(uint64_t n, uint64_t seed);

/*
 * L: by how many microseconds the callbacks started late: half of them by less, and all but one in a thousand. And the
 * same if the driver cost nothing: a thread sleeps until each tick, and what is due by then counts as started when it
 * wakes. The machine's own lateness and the rounding up to ticks are in it.
 */
enum { LAYER_TIMERS = 10000, LAYER_FIRINGS = 300000 };
struct layer_sample layer_late(uint64_t n, uint64_t seed);
struct layer_sample layer_sleep(uint64_t n, uint64_t seed);

/* H: ticks between the deadline and the last of the 1,000. */
struct layer_sample layer_herd(uint64_t n, uint64_t seed);

/* M: ns a tick with one map, and with this many. */
enum { LAYER_MAPS = 4000 };
struct layer_sample layer_one_map(uint64_t n, uint64_t seed);
struct layer_sample layer_many_maps(uint64_t n, uint64_t seed);

/* S: ns to save a session, and to load one. */
struct layer_sample layer_restart(uint64_t n, uint64_t seed);

/* L with 64 workers: half of the callbacks are late by less; and switches in the 5 s that it takes. */
struct layer_sample layer_late_64(uint64_t n, uint64_t seed);

/* P: by how many microseconds half of the unrelated timers are late while a burst expires. */
struct layer_sample layer_short_burst(uint64_t n, uint64_t seed);
struct layer_sample layer_slow_burst(uint64_t n, uint64_t seed);

/* X: ns a callback: the default driver's workers, 1, 2, and a driver without threads; then callbacks of 1 us. */
enum { LAYER_DUE = 1000000 };
struct layer_sample layer_due(uint64_t n, uint64_t seed);
struct layer_sample layer_due_1(uint64_t n, uint64_t seed);
struct layer_sample layer_due_2(uint64_t n, uint64_t seed);
struct layer_sample layer_due_alone(uint64_t n, uint64_t seed);
struct layer_sample layer_due_us(uint64_t n, uint64_t seed);
struct layer_sample layer_due_us_1(uint64_t n, uint64_t seed);
struct layer_sample layer_due_us_2(uint64_t n, uint64_t seed);

/* W: switches of this many threads. */
enum { LAYER_SLEEPERS = 500 };
struct layer_sample layer_ww_sleep(uint64_t n, uint64_t seed);
struct layer_sample layer_nanosleep(uint64_t n, uint64_t seed);

/* The key of the i-th entry: 16 bytes that look random. */
void layer_key(uint64_t i, uint64_t seed, unsigned char key[16]);
/* End the program after a message if there was an error. */
void layer_check(int error, const char *what);

#endif
