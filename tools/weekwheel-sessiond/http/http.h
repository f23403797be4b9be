#ifndef TOOLS_WEEKWHEEL_SESSIOND_HTTP_HTTP_H
#define TOOLS_WEEKWHEEL_SESSIOND_HTTP_HTTP_H

/* HTTP: the server's health and numbers, if the settings say so. */

#include "tools/service/census/view.h"
#include "tools/weekwheel-sessiond/server/server.h"

/* Returns 0, or -1 after a message. */
int http_start(struct sessiond *server);
void http_stop(struct sessiond *server);

/* ---- page.c: for a census (census.h), and the routes of the page (view.h) */

void http_walk(void *context, struct takes *takes);
uint64_t http_now(void *context);
enum MHD_Result http_stats(const struct site_request *request);
enum MHD_Result http_forecast(const struct site_request *request);
enum MHD_Result http_sessions(const struct site_request *request);

#endif
