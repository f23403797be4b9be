#ifndef TOOLS_WEEKWHEEL_SESSIOND_KEEP_KEEP_H
#define TOOLS_WEEKWHEEL_SESSIOND_KEEP_KEEP_H

/*
 * Keeps sessions over a restart, in a folder.
 *
 *     sessions     an image of all of them, as they were some time ago
 *     journal.N    what has changed since (lib/journal/journal.h); there is at least one
 *
 * The changes of a turn are in the journal before its answers are sent: a killed server loses nothing that was
 * acknowledged. The setting `sync` decides when they also survive a power failure.
 *
 * A touch only moves a deadline. It is written only if the deadline on disk is older by a sixteenth of the lifetime.
 * After a crash entries therefore get that much more time: none ends early, and none later than that. A server that
 * ends in order writes an image with the exact deadlines.
 *
 * An image is written by walking the maps, some entries at a time. That holds nobody up, and needs no second copy of
 * memory, as a fork would. format.h has the bytes of image and journal.
 */

#include <stdint.h>

#include "tools/service/outbox/outbox.h"
#include "tools/weekwheel-sessiond/data/data.h"

struct keep;

enum keep_sync {
	KEEP_ALWAYS,   /* an answer means stable storage */
	KEEP_INTERVAL, /* a power failure loses the changes of one interval */
	KEEP_SYSTEM    /* as the system writes them back, after half a minute by default */
};

struct keep_config {
	const char *folder;
	enum keep_sync sync;
	uint64_t interval;     /* ns */
	uint64_t grows;        /* bytes of journal after which an image is written, if the image is not larger */
	struct outbox *outbox; /* items that wait for delivery are kept, too */
	int64_t
	    downtime_max; /* ms: the longest downtime that is believed when only the wall clock measured it, after a boot */
	int knows_downtime; /* the caller knows how much time has passed: none is counted */
	uint64_t record;    /* the most bytes of a record; 0: the default */
	int reports;        /* gets what expired while the server was down */
	int recovers;       /* if something is damaged, read what is intact; the files are kept in FOLDER/damaged */
	int takes_stale;    /* then also sessions that lost records may have changed or deleted */
};

/*
 * Take the folder, which is made if its parent exists; load what it has; keep what changes. Returns NULL after a message:
 * the folder is another server's, what it has is damaged, or the system refuses.
 */
struct keep *keep_open(struct data *data, const struct keep_config *config);

/*
 * Write an image, and release the folder. No thread changes sessions any more. NULL is harmless. Returns 0, or -1
 * after a message: the sessions are then in the journal.
 */
int keep_close(struct keep *keep);

#endif
