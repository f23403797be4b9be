#ifndef TOOLS_SERVICE_CENSUS_FILES_H
#define TOOLS_SERVICE_CENSUS_FILES_H

/* The page of sessions, which is served as it is: scripts/file-to-c makes its bytes. */

#include <stddef.h>

extern const char sessions_html[];
extern const size_t sessions_html_size;
extern const char sessions_js[];
extern const size_t sessions_js_size;

#endif
