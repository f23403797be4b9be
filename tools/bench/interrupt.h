#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

/*
 * Stop early, and keep what has been measured: the whole with ten million timers takes the better part of an hour. The first
 * SIGINT or SIGTERM is remembered, and the pass under way given up; a second one ends the program as ever.
 */
void interrupt_begin(void);

/* The signal that came, or 0. */
int interrupt_signal(void);

#endif
