/* Reads flat YAML, one field a line, and writes it as JSON or as text. */
#include "tools/weekwheel/jobs/yaml.h"

#include <string.h>

#include "tools/common/json.h"
#include "tools/common/number.h"

static void trim(const char **text, size_t *size)
{
	while (*size && **text == ' ')
		++*text, --*size;
	while (*size && ((*text)[*size - 1] == ' ' || (*text)[*size - 1] == '\r'))
		--*size;
}

static void set_value(struct yaml_field *field, const char *text, size_t size)
{
	trim(&text, &size);
	field->quoted = size >= 2 && text[0] == '"' && text[size - 1] == '"';
	field->value = text + field->quoted;
	field->value_size = size - 2 * (size_t)field->quoted;
}

int yaml_next(const char *text, size_t size, size_t *at, struct yaml_field *field)
{
	while (*at < size) {
		const char *line = text + *at;
		const char *end = memchr(line, '\n', size - *at);
		size_t length = end ? (size_t)(end - line) : size - *at;
		const char *colon = memchr(line, ':', length);

		*at += length + (end != NULL);
		if (length >= 3 && memcmp(line, "---", 3) == 0)
			continue;
		field->name = line;
		if (length >= 2 && line[0] == '-' && line[1] == ' ')
			colon = line; /* an item of a list has no name, and its dash ends that */
		else if (!colon)
			continue;
		field->name_size = (size_t)(colon - line);
		set_value(field, colon + 1, length - field->name_size - 1);
		return 1;
	}
	return 0;
}

static int find(const char *text, size_t size, const char *name, struct yaml_field *field)
{
	size_t at = 0;

	while (yaml_next(text, size, &at, field))
		if (field->name_size == strlen(name) && memcmp(field->name, name, field->name_size) == 0)
			return 1;
	return 0;
}

uint64_t yaml_whole(const char *text, size_t size, const char *name)
{
	struct yaml_field field;

	return find(text, size, name, &field) ? number_leading(field.value, field.value_size) : 0;
}

const char *yaml_text(const char *text, size_t size, const char *name, char *out, size_t room)
{
	struct yaml_field field = {.value_size = 0};

	if (!find(text, size, name, &field))
		field = (struct yaml_field){.value = ""};
	snprintf(out, room, "%.*s", (int)(field.value_size < room ? field.value_size : room - 1), field.value);
	return out;
}

/* Return whether JSON has it as a number: "1.5" and "12", but not "1.", "007" or "1.2.3" (names and versions). */
static int is_number(const struct yaml_field *field)
{
	const char *at = field->value;
	const char *end = at + field->value_size;
	const char *point;
	uint64_t whole;
	uint32_t rest;

	(void)number_digits(&at, end, UINT64_MAX, &whole);
	if (field->quoted || at == field->value || (at - field->value > 1 && *field->value == '0'))
		return 0;
	if (at == end || *at != '.')
		return at == end;
	point = at++;
	(void)number_fraction(&at, end, &rest);
	return at == end && at - point > 1;
}

void yaml_write_json(FILE *out, const char *text, size_t size)
{
	struct yaml_field field;
	const char *separator = "";
	size_t at = 0;

	while (yaml_next(text, size, &at, &field)) {
		fputs(separator, out);
		separator = ", ";
		json_write_string(out, field.name, field.name_size);
		fputs(": ", out);
		if (is_number(&field))
			fwrite(field.value, 1, field.value_size, out);
		else
			json_write_string(out, field.value, field.value_size);
	}
}

void yaml_write_text(FILE *out, const char *text, size_t size)
{
	struct yaml_field field;
	size_t at = 0;

	while (yaml_next(text, size, &at, &field)) {
		fprintf(out, "%-24.*s ", (int)field.name_size, field.name);
		for (size_t i = 0; i < field.value_size; i++)
			fputc(field.value[i] < ' ' || field.value[i] == 0x7f ? '?' : field.value[i], out);
		fputc('\n', out);
	}
}
