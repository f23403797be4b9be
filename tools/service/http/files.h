#ifndef TOOLS_SERVICE_HTTP_FILES_H
#define TOOLS_SERVICE_HTTP_FILES_H

/* Files that all pages share: scripts/file-to-c makes their bytes. */

#include <stddef.h>

extern const char page_css[];
extern const size_t page_css_size;
extern const char common_js[];
extern const size_t common_js_size;

#endif
