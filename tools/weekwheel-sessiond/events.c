/* Tells events, and reads which are wanted. */
#include "tools/weekwheel-sessiond/events.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/pubsub.h"

static const char letters[] = "KEg$xelshztd";
static _Atomic unsigned wanted;

unsigned events_get(void)
{
	return wanted;
}

void events_set(unsigned events)
{
	wanted = events;
}

int events_read(const char *text, size_t size, unsigned *events)
{
	*events = 0;
	for (size_t i = 0; i < size; i++) {
		const char *found = text[i] ? strchr(letters, text[i]) : NULL;
		if (text[i] == 'A')
			*events |= EVENT_ALL;
		else if (found)
			*events |= 1U << (found - letters);
		else
			return -1;
	}
	return 0;
}

void events_show(unsigned events, char text[EVENTS_TEXT])
{
	static const char order[] = "g$lshzxetdKE";
	size_t size = 0;
	int has_all = (events & EVENT_ALL) == EVENT_ALL;

	if (has_all)
		text[size++] = 'A';
	for (const char *letter = order; *letter; letter++) {
		unsigned bit = 1U << (strchr(letters, *letter) - letters);
		if (events & bit && !(has_all && bit & EVENT_ALL))
			text[size++] = *letter;
	}
	text[size] = 0;
}

/* ---- Telling */

/* A channel is this word, the database, and a name. */
static void publish(const char *word, unsigned database, struct pubsub_text name, struct pubsub_text message)
{
	char room[256];
	size_t size = strlen(word) + 16 + name.size;
	char *channel = size <= sizeof room ? room : malloc(size);
	int length;

	if (!channel)
		return;
	length = snprintf(channel, size, "__%s@%u__:", word, database);
	memcpy(channel + length, name.data, name.size);
	(void)pubsub_publish(PUBSUB_CHANNEL, (struct pubsub_text){channel, (size_t)length + name.size}, message);
	if (channel != room)
		free(channel);
}

static void tell(unsigned class, const char *event, unsigned database, struct pubsub_text key)
{
	struct pubsub_text name = {event, strlen(event)};
	unsigned events = wanted;

	if (!(events & class))
		return;
	if (events & EVENT_KEYSPACE)
		publish("keyspace", database, key, name);
	if (events & EVENT_KEYEVENT)
		publish("keyevent", database, name, key);
}

void event_tell(const struct request *request, unsigned class, const char *event, const struct data_key *key)
{
	(void)request;
	if (pubsub_has_listeners())
		tell(class, event, key->database, (struct pubsub_text){key->bytes, key->length});
}

void event_gone(
    void *context, unsigned database, const void *key, size_t length, const struct value *value, enum ww_gone why)
{
	struct pubsub_text name = {key, length};

	(void)context;
	if (!pubsub_has_listeners())
		return;
	if (why == WW_GONE_EXPIRED) {
		tell(EVENT_EXPIRED, "expired", database, name);
		publish("expired", database, name, (struct pubsub_text){value->bytes, value->size});
	} else {
		tell(EVENT_EVICTED, "evicted", database, name);
	}
}
