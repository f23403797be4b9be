/* The page for people: see page.h. */
#include "tools/service/http/page.h"

#include <string.h>

#include "tools/service/http/files.h"
#include "tools/service/http/reply.h"

/* Only these files run or are loaded, whatever text is shown; no other site's page may embed this one. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct page_file shared[] = {
    {"/page.css", "text/css; charset=utf-8", page_css, &page_css_size},
    {"/common.js", PAGE_SCRIPT, common_js, &common_js_size},
};

static const struct page_file *find(const char *path, const struct page_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(path, files[i].path) == 0)
			return &files[i];
	return NULL;
}

int page_serve(struct MHD_Connection *client, const char *path, const struct page_file *files, size_t count,
    enum MHD_Result *result)
{
	const struct page_file *file = find(path, files, count);

	if (!file)
		file = find(path, shared, sizeof shared / sizeof *shared);
	if (!file)
		return 0;
	*result = reply_file(client, file->type, file->data, *file->size, policy);
	return 1;
}
