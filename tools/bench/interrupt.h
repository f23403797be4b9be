#ifndef TOOLS_BENCH_INTERRUPT_H
#define TOOLS_BENCH_INTERRUPT_H

/*
 * Stops a run early and keeps what has been measured: all of it with ten million timers takes the better part of an
 * hour. The first SIGINT or SIGTERM is remembered. A pass of A to R is given up; one of the layers above the wheel is the
 * last. A second signal, or one after interrupt_end, ends the program as usual.
 */
void interrupt_begin(void);
void interrupt_end(void);

/* The signal that came since interrupt_begin, or 0. */
int interrupt_signal(void);

/* Why something that was not measured has no result. */
extern const char *const interrupt_why;

#endif
