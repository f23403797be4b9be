#ifndef TESTS_SIMULATE_SYSTEM_H
#define TESTS_SIMULATE_SYSTEM_H

/* What the simulated system has beside a disk: clocks and descriptors. The calls of the C library end there. */

#include <stdint.h>

struct system_clock {
	uint64_t wall;   /* Unix time at the beginning of the run, in ns */
	int64_t stepped; /* how far it was set since */
	uint64_t booted; /* when, in ns of the run */
	uint64_t boots;
};

extern struct system_clock system_clock;

void system_begin(void);
/* The server's descriptors are closed. */
void system_release(void);
uint64_t system_wall(void);
/* Set the wall clock. Alarms of that clock notice. */
void system_step(int64_t ns);
void system_boot(void);

/* What a descriptor is ready for, as libuv names it, and when an alarm will be. */
int system_events(int fd);
uint64_t system_readable_at(int fd);
/* Something is ready: let threads that wait in poll look again. */
void system_wake(void);

struct wire;
/* A descriptor for a connection that the server has made, or -1. */
int system_dialled(struct wire *wire);

#endif
