#ifndef TOOLS_WEEKWHEELD_V1_FILES_H
#define TOOLS_WEEKWHEELD_V1_FILES_H

/* Files that the server carries and hands out as they are: scripts/file-to-c makes their bytes. */

#include <stddef.h>

extern const char openapi_json[];
extern const size_t openapi_json_size;

#endif
