/* Reports the ends of states in a loop: see teller.h. */
#include "tools/service/state/teller.h"

#include "tools/service/state/state.h"

static void settle(uv_timer_t *timer)
{
	int64_t ms = state_settle();

	if (ms >= 0)
		uv_timer_start(timer, settle, (uint64_t)ms, 0);
}

static void woken(uv_async_t *async)
{
	struct teller *teller = async->data;

	settle(&teller->timer);
}

static void wake(void *context)
{
	struct teller *teller = context;

	uv_async_send(&teller->wake);
}

int teller_start(struct teller *teller, uv_loop_t *loop)
{
	int error = uv_async_init(loop, &teller->wake, woken);

	if (error)
		return error;
	uv_timer_init(loop, &teller->timer);
	teller->wake.data = teller;
	state_watch(wake, teller);
	return 0;
}

void teller_stop(void)
{
	state_watch(NULL, NULL);
}
