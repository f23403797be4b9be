#ifndef TOOLS_WEEKWHEELD_PROTOCOL_LINE_H
#define TOOLS_WEEKWHEELD_PROTOCOL_LINE_H

/* One line of the protocol, without its end. */

#include "tools/weekwheeld/protocol/protocol.h"
#include "tools/weekwheeld/protocol/words.h"

enum line {
	LINE_COMMAND,     /* a command, or a refusal of one */
	LINE_BODY,        /* a command to which a body belongs, of *body bytes */
	LINE_REFUSED_BODY /* refused, and a body of *body bytes follows nevertheless */
};

/* Fill *command with what the line says. */
enum line protocol_line_read(struct command *command, struct span line, uint64_t *body);

/* The verbs of our own: what comes after the verb. Return 0, or -1 if it is not well-formed. */
int protocol_own_read(struct command *command, struct span *words, int count);

/* The name that a verb is called by, as in "cmd-put"; NULL for VERB_UNKNOWN. */
const char *protocol_verb_name(enum verb verb);

#endif
