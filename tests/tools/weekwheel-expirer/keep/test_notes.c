/* The notes of the journal: what is written is read again, and what is cut off is none. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-expirer/keep/notes.h"

static struct buffer bytes;

static void check_item(const struct outbox_item *read, const struct outbox_item *item)
{
	ck_assert_uint_eq(read->id, item->id);
	ck_assert_uint_eq(read->why, item->why);
	ck_assert_int_eq(read->deadline_ms, item->deadline_ms);
	ck_assert_uint_eq(read->length, item->length);
	ck_assert_mem_eq(read->key, item->key, item->length);
	ck_assert_int_eq(read->value == NULL, item->value == NULL);
	ck_assert_uint_eq(read->size, item->size);
	if (item->value)
		ck_assert_mem_eq(read->value, item->value, item->size);
	ck_assert_int_eq(read->is_type, item->is_type);
	ck_assert_uint_eq(read->early_ms, item->early_ms);
}

START_TEST(what_is_written_is_read_again)
{
	static const struct note notes[] = {{.kind = NOTE_FIRST, .time = NOTES_VERSION << 32 | 15},
	    {.kind = NOTE_KEPT, .key = "key\0", .length = 4, .time = 1700000000123},
	    {.kind = NOTE_DROPPED, .key = "k", .length = 1}, {.kind = NOTE_DELIVERED, .time = UINT64_MAX}};
	static const struct outbox_item items[] = {
	    {.id = 7, .why = OUTBOX_GONE, .deadline_ms = 5, .key = "key", .length = 3, .size = OUTBOX_UNKNOWN},
	    {.id = 8, .deadline_ms = 6, .key = "k", .length = 1, .value = "value", .size = 5, .early_ms = 50},
	    {.id = 9, .deadline_ms = 6, .key = "k", .length = 1, .value = "hash", .size = 4, .is_type = 1},
	    {.id = 10, .deadline_ms = 6, .key = "k", .length = 1, .value = "", .size = 0}};
	struct note note;
	size_t at = 0;
	size_t taken;

	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(notes_add(&bytes, &notes[i]), 0);
		ck_assert_int_eq(notes_add_item(&bytes, &items[i]), 0);
	}
	for (size_t i = 0; i < 8; i++) {
		/* In memory of their own: nothing behind the end is read. */
		taken = notes_read((unsigned char *)bytes.data + at, bytes.size - at, &note);
		ck_assert_uint_gt(taken, 0);
		for (size_t size = 0; size < taken; size++) {
			unsigned char *part = malloc(size + 1);

			memcpy(part, bytes.data + at, size);
			ck_assert_uint_eq(notes_read(part, size, &note), 0);
			free(part);
		}
		ck_assert_uint_eq(notes_read((unsigned char *)bytes.data + at, taken, &note), taken);
		at += taken;
		if (i % 2) {
			ck_assert_int_eq(note.kind, NOTE_WAITING);
			check_item(&note.item, &items[i / 2]);
			continue;
		}
		ck_assert_int_eq(note.kind, notes[i / 2].kind);
		ck_assert_uint_eq(note.time, notes[i / 2].time);
		ck_assert_uint_eq(note.length, notes[i / 2].length);
		if (note.length)
			ck_assert_mem_eq(note.key, notes[i / 2].key, note.length);
	}
	ck_assert_uint_eq(at, bytes.size);
	buffer_free(&bytes);
}
END_TEST

START_TEST(other_kinds_are_none)
{
	unsigned char text[64] = {0};
	struct note note;

	ck_assert_uint_eq(notes_read(text, sizeof text, &note), 0);
	text[0] = NOTE_DELIVERED + 1;
	ck_assert_uint_eq(notes_read(text, sizeof text, &note), 0);
}
END_TEST

TEST_MAIN("expirer/notes", what_is_written_is_read_again, other_kinds_are_none)
