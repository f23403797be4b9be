/* The items of the outbox, in the journal and in the image. */
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

enum { LEFT_OUT_SHIFT = 32, WHY_SHIFT = 48, MUCH = 65536 };

/* ---- The bytes */

static struct keep_entry entry_of(const struct outbox_item *item)
{
	return (struct keep_entry){.kind = KEEP_WAIT,
	    .database = item->database,
	    .key = item->key,
	    .length = item->length,
	    .value = item->value,
	    .size = item->value ? item->size : 0,
	    .ttl = item->id,
	    .deadline = (uint64_t)item->deadline_ms,
	    .end = (uint64_t)item->since_ms,
	    .expiry = item->size | (uint64_t)!item->value << LEFT_OUT_SHIFT | (uint64_t)item->why << WHY_SHIFT};
}

int keep_outbox_item(const struct keep_entry *entry, struct outbox_item *item)
{
	*item = (struct outbox_item){.id = entry->ttl,
	    .why = (unsigned)(entry->expiry >> WHY_SHIFT),
	    .database = entry->database,
	    .deadline_ms = (int64_t)entry->deadline,
	    .since_ms = (int64_t)entry->end,
	    .key = entry->key,
	    .length = entry->length,
	    .value = entry->expiry >> LEFT_OUT_SHIFT & 1 ? NULL : entry->value,
	    .size = (uint32_t)entry->expiry};
	return item->value && item->size != entry->size ? -1 : 0;
}

/* ---- What the outbox calls */

static void note(struct keep *keep, const struct keep_entry *entry)
{
	struct buffer bytes = {0};

	if (keep_format_add(&bytes, entry) == 0)
		keep_log_note(keep, &bytes, 1);
	else
		(void)ww_fault_damage(&keep->fault, "there was no memory to note that a session has expired");
	buffer_free(&bytes);
}

static void waiting(void *context, const struct outbox_item *item)
{
	struct keep_entry entry = entry_of(item);

	note(context, &entry);
}

static void delivered(void *context, uint64_t id)
{
	note(context, &(struct keep_entry){.kind = KEEP_DELIVERED, .key = "", .value = "", .ttl = id});
}

static struct keep_entry mark_of(const struct keep *keep)
{
	return (struct keep_entry){.kind = KEEP_DELIVERED,
	    .key = "",
	    .value = "",
	    .ttl = keep->config.reports ? outbox_delivered(keep->config.outbox) : 0};
}

void keep_outbox_mark(struct keep *keep)
{
	struct keep_entry mark = mark_of(keep);

	note(keep, &mark);
}

static int settle(void *context)
{
	return keep_log_settle(context);
}

void keep_outbox_hooks(struct keep *keep)
{
	keep->outbox_hooks =
	    (struct outbox_journal){.context = keep, .waiting = waiting, .delivered = delivered, .settle = settle};
}

/* ---- For the image */

struct adding {
	struct buffer *to;
	int bad;
};

static void add(const struct outbox_item *item, void *context)
{
	struct adding *adding = context;
	struct keep_entry entry = entry_of(item);

	adding->bad |= keep_format_add(adding->to, &entry);
}

int keep_outbox_add(struct keep *keep, struct buffer *to, uint64_t *after, void (*full)(void *context), void *context)
{
	struct keep_entry mark = mark_of(keep);
	struct adding adding = {.to = to, .bad = keep_format_add(to, &mark)};

	while (!adding.bad && outbox_walk(keep->config.outbox, after, add, &adding) > 0)
		if (to->size >= MUCH)
			full(context);
	return adding.bad;
}
