#ifndef TOOLS_WEEKWHEEL_SESSIOND_HTTP_VIEW_H
#define TOOLS_WEEKWHEEL_SESSIOND_HTTP_VIEW_H

/*
 * The page for people, and the JSON that it asks for.
 *
 *     GET /v1/stats                      numbers of the server, without looking at each session
 *     GET /v1/forecast?span=S&count=N    how many sessions expire in each of N spans of S seconds
 *     GET /v1/sessions                   all in numbers, and the largest ones
 *
 * The last two wait for a census (census.h) if there is no fresh one.
 */

#include "tools/service/http/site.h"
#include "tools/weekwheel-sessiond/server/server.h"

struct viewer;

/* Returns NULL after a message. */
struct viewer *view_start(struct sessiond *server);
/* Let those who wait go on: libmicrohttpd cannot end before. */
void view_stop(struct viewer *view);
/* After libmicrohttpd's end. NULL is harmless. */
void view_free(struct viewer *view);

enum MHD_Result view_stats(const struct site_request *request);
enum MHD_Result view_forecast(const struct site_request *request);
enum MHD_Result view_sessions(const struct site_request *request);

#endif
