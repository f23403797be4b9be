#ifndef TOOLS_COMMON_MESSAGE_H
#define TOOLS_COMMON_MESSAGE_H

/*
 * Messages on standard error. Each is a line of its own, and removes a progress bar first. Any thread may write one. A
 * program without message_level and message_form writes all but debug messages, as text.
 */

#include <stddef.h>
#include <stdint.h>

/* The program's name, which begins its lines of text: "weekwheel" unless main sets another. */
extern const char *message_program;

/* As syslog numbers them. */
enum message_level { MESSAGE_ERROR = 3, MESSAGE_WARNING = 4, MESSAGE_INFO = 6, MESSAGE_DEBUG = 7 };

/* What is written: this level and what is more serious. */
extern enum message_level message_level;

enum message_form {
	MESSAGE_TEXT,
	MESSAGE_JSON,   /* one object per line: time, level, message, and the fields */
	MESSAGE_JOURNAL /* text behind "<LEVEL>", as systemd's journal reads it */
};

extern enum message_form message_form;

/* MESSAGE_JOURNAL if the journal reads standard error, otherwise MESSAGE_TEXT. */
enum message_form message_form_found(void);

/* What the text says, once more for machines, which JSON alone shows. */
struct message_field {
	const char *name; /* NULL ends a list */
	const char *value;
	uint64_t number; /* if value is NULL */
};

/* MESSAGE_FIELDS({"client", address}, {"job", NULL, 17}) */
#define MESSAGE_FIELDS(...) ((const struct message_field[]){__VA_ARGS__, {NULL, NULL, 0}})

/* Write a message. `fields` may be NULL. */
void message_log(enum message_level level, const struct message_field *fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define message_warning(...) message_log(MESSAGE_WARNING, NULL, __VA_ARGS__)
#define message_info(...) message_log(MESSAGE_INFO, NULL, __VA_ARGS__)
/* The arguments are evaluated only if the message is written. */
#define message_debug(...) (message_level >= MESSAGE_DEBUG ? message_log(MESSAGE_DEBUG, NULL, __VA_ARGS__) : (void)0)

/* Write an error. Return -1, for callers that fail with it. */
int message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write the formatted text without a prefix. */
void message_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Write the beginning of text[0 .. size-1] to out[0 .. room-1], in quotes and safe for a terminal, and return out.
 * "..." marks an omission.
 */
const char *message_excerpt(char *out, size_t room, const char *text, size_t size);

#endif
