/* Reads the values of options by their kinds and the files that they name, and says what is wrong with them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/common/small_file.h"
#include "tools/service/settings/settings.h"

int settings_bad(const struct given *given, const char *expected)
{
	struct options shown = {.command = message_program, .value = given->value};

	(void)options_bad_value(&shown, given->setting->name, expected);
	return -1;
}

int settings_bad_file(const struct given *given, const char *expected, const char *reason)
{
	char text[300];

	snprintf(text, sizeof text, "a file with %s: %s", expected, reason);
	return settings_bad(given, text);
}

int settings_refuse(const char *name, const char *why)
{
	return message_error("--%s %s\nTry '%s --help'.", name, why, message_program);
}

/* ---- Files, and memory for what settings point to */

struct kept {
	struct kept *next;
	char text[];
};

static struct kept *all_kept;

char *settings_keep(size_t size)
{
	struct kept *kept = calloc(1, sizeof *kept + size);

	if (!kept)
		return NULL;
	kept->next = all_kept;
	all_kept = kept;
	return kept->text;
}

static char *read_file(
    const struct given *given, const char *what, enum small_file_end end, int wait_ms, unsigned *mode)
{
	struct small_file file;
	char why[SMALL_FILE_WHY];
	char *text;

	if (small_file_read(&file, given->value, end, wait_ms, why)) {
		(void)settings_bad_file(given, what, why);
		return NULL;
	}
	text = settings_keep(file.size + 1);
	if (text)
		memcpy(text, file.text, file.size);
	else
		(void)message_error("no memory");
	*mode = file.mode;
	free(file.text);
	return text;
}

char *settings_file(const struct given *given, const char *what, int is_again)
{
	unsigned mode;

	return read_file(given, what, SMALL_FILE_WHOLE, is_again ? 0 : SMALL_FILE_WAIT_MS, &mode);
}

const char *settings_line(const struct given *given, const char *what)
{
	unsigned mode;
	char *text = read_file(given, what, SMALL_FILE_LINE, SMALL_FILE_WAIT_MS, &mode);

	if (!text)
		return NULL;
	if (mode & 077)
		message_warning("others may read %s: \"chmod 600\" keeps it secret", given->value);
	if (*text)
		return text;
	(void)settings_bad_file(given, what, "its first line is empty");
	return NULL;
}

/* ---- Numbers */

static int bad_number(const struct given *given)
{
	const struct setting *number = given->setting;
	char expected[160], least[DURATION_TEXT], most[DURATION_TEXT];

	if (number->kind == SETTING_TIME)
		snprintf(expected, sizeof expected, "a time such as 50ms, 2s or 30d, %s to %s",
		    duration_format(least, number->least), duration_format(most, number->most));
	else
		snprintf(expected, sizeof expected, "%s, %" PRIu64 " to %" PRIu64 "%s",
		    number->kind == SETTING_WHOLE ? "a whole number" : "bytes", number->least, number->most,
		    number->kind == SETTING_WHOLE   ? ""
		    : number->kind == SETTING_BYTES ? ", also as in 64M and 10G"
		                                    : ", also as in 64M and 10G, or 0");
	return settings_bad(given, expected);
}

static int read_number(void *at, const struct given *given)
{
	const struct setting *number = given->setting;
	struct duration_problem problem;
	uint64_t value;
	int bad;

	if (number->kind == SETTING_TIME)
		bad = duration_parse(given->value, &value, &problem) != 0 || value < number->least ||
		      value > number->most;
	else
		bad = (number->kind == SETTING_WHOLE ? options_whole : options_bytes)(
		          given->value, number->least, number->most, &value) != 0;
	if (number->kind == SETTING_BYTES_OR_0 && options_whole(given->value, 0, 0, &value) == 0)
		bad = 0;
	if (bad)
		return bad_number(given);
	if (number->size == sizeof(uint64_t))
		*(uint64_t *)at = value;
	else
		*(uint32_t *)at = (uint32_t)value;
	return 0;
}

/* ---- Words */

int settings_add(const struct given *given, const char **list, size_t *count, size_t most)
{
	char expected[40];

	snprintf(expected, sizeof expected, "at most %zu in all", most);
	if (*count == most)
		return settings_bad(given, expected);
	list[(*count)++] = given->value;
	return 0;
}

int settings_word(const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(value, words[i]) == 0)
			return i;
	return -1;
}

/* List the words: "always, interval or system". */
static int read_word(int *at, const struct given *given)
{
	const char *const *words = given->setting->words;
	int found = settings_word(given->value, words);
	char expected[200];
	size_t size = 0;

	if (found >= 0) {
		*at = found;
		return 0;
	}
	for (int i = 0; words[i]; i++)
		size += (size_t)snprintf(expected + size, sizeof expected - size, "%s%s",
		    i == 0         ? ""
		    : words[i + 1] ? ", "
		                   : " or ",
		    words[i]);
	return settings_bad(given, expected);
}

static int read_list(void *settings, const struct given *given)
{
	char *rest = settings_keep(strlen(given->value) + 1);
	struct given word = *given;

	if (!rest)
		return settings_bad(given, "less: there is no memory");
	strcpy(rest, given->value);
	for (word.is_first = 1; rest; word.is_first = 0) {
		word.value = strsep(&rest, ",");
		if (!*word.value)
			return settings_bad(given, "something before and behind each comma, without a space");
		if (given->setting->read(settings, &word) != 0)
			return -1;
	}
	return 0;
}

int settings_take(void *settings, const struct given *given)
{
	const struct setting *setting = given->setting;
	void *at = (char *)settings + setting->at;

	if (given->value && !*given->value)
		return settings_bad(given, setting->argument);
	switch (setting->kind) {
	case SETTING_OWN:
		return setting->read(settings, given);
	case SETTING_LIST:
		return read_list(settings, given);
	case SETTING_FLAG:
		*(int *)at = 1;
		return 0;
	case SETTING_TEXT:
		*(const char **)at = given->value;
		return 0;
	case SETTING_SECRET:
		return (*(const char **)at = settings_line(given, "a secret")) ? 0 : -1;
	case SETTING_WORD:
		return read_word(at, given);
	default:
		return read_number(at, given);
	}
}
