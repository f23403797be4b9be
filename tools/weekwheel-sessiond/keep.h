#ifndef TOOLS_WEEKWHEEL_SESSIOND_KEEP_H
#define TOOLS_WEEKWHEEL_SESSIOND_KEEP_H

/*
 * Sessions over a restart: a folder has a snapshot of all of them, and a thread writes it anew from time to time, when
 * somebody asks for it, and at the end.
 *
 *     sessions   head | block | block | ... | an empty block
 *     head       magic 8 | version 4 | 0 4 | sum 8
 *     block      size of its records 8 | their sum 8, which goes on from the one before | records
 *     record     database 1 | 0 1 | size of the key 2 | of the value 4 | TTL 8, ns | deadline 8 | end 8 | key | value
 *
 * Numbers are little-endian. Deadlines are wall time in ms, so the time between two runs counts. A snapshot is written
 * beside the old one, synced, and renamed: a crash leaves the one or the other. It is made by walking the maps, some
 * entries at a time, and holds nobody up. Each key is in it as it is at one moment, and all between its beginning and end.
 *
 * What has changed since the last snapshot is lost by a crash.
 */

#include <stdint.h>

#include "tools/weekwheel-sessiond/data.h"

struct keep;

/*
 * Take the folder, which is made if its parent exists; load what it has; write it anew `every` ns while something has
 * changed. Returns NULL after a message: the folder is another server's, what it has is damaged, or the system refuses.
 */
struct keep *keep_open(struct data *data, const char *folder, uint64_t every);

/* Write all sessions once more, and give the folder up. Nobody changes them any more. NULL is harmless. 0, or -1 after a
 * message. */
int keep_close(struct keep *keep);

#endif
