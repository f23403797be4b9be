#ifndef TOOLS_SERVICE_STATE_NOTIFY_H
#define TOOLS_SERVICE_STATE_NOTIFY_H

/*
 * Notify systemd that the server is ready, that its loop goes round (from time to time, by a timer), and that it ends.
 */

#include <uv.h>

void notify_start(uv_loop_t *loop, uv_timer_t *watchdog);
void notify_stop(void);
/*
 * Before notify_start, at least every minute: the server is there for its clients, but another one does the work. Its
 * watchdog has five minutes from then on, since it may have to load a large store before its own loop goes round.
 */
void notify_stands_by(const char *status);

#endif
