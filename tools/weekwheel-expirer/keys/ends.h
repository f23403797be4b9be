#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_ENDS_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_ENDS_H

/*
 * What a keeper reports to its owner: that a key is kept with a deadline, is no longer kept, or has ended.
 *
 * A key has ended if its deadline has passed and Redis says that it is gone. It has surely expired if it was sure until
 * then (deadlines.h): if a client had deleted it before its deadline, that change would have arrived, as Redis
 * reports a change before it answers later requests. It is not sure
 * - when a change was reported that may be from before its deadline, and has not been looked up,
 * - when it has not been looked up since a connection was made, or a database flushed,
 * - for a while after messages were late: this process or Redis stood still.
 * A key that is gone before its deadline was deleted or evicted. That is no end.
 */

#include "tools/weekwheel-expirer/keys/keeper.h"

/* Keep a key until then, in ms of Redis's clock. Returns 0, or -1 without memory. */
int ends_keep(struct keeper *keeper, const char *key, size_t length, int64_t until);
/* Keep a key no longer. ends_leave: another keeper may keep it, so this is not reported. */
void ends_drop(struct keeper *keeper, uint32_t index);
void ends_leave(struct keeper *keeper, uint32_t index);
void ends_remove(struct keeper *keeper, const char *key, size_t length);
/* One has ended. */
void ends_report(struct keeper *keeper, uint32_t index, int is_sure);
/*
 * Redis has answered that one which was due is gone: it has ended. While writes are paused, as by a replica that tries to take
 * over, Redis has not deleted it, and publishes nothing. It reports a deletion, which is followed by a lookup that
 * drops the key. Until then the key is asked for again, and its end is reported no more.
 */
void ends_outlive(struct keeper *keeper, uint32_t index);

/*
 * Report once more that some of the keys are kept, and move *from on, which begins at 0. Returns 1 while there may be
 * more.
 */
int ends_report_again(struct keeper *keeper, uint32_t *from);

/* Redis reported a change of the key. */
void ends_hear(struct keeper *keeper, const char *key, size_t length);

#endif
