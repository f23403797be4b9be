/* The page for people: files that ask /v1 for all they show. */
#include <string.h>

#include "tools/service/reply.h"
#include "tools/weekwheeld/files.h"
#include "tools/weekwheeld/http.h"

/* Nothing but these files runs or is loaded, whatever text a job has; nobody else's page may show this one. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct {
	const char *path;
	const char *type;
	const char *data;
	const size_t *size;
} files[] = {
    {"/", "text/html; charset=utf-8", page_html, &page_html_size},
    {"/page.css", "text/css; charset=utf-8", page_css, &page_css_size},
    {"/page.js", "text/javascript; charset=utf-8", page_js, &page_js_size},
    {"/schedules.js", "text/javascript; charset=utf-8", schedules_js, &schedules_js_size},
    {"/live.js", "text/javascript; charset=utf-8", live_js, &live_js_size},
};

int page_serves(struct MHD_Connection *client, const char *path, enum MHD_Result *result)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (strcmp(path, files[i].path) != 0)
			continue;
		*result = reply_file(client, files[i].type, files[i].data, *files[i].size, policy);
		return 1;
	}
	return 0;
}
