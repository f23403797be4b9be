#ifndef TOOLS_WEEKWHEEL_SESSIOND_OUTBOX_LETTER_H
#define TOOLS_WEEKWHEEL_SESSIOND_OUTBOX_LETTER_H

/* The body of the job that reports an expiry: JSON. */

#include "tools/common/buffer.h"
#include "tools/weekwheel-sessiond/outbox/outbox.h"

enum { LETTER_ID = 40 };

/* Write the item's name, which no other one has, over restarts and servers. Letters, digits and a dash. */
const char *letter_id(const struct outbox_item *item, char text[LETTER_ID]);

/* Append the body, with this deadline by the wall clock, or OUTBOX_NEVER. Returns 0, or -1 without memory. */
int letter_write(struct buffer *out, const struct outbox_item *item, int64_t deadline_ms);

#endif
