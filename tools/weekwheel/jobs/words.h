#ifndef TOOLS_WEEKWHEEL_JOBS_WORDS_H
#define TOOLS_WEEKWHEEL_JOBS_WORDS_H

/* Options of put and schedule that say a field of the job: the table of fields says what they take. */

#include "tools/weekwheel/jobs/jobs.h"

enum { WORDS_ROOM = JOBS_KEY_TEXT + 400 };

/*
 * Take the value of the option of that id, and add it as " name=value", a word of the protocol, to text[0 .. WORDS_ROOM-1].
 * A number or a time is at least `least`, or what the table says if that is more. Return 0, or OPTIONS_ERROR after a message.
 */
int words_take(char *text, const struct options *options, int id, uint64_t least);

#endif
