#ifndef TOOLS_WEEKWHEEL_JOBS_YAML_H
#define TOOLS_WEEKWHEEL_JOBS_YAML_H

/* Reads the flat YAML with which beanstalkd's protocol answers stats and list commands: dictionaries and lists. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct yaml_field {
	const char *name; /* "" in a list */
	size_t name_size;
	const char *value; /* without quotes around it */
	size_t value_size;
	int quoted;
};

/* Take the next "name: value" or "- value" from text[*at .. size-1]. Return 0 at the end. */
int yaml_next(const char *text, size_t size, size_t *at, struct yaml_field *field);

/* Return the field's whole number without its fraction; 0 if the field is missing. */
uint64_t yaml_whole(const char *text, size_t size, const char *name);

/* Copy the field to out[0 .. room-1], "" if it is missing. Returns out. */
const char *yaml_text(const char *text, size_t size, const char *name, char *out, size_t room);

/* Write all fields as members of a JSON object, with commas between; numbers as numbers. */
void yaml_write_json(FILE *out, const char *text, size_t size);

/* Write all fields as lines for a reader. */
void yaml_write_text(FILE *out, const char *text, size_t size);

#endif
