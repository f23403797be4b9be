/* Keys that wait to be looked up: see waiting.h. */
#include "tools/weekwheel-expirer/keys/waiting.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 4096, KEEP = 1 << 20 };

static int make_room(struct waiting *waiting, size_t size)
{
	size_t used = waiting->end - waiting->head;
	size_t room = waiting->room ? waiting->room : LEAST;
	char *bytes;

	if (waiting->end + size <= waiting->room)
		return 0;
	/* Half of it is free: worth moving the rest. */
	if (waiting->head >= used && used + size <= waiting->room) {
		memcpy(waiting->bytes, waiting->bytes + waiting->head, used);
		waiting->head = 0;
		waiting->end = used;
		return 0;
	}
	while (room < waiting->end + size)
		room *= 2;
	bytes = realloc(waiting->bytes, room);
	if (!bytes)
		return -1;
	waiting->bytes = bytes;
	waiting->room = room;
	return 0;
}

int waiting_add(struct waiting *waiting, const char *key, size_t length)
{
	if (make_room(waiting, sizeof length + length) != 0)
		return -1;
	memcpy(waiting->bytes + waiting->end, &length, sizeof length);
	memcpy(waiting->bytes + waiting->end + sizeof length, key, length);
	waiting->end += sizeof length + length;
	waiting->added++;
	return 0;
}

const char *waiting_at(const struct waiting *waiting, size_t *at, size_t *length)
{
	const char *key;

	if (*at == waiting->end)
		return NULL;
	key = waiting->bytes + *at + sizeof *length;
	memcpy(length, waiting->bytes + *at, sizeof *length);
	*at += sizeof *length + *length;
	return key;
}

void waiting_drop(struct waiting *waiting)
{
	size_t length;

	(void)waiting_at(waiting, &waiting->head, &length);
	waiting->dropped++;
	if (waiting->head < waiting->end)
		return;
	waiting->head = waiting->end = 0;
	if (waiting->room > KEEP)
		waiting_free(waiting);
}

void waiting_free(struct waiting *waiting)
{
	free(waiting->bytes);
	waiting->bytes = NULL;
	waiting->room = waiting->head = waiting->end = 0;
}
