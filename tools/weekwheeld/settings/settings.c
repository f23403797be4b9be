/* The table of all options with their help, and how a command line and a configuration file are read. */
#include "tools/weekwheeld/settings/settings.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/common/message.h"
#include "tools/service/address.h"
#include "tools/weekwheeld/settings/read.h"
#include "weekwheel/version.h"

static const struct option table[] = {
    {OPTION_DATA, 'd', "data", "DIR", "the folder in which jobs are kept; made if missing"},
    {OPTION_MEMORY, 'm', "memory", NULL, "keep jobs only in memory, until the server ends"},
    {OPTION_STORE, 's', "store", "URL",
        "keep jobs in Redis, for several servers: redis://HOST:PORT/,\nredis://HOST:PORT,HOST:PORT for a cluster, or unix:///PATH"},
    {OPTION_STORE_FILE, 0, "store-file", "FILE", "read that URL from a file, to hide its password"},
    {OPTION_LISTEN, 'l', "listen", "HOST:PORT",
        "where to listen (127.0.0.1:11300); tls:HOST:PORT with TLS; can be given\nseveral times; port 0 takes a free one"},
    {OPTION_TLS_CERT, 0, "tls-cert", "FILE",
        "the certificate, in PEM, for --listen tls:HOST:PORT; read again on SIGHUP"},
    {OPTION_TLS_KEY, 0, "tls-key", "FILE", "its key (in the file of the certificate)"},
    {OPTION_TLS_CLIENT_CA, 0, "tls-client-ca", "FILE", "clients need a certificate that one of these has signed"},
    {OPTION_UNIX, 'u', "unix", "PATH", "listen on a Unix socket, for the server's own user only"},
    {OPTION_SOCKET_MODE, 0, "socket-mode", "MODE", "the mode of that socket, such as 0660 (0600)"},
    {OPTION_SOCKET_GROUP, 0, "socket-group", "NAME", "the group of that socket"},
    {OPTION_AUTH_FILE, 0, "auth-file", "FILE",
        "clients need a token, and this says what each may do; lines are made\nby \"weekwheel token\"; read again on SIGHUP"},
    {OPTION_INSECURE, 0, "insecure", NULL, "let other machines reach this server without TLS or without tokens"},
    {OPTION_HTTP, 0, "http", "HOST:PORT",
        "a page for a browser, the jobs as JSON under /v1/,\n/metrics, /livez, /readyz; tls:HOST:PORT with TLS"},
    {OPTION_HTTP_HOST, 0, "http-host", "NAME",
        "a name by which --http is reached, such as jobs.example.org;\ncan be given several times"},
    {OPTION_SYNC, 0, "sync", "WHEN",
        "always (the default): an answer means stable storage;\ninterval: sync at regular intervals; system: when the system does"},
    {OPTION_SYNC_INTERVAL, 0, "sync-interval", "TIME", "with --sync interval: the interval (50ms)"},
    {OPTION_DOWNTIME, 0, "max-downtime", "TIME", "how long the clock may say that the machine was off (30d)"},
    {OPTION_DISK, 0, "max-disk", "BYTES", "refuse new jobs when the folder takes so much, such as 10G (a full disk)"},
    {OPTION_JOB_SIZE, 'z', "max-job-size", "BYTES", "the longest body of a job (65535)"},
    {OPTION_CONNECTIONS, 0, "max-connections", "N", "the most clients at a time (0: as \"ulimit -n\" allows)"},
    {OPTION_PER_ADDRESS, 0, "max-connections-per-address", "N", "the most of these from one address (0: any)"},
    {OPTION_MAX_MEMORY, 0, "max-memory", "BYTES",
        "refuse new jobs and tubes when jobs and clients take so much memory\n(three quarters of the machine's)"},
    {OPTION_BUFFERS, 0, "max-buffers", "BYTES",
        "the most that commands and answers of all clients take (268435456);\nbeyond it the client with the most of them ends"},
    {OPTION_WATCHED, 0, "max-watched", "N", "the most tubes that a client watches (10000)"},
    {OPTION_TUBES, 0, "max-tubes", "N", "the most tubes in all (100000)"},
    {OPTION_JOBS, 0, "max-jobs", "N", "refuse new jobs when there are so many (0: any number)"},
    {OPTION_TUBE_JOBS, 0, "max-tube-jobs", "N", "refuse new jobs of a tube that has so many (0: any number)"},
    {OPTION_HISTORY, 0, "max-history", "N",
        "keep so many runs of jobs that ask for it, then forget the oldest\n(10000); 0: none"},
    {OPTION_OUTPUT, 0, "max-output", "BYTES", "the most answers a client may leave unread (4194304)"},
    {OPTION_REDIS_PREFIX, 0, "redis-prefix", "NAME", "the beginning of each key in Redis (weekwheel)"},
    {OPTION_REDIS_SHARDS, 0, "redis-shards", "N", "the number of parts of a new store (16)"},
    {OPTION_REDIS_REPLICAS, 0, "redis-replicas", "N", "replicas that must have a job before its put is answered (0)"},
    {OPTION_REDIS_LEASE, 0, "redis-lease", "TIME", "after this silence others take over a server's work (6s)"},
    {OPTION_REDIS_TIMEOUT, 0, "redis-timeout", "TIME", "how long to wait for an answer of Redis (2s)"},
    {OPTION_PUSH, 'p', "push", "TUBE,...", "deliver the jobs of these tubes as HTTP requests"},
    {OPTION_PUSH_IN_FLIGHT, 0, "push-in-flight", "N", "the most requests at a time (256)"},
    {OPTION_PUSH_PER_HOST, 0, "push-per-host", "N", "the most of these to one address (16)"},
    {OPTION_PUSH_TIMEOUT, 0, "push-timeout", "TIME", "how long a request may take, or the job's time to run (30s)"},
    {OPTION_PUSH_ATTEMPTS, 0, "push-attempts", "N", "attempts of a job without a limit of its own (25); 0: no limit"},
    {OPTION_PUSH_REST_AFTER, 0, "push-rest-after", "N",
        "let a host rest after so many requests without an answer (5); 0: never"},
    {OPTION_PUSH_CONNECT_TIMEOUT, 0, "push-connect-timeout", "TIME", "how long a connection may take (5s)"},
    {OPTION_PUSH_GRACE, 0, "push-grace", "TIME", "how long requests may still take when the server ends (10s)"},
    {OPTION_PUSH_SUCCESS, 0, "push-success", "STATUS,...", "statuses that count as success, in addition to 2xx"},
    {OPTION_PUSH_NETWORKS, 0, "push-networks", "WHICH,...",
        "what may be called in addition to public addresses: loopback,\nprivate, link-local, special, ranges such as 10.1.0.0/16"},
    {OPTION_PUSH_DENY, 0, "push-deny", "RANGE,...", "what may not be called, whatever other options say"},
    {OPTION_PUSH_SCHEMES, 0, "push-schemes", "SCHEME,...", "http, https (both)"},
    {OPTION_PUSH_SECRET_FILE, 0, "push-secret-file", "FILE", "sign requests with the secret in this file"},
    {OPTION_PUSH_CA_FILE, 0, "push-ca-file", "FILE", "certificates to trust instead of the system's"},
    {OPTION_CLOCK, 0, "clock", "CLOCK",
        "real (the default), or virtual: time stands still until the verb\n\"advance\"; virtual:SECONDS: this much has passed at the start"},
    {OPTION_CONFIG, 'c', "config", "FILE", "read options from a file, one \"name = value\" a line"},
    {OPTION_LOG_LEVEL, 0, "log-level", "LEVEL", "what to report: error, warning, info (the default), debug"},
    {OPTION_LOG_FORMAT, 0, "log-format", "FORMAT", "text (the default), or json: an object a line"},
    {OPTION_VERBOSE, 'v', "verbose", NULL, "the same as --log-level debug: also clients that come and go"},
    {OPTION_VERSION, 0, "version", NULL, "show the version"},
    {OPTION_HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTIONS = sizeof table / sizeof *table, CONFIG_MAX = 65536 };

_Static_assert(OPTION_END <= 64, "each option has a bit of what was given");

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
	options_help(stdout, table, OPTIONS);
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

/* Return the option's index in the table. */
static int index_of(int id)
{
	int i = 0;

	while (table[i].id != id)
		i++;
	return i;
}

const char *settings_name(int id)
{
	return table[index_of(id)].name;
}

int settings_has(const struct settings *settings, int id)
{
	return (settings->given >> id & 1) != 0;
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
		return settings_bad(options, id, table[index_of(id)].argument);
	result = settings_number(settings, options, id);
	return result <= 0 ? result : read_other(settings, options, id);
}

static const int repeats[] = {OPTION_LISTEN, OPTION_HTTP_HOST, OPTION_PUSH, OPTION_PUSH_SUCCESS, OPTION_PUSH_NETWORKS,
    OPTION_PUSH_DENY, OPTION_PUSH_SCHEMES, 0};

static int read_arguments(struct settings *settings, char **arguments)
{
	struct options options = {
	    .command = "weekwheeld", .table = table, .count = OPTIONS, .arguments = arguments, .repeats = repeats};
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
