#ifndef WEEKWHEEL_VERSION_H
#define WEEKWHEEL_VERSION_H

/* The version of weekwheel: of the headers, and of the running library. */

#include "weekwheel/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WW_VERSION_MAJOR 0
#define WW_VERSION_MINOR 2
#define WW_VERSION_PATCH 0
#define WW_VERSION "0.2.0"

/* Return the version of the running library: its WW_VERSION when it was compiled. Constant, never NULL. */
WW_API const char *ww_version(void);

#ifdef __cplusplus
}
#endif

#endif
