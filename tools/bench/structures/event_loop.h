#ifndef TOOLS_BENCH_STRUCTURES_EVENT_LOOP_H
#define TOOLS_BENCH_STRUCTURES_EVENT_LOOP_H

/*
 * A clock set by hand for the event loops of libev, libevent and libuv.
 *
 * These libraries read the time from the C library and ask the kernel for events in each turn of their loop. The
 * program has functions of its own of those names, which the libraries find first: clock_gettime, gettimeofday,
 * epoll_wait and epoll_pwait. Between event_loop_enter() and event_loop_leave() these answer at once without the kernel:
 * all clocks have the time that was set, and polling finds no event. At all other times, and in other threads, they pass
 * the call on.
 *
 * A measured turn of a loop therefore lacks its polling, measured at 150 to 160 ns where nothing is ready, and its two or
 * three readings of clocks, at 23 ns each in libev and at 5, of coarse clocks, in the other two. A stand-in takes 1 to
 * 2 ns. A service that turns its loop for connections anyway does not pay for polling twice.
 */

#include "tools/bench/structure.h"

/* Let the clocks read `now` seconds after a fixed time, and polling find nothing, for this thread. */
void event_loop_enter(uint64_t now);

/* Let the clocks and polling be real again. */
void event_loop_leave(void);

/* Have a structure's heap grow to its full size. */
void event_loop_reserve(const struct structure *structure, void *state, struct object *objects, uint64_t n);

/* End the program: the library cannot make a loop. */
_Noreturn void event_loop_failed(const struct structure *structure);

#endif
