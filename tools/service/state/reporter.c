/* Reports the ends of states in a loop: see reporter.h. */
#include "tools/service/state/reporter.h"

#include "tools/service/state/state.h"

static void settle(uv_timer_t *timer)
{
	int64_t ms = state_settle();

	if (ms >= 0)
		uv_timer_start(timer, settle, (uint64_t)ms, 0);
}

static void woken(uv_async_t *async)
{
	struct reporter *reporter = async->data;

	settle(&reporter->timer);
}

static void wake(void *context)
{
	struct reporter *reporter = context;

	uv_async_send(&reporter->wake);
}

int reporter_start(struct reporter *reporter, uv_loop_t *loop)
{
	int error = uv_async_init(loop, &reporter->wake, woken);

	if (error)
		return error;
	uv_timer_init(loop, &reporter->timer);
	reporter->wake.data = reporter;
	state_watch(wake, reporter);
	return 0;
}

void reporter_stop(void)
{
	state_watch(NULL, NULL);
}
