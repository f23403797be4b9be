/* The queue of expiries to report: see outbox.h. */
#include "tools/service/outbox/outbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/service/state/state.h"
#include "weekwheel/error.h"

enum { SLOTS_LEAST = 1024, WALK = 64 };

struct outbox_entry {
	uint64_t id;
	int64_t deadline_ms;
	int64_t since_ms;
	uint32_t size; /* of the value */
	uint16_t length;
	uint8_t database;
	uint8_t why;
	uint8_t has_value : 1;
	uint8_t is_type : 1;
	uint8_t is_noted; /* the journal knows */
	uint32_t early_ms;
	char bytes[]; /* key, value */
};

/*
 * Positions count up for ever; a slot is a position modulo the room. An item that has been delivered leaves its slot empty.
 */
struct outbox {
	pthread_mutex_t lock;
	struct outbox_entry **slot;
	uint64_t room;
	uint64_t head;
	uint64_t answered;
	uint64_t next;
	uint64_t tail;
	uint64_t next_id;
	uint64_t delivered_id; /* the journal knows */
	uint64_t bytes_max;
	int is_again; /* some in flight have to be sent again */
	int is_hungry;
	const struct outbox_journal *journal;
	void (*wake)(void *context);
	void *wake_context;
	struct outbox_stats stats;
};

static struct outbox_entry **at(const struct outbox *outbox, uint64_t position)
{
	return &outbox->slot[position & (outbox->room - 1)];
}

/* ---- Life */

/* Ids go on over a restart, even if the journal has nothing that waits: they begin with the time. */
static uint64_t first_id(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000) << 20;
}

struct outbox *outbox_open(uint64_t bytes_max)
{
	struct outbox *outbox = calloc(1, sizeof *outbox);

	if (!outbox)
		return NULL;
	pthread_mutex_init(&outbox->lock, NULL);
	outbox->next_id = first_id();
	outbox->delivered_id = outbox->next_id - 1;
	outbox->bytes_max = bytes_max;
	outbox->is_hungry = 1;
	return outbox;
}

void outbox_close(struct outbox *outbox)
{
	if (!outbox)
		return;
	for (uint64_t i = outbox->head; i < outbox->tail; i++)
		free(*at(outbox, i));
	free(outbox->slot);
	pthread_mutex_destroy(&outbox->lock);
	free(outbox);
}

/* ---- Entries. The lock is held from here on, but for what is declared in the header. */

static uint64_t weight(const struct outbox_entry *entry)
{
	return sizeof *entry + sizeof entry + 16 + entry->length + (entry->has_value ? entry->size : 0);
}

static struct outbox_entry *make_entry(const struct outbox_item *item, int has_value)
{
	struct outbox_entry *entry = malloc(sizeof *entry + item->length + (has_value ? item->size : 0));

	if (!entry)
		return NULL;
	*entry = (struct outbox_entry){.id = item->id,
	    .deadline_ms = item->deadline_ms,
	    .since_ms = item->since_ms,
	    .size = (uint32_t)item->size,
	    .length = (uint16_t)item->length,
	    .database = (uint8_t)item->database,
	    .why = (uint8_t)item->why,
	    .has_value = has_value != 0,
	    .is_type = item->is_type != 0,
	    .early_ms = item->early_ms};
	if (item->length)
		memcpy(entry->bytes, item->key, item->length);
	if (has_value && item->size)
		memcpy(entry->bytes + item->length, item->value, item->size);
	return entry;
}

static void show(const struct outbox_entry *entry, struct outbox_item *item)
{
	*item = (struct outbox_item){.id = entry->id,
	    .why = entry->why,
	    .database = entry->database,
	    .deadline_ms = entry->deadline_ms,
	    .since_ms = entry->since_ms,
	    .key = entry->bytes,
	    .length = entry->length,
	    .value = entry->has_value ? entry->bytes + entry->length : NULL,
	    .size = entry->size,
	    .is_type = entry->is_type,
	    .early_ms = entry->early_ms};
}

static void leave(struct outbox *outbox, uint64_t position)
{
	struct outbox_entry *entry = *at(outbox, position);

	outbox->stats.waiting--;
	outbox->stats.bytes -= weight(entry);
	*at(outbox, position) = NULL;
	free(entry);
}

/*
 * Move the positions past items that have left. When nothing is in flight, go back to those that have to be sent
 * again.
 */
static void tidy(struct outbox *outbox)
{
	while (outbox->answered < outbox->next && !*at(outbox, outbox->answered))
		outbox->answered++;
	if (outbox->answered == outbox->next && outbox->is_again) {
		outbox->answered = outbox->next = outbox->head;
		outbox->is_again = 0;
	}
	while (outbox->head < outbox->answered && !*at(outbox, outbox->head))
		outbox->head++;
	while (outbox->answered == outbox->next && outbox->next < outbox->tail && !*at(outbox, outbox->next)) {
		outbox->next = ++outbox->answered;
		if (outbox->head == outbox->next - 1)
			outbox->head++;
	}
}

static int grow(struct outbox *outbox)
{
	uint64_t room = outbox->room ? 2 * outbox->room : SLOTS_LEAST;
	struct outbox_entry **slot;

	if (outbox->tail - outbox->head < outbox->room)
		return 0;
	slot = malloc(room * sizeof(struct outbox_entry *));
	if (!slot)
		return -1;
	for (uint64_t i = outbox->head; i < outbox->tail; i++)
		slot[i & (room - 1)] = *at(outbox, i);
	free(outbox->slot);
	outbox->slot = slot;
	outbox->room = room;
	return 0;
}

/* Items in flight have their bytes in use. */
static void make_room(struct outbox *outbox, uint64_t more)
{
	while (outbox->stats.bytes + more > outbox->bytes_max && outbox->next < outbox->tail) {
		if (*at(outbox, outbox->next)) {
			leave(outbox, outbox->next);
			outbox->stats.dropped++;
			state_seen("expired-max",
			    "--expired-max is reached: the oldest expiries that wait to be reported are dropped");
		}
		outbox->next++;
		tidy(outbox);
	}
}

static void append(struct outbox *outbox, struct outbox_entry *entry)
{
	*at(outbox, outbox->tail++) = entry;
	outbox->stats.waiting++;
	outbox->stats.bytes += weight(entry);
	if (outbox->is_hungry && outbox->wake) {
		outbox->is_hungry = 0;
		outbox->wake(outbox->wake_context);
	}
}

/* ---- Adding */

uint64_t outbox_add(struct outbox *outbox, const struct outbox_item *item)
{
	struct outbox_item kept = *item;
	struct outbox_entry *entry;
	int has_value;

	pthread_mutex_lock(&outbox->lock);
	kept.id = outbox->next_id++;
	has_value = item->value && outbox->stats.bytes + item->size <= outbox->bytes_max / 4 * 3;
	entry = make_entry(&kept, has_value);
	if (!entry || grow(outbox) != 0) {
		free(entry);
		outbox->stats.dropped++;
	} else {
		outbox->stats.shortened += item->value && !has_value;
		make_room(outbox, weight(entry));
		append(outbox, entry);
		show(entry, &kept);
		if (outbox->journal)
			outbox->journal->waiting(outbox->journal->context, &kept);
		entry->is_noted = outbox->journal != NULL;
	}
	pthread_mutex_unlock(&outbox->lock);
	return kept.id;
}

/* New expiries during the start may come before restored ones. */
static void sort_last(struct outbox *outbox)
{
	for (uint64_t i = outbox->tail - 1; i > outbox->next; i--) {
		struct outbox_entry **later = at(outbox, i);
		struct outbox_entry **earlier = at(outbox, i - 1);
		struct outbox_entry *entry = *later;

		if (!*earlier || (*earlier)->id < entry->id)
			return;
		*later = *earlier;
		*earlier = entry;
	}
}

/* The first position whose entry has a greater id. Empty slots have the id of the next entry. */
static uint64_t behind(const struct outbox *outbox, uint64_t id)
{
	uint64_t low = outbox->head;
	uint64_t high = outbox->tail;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		uint64_t full = middle;

		while (full < high && !*at(outbox, full))
			full++;
		if (full == high)
			high = middle;
		else if ((*at(outbox, full))->id <= id)
			low = full + 1;
		else
			high = middle;
	}
	return low;
}

/* Both image and journal may have it. */
static int is_there(const struct outbox *outbox, uint64_t id)
{
	for (uint64_t i = behind(outbox, id - 1); i < outbox->tail; i++)
		if (*at(outbox, i))
			return (*at(outbox, i))->id == id;
	return 0;
}

static int restore(struct outbox *outbox, const struct outbox_item *item)
{
	struct outbox_entry *entry;

	if (is_there(outbox, item->id))
		return WW_OK;
	entry = make_entry(item, item->value != NULL);
	if (!entry || grow(outbox) != 0) {
		free(entry);
		return WW_ENOMEM;
	}
	entry->is_noted = 1;
	append(outbox, entry);
	sort_last(outbox);
	if (entry->id >= outbox->next_id)
		outbox->next_id = entry->id + 1;
	if (entry->id <= outbox->delivered_id)
		outbox->delivered_id = entry->id - 1;
	return WW_OK;
}

int outbox_restore(struct outbox *outbox, const struct outbox_item *item)
{
	int error;

	pthread_mutex_lock(&outbox->lock);
	error = restore(outbox, item);
	pthread_mutex_unlock(&outbox->lock);
	return error;
}

/* Nothing is in flight yet, and no slot is empty. */
void outbox_cancel(struct outbox *outbox, uint64_t id)
{
	uint64_t found;

	pthread_mutex_lock(&outbox->lock);
	found = behind(outbox, id - 1);
	if (found < outbox->tail && (*at(outbox, found))->id == id) {
		leave(outbox, found);
		for (outbox->tail--; found < outbox->tail; found++)
			*at(outbox, found) = *at(outbox, found + 1);
	}
	pthread_mutex_unlock(&outbox->lock);
}

void outbox_restore_delivered(struct outbox *outbox, uint64_t id)
{
	pthread_mutex_lock(&outbox->lock);
	while (outbox->head < outbox->tail && (*at(outbox, outbox->head))->id <= id) {
		leave(outbox, outbox->head);
		outbox->head = outbox->answered = outbox->next = outbox->head + 1;
	}
	if (id >= outbox->next_id)
		outbox->next_id = id + 1;
	pthread_mutex_unlock(&outbox->lock);
}

/* ---- Who listens */

void outbox_set_journal(struct outbox *outbox, const struct outbox_journal *journal)
{
	struct outbox_item item;

	pthread_mutex_lock(&outbox->lock);
	outbox->journal = journal;
	for (uint64_t i = outbox->head; journal && i < outbox->tail; i++) {
		struct outbox_entry *entry = *at(outbox, i);
		if (!entry || entry->is_noted)
			continue;
		show(entry, &item);
		journal->waiting(journal->context, &item);
		entry->is_noted = 1;
	}
	pthread_mutex_unlock(&outbox->lock);
}

int outbox_has_journal(struct outbox *outbox)
{
	int has;

	pthread_mutex_lock(&outbox->lock);
	has = outbox->journal != NULL;
	pthread_mutex_unlock(&outbox->lock);
	return has;
}

void outbox_set_wake(struct outbox *outbox, void (*wake)(void *context), void *context)
{
	pthread_mutex_lock(&outbox->lock);
	outbox->wake = wake;
	outbox->wake_context = context;
	pthread_mutex_unlock(&outbox->lock);
}

/* ---- Walking */

size_t outbox_walk(struct outbox *outbox, uint64_t *after, outbox_item_fn *fn, void *context)
{
	struct outbox_item item;
	size_t count = 0;

	pthread_mutex_lock(&outbox->lock);
	for (uint64_t i = behind(outbox, *after); i < outbox->tail && count < WALK; i++) {
		if (!*at(outbox, i))
			continue;
		show(*at(outbox, i), &item);
		fn(&item, context);
		*after = item.id;
		count++;
	}
	pthread_mutex_unlock(&outbox->lock);
	return count;
}

static uint64_t delivered(const struct outbox *outbox)
{
	for (uint64_t i = outbox->head; i < outbox->tail; i++)
		if (*at(outbox, i))
			return (*at(outbox, i))->id - 1;
	return outbox->next_id - 1;
}

uint64_t outbox_delivered(struct outbox *outbox)
{
	uint64_t id;

	pthread_mutex_lock(&outbox->lock);
	id = delivered(outbox);
	pthread_mutex_unlock(&outbox->lock);
	return id;
}

/* ---- Sending */

int outbox_take(struct outbox *outbox, struct outbox_item *item)
{
	int found = 0;

	pthread_mutex_lock(&outbox->lock);
	/* Items to be sent again go first. */
	if (!outbox->is_again) {
		while (outbox->next < outbox->tail && !*at(outbox, outbox->next))
			outbox->next++;
		found = outbox->next < outbox->tail;
		outbox->is_hungry = !found;
	}
	if (found) {
		show(*at(outbox, outbox->next++), item);
		outbox->stats.in_flight++;
	}
	pthread_mutex_unlock(&outbox->lock);
	return found;
}

static void shorten(struct outbox *outbox, uint64_t position)
{
	struct outbox_entry *entry = *at(outbox, position);
	struct outbox_entry *smaller = realloc(entry, sizeof *entry + entry->length);

	entry = *at(outbox, position) = smaller ? smaller : entry;
	outbox->stats.bytes -= entry->size;
	outbox->stats.shortened++;
	entry->has_value = 0;
}

int outbox_answered(struct outbox *outbox, enum outbox_answer answer)
{
	struct outbox_entry *entry;
	int is_given_up = 0;

	pthread_mutex_lock(&outbox->lock);
	tidy(outbox);
	entry = *at(outbox, outbox->answered);
	outbox->stats.in_flight--;
	if (answer == OUTBOX_TOO_BIG && entry->has_value) {
		shorten(outbox, outbox->answered);
		outbox->is_again = 1;
	} else if (answer == OUTBOX_AGAIN) {
		outbox->is_again = 1;
	} else {
		is_given_up = answer == OUTBOX_TOO_BIG;
		outbox->stats.given_up += (unsigned)is_given_up;
		outbox->stats.delivered += !is_given_up;
		leave(outbox, outbox->answered);
	}
	outbox->answered++;
	tidy(outbox);
	pthread_mutex_unlock(&outbox->lock);
	return is_given_up;
}

void outbox_recall(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	outbox->stats.in_flight = 0;
	outbox->is_again = 0;
	outbox->answered = outbox->next = outbox->head;
	tidy(outbox);
	pthread_mutex_unlock(&outbox->lock);
}

int outbox_settle(struct outbox *outbox)
{
	const struct outbox_journal *journal;
	uint64_t id;

	pthread_mutex_lock(&outbox->lock);
	journal = outbox->journal;
	id = delivered(outbox);
	if (journal && id > outbox->delivered_id)
		journal->delivered(journal->context, id);
	outbox->delivered_id = id;
	pthread_mutex_unlock(&outbox->lock);
	return journal ? journal->settle(journal->context) : WW_OK;
}

void outbox_stats(struct outbox *outbox, struct outbox_stats *stats)
{
	pthread_mutex_lock(&outbox->lock);
	*stats = outbox->stats;
	for (uint64_t i = outbox->head; stats->waiting && i < outbox->tail; i++)
		if (*at(outbox, i)) {
			stats->oldest_ms = (*at(outbox, i))->since_ms;
			break;
		}
	pthread_mutex_unlock(&outbox->lock);
}
