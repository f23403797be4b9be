#ifndef TOOLS_WEEKWHEEL_SESSIOND_PUBSUB_H
#define TOOLS_WEEKWHEEL_SESSIOND_PUBSUB_H

/* Channels, and who hears them. */

#include "tools/weekwheel-sessiond/server.h"

#define pubsub_leave(conn) ((void)(conn))

#endif
