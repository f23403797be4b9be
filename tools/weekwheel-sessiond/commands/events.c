/* Publishes events, and reads the setting of which ones are wanted. */
#include "tools/weekwheel-sessiond/commands/events.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/buffer.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/commands/pubsub.h"
#include "tools/weekwheel-sessiond/server/mail.h"

/* The steps of pattern matching that one command or transaction may cost, and the base cost of an event. */
enum { EVENTS_STEPS = 32 << 20, EVENT_STEPS = 50 };

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

static char *put(char *at, const void *bytes, size_t size)
{
	memcpy(at, bytes, size);
	return at + size;
}

enum { NAME_ROOM = 256 };

/*
 * A channel is this word, the database, and a name: "__word@0__:name". printf would take half of the time of an expiry. It
 * lies in the room, or its data is freed. Without memory there is none.
 */
static struct pubsub_text name_channel(
    const char *word, unsigned database, struct pubsub_text name, char room[NAME_ROOM])
{
	size_t size = strlen(word) + 16 + name.size;
	char *channel = size <= NAME_ROOM ? room : malloc(size);
	char *at;

	_Static_assert(DATA_DATABASES_MAX <= 100, "two digits are enough");
	if (!channel)
		return (struct pubsub_text){NULL, 0};
	at = put(channel, "__", 2);
	at = put(at, word, strlen(word));
	*at++ = '@';
	if (database >= 10)
		*at++ = (char)('0' + database / 10);
	*at++ = (char)('0' + database % 10);
	at = put(at, "__:", 3);
	at = put(at, name.data, name.size);
	return (struct pubsub_text){channel, (size_t)(at - channel)};
}

static void free_channel(struct pubsub_text channel, const char room[NAME_ROOM])
{
	if (channel.data != room)
		free((void *)(uintptr_t)channel.data);
}

/* Returns 0, or -1: nobody gets it, as it is too long for so many listeners and patterns. */
static int publish(const char *word, unsigned database, struct pubsub_text name, struct pubsub_text message)
{
	char room[NAME_ROOM];
	struct pubsub_text channel = name_channel(word, database, name, room);
	size_t steps = 0;
	int is_refused;

	if (!channel.data)
		return 0;
	is_refused = pubsub_refuses(PUBSUB_CHANNEL, channel, message, &steps) != NULL;
	if (!is_refused)
		(void)pubsub_publish(PUBSUB_CHANNEL, channel, message, &steps);
	free_channel(channel, room);
	return is_refused ? -1 : 0;
}

/* Those who would read it hear of the end at least. A longer one would close each of them. */
static void publish_value(unsigned database, struct pubsub_text name, struct pubsub_text value)
{
	static const struct pubsub_text empty = {"", 0};

	if (value.size <= MAIL_MAX / 2 && publish("expired", database, name, value) == 0)
		return;
	state_seen("values",
	    "values that expire are told as empty ones on __expired@: they are too long for one listener, or for so many");
	(void)publish("expired", database, name, empty);
}

/* ---- What it takes */

/* Returns how many listen. */
static size_t weigh(const char *word, unsigned database, struct pubsub_text name, size_t *steps)
{
	char room[NAME_ROOM];
	struct pubsub_text channel = name_channel(word, database, name, room);
	size_t heard;

	if (!channel.data)
		return 0;
	heard = pubsub_weigh(channel, steps);
	free_channel(channel, room);
	return heard;
}

/* Which event a command publishes is only known after it has run. So charge each key for the most expensive one. */
static void weigh_each(struct events_weight *weight, unsigned database)
{
	static const struct {
		unsigned class;
		struct pubsub_text name;
	} events[] = {
	    {EVENT_STRING, {"set", 3}},
	    {EVENT_STRING, {"append", 6}},
	    {EVENT_STRING, {"incrby", 6}},
	    {EVENT_GENERIC, {"del", 3}},
	    {EVENT_GENERIC, {"expire", 6}},
	    {EVENT_GENERIC, {"persist", 7}},
	    {EVENT_GENERIC, {"rename_from", 11}},
	    {EVENT_GENERIC, {"rename_to", 9}},
	};

	weight->database = database;
	weight->each = EVENT_STEPS;
	weight->heard = 0;
	for (size_t i = 0; i < sizeof events / sizeof *events && wanted & EVENT_KEYEVENT; i++) {
		size_t steps = EVENT_STEPS;
		size_t heard = wanted & events[i].class ? weigh("keyevent", database, events[i].name, &steps) : 0;
		weight->each = steps > weight->each ? steps : weight->each;
		weight->heard = heard > weight->heard ? heard : weight->heard;
	}
}

int events_take_long(struct events_weight *weight, unsigned database, const struct command_entry *command,
    const struct resp_arg *arg, size_t count)
{
	size_t names = command_names(command, count);

	if (!(command->flags & COMMAND_WRITE) || !(wanted & EVENT_ALL) || !pubsub_has_listeners())
		return 0;
	if (!weight->each || weight->database != database)
		weigh_each(weight, database);
	for (size_t i = 0; i < names && weight->steps <= EVENTS_STEPS; i++) {
		const struct resp_arg *key = &arg[(size_t)command->first + i * (size_t)command->step];
		weight->steps += weight->each + pubsub_weigh_bytes(weight->heard, key->size);
		if (wanted & EVENT_KEYSPACE)
			(void)weigh("keyspace", database, (struct pubsub_text){key->data, key->size}, &weight->steps);
	}
	return weight->steps > EVENTS_STEPS;
}

static void publish_to_class(unsigned class, const char *event, unsigned database, struct pubsub_text key)
{
	struct pubsub_text name = {event, strlen(event)};
	unsigned events = wanted;

	if (!(events & class))
		return;
	if (events & EVENT_KEYSPACE)
		(void)publish("keyspace", database, key, name);
	if (events & EVENT_KEYEVENT)
		(void)publish("keyevent", database, name, key);
}

static void publish_gone(unsigned class, unsigned database, struct pubsub_text key, struct pubsub_text value)
{
	if (class == EVENT_EVICTED) {
		publish_to_class(class, "evicted", database, key);
		return;
	}
	publish_to_class(class, "expired", database, key);
	publish_value(database, key, value);
}

/* ---- Events of changes that may be undone, and of ends meanwhile, which stay */

struct held_event {
	unsigned class;
	const char *event; /* NULL: of an end */
	unsigned database;
	size_t length; /* of the key, which follows */
	size_t size;   /* and of the value behind it */
};

static _Thread_local int is_holding;
static _Thread_local struct buffer held;

void events_hold(void)
{
	is_holding = 1;
}

/* Returns 0, or -1 without memory. */
static int hold(unsigned class, const char *event, unsigned database, struct pubsub_text key, struct pubsub_text value)
{
	const struct held_event one = {class, event, database, key.size, value.size};

	if (buffer_reserve(&held, sizeof one + key.size + value.size) != 0)
		return -1;
	(void)buffer_append(&held, &one, sizeof one);
	(void)buffer_append(&held, key.data, key.size);
	return buffer_append(&held, value.data, value.size);
}

static void publish_held(int is_done)
{
	struct held_event one;

	for (size_t at = 0; at < held.size; at += sizeof one + one.length + one.size) {
		const char *data = held.data + at + sizeof one;
		struct pubsub_text key;
		memcpy(&one, held.data + at, sizeof one);
		key = (struct pubsub_text){data, one.length};
		if (!one.event)
			publish_gone(one.class, one.database, key, (struct pubsub_text){data + one.length, one.size});
		else if (is_done)
			publish_to_class(one.class, one.event, one.database, key);
	}
}

void events_release(int is_done)
{
	is_holding = 0;
	publish_held(is_done);
	buffer_free(&held);
}

void event_publish(unsigned class, const char *event, const struct data_key *key)
{
	static const struct pubsub_text none = {"", 0};
	struct pubsub_text name = {key->bytes, key->length};

	if (!pubsub_has_listeners())
		return;
	/* Without memory it comes early. */
	if (is_holding && wanted & class && hold(class, event, key->database, name, none) == 0)
		return;
	publish_to_class(class, event, key->database, name);
}

/* It becomes a job at another server. */
static void keep_for_telling(const struct sessiond *server, unsigned database, struct pubsub_text key,
    const struct value *value, enum ww_gone why)
{
	struct outbox_item item = {.why = why,
	    .database = database,
	    .deadline_ms = data_gone_ms(server->data),
	    .key = key.data,
	    .length = key.size,
	    .value = value->bytes,
	    .size = value->size};

	item.since_ms = why == WW_GONE_EXPIRED ? item.deadline_ms : data_steady_ms(server->data);
	(void)outbox_add(server->outbox, &item);
}

void event_gone(
    void *context, unsigned database, const void *key, size_t length, const struct value *value, enum ww_gone why)
{
	const struct sessiond *server = context;
	unsigned class = why == WW_GONE_EXPIRED ? EVENT_EXPIRED : EVENT_EVICTED;
	struct pubsub_text name = {key, length};
	/* Nobody is told that of an eviction. */
	struct pubsub_text text = {value->bytes, why == WW_GONE_EXPIRED ? value->size : 0};

	if (server->settings->reporting.is_reporting)
		keep_for_telling(server, database, name, value, why);
	/* A script may put others out, or meet what has expired: in RESP2 a message would look like the answer to its command. */
	if (pubsub_has_listeners() && !(is_holding && hold(class, NULL, database, name, text) == 0))
		publish_gone(class, database, name, text);
}
