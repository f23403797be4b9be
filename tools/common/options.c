/* Parses options and writes their help. */
#include "tools/common/options.h"

#include <stdarg.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/common/suggest.h"

enum { OPTIONS_MAX = 64, HELP_COLUMN = 26 };

int options_fail(const struct options *options, const char *format, ...)
{
	char what[1000];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	message_line("%s: %s\nTry '%s --help'.", options->command, what, options->command);
	return OPTIONS_ERROR;
}

static int options_unknown(const struct options *options, const char *typed)
{
	const char *names[OPTIONS_MAX];
	const char *meant;
	size_t i;

	for (const char *const *hint = options->hints; hint && *hint; hint += 2)
		if (strcmp(*hint, typed) == 0)
			return options_fail(options, "unknown option '--%s': %s", typed, hint[1]);
	for (i = 0; i < options->count && i < OPTIONS_MAX; i++)
		names[i] = options->table[i].name;
	meant = suggest(typed, names, i);
	if (meant)
		return options_fail(options, "unknown option '--%s'; did you mean '--%s'?", typed, meant);
	return options_fail(options, "unknown option '--%s'", typed);
}

static int options_repeats(const struct options *options, int id)
{
	const int *at = options->repeats;

	while (at && *at && *at != id)
		at++;
	return at && *at;
}

/* Take the value that is attached to the option, or the next argument. */
static int options_take(struct options *options, const struct option *option, const char *attached)
{
	uint64_t bit = UINT64_C(1) << (option - options->table);

	options->value = attached;
	if (option->argument && options->given & bit && !options_repeats(options, option->id))
		return options_fail(options, "--%s is given twice: leave one out", option->name);
	options->given |= bit;
	if (!option->argument && attached)
		return options_fail(options, "--%s takes no value: leave '=%s' out", option->name, attached);
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

	for (size_t i = 0; i < options->count; i++) {
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

	for (size_t i = 0; i < options->count; i++) {
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
	return options_fail(options, "unknown option '%s'", letter);
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

	if (!options->value)
		return options_fail(options, "--%s needs a value: %s", name, expected);
	message_excerpt(excerpt, sizeof excerpt, options->value, strlen(options->value));
	return options_fail(options, "--%s %s: expected %s", name, excerpt, expected);
}

int options_whole(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	return number_whole(text, strlen(text), least, most, number);
}

int options_bytes(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	static const char units[] = "KMGT";
	size_t length = strlen(text);
	const char *unit = length ? strchr(units, text[length - 1]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	uint64_t count;

	if (number_whole(text, length - (unit != NULL), 0, most >> shift, &count) || count << shift < least)
		return -1;
	*number = count << shift;
	return 0;
}

static void help_entry(FILE *out, const struct option *option)
{
	const char *line = option->help;
	const char *argument = option->argument ? option->argument : "";
	int shown = option->letter ? fprintf(out, "  -%c, ", option->letter) : fprintf(out, "      ");

	shown += fprintf(out, "--%s%s%s", option->name, *argument ? " " : "", argument);
	while (*line) {
		size_t length = strcspn(line, "\n");

		fprintf(out, "%*s%.*s\n", shown < HELP_COLUMN ? HELP_COLUMN - shown : 1, "", (int)length, line);
		shown = 0;
		line += length + (line[length] != 0);
	}
}

void options_help(FILE *out, const struct option *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		help_entry(out, &table[i]);
}
