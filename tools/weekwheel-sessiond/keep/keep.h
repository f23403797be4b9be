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
	KEEP_SYSTEM    /* of as long as the system keeps them, half a minute by default */
};

struct keep_config {
	const char *folder;
	enum keep_sync sync;
	uint64_t interval;     /* ns */
	uint64_t grows;        /* bytes of journal after which an image is written, if the image is not larger */
	struct outbox *outbox; /* what has to be delivered is kept, too */
	int64_t downtime_max;  /* ms: how long the wall clock may say after a boot that the machine was off */
	int knows_downtime;    /* another knows how much time has passed: none is counted */
	uint64_t record;       /* bytes of a record, at most; 0: as many as are sensible */
	int reports;           /* what has expired while nobody served goes there */
	int recovers;          /* read what is whole, if something is damaged; its files are kept in FOLDER/damaged */
};

/*
 * Take the folder, which is made if its parent exists; load what it has; keep what changes. Returns NULL after a message:
 * the folder is another server's, what it has is damaged, or the system refuses.
 */
struct keep *keep_open(struct data *data, const struct keep_config *config);

/*
 * Write an image, and give the folder up. Nobody changes sessions any more. NULL is harmless. Returns 0, or -1 after a
 * message: then the journal has what it has.
 */
int keep_close(struct keep *keep);

#endif
