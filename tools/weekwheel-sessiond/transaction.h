#ifndef TOOLS_WEEKWHEEL_SESSIOND_TRANSACTION_H
#define TOOLS_WEEKWHEEL_SESSIOND_TRANSACTION_H

/* MULTI and WATCH: commands that are carried out together, or not at all. */

#include "tools/weekwheel-sessiond/server.h"

#define transaction_leave(conn) ((void)(conn))

#endif
