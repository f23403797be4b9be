/* The loop of a server: see handles.h. */
#include "tools/service/state/handles.h"

#include "tools/common/message.h"

int handles_not_made(void)
{
	return message_error("no event loop: the limit of open files (\"ulimit -n\") may be reached");
}

static void close_any(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void handles_close(uv_loop_t *loop)
{
	uv_walk(loop, close_any, NULL);
}

void handles_end(uv_loop_t *loop)
{
	handles_close(loop);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(loop);
}
