#ifndef TOOLS_SERVICE_CENSUS_VIEW_H
#define TOOLS_SERVICE_CENSUS_VIEW_H

/*
 * The page of sessions for people, and the JSON that it asks for.
 *
 *     GET /v1/stats                      numbers of the server, without looking at each session: the server's own route
 *     GET /v1/forecast?span=S&count=N    how many sessions expire in each of N spans of S seconds
 *     GET /v1/sessions                   all in numbers, and the largest ones
 *
 * The last two wait for a census (census.h) if there is no fresh one. other_keys are those whose size is not known.
 */

#include "tools/service/census/census.h"
#include "tools/service/http/site.h"

enum { VIEW_FILES = 2 };

struct viewer;

extern const struct page_file view_files[VIEW_FILES];

/* Returns NULL after a message. */
struct viewer *view_start(uv_loop_t *loop, const struct web_site *site, const struct census_source *source);
/* Let those who wait go on: libmicrohttpd cannot end before. */
void view_stop(struct viewer *view);
/* After libmicrohttpd's end. NULL is harmless. */
void view_free(struct viewer *view);

enum MHD_Result view_forecast(struct viewer *view, const struct site_request *request);
enum MHD_Result view_sessions(struct viewer *view, const struct site_request *request);

/* Answer with JSON, and free it; bad: there was no memory for all of it. */
enum MHD_Result view_reply(struct MHD_Connection *client, int bad, struct buffer *out);
/* Begin an answer to /v1/stats with what every server has. is_ready: also by what no state says. Returns as buffer_format. */
int view_begin_stats(struct buffer *out, int is_ready, uint64_t uptime_ms);

#endif
