#ifndef TOOLS_SERVICE_HTTP_RECV_H
#define TOOLS_SERVICE_HTTP_RECV_H

/*
 * What libmicrohttpd receives is looked at before it gets it (head.h). libmicrohttpd offers no hook for this. But it
 * calls the C library's recv, and a program's own recv takes precedence:
 *
 *     socket -> recv [ head_read ] -> libmicrohttpd
 *
 * A libmicrohttpd that receives in another way serves nothing: web.c answers no request whose head was not seen here.
 */

struct visitors;

/* From now on, look at what this thread receives from these visitors; NULL: at nothing. */
void recv_look_at(struct visitors *visitors);

#endif
