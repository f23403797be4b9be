/* Each end of a key becomes a job: see ends.h. */
#include "tools/weekwheel-expirer/ends/ends.h"

#include <stdlib.h>

#include "lib/base/time.h"
#include "tools/common/message.h"
#include "tools/service/outbox/numbers.h"

struct ends {
	struct keeper_watch watch;
	struct outbox *outbox;
	struct courier *courier;
	unsigned database;
};

/* Times are Redis's. */
static int64_t wall_ms(void *context, int64_t ms)
{
	(void)context;
	return ms;
}

static void ended(void *context, const struct ended_key *key)
{
	struct ends *ends = context;
	const struct outbox_item item = {.why = key->is_sure ? (unsigned)WW_GONE_EXPIRED : OUTBOX_GONE,
	    .database = ends->database,
	    .deadline_ms = key->deadline,
	    .since_ms = key->deadline,
	    .key = key->key,
	    .length = key->length,
	    .size = OUTBOX_UNKNOWN};

	(void)outbox_add(ends->outbox, &item);
}

static int start(struct ends *ends, const struct outbox_options *options)
{
	static const struct letter_form form = {.wall_ms = wall_ms, .is_shared = 1};

	ends->outbox = outbox_open(options->max);
	if (!ends->outbox)
		return message_error("no memory");
	ends->courier = courier_start(ends->outbox, &form, &options->courier);
	return ends->courier ? 0 : -1;
}

struct ends *ends_open(const struct outbox_options *options, unsigned database)
{
	struct ends *ends = calloc(1, sizeof *ends);

	if (!ends) {
		message_error("no memory");
		return NULL;
	}
	ends->database = database;
	ends->watch = (struct keeper_watch){.context = ends, .ended = ended};
	if (start(ends, options) == 0)
		return ends;
	ends_close(ends);
	return NULL;
}

void ends_close(struct ends *ends)
{
	if (!ends)
		return;
	courier_stop(ends->courier);
	outbox_close(ends->outbox);
	free(ends);
}

const struct keeper_watch *ends_watch(const struct ends *ends)
{
	return &ends->watch;
}

int ends_add_numbers(const struct ends *ends, struct buffer *out, const char *prefix)
{
	return outbox_numbers_add(out, prefix, ends->outbox, (int64_t)(time_now(CLOCK_REALTIME) / (uint64_t)1000000));
}
