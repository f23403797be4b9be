#ifndef TOOLS_WEEKWHEELD_HTTP_H
#define TOOLS_WEEKWHEELD_HTTP_H

/* What http.c and those who answer requests have in common. */

#include "tools/service/web.h"

struct server;

/* This is what the client sends, or is being sent: at the bound of buffers, the one with most of them leaves. */
void http_owe(struct server *server, struct MHD_Connection *client, const struct buffer *buffer);

/* Return 1 if the client has to leave: what it still sends is of no use. */
int http_is_leaving(struct server *server, struct MHD_Connection *client);

/* The answer of a request that was suspended is known: let it go on, in the loop's next round. */
void http_resume(struct server *server, struct web_visit *visit);

/* The answer is read: the client has as long again for what follows. */
void http_note(struct server *server, struct MHD_Connection *client);

/* page.c: return 1 with the answer in *result if the path is a file of the page. */
int page_serves(struct MHD_Connection *client, const char *path, enum MHD_Result *result);

/* v1/serve.c: a request has come for this path below /v1/. Stores in *visit what is called from then on. */
enum MHD_Result v1_begin(struct server *server, struct MHD_Connection *client, const char *path, const char *method,
    struct web_visit **visit);

#endif
