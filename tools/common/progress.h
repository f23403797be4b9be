#ifndef TOOLS_COMMON_PROGRESS_H
#define TOOLS_COMMON_PROGRESS_H

/*
 * A progress bar on standard error, if that is a terminal. Otherwise nothing is written. There is one bar at a time.
 */

#include <stdint.h>

/* Begin a bar. The label must outlive it. */
void progress_begin(const char *label);

/* Show that `done` of `total` is done. 0 stands for an unknown total. A call for every 1000 steps is cheap enough. */
void progress_show(uint64_t done, uint64_t total);

/* Remove the bar from the screen, before something else is written. */
void progress_clear(void);

#endif
