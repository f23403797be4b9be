#ifndef TOOLS_SERVICE_HTTP_RECV_H
#define TOOLS_SERVICE_HTTP_RECV_H

/*
 * What libmicrohttpd receives is looked at before it gets it (head.h). It has no function to be told of that. But it receives by
 * the C library's recv, and a program's own comes before that:
 *
 *     socket -> recv [ head_read ] -> libmicrohttpd
 *
 * A libmicrohttpd that receives in another way serves nothing: web.c answers no request whose head was not seen here.
 */

struct visitors;

/* From now on, look at what this thread receives from these visitors; NULL: at nothing. */
void recv_look_at(struct visitors *visitors);

#endif
