#ifndef TOOLS_WEEKWHEELD_HTTP_H
#define TOOLS_WEEKWHEELD_HTTP_H

/* What http.c and those who answer requests have in common. */

#include "tools/service/web.h"

struct server;

/* page.c: return 1 with the answer in *result if the path is a file of the page. */
int page_serves(struct MHD_Connection *client, const char *path, enum MHD_Result *result);

/* v1/serve.c: a request has come for this path below /v1/. Stores in *visit what is called from then on. */
enum MHD_Result v1_begin(struct server *server, struct MHD_Connection *client, const char *path, const char *method,
    struct web_visit **visit);

#endif
