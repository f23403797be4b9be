#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEEP_NOTES_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEEP_NOTES_H

/*
 * What the journal says, one note behind the other in each of its records:
 *
 *     note     kind 1 | why 1 | length of the key 2 | size of the value 4 | time 8 | more | key | value
 *     more     of an end that waits: id 8 | flags 4 | by how much the value was read early 4; else nothing
 *
 * The time is a deadline, in ms of Redis's clock; of what was delivered an id; of the first note of a file the version and the
 * database. Numbers are those of the machine.
 */

#include "tools/common/buffer.h"
#include "tools/service/outbox/outbox.h"

enum note_kind { NOTE_FIRST = 1, NOTE_KEPT, NOTE_DROPPED, NOTE_WAITING, NOTE_DELIVERED };

#define NOTES_VERSION UINT64_C(1)

struct note {
	enum note_kind kind;
	uint64_t time;
	const char *key;
	size_t length;
	struct outbox_item item; /* of an end that waits */
};

/* Append a note. Returns 0, or -1 without memory: nothing was added. */
int notes_add(struct buffer *to, const struct note *note);
int notes_add_item(struct buffer *to, const struct outbox_item *item);

/* Read the note at the beginning. Returns how many bytes it takes; 0: this is none. */
size_t notes_read(const unsigned char *from, size_t size, struct note *note);

#endif
