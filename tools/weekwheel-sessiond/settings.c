/* The table of all options with their help, and how a command line is read. */
#include "tools/weekwheel-sessiond/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/service/address.h"
#include "weekwheel/version.h"

enum {
	OPTION_LISTEN = 1,
	OPTION_UNIX,
	OPTION_HTTP,
	OPTION_HTTP_HOST,
	OPTION_THREADS,
	OPTION_DATABASES,
	OPTION_LIFETIME,
	OPTION_LIFETIMES,
	OPTION_MEMORY,
	OPTION_POLICY,
	OPTION_BULK,
	OPTION_CLIENTS,
	OPTION_DATA,
	OPTION_SAVE_EVERY,
	OPTION_PASSWORD,
	OPTION_INSECURE,
	OPTION_CLOCK,
	OPTION_LOG_LEVEL,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_END
};

_Static_assert(OPTION_END <= 64, "each option has a bit of what was given");

static const struct option table[] = {
    {OPTION_LISTEN, 'l', "listen", "HOST:PORT",
        "where to listen (127.0.0.1:6380); can be given several times; port 0 takes\na free one"},
    {OPTION_UNIX, 'u', "unix", "PATH", "listen on a Unix socket, for the server's own user only"},
    {OPTION_HTTP, 0, "http", "HOST:PORT", "serve /metrics, /livez and /readyz there"},
    {OPTION_HTTP_HOST, 0, "http-host", "NAME",
        "a name of this server for HTTP, beside its addresses and localhost;\ncan be given several times"},
    {OPTION_THREADS, 't', "threads", "N", "loops that serve clients (0: one for each processor)"},
    {OPTION_DATABASES, 0, "databases", "N", "databases for SELECT (16; 1 with --maxmemory)"},
    {OPTION_LIFETIME, 0, "lifetime", "TIME",
        "how long a key with a deadline lives at most, whatever touches it: 12h;\nSET ... LIFETIME SECONDS says another"},
    {OPTION_LIFETIMES, 0, "lifetimes", NULL, "only keys with a LIFETIME of their own have one"},
    {OPTION_MEMORY, 0, "maxmemory", "BYTES", "the most that sessions take, such as 2G, divided among the databases"},
    {OPTION_POLICY, 0, "maxmemory-policy", "POLICY",
        "at that bound: noeviction refuses sets (the default), allkeys-lru evicts\nwhat is used least, volatile-lru only keys with deadlines"},
    {OPTION_BULK, 0, "proto-max-bulk-len", "BYTES", "the longest value (512M)"},
    {OPTION_CLIENTS, 0, "maxclients", "N", "the most clients at a time (10000)"},
    {OPTION_DATA, 'd', "data", "DIR", "keep sessions in this directory over a restart"},
    {OPTION_SAVE_EVERY, 0, "save-every", "TIME",
        "with --data: write changed sessions so often (60s), and at the end. A\ncrash loses what has changed since"},
    {OPTION_PASSWORD, 0, "requirepass-file", "FILE", "clients must say the password in the first line of this file"},
    {OPTION_INSECURE, 0, "insecure", NULL, "let other machines reach this server, which has no TLS"},
    {OPTION_CLOCK, 0, "clock", "CLOCK",
        "real (the default), or virtual: time stands still until the command\nADVANCE MILLISECONDS"},
    {OPTION_LOG_LEVEL, 0, "log-level", "LEVEL", "what to report: error, warning, info (the default), debug"},
    {OPTION_VERSION, 0, "version", NULL, "show the version"},
    {OPTION_HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTIONS = sizeof table / sizeof *table, PASSWORD_MAX = 512 };

static void help(void)
{
	fputs("Usage: weekwheel-sessiond [OPTION]...\n"
	      "\n"
	      "Keep sessions: values that expire exactly when they should. Every client of Redis can use it.\n"
	      "\n"
	      "Options:\n",
	    stdout);
	options_help(stdout, table, OPTIONS);
	fputs("\n"
	      "Example, a server of your own, and a session that ends after half an hour without use:\n"
	      "  weekwheel-sessiond --lifetime 12h &\n"
	      "  redis-cli -p 6380 set sess:1 '{\"user\":17}' EX 1800\n",
	    stdout);
}

static const char *name_of(int id)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (table[i].id == id)
			return table[i].name;
	return "";
}

static int bad(const struct options *options, int id, const char *expected)
{
	return options_bad_value(options, name_of(id), expected) ? -1 : -1;
}

/* ---- Options with a number */

static const struct number {
	int id;
	int is_bytes;
	uint64_t least;
	uint64_t most;
	uint64_t preset;
	size_t at;
	const char *expected;
} numbers[] = {
    {OPTION_THREADS, 0, 0, LOOPS_MAX, 0, offsetof(struct sessiond_settings, threads), "a whole number, 0 to 256"},
    {OPTION_DATABASES, 0, 1, DATA_DATABASES_MAX, 0, offsetof(struct sessiond_settings, databases),
        "a whole number, 1 to 64"},
    {OPTION_MEMORY, 1, 1 << 20, UINT64_C(1) << 50, 0, offsetof(struct sessiond_settings, memory),
        "bytes, at least 1M, as in 2G"},
    {OPTION_BULK, 1, 1 << 20, VALUE_MAX, VALUE_MAX, offsetof(struct sessiond_settings, bulk_max), "bytes, 1M to 512M"},
    {OPTION_CLIENTS, 0, 1, 10000000, 10000, offsetof(struct sessiond_settings, clients_max),
        "a whole number, at least 1"},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static uint64_t *number_at(struct sessiond_settings *settings, const struct number *number)
{
	return (uint64_t *)(void *)((char *)settings + number->at);
}

/* Returns 0, -1 after a message, or 1: it is another option. */
static int read_number(struct sessiond_settings *settings, const struct options *options, int id)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		const struct number *number = &numbers[i];
		int (*read)(const char *, uint64_t, uint64_t, uint64_t *) =
		    number->is_bytes ? options_bytes : options_whole;
		if (number->id != id)
			continue;
		return read(options->value, number->least, number->most, number_at(settings, number)) == 0
		           ? 0
		           : bad(options, id, number->expected);
	}
	return 1;
}

/* ---- Other options */

/* The index of a word, or -1. */
static int word_index(const char *value, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (names[i] && strcmp(value, names[i]) == 0)
			return i;
	return -1;
}

static int read_policy(struct sessiond_settings *settings, const struct options *options)
{
	static const char *const names[] = {
	    [DATA_NOEVICTION] = "noeviction", [DATA_ALLKEYS_LRU] = "allkeys-lru", [DATA_VOLATILE_LRU] = "volatile-lru"};
	int found = word_index(options->value, names, 3);

	if (found < 0)
		return bad(options, OPTION_POLICY, "noeviction, allkeys-lru or volatile-lru");
	settings->policy = (enum data_policy)found;
	return 0;
}

static int read_level(const struct options *options)
{
	static const char *const names[] = {[MESSAGE_ERROR] = "error",
	    [MESSAGE_WARNING] = "warning",
	    [MESSAGE_INFO] = "info",
	    [MESSAGE_DEBUG] = "debug"};
	int found = word_index(options->value, names, MESSAGE_DEBUG + 1);

	if (found < 0)
		return bad(options, OPTION_LOG_LEVEL, "error, warning, info or debug");
	message_level = (enum message_level)found;
	return 0;
}

static int read_clock(struct sessiond_settings *settings, const struct options *options)
{
	static const char *const names[] = {"real", "virtual"};
	int found = word_index(options->value, names, 2);

	if (found < 0)
		return bad(options, OPTION_CLOCK, "real or virtual");
	settings->is_virtual = found;
	return 0;
}

static int read_password(struct sessiond_settings *settings, const struct options *options)
{
	static char password[PASSWORD_MAX];
	FILE *file = fopen(options->value, "r");
	struct stat about;

	if (!file)
		return message_error("--requirepass-file %s: %s", options->value, strerror(errno));
	if (!fgets(password, sizeof password, file))
		*password = 0;
	if (fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) && about.st_mode & 077)
		message_warning("others may read %s: \"chmod 600\" keeps it secret", options->value);
	(void)fclose(file);
	password[strcspn(password, "\r\n")] = 0;
	if (!*password)
		return bad(options, OPTION_PASSWORD, "a file whose first line is the password");
	settings->password = password;
	return 0;
}

static int read_lifetime(struct sessiond_settings *settings, const struct options *options)
{
	struct duration_problem problem;

	if (duration_parse(options->value, &settings->lifetime, &problem) != 0 || settings->lifetime == 0)
		return bad(options, OPTION_LIFETIME, "a length of time, such as 12h or 7d");
	settings->has_lifetimes = 1;
	return 0;
}

static int read_save_every(struct sessiond_settings *settings, const struct options *options)
{
	struct duration_problem problem;

	if (duration_parse(options->value, &settings->save_every, &problem) != 0 ||
	    settings->save_every < DURATION_SECOND / 10)
		return bad(options, OPTION_SAVE_EVERY, "a length of time from 100ms on, such as 60s");
	return 0;
}

static int read_listen(struct sessiond_settings *settings, const struct options *options)
{
	const char *expected = address_check(options->value);

	if (!expected && settings->listen_count == SETTINGS_LISTEN_MAX)
		expected = "at most 16 addresses in all";
	if (expected)
		return bad(options, OPTION_LISTEN, expected);
	settings->listen[settings->listen_count++] = options->value;
	return 0;
}

/* Returns 0, -1 after a message, or 1: the program ends after help. */
static int read_other(struct sessiond_settings *settings, const struct options *options, int id)
{
	switch (id) {
	case OPTION_LISTEN:
		return read_listen(settings, options);
	case OPTION_UNIX:
		settings->unix_path = options->value;
		return strlen(options->value) < sizeof((struct sockaddr_un *)0)->sun_path
		           ? 0
		           : bad(options, id, "the path of a socket, at most 107 bytes");
	case OPTION_HTTP:
		settings->http = options->value;
		return address_check(options->value) ? bad(options, id, address_check(options->value)) : 0;
	case OPTION_HTTP_HOST:
		if (settings->http_host_count == SETTINGS_LISTEN_MAX)
			return bad(options, id, "at most 16 names");
		settings->http_hosts[settings->http_host_count++] = options->value;
		return 0;
	case OPTION_DATA:
		settings->folder = options->value;
		return *options->value ? 0 : bad(options, id, "a directory");
	case OPTION_SAVE_EVERY:
		return read_save_every(settings, options);
	case OPTION_LIFETIME:
		return read_lifetime(settings, options);
	case OPTION_LIFETIMES:
		settings->has_lifetimes = 1;
		return 0;
	case OPTION_POLICY:
		return read_policy(settings, options);
	case OPTION_PASSWORD:
		return read_password(settings, options);
	case OPTION_INSECURE:
		settings->is_insecure = 1;
		return 0;
	case OPTION_CLOCK:
		return read_clock(settings, options);
	case OPTION_LOG_LEVEL:
		return read_level(options);
	case OPTION_VERSION:
		printf("weekwheel-sessiond %s\n", ww_version());
		return 1;
	default:
		help();
		return 1;
	}
}

static int read_option(struct sessiond_settings *settings, const struct options *options, int id)
{
	int result;

	if (id == OPTIONS_ERROR)
		return -1;
	if (id == OPTIONS_OPERAND)
		return options_fail(
		    options, "'%s': expected only options, such as --listen 127.0.0.1:6380", options->value);
	settings->given |= UINT64_C(1) << id;
	result = options->value ? read_number(settings, options, id) : 1;
	return result <= 0 ? result : read_other(settings, options, id);
}

static int check(struct sessiond_settings *settings)
{
	if (settings->given >> OPTION_POLICY & 1 && !settings->memory)
		return message_error("--maxmemory-policy needs --maxmemory");
	if (settings->save_every && !settings->folder)
		return message_error("--save-every needs --data");
	if (!settings->save_every)
		settings->save_every = 60 * DURATION_SECOND;
	if (!settings->databases)
		settings->databases = settings->memory ? 1 : 16;
	if (!settings->listen_count && !settings->unix_path)
		settings->listen[settings->listen_count++] = "127.0.0.1:6380";
	return 0;
}

int sessiond_settings_read(struct sessiond_settings *settings, char **arguments)
{
	static const int repeats[] = {OPTION_LISTEN, OPTION_HTTP_HOST, 0};
	struct options options = {.command = "weekwheel-sessiond",
	    .table = table,
	    .count = OPTIONS,
	    .arguments = arguments,
	    .repeats = repeats};
	int result = 0;
	int id;

	memset(settings, 0, sizeof *settings);
	for (size_t i = 0; i < NUMBERS; i++)
		*number_at(settings, &numbers[i]) = numbers[i].preset;
	while (result == 0 && (id = options_next(&options)) != OPTIONS_END)
		result = read_option(settings, &options, id);
	if (result > 0)
		return 1;
	return result == 0 && check(settings) == 0 ? 0 : 3;
}
