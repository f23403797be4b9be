#ifndef TOOLS_WEEKWHEELD_PAGE_FILES_H
#define TOOLS_WEEKWHEELD_PAGE_FILES_H

/* Files that the server carries and hands out as they are: scripts/file-to-c makes their bytes, scripts/make-openapi the first. */

#include <stddef.h>

extern const char openapi_json[];
extern const size_t openapi_json_size;
extern const char page_html[];
extern const size_t page_html_size;
extern const char tubes_js[];
extern const size_t tubes_js_size;
extern const char jobs_js[];
extern const size_t jobs_js_size;
extern const char schedules_js[];
extern const size_t schedules_js_size;
extern const char page_js[];
extern const size_t page_js_size;
extern const char live_js[];
extern const size_t live_js_size;

#endif
