/* What every part of the server needs of the loop: that it comes round again. */
#include "tools/weekwheeld/engine/server.h"

static void come_round(uv_idle_t *idle)
{
	uv_idle_stop(idle);
}

void loop_again(struct server *server)
{
	if (!uv_is_closing((uv_handle_t *)&server->idle))
		uv_idle_start(&server->idle, come_round);
}
