#ifndef TOOLS_SERVICE_HTTP_PAGE_H
#define TOOLS_SERVICE_HTTP_PAGE_H

/* The page for people: files that are part of a server. They get all that they show from its /v1. */

#include <microhttpd.h>

struct page_file {
	const char *path;
	const char *type;
	const char *data;
	const size_t *size;
};

#define PAGE_HTML "text/html; charset=utf-8"
#define PAGE_SCRIPT "text/javascript; charset=utf-8"

/* Answer with the file of this path, one of `files` or what all pages share. Returns 0 if there is none. */
int page_serve(struct MHD_Connection *client, const char *path, const struct page_file *files, size_t count,
    enum MHD_Result *result);

#endif
