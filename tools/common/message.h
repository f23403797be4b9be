#ifndef TOOLS_COMMON_MESSAGE_H
#define TOOLS_COMMON_MESSAGE_H

/* Messages on standard error. Each is a line of its own, and removes a progress bar first. Any thread may write one. */

#include <stddef.h>

/* The program's name, which begins its errors: "weekwheel" unless main sets another. */
extern const char *message_program;

/* Write the program's name, ": " and the formatted text. Return -1, for callers that fail with it. */
int message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write the formatted text without a prefix. */
void message_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Write the beginning of text[0 .. size-1] to out[0 .. room-1], in quotes and safe for a terminal, and return out. "..."
 * marks an omission.
 */
const char *message_excerpt(char *out, size_t room, const char *text, size_t size);

#endif
