/* The files of the page for people. */
#include "tools/service/page.h"

#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/page/files.h"

static const struct page_file files[] = {
    {"/", PAGE_HTML, page_html, &page_html_size},
    {"/page.js", PAGE_SCRIPT, page_js, &page_js_size},
    {"/schedules.js", PAGE_SCRIPT, schedules_js, &schedules_js_size},
    {"/live.js", PAGE_SCRIPT, live_js, &live_js_size},
};

int page_serves(struct MHD_Connection *client, const char *path, enum MHD_Result *result)
{
	return page_serve(client, path, files, sizeof files / sizeof *files, result);
}
