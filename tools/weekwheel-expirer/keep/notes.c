/* Writes and reads the notes of the journal: see notes.h. */
#include "tools/weekwheel-expirer/keep/notes.h"

#include <string.h>

/* Flags of an end that waits. */
enum { HAS_VALUE = 1, IS_TYPE = 2 };

struct note_head {
	uint8_t kind;
	uint8_t why;
	uint16_t length;
	uint32_t size;
	uint64_t time;
};

struct note_more {
	uint64_t id;
	uint32_t flags;
	uint32_t early_ms;
};

static int append(
    struct buffer *to, const struct note_head *head, const struct note_more *more, const void *key, const void *value)
{
	size_t size = value ? head->size : 0;

	if (buffer_reserve(to, sizeof *head + sizeof *more + head->length + size) != 0)
		return -1;
	(void)buffer_append(to, head, sizeof *head);
	if (more)
		(void)buffer_append(to, more, sizeof *more);
	(void)buffer_append(to, key, head->length);
	return value ? buffer_append(to, value, size) : 0;
}

int notes_add(struct buffer *to, const struct note *note)
{
	const struct note_head head = {
	    .kind = (uint8_t)note->kind, .length = (uint16_t)note->length, .time = note->time};

	return append(to, &head, NULL, note->key ? note->key : "", NULL);
}

int notes_add_item(struct buffer *to, const struct outbox_item *item)
{
	const struct note_head head = {.kind = NOTE_WAITING,
	    .why = (uint8_t)item->why,
	    .length = (uint16_t)item->length,
	    .size = (uint32_t)item->size,
	    .time = (uint64_t)item->deadline_ms};
	const struct note_more more = {.id = item->id,
	    .flags = (item->value ? HAS_VALUE : 0u) | (item->is_type ? IS_TYPE : 0u),
	    .early_ms = item->early_ms};

	return append(to, &head, &more, item->key, item->value);
}

static size_t read_item(const unsigned char *from, size_t size, const struct note_head *head, struct outbox_item *item)
{
	size_t whole = sizeof *head + sizeof(struct note_more) + head->length;
	struct note_more more;

	if (size < whole)
		return 0;
	memcpy(&more, from + sizeof *head, sizeof more);
	whole += more.flags & HAS_VALUE ? head->size : 0;
	if (size < whole)
		return 0;
	*item = (struct outbox_item){.id = more.id,
	    .why = head->why,
	    .deadline_ms = (int64_t)head->time,
	    .since_ms = (int64_t)head->time,
	    .key = from + sizeof *head + sizeof more,
	    .length = head->length,
	    .size = head->size,
	    .is_type = (more.flags & IS_TYPE) != 0,
	    .early_ms = more.early_ms};
	if (more.flags & HAS_VALUE)
		item->value = from + whole - head->size;
	return whole;
}

size_t notes_read(const unsigned char *from, size_t size, struct note *note)
{
	struct note_head head;

	if (size < sizeof head)
		return 0;
	memcpy(&head, from, sizeof head);
	if (head.kind < NOTE_FIRST || head.kind > NOTE_DELIVERED || head.length > size - sizeof head)
		return 0;
	*note = (struct note){.kind = (enum note_kind)head.kind,
	    .time = head.time,
	    .key = (const char *)from + sizeof head,
	    .length = head.length};
	return head.kind == NOTE_WAITING ? read_item(from, size, &head, &note->item) : sizeof head + head.length;
}
