/* Reads a command line and a configuration file by the tables of options, and checks that the options go together. */
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/service/net/address.h"
#include "tools/service/settings/settings.h"
#include "weekwheel/version.h"

enum { CONFIG_MAX = 65536, FAILED = 1, WRONG = 2 /* exit statuses */ };

static int has_common(const struct settings_server *server, const struct setting *setting)
{
	for (const char *const *name = server->without; name && *name; name++)
		if (strcmp(*name, setting->name) == 0)
			return 0;
	return 1;
}

/* Return the row of a number from 0 on, first of the server's table, then of the common one; or NULL. */
static const struct setting *row(const struct settings_server *server, size_t number)
{
	if (number < server->count)
		return &server->table[number];
	number -= server->count;
	for (size_t i = 0; i < settings_common_count; i++)
		if (has_common(server, &settings_common[i]) && number-- == 0)
			return &settings_common[i];
	return NULL;
}

static const struct setting *row_named(const struct settings_server *server, const char *name)
{
	const struct setting *setting = NULL;

	for (size_t i = 0; (setting = row(server, i)) != NULL && strcmp(setting->name, name) != 0; i++)
		;
	return setting;
}

/* Return what replaces the default and the need of a row in this server. */
static const struct setting *row_here(const struct settings_server *server, const struct setting *setting)
{
	const struct setting *said = server->here;

	while (said->name && strcmp(said->name, setting->name) != 0)
		said++;
	return said->name ? said : setting;
}

/* ---- Help */

/* The help of a row with its default, or without one if there is no memory. */
static const char *row_help(const char *help, const char *preset)
{
	const char *at = preset ? strstr(help, "%s") : NULL;
	char *text = at ? settings_keep(strlen(help) + strlen(preset)) : NULL;

	if (!text)
		return help;
	sprintf(text, "%.*s%s%s", (int)(at - help), help, preset, at + 2);
	return text;
}

int settings_help(void *of, const struct given *given)
{
	const struct settings_server *server = ((struct service_settings *)of)->server;
	const struct setting *setting;

	(void)given;
	printf("%s\nOptions:\n", server->usage);
	for (size_t i = 0; (setting = row(server, i)) != NULL; i++) {
		const struct setting *said = row_here(server, setting);
		struct option shown = {1, setting->letter, setting->name, setting->argument,
		    row_help(said->help ? said->help : setting->help, said->preset)};

		if (i == server->count)
			puts("\nOptions that every server has:");
		options_help(stdout, &shown, 1);
	}
	printf("\n%s", server->example);
	return 1;
}

int settings_version(void *settings, const struct given *given)
{
	(void)settings;
	(void)given;
	printf("%s %s\n", message_program, ww_version());
	return 1;
}

/* ---- A command line */

int settings_knows(const void *of, const char *name)
{
	return row_named(((const struct service_settings *)of)->server, name) != NULL;
}

void settings_give(void *to, const char *name)
{
	struct service_settings *settings = to;

	if (!settings_has(settings, name))
		settings->given[settings->given_count++] = row_named(settings->server, name);
}

static int read_option(struct service_settings *settings, struct options *options, int id)
{
	struct given given = {.value = options->value};

	if (id == OPTIONS_ERROR)
		return -1;
	if (id == OPTIONS_OPERAND && !settings->server->operand)
		return options_fail(
		    options, "'%s': expected only options, such as %s", options->value, settings->server->option);
	given.setting = id == OPTIONS_OPERAND ? row_named(settings->server, settings->server->operand)
	                                      : row(settings->server, (size_t)id - 1);
	/* The value may contain a password, which no message shows. */
	if (id == OPTIONS_OPERAND && settings_has(settings, given.setting->name))
		return options_fail(options, "%s is given already; expected only one", given.setting->argument);
	/* Its option may follow. */
	for (size_t i = 0; id == OPTIONS_OPERAND && i < options->count; i++)
		if (options->table[i].name == given.setting->name)
			options->given |= UINT64_C(1) << i;
	settings_give(settings, given.setting->name);
	return settings_take(settings, &given);
}

/* *seen has the options given so far, and these are added. */
static int read_arguments(struct service_settings *settings, char **arguments, uint64_t *seen)
{
	struct option table[SETTINGS_MOST];
	int repeats[SETTINGS_MOST + 1] = {0};
	struct options options = {
	    .command = message_program, .table = table, .arguments = arguments, .repeats = repeats, .given = *seen};
	const struct setting *setting;
	size_t repeat = 0;
	int result = 0;
	int id;

	for (; options.count < SETTINGS_MOST && (setting = row(settings->server, options.count)); options.count++) {
		id = (int)options.count + 1;
		table[options.count] =
		    (struct option){id, setting->letter, setting->name, setting->argument, setting->help};
		if (setting->repeats)
			repeats[repeat++] = id;
	}
	while (result == 0 && (id = options_next(&options)) != OPTIONS_END)
		result = read_option(settings, &options, id);
	*seen = options.given;
	return result;
}

/* ---- A configuration file */

/* Cut blanks off both ends of a text. */
static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && strchr(" \t\r", end[-1]))
		*--end = 0;
	return text + strspn(text, " \t");
}

/* Read the option of "name = value" as "--name=value". */
static int read_line(struct service_settings *settings, char *line, uint64_t *seen)
{
	char *option = settings_keep(strlen(line) + 4);
	char *value = strchr(line, '=');

	if (!option)
		return message_error("no memory");
	if (value)
		*value++ = 0;
	sprintf(option, "--%s%s%s", trim(line), value ? "=" : "", value ? trim(value) : "");
	return strcspn(option, "=") == strlen("--config") && strncmp(option, "--config", strlen("--config")) == 0
	           ? message_error("a configuration file cannot name another")
	           : read_arguments(settings, (char *[]){option, NULL}, seen);
}

static int read_lines(struct service_settings *settings, const char *path, char *text)
{
	uint64_t seen = 0;
	int result = 0;

	for (int number = 1; text && result == 0; number++) {
		char *line = trim(strsep(&text, "\n"));

		result = *line && *line != '#' ? read_line(settings, line, &seen) : 0;
		if (result < 0)
			message_error(
			    "that is line %d of %s, where options have no dashes, such as: verbose", number, path);
	}
	return result;
}

int settings_config(void *settings, const struct given *given)
{
	char *text = settings_file(given, "options", 0);

	if (!text)
		return -1;
	if (strlen(text) >= CONFIG_MAX)
		return settings_bad_file(given, "options", "it has more than 64 KiB");
	return read_lines(settings, given->value, text);
}

/* ---- All of it */

static int set_defaults(struct service_settings *settings)
{
	struct given given = {.value = NULL};

	for (size_t i = 0; (given.setting = row(settings->server, i)) != NULL; i++) {
		given.value = row_here(settings->server, given.setting)->preset;
		if (given.value && !given.setting->repeats && settings_take(settings, &given) != 0)
			return -1;
	}
	return 0;
}

static int check_needs(const struct service_settings *settings, const struct setting *setting)
{
	const struct setting *said = row_here(settings->server, setting);
	const char *argument;
	char usual[100];

	if (!said->needs || settings_has(settings, said->needs) ||
	    (said->or_one && settings_has(settings, said->or_one)))
		return 0;
	argument = row_named(settings->server, said->needs)->argument;
	snprintf(usual, sizeof usual, "is for --%s%s%s: give that too, or leave it out", said->needs,
	    argument ? " " : "", argument ? argument : "");
	return settings_refuse(setting->name, said->why ? said->why : usual);
}

static int check(struct service_settings *settings)
{
	if (settings->server->check(settings) != 0)
		return -1;
	for (size_t i = 0; i < settings->given_count; i++)
		if (check_needs(settings, settings->given[i]) != 0)
			return -1;
	return settings_check_common(settings);
}

int service_settings_read(const struct settings_server *server, void *to, char **arguments)
{
	struct service_settings *settings = to;
	uint64_t seen = 0;
	int result;

	settings->server = server;
	result = set_defaults(settings) == 0 ? read_arguments(settings, arguments, &seen) : -1;
	if (result != 0)
		return 1 + (result < 0 ? WRONG : 0);
	result = check(settings);
	/* At boot, names may resolve a moment later: another start can repair that. */
	return result == 0 ? 0 : 1 + (result == ADDRESS_LATER ? FAILED : WRONG);
}
