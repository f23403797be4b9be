#ifndef TOOLS_SERVICE_STATE_HANDLES_H
#define TOOLS_SERVICE_STATE_HANDLES_H

/* The loop of a server: the message if it cannot be made, and its handles at the end. */

#include <uv.h>

/* Report that the loop, or a handle of it, could not be made; returns -1. */
int handles_not_made(void);

/* Close each handle that is still open: uv_run then returns when the loop has nothing else to do. */
void handles_close(uv_loop_t *loop);

/*
 * Close the loop. After a failed start, first close the handles that are left, and run the loop until they are closed.
 */
void handles_end(uv_loop_t *loop);

#endif
