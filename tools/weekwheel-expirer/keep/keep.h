#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEEP_KEEP_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEEP_KEEP_H

/*
 * The state that survives a restart (--data): the keys with their deadlines, and the ends that wait to be delivered,
 * in a journal.
 *
 *     journal.7   | first | kept, dropped, waiting, delivered ...                  removed when journal.8 has all
 *     journal.8   | first | delivered, waiting, kept: all there is, meanwhile what changes |  what changes ...
 *
 * There is no image beside it. When the journal has grown, a file begins, and all that is kept is noted once more from
 * there on, some with each turn. What is large has several files, so that a start need not have all of it in memory.
 * A start reads all files in order. The keys are then as they were, and those whose deadlines have passed are due:
 * a key that is gone has ended while the expirer was down, or was deleted.
 *
 * A deadline is in the journal before Redis is asked for its key, and an end before its job is put. A kill therefore
 * loses neither. A thread syncs the journal each second: a power failure may lose what was learned in the last one.
 *
 * All is noted once more in rounds. In a cluster several keepers, each in its thread, note what they keep, and a
 * round has ended when each has. The key of a slot that moves is kept by two: the one that it leaves notes nothing.
 *
 * While the journal cannot be written, ends are delivered from memory. When it can, all is noted once more.
 */

#include "tools/service/outbox/outbox.h"
#include "tools/weekwheel-expirer/keys/keeper.h"

struct keep;

/*
 * Read the folder: the keys go into `deadlines`, the ends into the outbox, whose items are then journaled. Returns
 * NULL after a message.
 */
struct keep *keep_open(const char *folder, unsigned database, struct deadlines *deadlines, struct outbox *outbox);
/* No thread uses it or its outbox any more. NULL is harmless. */
void keep_close(struct keep *keep);

/* Note that a key has a deadline, or is kept no longer. */
void keep_kept(struct keep *keep, const char *key, size_t length, int64_t deadline);
void keep_dropped(struct keep *keep, const char *key, size_t length);

/* A keeper begins, and ends. */
void keep_join(struct keep *keep, struct keeper *keeper);
void keep_leave(struct keep *keep, const struct keeper *keeper);
/* The keepers have taken over what was read: its files can be removed from now on. */
void keep_settle(struct keep *keep);

/* Write the notes, and if it is time, note some of the keeper's keys once more. */
void keep_turn(struct keep *keep, struct keeper *keeper);

/* Bytes of the journal. */
uint64_t keep_bytes(struct keep *keep);

#endif
