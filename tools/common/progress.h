#ifndef TOOLS_COMMON_PROGRESS_H
#define TOOLS_COMMON_PROGRESS_H

/*
 * A progress bar on standard error while that is a terminal; elsewhere nothing is ever written.
 * There is one bar at a time, as there is one terminal.
 */

#include <stdint.h>

/* Begin a bar with a label, which must outlive it. */
void progress_begin(const char *label);

/* Show that `done` of `total` is done; total 0 means that the total is not known. Cheap enough for every 1000 steps. */
void progress_show(uint64_t done, uint64_t total);

/* Return 1 where bars are drawn. */
int progress_visible(void);

/* Take the bar off the screen, so that something else can be written. */
void progress_clear(void);

#endif
