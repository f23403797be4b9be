#ifndef TOOLS_COMMON_MESSAGE_H
#define TOOLS_COMMON_MESSAGE_H

/* What the program says on standard error. Each message is a line of its own and takes a progress bar away first. */

#include <stddef.h>

/* The program's name, which begins its errors: "weekwheel" unless its main sets another. */
extern const char *message_program;

/* Say the program's name, ": " and the formatted text. */
void message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Say the formatted text without a prefix. */
void message_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Write the beginning of text[0 .. size-1] as a quoted excerpt that is safe on a terminal to out, which is used up to
 * `room` bytes; return out. What is left out is marked by "...".
 */
const char *message_excerpt(char *out, size_t room, const char *text, size_t size);

#endif
