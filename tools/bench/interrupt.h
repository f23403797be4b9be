#ifndef TOOLS_BENCH_INTERRUPT_H
#define TOOLS_BENCH_INTERRUPT_H

/*
 * Stop early, and keep what has been measured: the whole with ten million timers takes the better part of an hour. The
 * first SIGINT or SIGTERM is remembered: a pass of A to R is given up, one of the layers above the wheel is the last. A
 * second one, or one that comes after interrupt_end, ends the program as ever.
 */
void interrupt_begin(void);
void interrupt_end(void);

/* The signal that came since interrupt_begin, or 0. */
int interrupt_signal(void);

/* Why there is no result of what it came before. */
extern const char *const interrupt_why;

#endif
