#ifndef TOOLS_SERVICE_OUTBOX_NUMBERS_H
#define TOOLS_SERVICE_OUTBOX_NUMBERS_H

/* The numbers of an outbox for Prometheus. */

#include "tools/common/buffer.h"
#include "tools/service/outbox/outbox.h"

/* Write them; `now` is by the clock of its items. Returns 0, or another number without memory. */
int outbox_numbers_add(struct buffer *out, const char *prefix, struct outbox *outbox, int64_t now_ms);

#endif
