#ifndef TOOLS_SERVICE_STATE_HANDLES_H
#define TOOLS_SERVICE_STATE_HANDLES_H

/* The loop of a server: what to say if there is none, and its handles when it ends. */

#include <uv.h>

/* Say that the loop, or a handle of it, could not be made; returns -1. */
int handles_not_made(void);

/* Close each handle that is still open: uv_run then returns when the loop has nothing else to do. */
void handles_close(uv_loop_t *loop);

/* Close the loop. A start that failed has left handles: close them, and run what waits for their end. */
void handles_end(uv_loop_t *loop);

#endif
