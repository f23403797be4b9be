/* The option parser. */
#include "tools/common/options.h"

#include <string.h>

#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/common/suggest.h"

enum { OPTIONS_MAX = 64, HELP_COLUMN = 26 };

static int options_usage_error(const struct options *options, const char *what, const char *which)
{
	message_line("%s: %s '%s'\nTry '%s --help'.", options->command, what, which, options->command);
	return OPTIONS_ERROR;
}

static int options_unknown(const struct options *options, const char *typed)
{
	const char *names[OPTIONS_MAX];
	const char *meant;
	size_t i;

	for (i = 0; i < options->count && i < OPTIONS_MAX; i++)
		names[i] = options->table[i].name;
	meant = suggest(typed, names, i);
	if (meant)
		message_line("%s: unknown option '--%s'; did you mean '--%s'?\nTry '%s --help'.", options->command,
		    typed, meant, options->command);
	else
		message_line("%s: unknown option '--%s'\nTry '%s --help'.", options->command, typed, options->command);
	return OPTIONS_ERROR;
}

/* Take the value from what follows the option, or from the next argument. */
static int options_take(struct options *options, const struct option *option, const char *attached)
{
	options->value = attached;
	if (!option->argument && attached) {
		message_line("%s: --%s takes no value: leave '=%s' out\nTry '%s --help'.", options->command,
		    option->name, attached, options->command);
		return OPTIONS_ERROR;
	}
	if (option->argument && !attached) {
		if (!*options->arguments)
			return options_bad_value(options, option->name, option->argument);
		options->value = *options->arguments++;
	}
	return option->id;
}

static int options_long(struct options *options, const char *typed)
{
	size_t length = strcspn(typed, "=");
	char name[64];
	size_t i;

	for (i = 0; i < options->count; i++) {
		const struct option *option = &options->table[i];

		if (strlen(option->name) == length && memcmp(option->name, typed, length) == 0)
			return options_take(options, option, typed[length] ? typed + length + 1 : NULL);
	}
	snprintf(name, sizeof name, "%.*s", length < 60 ? (int)length : 60, typed);
	return options_unknown(options, name);
}

static int options_short(struct options *options)
{
	char letter[] = {'-', *options->cluster++, 0};
	size_t i;

	for (i = 0; i < options->count; i++) {
		const struct option *option = &options->table[i];
		const char *attached = NULL;

		if (!option->letter || option->letter != letter[1])
			continue;
		if (option->argument && *options->cluster) {
			attached = options->cluster;
			options->cluster = "";
		}
		return options_take(options, option, attached);
	}
	return options_usage_error(options, "unknown option", letter);
}

int options_next(struct options *options)
{
	const char *argument;

	options->value = NULL;
	if (options->cluster && *options->cluster)
		return options_short(options);
	argument = *options->arguments;
	if (!argument)
		return OPTIONS_END;
	options->arguments++;
	if (options->operands_only || argument[0] != '-' || argument[1] == 0) {
		options->value = argument;
		return OPTIONS_OPERAND;
	}
	if (strcmp(argument, "--") == 0) {
		options->operands_only = 1;
		return options_next(options);
	}
	if (argument[1] == '-')
		return options_long(options, argument + 2);
	options->cluster = argument + 1;
	return options_short(options);
}

int options_bad_value(const struct options *options, const char *name, const char *expected)
{
	char excerpt[60];

	if (options->value)
		message_line("%s: --%s %s: expected %s\nTry '%s --help'.", options->command, name,
		    message_excerpt(excerpt, sizeof excerpt, options->value, strlen(options->value)), expected,
		    options->command);
	else
		message_line(
		    "%s: --%s needs a value: %s\nTry '%s --help'.", options->command, name, expected, options->command);
	return OPTIONS_ERROR;
}

int options_whole(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	return number_whole(text, strlen(text), least, most, number);
}

static void help_entry(FILE *out, const struct option *option)
{
	const char *line = option->help;
	char left[64];
	int shown;

	if (option->letter)
		snprintf(left, sizeof left, "  -%c, --%s", option->letter, option->name);
	else
		snprintf(left, sizeof left, "      --%s", option->name);
	shown = fprintf(out, "%s%s%s", left, option->argument ? " " : "", option->argument ? option->argument : "");
	while (*line) {
		size_t length = strcspn(line, "\n");

		fprintf(out, "%*s%.*s\n", shown < HELP_COLUMN ? HELP_COLUMN - shown : 1, "", (int)length, line);
		shown = 0;
		line += length + (line[length] != 0);
	}
}

void options_help(FILE *out, const struct option *table, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		help_entry(out, &table[i]);
}
