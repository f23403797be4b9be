/* Splits a stream of bytes into commands: lines, their bodies, and bytes that are thrown away. */
#include "tools/weekwheeld/protocol/protocol.h"

#include <string.h>
#include <strings.h>

void protocol_init(struct protocol *protocol, size_t body_max)
{
	*protocol = (struct protocol){.body_max = body_max, .state = PROTOCOL_AT_LINE};
}

size_t protocol_wants(const struct protocol *protocol)
{
	if (protocol->state != PROTOCOL_AT_BODY)
		return 0;
	return protocol->line + protocol->body + 2;
}

size_t protocol_line_size(const struct protocol *protocol)
{
	return protocol->line;
}

/* Return the length up to and including the first CR LF at `from` or later; 0 if there is none. */
static size_t line_end(const char *data, size_t from, size_t size)
{
	const char *found = size > from ? memmem(data + from, size - from, "\r\n", 2) : NULL;

	return found ? (size_t)(found - data) + 2 : 0;
}

static int protocol_refuse(struct command *command, enum verb verb, enum refusal refusal)
{
	command->verb = verb;
	command->refusal = refusal;
	command->is_last = 0;
	return 1;
}

static int refuse_last(struct protocol *protocol, struct command *command, enum verb verb, enum refusal refusal)
{
	protocol->state = PROTOCOL_AT_END;
	(void)protocol_refuse(command, verb, refusal);
	return command->is_last = 1;
}

/* Throw bytes away, then refuse the command of this verb. */
static void protocol_skip(struct protocol *protocol, uint64_t bytes, enum verb verb)
{
	protocol->state = PROTOCOL_AT_SKIP;
	protocol->skip = bytes;
	protocol->verb = verb;
	protocol->refusal = REFUSAL_TOO_BIG;
}

/* Bytes of a job's headers, which have a bound of their own. Where not even a body is taken, they are not either. */
static size_t free_headers(const struct protocol *protocol, const struct command *command)
{
	return command->verb >= VERB_OWN && protocol->body_max ? command->own.job.headers_length : 0;
}

/* A line is a command, or begins one that has a body. */
static int protocol_line(struct protocol *protocol, struct command *command, const char *data, size_t length)
{
	enum line what = protocol_line_read(command, (struct span){data, data + length - 2});

	if (what == LINE_LAST)
		protocol->state = PROTOCOL_AT_END;
	if (what == LINE_COMMAND || what == LINE_LAST)
		return 1;
	if (what == LINE_REFUSED_BODY) {
		/* Otherwise the body would be taken for commands. */
		protocol_skip(protocol, (uint64_t)command->body_length + 2, VERB_UNKNOWN);
		return 1;
	}
	if (command->body_length - free_headers(protocol, command) > protocol->body_max) {
		protocol_skip(protocol, (uint64_t)command->body_length + 2, command->verb);
		return 0;
	}
	protocol->body = command->body_length;
	protocol->state = PROTOCOL_AT_BODY;
	return 0;
}

/*
 * Whether a line that begins like data[0 .. size-1] is of HTTP or TLS. A request of HTTP begins with a method, a
 * space and a target, which may be any text but begins with no digit: "PUT 0" is a put in capitals. All verbs are in
 * small letters. A browser always sends a Host; a record of TLS begins with its type and its version, and its name of
 * a host or its ticket may contain lines.
 */
static int is_foreign(const char *data, size_t size)
{
	static const char *const methods[] = {
	    "GET ", "POST ", "PUT ", "HEAD ", "DELETE ", "OPTIONS ", "PATCH ", "TRACE ", "CONNECT ", "PRI "};

	if (size < 2 || (*data >= 'a' && *data <= 'z' && *data != 'h'))
		return 0;
	if (data[0] == 0x16 && data[1] == 3)
		return 1;
	if (size >= 5 && strncasecmp(data, "host:", 5) == 0)
		return 1;
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		size_t length = strlen(methods[i]);

		if (size > length && memcmp(data, methods[i], length) == 0)
			return data[length] > ' ' && (data[length] < '0' || data[length] > '9');
	}
	return 0;
}

/* Whether the line that begins here is foreign was found out when as much of it as this had been scanned. */
enum { FOREIGN_MAX = 16 };

static int at_line(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used)
{
	size_t room = size < PROTOCOL_OWN_LINE_MAX ? size : PROTOCOL_OWN_LINE_MAX;
	size_t length = line_end(data, protocol->scanned, room);
	int found;

	if (protocol->scanned < FOREIGN_MAX && is_foreign(data, size)) {
		return refuse_last(protocol, command, VERB_UNKNOWN, REFUSAL_FOREIGN);
	}
	if (length == 0) {
		/* The last byte may be the CR of the line's end. */
		protocol->scanned = room > 0 ? room - 1 : 0;
		if (room < PROTOCOL_OWN_LINE_MAX)
			return 0;
		protocol->state = PROTOCOL_AT_LONG;
		protocol->verb = protocol_line_verb((struct span){data, data + room});
		*used = protocol->scanned;
		protocol->scanned = 0;
		return 0;
	}
	protocol->scanned = 0;
	protocol->line = length;
	found = protocol_line(protocol, command, data, length);
	/* A line before a body stays in the buffer and is read again, so that nothing has to be copied from it. */
	if (protocol->state != PROTOCOL_AT_BODY)
		*used = length;
	return found;
}

static int at_long(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used)
{
	size_t length = line_end(data, 0, size);

	if (length == 0) {
		*used = size > 0 && data[size - 1] == '\r' ? size - 1 : size;
		return 0;
	}
	*used = length;
	protocol->state = PROTOCOL_AT_LINE;
	return protocol_has_body(protocol->verb) ? refuse_last(protocol, command, protocol->verb, REFUSAL_BAD_FORMAT)
	                                         : protocol_refuse(command, VERB_UNKNOWN, REFUSAL_BAD_FORMAT);
}

static int at_body(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used)
{
	size_t whole = protocol_wants(protocol);

	if (size < whole)
		return 0;
	*used = whole;
	protocol->state = PROTOCOL_AT_LINE;
	(void)protocol_line_read(command, (struct span){data, data + protocol->line - 2});
	command->body = data + protocol->line;
	if (memcmp(command->body + command->body_length, "\r\n", 2) != 0)
		return protocol_refuse(command, command->verb, REFUSAL_CRLF);
	return 1;
}

static int at_skip(struct protocol *protocol, struct command *command, size_t size, size_t *used)
{
	size_t taken = protocol->skip < size ? (size_t)protocol->skip : size;

	*used = taken;
	protocol->skip -= taken;
	if (protocol->skip > 0)
		return 0;
	protocol->state = PROTOCOL_AT_LINE;
	return protocol->verb != VERB_UNKNOWN && protocol_refuse(command, protocol->verb, protocol->refusal);
}

int protocol_drop(struct protocol *protocol, size_t size)
{
	size_t whole = protocol_wants(protocol);

	if (size >= whole)
		return 0;
	protocol_skip(protocol, whole - size, VERB_PUT);
	protocol->refusal = REFUSAL_MEMORY;
	return 1;
}

int protocol_next(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used)
{
	int found = 0;

	*used = 0;
	for (;;) {
		size_t step = 0;
		int before = (int)protocol->state;

		switch (protocol->state) {
		case PROTOCOL_AT_LINE:
			found = at_line(protocol, command, data, size, &step);
			break;
		case PROTOCOL_AT_LONG:
			found = at_long(protocol, command, data, size, &step);
			break;
		case PROTOCOL_AT_BODY:
			found = at_body(protocol, command, data, size, &step);
			break;
		case PROTOCOL_AT_SKIP:
			found = at_skip(protocol, command, size, &step);
			break;
		case PROTOCOL_AT_END:
			step = size;
			break;
		}
		*used += step;
		data += step;
		size -= step;
		if (found || (int)protocol->state == before)
			return found;
	}
}
