#ifndef TESTS_SIMULATE_WORLD_H
#define TESTS_SIMULATE_WORLD_H

/*
 * The simulated world: one seed, one time, events in order of time, and tasks, which play the threads of the server.
 * Everything happens in one thread of the system. A task runs until it waits; then events happen, and time passes,
 * until a task can go on.
 */

#include <stddef.h>
#include <stdint.h>

#define SIM_NEVER UINT64_MAX
#define SIM_US UINT64_C(1000)
#define SIM_MS UINT64_C(1000000)
#define SIM_S UINT64_C(1000000000)
#define SIM_MINUTE (60 * SIM_S)
#define SIM_HOUR (3600 * SIM_S)
#define SIM_DAY (24 * SIM_HOUR)
#define SIM_WEEK (7 * SIM_DAY)

struct world {
	uint64_t seed;
	uint64_t now;  /* ns since the run began; nothing sets it back */
	uint64_t hash; /* of all that happened */
	int verbose;
	/*
	 * The server was killed and does not know it: it runs to its end without any effect, so that its memory is
	 * given back. No event happens meanwhile, and its time does not count.
	 */
	int is_ghost;
	uint64_t events;
	uint64_t wakes; /* of threads of the server because of the time */
};

extern struct world world;

void world_begin(uint64_t seed, int verbose);
void world_end(void);

/* ---- Chance */

uint64_t world_random(void);
/* 0 to below - 1. */
uint64_t world_below(uint64_t below);
/* From least to most. */
uint64_t world_between(uint64_t least, uint64_t most);
/* Whether something happens that does so `often` times in a thousand. */
int world_chance(unsigned often);

/* ---- What happens */

/* Add it to the hash, and print it if that was asked for. */
void world_trace(const char *what, uint64_t a, uint64_t b);
void world_trace_bytes(const char *what, uint64_t a, const void *bytes, size_t size);
__attribute__((format(printf, 1, 2))) void world_say(const char *format, ...);
/* A promise is broken. */
__attribute__((format(printf, 1, 2))) void world_bad(const char *format, ...);
/* How often that was said. */
extern unsigned world_bads;

typedef void world_fn(void *context, uint64_t number);
/* Call fn at that time. It may not wait. */
void world_at(uint64_t time, world_fn *fn, void *context, uint64_t number);

/* ---- Waiting, in a task */

/* Let time pass. */
void world_sleep(uint64_t ns);
/* Let others go on, sometimes. */
void world_yield(void);
/* Wait until somebody wakes what is at that address, or for that time: then it returns 0. */
int world_wait(const void *at, uint64_t until);
void world_wake(const void *at);
/* Let happen what is to happen now. */
void world_events(void);
/* The number of the running task; 0 is the server's. */
int world_task(void);

/* The server begins: thread-local variables are as in a new process. */
void world_new_process(void);
/* From now on only the server, which is dead, goes on; then return to the time when it died. */
void world_ghost_begin(void);
void world_ghost_end(void);

#endif
