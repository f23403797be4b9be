#ifndef TOOLS_WEEKWHEEL_JOBS_JSON_H
#define TOOLS_WEEKWHEEL_JOBS_JSON_H

/* Reading what the server says as JSON: flat objects, found member by member, from memory that need not end in 0. */

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

/* Return the member if it is a whole number, and otherwise 0. */
uint64_t json_whole(const char *text, size_t size, const char *name);

/* Copy the member, if it is a string or a number, to out[0 .. room-1], escapes resolved; otherwise "". Returns out. */
const char *json_text(const char *text, size_t size, const char *name, char *out, size_t room);

/* Read numbers of an array, up to `count`. Return how many there were. */
size_t json_array(struct json_value array, uint64_t *numbers, size_t count);

/* Write a string with its quotes. Bytes that are no UTF-8 are written as U+FFFD. */
void json_write_string(FILE *out, const char *text, size_t size);

/* Write bytes as a string in base64. */
void json_write_base64(FILE *out, const void *bytes, size_t size);

#endif
