#ifndef TOOLS_COMMON_JSON_H
#define TOOLS_COMMON_JSON_H

/*
 * JSON (RFC 8259): flat objects, found member by member, from memory that need not end in 0, and the strings of what is
 * written. Numbers stay text, since neither an id beyond 2^53 nor the nanoseconds of a date fit into a double.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum json_kind { JSON_NONE, JSON_NULL, JSON_STRING, JSON_NUMBER, JSON_OTHER };

struct json_value {
	enum json_kind kind;
	const char *text; /* of a string without its quotes, escapes as they are */
	size_t size;
};

/* Return the member of the object text[0 .. size-1]; its kind is JSON_NONE if there is none, or the object is none. */
struct json_value json_member(const char *text, size_t size, const char *name);

/*
 * Take the members of the object that is all of the text, one after the other; *at is 0 at first. Return 1, 0 behind
 * the last, or -1 where the text is no object: *at is where that was seen.
 */
int json_next(const char *text, size_t size, size_t *at, struct json_value *name, struct json_value *value);

/* Return 1 if the value is this string, which has no escapes. */
int json_is(struct json_value value, const char *string);

/*
 * Copy a string to out[0 .. room-1], escapes resolved, and end it with 0. Return 0, 1 if characters that do not fit
 * were left out, or -1 if it was not valid: U+FFFD then stands for a lone surrogate, an unknown escape, a byte that is
 * no UTF-8, a control character, and an escaped NUL, which would end the text.
 */
int json_decode(struct json_value value, char *out, size_t room);

/* Return the member if it is a whole number, and otherwise 0. */
uint64_t json_whole(const char *text, size_t size, const char *name);

/* Copy the member, if it is a string or a number, as json_decode does; otherwise "". Returns out. */
const char *json_text(const char *text, size_t size, const char *name, char *out, size_t room);

/* Read numbers of an array, up to `count`. Return how many there were. */
size_t json_array(struct json_value array, uint64_t *numbers, size_t count);

/* The most bytes that json_quote writes. */
#define JSON_QUOTED(size) (6 * (size) + 2)

/* Write a string with its quotes to out. Bytes that are no UTF-8 become U+FFFD. Return its length; no NUL follows. */
size_t json_quote(char *out, const char *text, size_t size);

/* Write a string with its quotes in the same way to a file. */
void json_write_string(FILE *out, const char *text, size_t size);

/* Write bytes as a string in base64. */
void json_write_base64(FILE *out, const void *bytes, size_t size);

#endif
