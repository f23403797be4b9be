/* How a command line and a configuration file are read. */
#include "tools/weekwheeld/settings/settings.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/common/message.h"
#include "tools/service/address.h"
#include "tools/weekwheeld/settings/read.h"
#include "weekwheel/version.h"

enum { CONFIG_MAX = 65536 };

static void settings_help(void)
{
	fputs("Usage: weekwheeld --data DIR [OPTION]...\n"
	      "       weekwheeld --store redis://HOST:PORT/ [OPTION]...\n"
	      "\n"
	      "Keep jobs until they are due, in a second or in six months, and give them to workers, in the protocol\n"
	      "of beanstalkd 1.12.\n"
	      "\n"
	      "Options:\n",
	    stdout);
	options_help(stdout, settings_table, settings_count);
	fputs("\n"
	      "Example, a server of your own, and a job for it:\n"
	      "  weekwheeld --data jobs &\n"
	      "  printf 'put 0 3 60 5\\r\\nhello\\r\\nreserve\\r\\n' | nc -q 5 127.0.0.1 11300\n",
	    stdout);
}

static int read_sync(struct settings *settings, const char *value)
{
	static const char *const names[] = {
	    [WW_SYNC_ALWAYS] = "always", [WW_SYNC_INTERVAL] = "interval", [WW_SYNC_SYSTEM] = "system"};
	int found = words_find(settings_span(value), names, 3);

	if (found >= 0)
		settings->sync = (enum ww_jobs_sync)found;
	return found;
}

static int read_clock(struct settings *settings, const char *value)
{
	static const char ahead[] = "virtual:";

	if (strcmp(value, "real") == 0) {
		settings->is_virtual = 0;
		return 0;
	}
	settings->is_virtual = 1;
	settings->ahead = 0;
	if (strcmp(value, "virtual") == 0)
		return 0;
	if (strncmp(value, ahead, sizeof ahead - 1) != 0)
		return -1;
	return words_seconds(settings_span(value + sizeof ahead - 1), UINT32_MAX, &settings->ahead);
}

/* These take effect at once, for messages about the other options. */
static int read_level(const char *value)
{
	static const char *const names[] = {[MESSAGE_ERROR] = "error",
	    [MESSAGE_WARNING] = "warning",
	    [MESSAGE_INFO] = "info",
	    [MESSAGE_DEBUG] = "debug"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i] && strcmp(value, names[i]) == 0) {
			message_level = (enum message_level)i;
			return 0;
		}
	return -1;
}

static int read_form(const char *value)
{
	if (strcmp(value, "json") == 0)
		message_form = MESSAGE_JSON;
	else if (strcmp(value, "text") == 0)
		message_form = message_form_found();
	else
		return -1;
	return 0;
}

static int read_listen(struct settings *settings, const struct options *options)
{
	const char *value = options->value;
	const char *expected = address_check(value + (address_is_tls(value) ? ADDRESS_TLS_PREFIX : 0));

	if (!expected && settings->listen_count == SETTINGS_LISTEN_MAX)
		expected = "at most 16 addresses in all";
	if (expected)
		return settings_bad(options, OPTION_LISTEN, expected);
	settings->listen[settings->listen_count++] = options->value;
	return 0;
}

static int read_config(struct settings *settings, const struct options *options);

/* Read an option whose value is not a number. Returns 0, -1 after a message, or 1: the program ends after help. */
static int read_other(struct settings *settings, const struct options *options, int id)
{
	const char *value = options->value;

	switch (id) {
	case OPTION_DATA:
		settings->data = value;
		return 0;
	case OPTION_MEMORY:
		settings->is_memory = 1;
		return 0;
	case OPTION_LISTEN:
		return read_listen(settings, options);
	case OPTION_UNIX:
		settings->unix_path = value;
		return strlen(value) < sizeof((struct sockaddr_un *)0)->sun_path
		           ? 0
		           : settings_bad(options, id, "the path of a socket, at most 107 bytes");
	case OPTION_TLS_CERT:
		settings->tls.certificate = value;
		return 0;
	case OPTION_TLS_KEY:
		settings->tls.key = value;
		return 0;
	case OPTION_TLS_CLIENT_CA:
		settings->tls.trusted = value;
		return 0;
	case OPTION_SOCKET_MODE:
	case OPTION_SOCKET_GROUP:
	case OPTION_AUTH_FILE:
	case OPTION_INSECURE:
	case OPTION_HTTP_HOST:
		return settings_access_option(settings, options, id);
	case OPTION_HTTP:
		settings->http = value;
		value += address_is_tls(value) ? ADDRESS_TLS_PREFIX : 0;
		return address_check(value) ? settings_bad(options, id, address_check(value)) : 0;
	case OPTION_SYNC:
		return read_sync(settings, value) >= 0 ? 0 : settings_bad(options, id, "always, interval or system");
	case OPTION_CLOCK:
		return read_clock(settings, value) == 0 ? 0
		                                        : settings_bad(options, id, "real, virtual or virtual:SECONDS");
	case OPTION_CONFIG:
		return read_config(settings, options);
	case OPTION_VERBOSE:
		message_level = MESSAGE_DEBUG;
		return 0;
	case OPTION_LOG_LEVEL:
		return read_level(value) ? settings_bad(options, id, "error, warning, info or debug") : 0;
	case OPTION_LOG_FORMAT:
		return read_form(value) ? settings_bad(options, id, "text or json") : 0;
	case OPTION_VERSION:
		printf("weekwheeld %s\n", ww_version());
		return 1;
	case OPTION_HELP:
		settings_help();
		return 1;
	default:
		return id >= OPTION_PUSH ? settings_push_option(settings, options, id)
		                         : settings_store_option(settings, options, id);
	}
}

static int read_option(struct settings *settings, const struct options *options, int id)
{
	int result;

	if (id == OPTIONS_ERROR)
		return -1;
	if (id == OPTIONS_OPERAND)
		return options_fail(options, "'%s': expected only options, such as --data DIR", options->value);
	settings->given |= UINT64_C(1) << id;
	if (options->value && !*options->value)
		return settings_bad(options, id, settings_argument(id));
	result = settings_number(settings, options, id);
	return result <= 0 ? result : read_other(settings, options, id);
}

static const int repeats[] = {OPTION_LISTEN, OPTION_HTTP_HOST, OPTION_PUSH, OPTION_PUSH_SUCCESS, OPTION_PUSH_NETWORKS,
    OPTION_PUSH_DENY, OPTION_PUSH_SCHEMES, 0};

static int read_arguments(struct settings *settings, char **arguments)
{
	struct options options = {.command = "weekwheeld",
	    .table = settings_table,
	    .count = settings_count,
	    .arguments = arguments,
	    .repeats = repeats};
	int result = 0;
	int id;

	while (result == 0 && (id = options_next(&options)) != OPTIONS_END)
		result = read_option(settings, &options, id);
	return result;
}

/* Turn "name = value" into "--name=value". NULL: the line is empty or a comment, or there is no memory. */
static char *line_option(char *text)
{
	char *end = text + strlen(text);
	char *equals;
	char *value;
	char *option;

	while (end > text && strchr(" \t\r", end[-1]))
		*--end = 0;
	text += strspn(text, " \t");
	if (*text == 0 || *text == '#')
		return NULL;
	option = settings_keep(strlen(text) + 4);
	if (!option)
		return NULL;
	equals = strchr(text, '=');
	if (!equals) {
		sprintf(option, "--%s", text);
		return option;
	}
	value = equals + 1 + strspn(equals + 1, " \t");
	while (equals > text && strchr(" \t", equals[-1]))
		equals--;
	sprintf(option, "--%.*s=%s", (int)(equals - text), text, value);
	return option;
}

static int read_lines(struct settings *settings, const char *path, char *text)
{
	int number = 0;
	int result = 0;

	while (text && result == 0) {
		char *arguments[2] = {line_option(strsep(&text, "\n")), NULL};

		number++;
		if (!arguments[0])
			continue;
		if (strncmp(arguments[0], "--config", 8) == 0) {
			message_error("a configuration file cannot name another");
			result = -1;
		} else {
			result = read_arguments(settings, arguments);
		}
		if (result < 0)
			message_error(
			    "that is line %d of %s, where options have no dashes, such as: memory", number, path);
	}
	return result;
}

static int read_config(struct settings *settings, const struct options *options)
{
	char *text = settings_file(options, OPTION_CONFIG, "options");

	if (!text)
		return -1;
	if (strlen(text) >= CONFIG_MAX)
		return settings_bad_file(options, OPTION_CONFIG, "options", "it has more than 64 KiB");
	return read_lines(settings, options->value, text);
}

int settings_read(struct settings *settings, char **arguments)
{
	int result;

	memset(settings, 0, sizeof *settings);
	settings->socket_mode = 0600;
	settings->redis.prefix = "weekwheel";
	settings_push_default(&settings->push);
	settings_number_defaults(settings);
	result = read_arguments(settings, arguments);
	if (result > 0)
		return 1;
	return result == 0 && settings_check(settings) == 0 ? 0 : 3;
}
