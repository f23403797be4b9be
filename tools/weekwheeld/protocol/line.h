#ifndef TOOLS_WEEKWHEELD_PROTOCOL_LINE_H
#define TOOLS_WEEKWHEELD_PROTOCOL_LINE_H

/* Reads one line of the protocol, without its end. */

#include "tools/weekwheeld/protocol/protocol.h"
#include "tools/weekwheeld/protocol/words.h"

enum line {
	LINE_COMMAND,     /* a command, or a refusal of one */
	LINE_BODY,        /* a command whose body, of command->body_length bytes, follows */
	LINE_REFUSED_BODY /* a refusal, and a body of command->body_length bytes follows all the same */
};

/* Fill *command with what the line says. */
enum line protocol_line_read(struct command *command, struct span line);

/* Return the name of a verb, as in "cmd-put", which may end in a space; NULL for VERB_UNKNOWN. */
const char *protocol_verb_name(enum verb verb);

#endif
