#ifndef LIB_CORE_CLOCK_DESCRIPTOR_H
#define LIB_CORE_CLOCK_DESCRIPTOR_H

/*
 * The descriptors of alarms. Only here does the core make calls that exist on Linux alone: descriptor.c uses timerfd
 * and eventfd. Another system needs another descriptor.c. A kqueue would do: EVFILT_TIMER with an absolute time for a
 * real clock, EVFILT_USER for a virtual one. A real clock's calls are atomic, so that alarms need no lock.
 */

#include <stdint.h>

struct ww_clock;

/* A descriptor that is closed on exec and not readable. Negative: there is none left. */
int ww_descriptor_open(const struct ww_clock *clock);

/*
 * Of a real clock: let it become readable at `ns`, at once if that has passed, and never for UINT64_MAX. It takes back
 * that it has become readable. On the wall clock it also becomes readable when that is stepped while it is set.
 */
void ww_descriptor_set(int fd, const struct ww_clock *clock, uint64_t ns);

/* Of a virtual clock: let it be readable. Returns whether it is. */
int ww_descriptor_raise(int fd);

/* Let it not be readable. Returns whether it was. A cancellation point. */
int ww_descriptor_clear(int fd);

#endif
