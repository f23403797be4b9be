#ifndef TOOLS_SERVICE_STATE_NOTIFY_H
#define TOOLS_SERVICE_STATE_NOTIFY_H

/*
 * Notify systemd that the server is ready, that its loop goes round (from time to time, by a timer), and that it ends.
 */

#include <uv.h>

void notify_start(uv_loop_t *loop, uv_timer_t *watchdog);
void notify_stop(void);
/* Before notify_start, at least every second: say that the server is not ready yet, and why. */
void notify_waits(const char *why);

#endif
