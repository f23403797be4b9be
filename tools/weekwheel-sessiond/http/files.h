#ifndef TOOLS_WEEKWHEEL_SESSIOND_HTTP_FILES_H
#define TOOLS_WEEKWHEEL_SESSIOND_HTTP_FILES_H

/* Files that are part of the server and are served as they are: scripts/file-to-c makes their bytes. */

#include <stddef.h>

extern const char sessions_html[];
extern const size_t sessions_html_size;
extern const char sessions_js[];
extern const size_t sessions_js_size;

#endif
