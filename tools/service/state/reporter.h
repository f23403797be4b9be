#ifndef TOOLS_SERVICE_STATE_REPORTER_H
#define TOOLS_SERVICE_STATE_REPORTER_H

/* Reports the ends of states (state.h) in a loop, which sleeps until then. One in a process. */

#include <uv.h>

struct reporter {
	uv_timer_t timer;
	uv_async_t wake;
};

/* Returns 0, or an error of libuv. */
int reporter_start(struct reporter *reporter, uv_loop_t *loop);

/* No state wakes the loop from now on. Its handles can be closed. */
void reporter_stop(void);

#endif
