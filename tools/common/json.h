#ifndef TOOLS_COMMON_JSON_H
#define TOOLS_COMMON_JSON_H

/*
 * JSON (RFC 8259): reads flat objects, member by member, from memory that need not end in 0, and writes strings. Numbers
 * stay text, because neither an id beyond 2^53 nor the nanoseconds of a date fit into a double.
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

/* Return the member of the object text[0 .. size-1]. Its kind is JSON_NONE without such a member, or such an object. */
struct json_value json_member(const char *text, size_t size, const char *name);

/*
 * Take the next member of the object that is all of the text. *at is 0 at first. Return 1, 0 after the last member, or -1
 * if the text is no object, with *at where that shows.
 */
int json_next(const char *text, size_t size, size_t *at, struct json_value *name, struct json_value *value);

/* Return 1 if the value is this string, written without escapes. */
int json_is(struct json_value value, const char *string);

/*
 * Copy a string to out[0 .. room-1], escapes resolved, and end it with 0. Return 0, 1 if characters that do not fit were
 * left out, or -1 if it was not valid. U+FFFD then replaces a lone surrogate, an unknown escape, a byte that is no UTF-8,
 * a control character, and an escaped NUL, which would end the text.
 */
int json_decode(struct json_value value, char *out, size_t room);

/* Return the member if it is a whole number, or 0. */
uint64_t json_whole(const char *text, size_t size, const char *name);

/* Copy the member as json_decode does, or "" if it is neither a string nor a number. Return out. */
const char *json_text(const char *text, size_t size, const char *name, char *out, size_t room);

/*
 * Take the next element of the array that is all of the text. *at is 0 at first. Return 1, 0 after the last element, or -1
 * if the text is no array, with *at where that shows.
 */
int json_element(const char *text, size_t size, size_t *at, struct json_value *value);

/* Read the numbers of an array, at most `count`. Return how many were read. */
size_t json_array(struct json_value array, uint64_t *numbers, size_t count);

/* The most bytes that json_quote writes. */
#define JSON_QUOTED(size) (6 * (size) + 2)

/* Write a string with its quotes to out. Bytes that are no UTF-8 become U+FFFD. Return its length; no NUL follows. */
size_t json_quote(char *out, const char *text, size_t size);

/* Write a string with its quotes in the same way to a file. */
void json_write_string(FILE *out, const char *text, size_t size);

#endif
