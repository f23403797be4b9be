#ifndef TOOLS_WEEKWHEEL_EXPIRER_ENDS_ENDS_H
#define TOOLS_WEEKWHEEL_EXPIRER_ENDS_ENDS_H

/*
 * Each end of a key becomes a job at another server (--expired-to), at least once: an outbox keeps it until then. A
 * job is named after the key and its deadline, so that two expirers at one Redis make one job, if the other server
 * knows names.
 */

#include "tools/common/buffer.h"
#include "tools/service/outbox/options.h"
#include "tools/weekwheel-expirer/keys/keeper.h"

struct ends;

struct ends_config {
	const struct outbox_options *options;
	const char *folder; /* --data; NULL: none */
	unsigned database;
};

/* All in *config must outlive it. *deadlines gets the keys that an earlier run knew, or NULL. Returns NULL after a message. */
struct ends *ends_open(const struct ends_config *config, struct deadlines **deadlines);
/* Send the waiting items, for some seconds at most. No keeper calls it any more. NULL is harmless. */
void ends_close(struct ends *ends);

/* The functions that a keeper calls. */
const struct keeper_watch *ends_watch(const struct ends *ends);

/* Write the numbers for Prometheus. Returns 0, or another number without memory. */
int ends_add_numbers(const struct ends *ends, struct buffer *out, const char *prefix);

#endif
