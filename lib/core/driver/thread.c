/* How a thread of the driver begins and ends: its name, its protection from cancellation, the application's hooks. */

#include <stdio.h>

#include "lib/base/thread.h"
#include "lib/core/driver/queue.h"

void ww_thread_enter(struct thread_here *here, const struct thread_hooks *hooks, int worker)
{
	int state;

	/* A worker that was cancelled would take the queue's lock with it. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (worker < 0)
		(void)snprintf(here->name, sizeof here->name, "ww-tick");
	else
		(void)snprintf(here->name, sizeof here->name, "ww-worker-%u", (unsigned)worker % 1000);
	thread_name(here->name);
	here->shown = (struct ww_driver_thread){here->name, worker};
	if (hooks->begin)
		hooks->begin(&here->shown, hooks->user);
}

void ww_thread_leave(const struct thread_here *here, const struct thread_hooks *hooks)
{
	if (hooks->end)
		hooks->end(&here->shown, hooks->user);
}
