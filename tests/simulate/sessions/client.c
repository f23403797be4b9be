/* The clients. Each acts again and again; what it does next hangs on chance. */
#include "tests/simulate/sessions/client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/failures.h"
#include "tests/simulate/sessions/book.h"
#include "tests/simulate/sessions/peer.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"

enum { EXPECTED = 32, GROUP = 4, WORDS = 12, WORD = 64, ANSWER = 128, MORE = 256 };

/* A command that the history knows. */
struct sent {
	uint64_t call;
	struct key *key; /* which it changes, or NULL */
};

/* What an answer will be to. */
struct expected {
	enum { OTHER, COMMAND, EXEC } kind;
	unsigned count; /* of commands: that of EXEC are those of its transaction */
	struct sent sent[GROUP];
};

struct client {
	unsigned number;
	struct wire *wire; /* NULL: not connected */
	struct expected expected[EXPECTED];
	unsigned expects;
	char *in;
	size_t in_size, in_room;
	unsigned busy; /* actions until it rests */
	unsigned last; /* the key that it sent something about last */
};

/* A command without an answer, until the server has left the connection. */
struct lost {
	struct lost *next;
	struct wire *wire;
	struct sent sent;
};

/* A command that is made: its words, and what the history gets. */
struct command {
	char word[WORDS][WORD];
	unsigned words;
	size_t pad; /* bytes behind the third word, a value */
	const char *verb;
	unsigned key;
	int changes;
	char more[MORE];
};

struct load load;

static struct client clients[CLIENTS];
static struct lost *losts;
static unsigned errors;
static uint64_t groups; /* transactions */

unsigned clients_errors(void)
{
	unsigned number = errors;

	errors = 0;
	return number;
}

/* ---- Connections that end */

static void settle(const struct sent *sent)
{
	if (sent->key)
		sent->key->is_busy = 0;
}

static void settle_lost(void *context, uint64_t number)
{
	struct lost **at = &losts;

	(void)context;
	(void)number;
	while (*at) {
		struct lost *lost = *at;
		if (!wire_is_over(lost->wire)) {
			at = &lost->next;
			continue;
		}
		book_hears_nothing(lost->sent.call);
		settle(&lost->sent);
		*at = lost->next;
		free(lost);
	}
	if (losts)
		world_at(world.now + SIM_S, settle_lost, NULL, 0);
}

static void lose(const struct client *client, const struct sent *sent)
{
	struct lost *lost = malloc(sizeof *lost);

	if (!losts)
		world_at(world.now + SIM_S, settle_lost, NULL, 0);
	*lost = (struct lost){losts, client->wire, *sent};
	losts = lost;
}

static void forget_connection(struct client *client)
{
	for (unsigned i = 0; i < client->expects; i++)
		for (unsigned j = 0; j < client->expected[i].count; j++)
			lose(client, &client->expected[i].sent[j]);
	client->expects = 0;
	client->in_size = 0;
	client->wire = NULL;
}

void client_left(struct client *client)
{
	(void)client;
}

void client_lost(struct client *client)
{
	if (peer_is(client)) {
		peer_lost();
		return;
	}
	world_trace("lost", client->number, 0);
	forget_connection(client);
}

/* ---- Answers */

/* A value is its name, the number of bytes behind it, and these. Returns whether all are there. */
static int take_value(const char *bytes, size_t size, char text[ANSWER])
{
	size_t pad = 0;
	int length = 0;

	(void)snprintf(text, ANSWER, "%.*s", (int)size, bytes);
	if (sscanf(text, "k%*u.%*u %zu %n", &pad, &length) != 1 || size != (size_t)length + pad)
		return 0;
	*strchr(text, ' ') = 0;
	for (size_t i = (size_t)length; i < size; i++)
		if (bytes[i] != 'x')
			return 0;
	return 1;
}

static void hears_one(const struct sent *sent, const char *line, const char *bulk, size_t size)
{
	char text[ANSWER], answer[ANSWER + 2];

	if (*line == '-') {
		errors++;
		if (strncmp(line, "-MISCONF", 8) != 0 && strncmp(line, "-EXECABORT", 10) != 0 &&
		    strcmp(line, "-ERR the lifetime of the key has just ended") != 0)
			world_bad("the answer to call %" PRIu64 " is %s", sent->call, line);
		book_hears_refusal(sent->call);
	} else if (bulk) {
		if (!take_value(bulk, size, text))
			world_bad("call %" PRIu64 " has got a value that nobody set: %.60s", sent->call, text);
		(void)snprintf(answer, sizeof answer, "\"%s\"", text);
		book_hears(sent->call, answer);
	} else if (*line == '$') {
		book_hears(sent->call, "null");
	} else if (*line == ':') {
		book_hears(sent->call, line + 1);
	} else {
		(void)snprintf(answer, sizeof answer, "\"%.*s\"", ANSWER - 1, line + 1);
		book_hears(sent->call, answer);
	}
	settle(sent);
}

/* A line, and what is behind it. Returns the size of all, or 0: it is not whole. */
static size_t take_part(const char *in, size_t size, char line[ANSWER], const char **bulk, size_t *bulk_size)
{
	const char *end = memmem(in, size, "\r\n", 2);
	size_t used;

	*bulk = NULL;
	*bulk_size = 0;
	if (!end)
		return 0;
	(void)snprintf(line, ANSWER, "%.*s", (int)(end - in), in);
	used = (size_t)(end - in) + 2;
	if (*line != '$' || line[1] == '-')
		return used;
	*bulk_size = strtoull(line + 1, NULL, 10);
	*bulk = in + used;
	return size < used + *bulk_size + 2 ? 0 : used + *bulk_size + 2;
}

/* Each of the transaction's answers, or the same for all. */
static size_t take_exec(const struct expected *expected, const char *in, size_t size)
{
	char line[ANSWER];
	const char *bulk;
	size_t bulk_size, used = take_part(in, size, line, &bulk, &bulk_size), part;

	if (!used)
		return 0;
	if (*line != '*') {
		for (unsigned i = 0; i < expected->count; i++)
			hears_one(&expected->sent[i], line, bulk, bulk_size);
		return used;
	}
	for (int is_sure = 0; is_sure < 2; is_sure++) {
		size_t at = used;
		for (unsigned i = 0; i < expected->count; i++, at += part) {
			part = take_part(in + at, size - at, line, &bulk, &bulk_size);
			if (!part)
				return 0;
			if (is_sure)
				hears_one(&expected->sent[i], line, bulk, bulk_size);
		}
		if (is_sure)
			used = at;
	}
	return used;
}

/* Take a whole answer off what came. Returns its size, or 0: it is not whole. */
static size_t take_answer(struct client *client)
{
	struct expected expected = client->expected[0];
	char line[ANSWER];
	const char *bulk;
	size_t bulk_size, used = take_part(client->in, client->in_size, line, &bulk, &bulk_size);

	if (!used)
		return 0;
	if (!client->expects) {
		world_bad("client %u was told what it did not ask for: %s", client->number, line);
		return used;
	}
	if (expected.kind == EXEC)
		used = take_exec(&expected, client->in, client->in_size);
	else if (expected.kind == COMMAND)
		hears_one(&expected.sent[0], line, bulk, bulk_size);
	if (!used)
		return 0;
	world_trace_bytes("heard", client->number, line, strlen(line));
	memmove(client->expected, client->expected + 1, --client->expects * sizeof expected);
	return used;
}

void client_heard(struct client *client, const char *bytes, size_t size)
{
	size_t taken;

	if (peer_is(client)) {
		peer_heard(bytes, size);
		return;
	}
	if (client->in_size + size > client->in_room) {
		client->in_room = 2 * (client->in_size + size);
		client->in = realloc(client->in, client->in_room);
	}
	memcpy(client->in + client->in_size, bytes, size);
	client->in_size += size;
	while (client->in_size && (taken = take_answer(client)) > 0) {
		client->in_size -= taken;
		memmove(client->in, client->in + taken, client->in_size);
	}
}

/* ---- Commands */

__attribute__((format(printf, 2, 3))) static void word(struct command *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(command->word[command->words++], WORD, format, arguments);
	va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void tell(struct command *command, const char *format, ...)
{
	size_t at = strlen(command->more);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(command->more + at, MORE - at, format, arguments);
	va_end(arguments);
}

static uint64_t any_ms(void)
{
	switch (world_below(8)) {
	case 0:
		return world_between(1, 2000);
	case 1:
	case 2:
		return 1000 * world_between(1, 60);
	case 3:
	case 4:
		return 1000 * world_between(1, 3600);
	case 5:
	case 6:
		return world_between(1, 86400000);
	default:
		return 3600000 * world_between(1, 150);
	}
}

/* A session gets mostly the same time: then not each touch of it is written. */
static uint64_t some_ms(const struct command *command)
{
	return world_chance(700) ? book.key[command->key].ms : any_ms();
}

/* A deadline, in one of the forms that SET and GETEX have. */
static void add_time(struct command *command)
{
	uint64_t ms = some_ms(command), at = (world.now + book.offset) / SIM_MS + ms;

	if (world.now + ms * SIM_MS > book.deadline)
		book.deadline = world.now + ms * SIM_MS;
	switch (world_below(4)) {
	case 0:
		word(command, "PXAT");
		word(command, "%" PRIu64, at);
		tell(command, ",\"at\":%" PRIu64, at * SIM_MS);
		break;
	case 1:
		word(command, "EX");
		word(command, "%" PRIu64, ms / 1000 + 1);
		tell(command, ",\"ttl\":%" PRIu64, (ms / 1000 + 1) * SIM_S);
		break;
	default:
		word(command, "PX");
		word(command, "%" PRIu64, ms);
		tell(command, ",\"ttl\":%" PRIu64, ms * SIM_MS);
	}
}

static void make_set(struct command *command)
{
	struct key *key = &book.key[command->key];

	command->pad = world_chance(50) ? world_below(load.body_most) : world_below(100);
	word(command, "SET");
	word(command, "k%u", command->key);
	word(command, "k%u.%" PRIu32 " %zu ", command->key, ++key->sets, command->pad);
	tell(command, ",\"value\":\"k%u.%" PRIu32 "\"", command->key, key->sets);
	command->verb = "set";
	if (world_chance(250)) {
		word(command, "KEEPTTL");
		tell(command, ",\"keep\":true");
	} else if (world_chance(900)) {
		add_time(command);
		if (load.has_lifetimes && world_chance(200)) {
			uint64_t s = any_ms() / 1000 + 1;
			word(command, "LIFETIME");
			word(command, "%" PRIu64, s);
			tell(command, ",\"life\":%" PRIu64, s * SIM_S);
		}
	}
	if (world_chance(200)) {
		int is_new = world_chance(500);
		word(command, is_new ? "NX" : "XX");
		tell(command, is_new ? ",\"nx\":true" : ",\"xx\":true");
	}
	if (world_chance(150)) {
		word(command, "GET");
		tell(command, ",\"get\":true");
	}
}

static void make_getex(struct command *command)
{
	word(command, "GETEX");
	word(command, "k%u", command->key);
	tell(command, ",\"get\":true");
	command->verb = "touch";
	if (world_chance(50)) {
		word(command, "PERSIST");
		tell(command, ",\"persist\":true");
	} else {
		add_time(command);
	}
}

static void make_expire(struct command *command)
{
	uint64_t ms = some_ms(command);

	command->verb = "touch";
	if (world_chance(50)) {
		word(command, "PERSIST");
		word(command, "k%u", command->key);
		tell(command, ",\"persist\":true");
		return;
	}
	if (world.now + ms * SIM_MS > book.deadline)
		book.deadline = world.now + ms * SIM_MS;
	word(command, "PEXPIRE");
	word(command, "k%u", command->key);
	word(command, "%" PRIu64, ms);
	tell(command, ",\"ttl\":%" PRIu64, ms * SIM_MS);
}

static void make_change(struct command *command)
{
	command->changes = 1;
	switch (world_below(10)) {
	default:
		make_set(command);
		return;
	case 4:
	case 5:
	case 6:
		make_getex(command);
		return;
	case 7:
	case 8:
		make_expire(command);
		return;
	case 9:
		command->verb = world_chance(500) ? "take" : "del";
		word(command, *command->verb == 't' ? "GETDEL" : "DEL");
		word(command, "k%u", command->key);
	}
}

static void make_look(struct command *command)
{
	static const char *const looks[][2] = {
	    {"GET", "get"}, {"GET", "get"}, {"EXISTS", "exists"}, {"PTTL", "left"}, {"PEXPIRETIME", "when"}};
	unsigned i = (unsigned)world_below(sizeof looks / sizeof *looks);

	word(command, "%s", looks[i][0]);
	word(command, "k%u", command->key);
	command->verb = looks[i][1];
}

static void send_command(struct client *client, const struct command *command)
{
	size_t at = 0, room = WORDS * (WORD + 32) + command->pad;
	char *bytes = malloc(room);

	at += (size_t)snprintf(bytes, room, "*%u\r\n", command->words);
	for (unsigned i = 0; i < command->words; i++) {
		size_t pad = i == 2 ? command->pad : 0;
		at += (size_t)snprintf(
		    bytes + at, room - at, "$%zu\r\n%s", strlen(command->word[i]) + pad, command->word[i]);
		memset(bytes + at, 'x', pad);
		at += pad;
		memcpy(bytes + at, "\r\n", 2);
		at += 2;
	}
	(void)wire_send(client->wire, bytes, at);
	free(bytes);
}

static struct sent send_made(struct client *client, struct command *command)
{
	struct key *key = &book.key[command->key];
	uint64_t call;

	client->last = command->key;
	key->is_busy |= command->changes;
	call = book_sends(command->verb, command->key, command->more);
	send_command(client, command);
	return (struct sent){call, command->changes ? key : NULL};
}

/* A command on a key, in a transaction unless `group` is 0. While another one changes the key, it only looks. */
static struct sent send_one(struct client *client, uint64_t group)
{
	struct command command = {.key = world_chance(400) ? client->last : (unsigned)world_below(load.keys)};

	if (book.key[command.key].is_busy || load.is_draining || world_chance(350))
		make_look(&command);
	else
		make_change(&command);
	if (group)
		tell(&command, ",\"group\":%" PRIu64, group);
	return send_made(client, &command);
}

/* A set that comes in the moment of the key's end; perhaps the server dies in that moment, too. */
static void set_at_end(void *context, uint64_t number)
{
	struct client *client = context;
	struct command command = {.key = (unsigned)number, .changes = 1};

	if (!client->wire || client->expects > EXPECTED - 8 || book.key[number].is_busy || load.is_draining)
		return;
	make_set(&command);
	client->expected[client->expects++] =
	    (struct expected){.kind = COMMAND, .count = 1, .sent = {send_made(client, &command)}};
	if (world_chance(load.deaths * 20))
		failures_soon(5 * SIM_MS);
}

static void say(struct client *client, const char *text)
{
	struct command command = {0};

	word(&command, "%s", text);
	send_command(client, &command);
	client->expected[client->expects++] = (struct expected){.kind = OTHER};
}

/* Some commands between MULTI and EXEC. */
static void send_group(struct client *client)
{
	struct expected group = {.kind = EXEC, .count = (unsigned)world_between(1, GROUP)};

	groups++;
	say(client, "MULTI");
	for (unsigned i = 0; i < group.count; i++) {
		group.sent[i] = send_one(client, groups);
		client->expected[client->expects++] = (struct expected){.kind = OTHER};
	}
	say(client, "EXEC");
	client->expected[client->expects - 1] = group;
}

static void cut(struct client *client)
{
	struct wire *wire = client->wire;

	world_trace("cut", client->number, 0);
	if (world_chance(300)) {
		wire_break(wire);
		return;
	}
	forget_connection(client);
	wire_cut(wire, world_chance(200));
}

static void act_connected(struct client *client)
{
	if (world_chance(load.deaths))
		failures_soon(20 * SIM_MS);
	if (world_chance(100))
		world_at(world.now + book.key[client->last].ms * SIM_MS, set_at_end, client, client->last);
	if (!load.is_draining && world_chance(load.cuts))
		cut(client);
	else if (client->expects > EXPECTED - 8)
		return;
	else if (!load.is_draining && world_chance(100))
		send_group(client);
	else if (world_chance(10))
		say(client, world_chance(500) ? "BGSAVE" : world_chance(500) ? "SAVE" : "DBSIZE");
	else
		client->expected[client->expects++] =
		    (struct expected){.kind = COMMAND, .count = 1, .sent = {send_one(client, 0)}};
}

static uint64_t rests(struct client *client)
{
	if (load.is_draining)
		return SIM_MINUTE;
	if (client->busy) {
		client->busy--;
		return world_chance(500) ? world_below(10 * SIM_MS) : world_below(2 * SIM_S);
	}
	client->busy = (unsigned)world_below(30);
	return world_chance(300) ? world_below(SIM_MINUTE) : world_below(4 * SIM_HOUR);
}

static void act(void *context, uint64_t number)
{
	struct client *client = context;

	(void)number;
	if (client->wire)
		act_connected(client);
	else
		client->wire = wire_connect(client);
	world_at(world.now + rests(client), act, client, 0);
}

void clients_begin(void)
{
	errors = 0;
	groups = 0;
	for (unsigned i = 0; i < KEYS; i++)
		book.key[i].ms = any_ms();
	for (unsigned i = 0; i < load.clients; i++) {
		clients[i] = (struct client){.number = i};
		world_at(world_below(SIM_MINUTE), act, &clients[i], 0);
	}
}

void clients_end(void)
{
	struct lost *next;

	for (unsigned i = 0; i < CLIENTS; i++) {
		free(clients[i].in);
		clients[i] = (struct client){0};
	}
	for (; losts; losts = next) {
		next = losts->next;
		free(losts);
	}
}
