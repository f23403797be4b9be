/* The state of the parser: lines, bodies, and what is thrown away. */
#include "tools/weekwheeld/protocol/protocol.h"

#include <string.h>

#include "tools/weekwheeld/protocol/line.h"

void protocol_init(struct protocol *protocol, size_t body_max)
{
	protocol->state = PROTOCOL_AT_LINE;
	protocol->body_max = body_max;
	protocol->scanned = 0;
	protocol->line = 0;
	protocol->skip = 0;
	protocol->verb = VERB_UNKNOWN;
	protocol->body = 0;
}

size_t protocol_wants(const struct protocol *protocol)
{
	if (protocol->state != PROTOCOL_AT_BODY)
		return 0;
	return protocol->line + protocol->body + 2;
}

/* Return the bytes up to and with the first CR LF, not looked for before `from`; 0 if there is none. */
static size_t line_end(const char *data, size_t from, size_t size)
{
	const char *found = size > from ? data + from : NULL;

	while (found) {
		found = memchr(found, '\r', (size_t)(data + size - found));
		if (!found || found + 1 == data + size)
			return 0;
		if (found[1] == '\n')
			return (size_t)(found - data) + 2;
		found++;
	}
	return 0;
}

static int protocol_refuse(struct command *command, enum verb verb, enum refusal refusal)
{
	command->verb = verb;
	command->refusal = refusal;
	return 1;
}

/* Throw away bytes, and then refuse the command of this verb. */
static void protocol_skip(struct protocol *protocol, uint64_t bytes, enum verb verb)
{
	protocol->state = PROTOCOL_AT_SKIP;
	protocol->skip = bytes;
	protocol->verb = verb;
}

/* A line that ends a command, or begins one that has a body. */
static int protocol_line(struct protocol *protocol, struct command *command, const char *data, size_t length)
{
	struct span line = {data, data + length - 2};
	uint64_t body;

	switch (protocol_line_read(command, line, &body)) {
	case LINE_COMMAND:
		return 1;
	case LINE_REFUSED_BODY:
		/* What was meant as a body must not be taken for commands. */
		protocol_skip(protocol, body + 2, VERB_UNKNOWN);
		return 1;
	default:
		break;
	}
	if (body > protocol->body_max) {
		protocol_skip(protocol, body + 2, command->verb);
		return 0;
	}
	protocol->body = (size_t)body;
	protocol->line = length;
	protocol->state = PROTOCOL_AT_BODY;
	return 0;
}

static int at_line(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used)
{
	size_t room = size < PROTOCOL_OWN_LINE_MAX ? size : PROTOCOL_OWN_LINE_MAX;
	size_t length = line_end(data, protocol->scanned, room);
	int found;

	if (length == 0) {
		/* The last byte may be the first half of an end. */
		protocol->scanned = room > 0 ? room - 1 : 0;
		if (room < PROTOCOL_OWN_LINE_MAX)
			return 0;
		protocol->state = PROTOCOL_AT_LONG;
		*used = protocol->scanned;
		protocol->scanned = 0;
		return 0;
	}
	protocol->scanned = 0;
	found = protocol_line(protocol, command, data, length);
	/* A line before a body stays where it is and is read again, so that nothing of it need be kept meanwhile. */
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
	return protocol_refuse(command, VERB_UNKNOWN, REFUSAL_BAD_FORMAT);
}

static int at_body(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used)
{
	struct span line = {data, data + protocol->line - 2};
	size_t whole = protocol_wants(protocol);
	uint64_t body;

	if (size < whole)
		return 0;
	*used = whole;
	protocol->state = PROTOCOL_AT_LINE;
	(void)protocol_line_read(command, line, &body);
	command->body = data + protocol->line;
	command->body_length = protocol->body;
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
	return protocol->verb != VERB_UNKNOWN && protocol_refuse(command, protocol->verb, REFUSAL_TOO_BIG);
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
		}
		*used += step;
		data += step;
		size -= step;
		if (found || (int)protocol->state == before)
			return found;
	}
}
