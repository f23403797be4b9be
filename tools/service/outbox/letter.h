#ifndef TOOLS_SERVICE_OUTBOX_LETTER_H
#define TOOLS_SERVICE_OUTBOX_LETTER_H

/* The body of the job that reports an expiry: JSON. */

#include "tools/common/buffer.h"
#include "tools/service/outbox/outbox.h"

enum { LETTER_ID = 40 };

/* How a program's items are described. */
struct letter_form {
	int64_t (*wall_ms)(void *context, int64_t ms); /* a time of an item, by the wall clock */
	void *context;
	int is_shared; /* others report the same ends: the name is made of the key's end, whoever reports it */
};

/* Write the item's name, which is unique over restarts and servers: letters, digits and a dash. */
const char *letter_id(const struct outbox_item *item, const struct letter_form *form, char text[LETTER_ID]);

/* Append the body. Returns 0, or -1 without memory. */
int letter_write(struct buffer *out, const struct outbox_item *item, const struct letter_form *form);

/* Append ,"NAME":"TIME" of a wall clock's time, in ms. Returns 0, or another number without memory. */
int letter_add_time(struct buffer *out, const char *name, int64_t ms);

#endif
