/* Each end of a key becomes a job: see ends.h. */
#include "tools/weekwheel-expirer/ends/ends.h"

#include <stdlib.h>

#include "lib/base/time.h"
#include "tools/common/message.h"
#include "tools/service/http/metric.h"
#include "tools/service/outbox/numbers.h"
#include "tools/weekwheel-expirer/keep/keep.h"

struct ends {
	struct keeper_watch watch;
	struct outbox *outbox;
	struct courier *courier;
	struct keep *keep; /* NULL: nothing is kept over a restart */
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
	    .value = key->value,
	    .size = key->value ? key->size : OUTBOX_UNKNOWN,
	    .is_type = key->is_type,
	    .early_ms = key->early_ms};

	(void)outbox_add(ends->outbox, &item);
}

static void kept(void *context, const char *key, size_t length, int64_t deadline)
{
	keep_kept(((struct ends *)context)->keep, key, length, deadline);
}

static void dropped(void *context, const char *key, size_t length)
{
	keep_dropped(((struct ends *)context)->keep, key, length);
}

static void turned(void *context, struct keeper *keeper)
{
	keep_turn(((struct ends *)context)->keep, keeper);
}

static void joined(void *context, struct keeper *keeper)
{
	keep_join(((struct ends *)context)->keep, keeper);
}

static void left(void *context, struct keeper *keeper)
{
	keep_leave(((struct ends *)context)->keep, keeper);
}

static void settled(void *context)
{
	keep_settle(((struct ends *)context)->keep);
}

static int start_keep(struct ends *ends, const struct ends_config *config, struct deadlines **deadlines)
{
	if (!config->folder)
		return 0;
	*deadlines = deadlines_make();
	if (!*deadlines)
		return message_error("no memory");
	ends->keep = keep_open(config->folder, config->database, *deadlines, ends->outbox);
	ends->watch = (struct keeper_watch){.context = ends,
	    .ended = ended,
	    .kept = kept,
	    .dropped = dropped,
	    .turned = turned,
	    .joined = joined,
	    .left = left,
	    .settled = settled};
	return ends->keep ? 0 : -1;
}

static int start(struct ends *ends, const struct ends_config *config, struct deadlines **deadlines)
{
	static const struct letter_form form = {.wall_ms = wall_ms, .is_shared = 1};

	ends->outbox = outbox_open(config->options->max);
	if (!ends->outbox)
		return message_error("no memory");
	if (start_keep(ends, config, deadlines) != 0)
		return -1;
	ends->courier = courier_start(ends->outbox, &form, &config->options->courier);
	return ends->courier ? 0 : -1;
}

struct ends *ends_open(const struct ends_config *config, struct deadlines **deadlines)
{
	struct ends *ends = calloc(1, sizeof *ends);

	if (!ends) {
		message_error("no memory");
		return NULL;
	}
	*deadlines = NULL;
	ends->database = config->database;
	ends->watch = (struct keeper_watch){.context = ends, .ended = ended};
	if (start(ends, config, deadlines) == 0)
		return ends;
	ends_close(ends);
	deadlines_free(*deadlines);
	return NULL;
}

void ends_close(struct ends *ends)
{
	if (!ends)
		return;
	courier_stop(ends->courier);
	keep_close(ends->keep);
	outbox_close(ends->outbox);
	free(ends);
}

const struct keeper_watch *ends_watch(const struct ends *ends)
{
	return &ends->watch;
}

int ends_add_numbers(const struct ends *ends, struct buffer *out, const char *prefix)
{
	int64_t now = (int64_t)(time_now(CLOCK_REALTIME) / (uint64_t)1000000);
	int bad = outbox_numbers_add(out, prefix, ends->outbox, now);

	if (!bad && ends->keep)
		bad = metric_add(out, prefix, "data-bytes", 0, "What --data takes.", keep_bytes(ends->keep));
	return bad;
}
