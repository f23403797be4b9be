#ifndef TOOLS_WEEKWHEEL_SESSIOND_EVENTS_H
#define TOOLS_WEEKWHEEL_SESSIOND_EVENTS_H

/* Events of keys, which clients hear by __keyspace@0__:KEY and __keyevent@0__:EVENT. */

#include "tools/weekwheel-sessiond/commands.h"

/* Classes of events, and where they go, as notify-keyspace-events names them. */
enum {
	EVENT_KEYSPACE = 1,   /* K */
	EVENT_KEYEVENT = 2,   /* E */
	EVENT_GENERIC = 4,    /* g */
	EVENT_STRING = 8,     /* $ */
	EVENT_EXPIRED = 16,   /* x */
	EVENT_EVICTED = 32,   /* e */
	EVENT_NEW = 64,       /* n */
	EVENT_KEY_MISS = 128, /* m */
	EVENT_VALUE = 256,    /* v: __expired@0__:KEY with the value; weekwheel-sessiond's own */
	EVENT_OTHERS = 512,   /* l s h z t d: of values that are not here; kept for CONFIG GET */
	EVENT_ALL = EVENT_GENERIC | EVENT_STRING | EVENT_EXPIRED | EVENT_EVICTED
};

#define event_tell(request, class, event, key) ((void)(request), (void)(key))

#endif
