/* The command line, and a file with the same options. */
#include "tools/weekwheeld/settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tools/common/message.h"
#include "tools/weekwheeld/settings/address.h"
#include "tools/weekwheeld/settings/part.h"
#include "weekwheel/driver.h"
#include "weekwheel/version.h"

static const struct option table[] = {
    {OPTION_DATA, 'd', "data", "DIR", "the folder in which jobs are kept; made if missing"},
    {OPTION_MEMORY, 'm', "memory", NULL, "keep jobs in memory alone, until the server ends"},
    {OPTION_STORE, 's', "store", "URL",
        "keep jobs in Redis, for several servers: redis://HOST:PORT/,\nof a cluster redis://HOST:PORT,HOST:PORT, or unix:///PATH"},
    {OPTION_STORE_FILE, 0, "store-file", "FILE", "read that URL from a file, lest a password be seen"},
    {OPTION_LISTEN, 'l', "listen", "HOST:PORT",
        "where to listen; 127.0.0.1:11300; can be given several times;\nport 0 takes a free one"},
    {OPTION_UNIX, 'u', "unix", "PATH", "listen on a Unix socket, for the server's own user alone"},
    {OPTION_HTTP, 0, "http", "HOST:PORT", "serve /metrics, /healthz, /list and /forecast"},
    {OPTION_SYNC, 0, "sync", "WHEN",
        "always (the default): an answer means stable storage;\ninterval: synced every so often; system: when the system does"},
    {OPTION_SYNC_INTERVAL, 0, "sync-interval", "SECONDS", "with --sync interval; 0.05"},
    {OPTION_JOB_SIZE, 'z', "max-job-size", "BYTES", "of a job's body, at most; 65535"},
    {OPTION_CONNECTIONS, 0, "max-connections", "N", "clients at a time; 0, the default: by \"ulimit -n\""},
    {OPTION_OUTPUT, 0, "max-output", "BYTES", "answers that a client may leave unread; 4194304"},
    {OPTION_REDIS_PREFIX, 0, "redis-prefix", "NAME", "what each key in Redis begins with; weekwheel"},
    {OPTION_REDIS_SHARDS, 0, "redis-shards", "N", "parts of the store, when it is made; 16"},
    {OPTION_REDIS_LEASE, 0, "redis-lease", "SECONDS", "a server unheard of for so long is stood in for; 6"},
    {OPTION_REDIS_TIMEOUT, 0, "redis-timeout", "SECONDS", "how long an answer of Redis is waited for; 2"},
    {OPTION_PUSH, 'p', "push", "TUBE,...", "deliver the jobs of these tubes as HTTP requests"},
    {OPTION_PUSH_IN_FLIGHT, 0, "push-in-flight", "N", "requests at a time; 256"},
    {OPTION_PUSH_PER_HOST, 0, "push-per-host", "N", "of these to one host; 16"},
    {OPTION_PUSH_TIMEOUT, 0, "push-timeout", "SECONDS", "of a request, at most; the job's time to run"},
    {OPTION_PUSH_CONNECT_TIMEOUT, 0, "push-connect-timeout", "SECONDS", "until it is connected; 5"},
    {OPTION_PUSH_GRACE, 0, "push-grace", "SECONDS", "at the end, how long requests may still take; 10"},
    {OPTION_PUSH_SUCCESS, 0, "push-success", "STATUS,...", "statuses that are success, beside 2xx"},
    {OPTION_PUSH_NETWORKS, 0, "push-networks", "WHICH,...",
        "what may be called beside public addresses: loopback,\nprivate, link-local, special, ranges such as 10.1.0.0/16"},
    {OPTION_PUSH_DENY, 0, "push-deny", "RANGE,...", "what may not be called, whatever else is said"},
    {OPTION_PUSH_SCHEMES, 0, "push-schemes", "SCHEME,...", "http, https; both"},
    {OPTION_PUSH_SECRET_FILE, 0, "push-secret-file", "FILE", "sign requests with the secret in this file"},
    {OPTION_PUSH_CA_FILE, 0, "push-ca-file", "FILE", "certificates to trust instead of the system's"},
    {OPTION_CLOCK, 0, "clock", "CLOCK",
        "real (the default), or virtual: time stands still until the\nverb \"advance\"; with virtual:SECONDS, so much has passed at the start"},
    {OPTION_CONFIG, 'c', "config", "FILE", "read options from a file, one \"name = value\" a line"},
    {OPTION_VERBOSE, 'v', "verbose", NULL, "say who comes and goes"},
    {OPTION_VERSION, 0, "version", NULL, "show the version"},
    {OPTION_HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTIONS = sizeof table / sizeof *table, FILE_MAX = 65536 };

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

static void settings_default(struct settings *settings)
{
	memset(settings, 0, sizeof *settings);
	settings->sync = WW_SYNC_ALWAYS;
	settings->sync_ns = 50 * WW_MILLISECOND;
	settings->max_job_size = 65535;
	settings->max_output = 4 << 20;
	settings_redis_default(settings);
	settings_push_default(settings);
}

struct span settings_span(const char *text)
{
	return (struct span){text, text + strlen(text)};
}

static int read_sync(struct settings *settings, const char *value)
{
	static const char *const names[] = {"always", "interval", "system"};
	unsigned i;

	for (i = 0; i < 3; i++) {
		if (strcmp(value, names[i]) == 0) {
			settings->sync = (enum ww_jobs_sync)i;
			return 0;
		}
	}
	return -1;
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

static int read_listen(struct settings *settings, const struct options *options)
{
	const char *expected = address_check(options->value);

	if (!expected && settings->listen_count == SETTINGS_LISTEN_MAX)
		expected = "at most 16 addresses in all";
	if (expected)
		return settings_bad(options, OPTION_LISTEN, expected);
	settings->listen[settings->listen_count++] = options->value;
	return 0;
}

/* Where it stands in the table. */
static int index_of(int id)
{
	int i;

	for (i = 0; i < OPTIONS && table[i].id != id; i++)
		;
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

int settings_bad(const struct options *options, int id, const char *expected)
{
	(void)options_bad_value(options, settings_name(id), expected);
	return -1;
}

int settings_bad_file(const struct options *options, int id, const char *expected, const char *reason)
{
	char text[300];

	snprintf(text, sizeof text, "a file with %s: %s", expected, reason);
	return settings_bad(options, id, text);
}

static int read_config(struct settings *settings, const struct options *options);

/*
 * One option, of the command line or of a file, that has no number. Returns 0, -1 after a message, 1 to end after help
 * or a version.
 */
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
	case OPTION_HTTP:
		settings->http = value;
		return address_check(value) ? settings_bad(options, id, address_check(value)) : 0;
	case OPTION_SYNC:
		return read_sync(settings, value) == 0 ? 0 : settings_bad(options, id, "always, interval or system");
	case OPTION_CLOCK:
		return read_clock(settings, value) == 0 ? 0
		                                        : settings_bad(options, id, "real, virtual or virtual:SECONDS");
	case OPTION_CONFIG:
		return read_config(settings, options);
	case OPTION_VERBOSE:
		settings->is_verbose = 1;
		return 0;
	case OPTION_VERSION:
		printf("weekwheeld %s\n", ww_version());
		return 1;
	case OPTION_HELP:
		settings_help();
		return 1;
	default:
		return id >= OPTION_PUSH ? settings_push_option(settings, options, id)
		                         : settings_redis_option(settings, options, id);
	}
}

static int read_option(struct settings *settings, const struct options *options, int id)
{
	int result;

	if (id == OPTIONS_ERROR)
		return -1;
	if (id == OPTIONS_OPERAND) {
		message_line("weekwheeld: '%s': expected options alone, such as --data DIR\nTry 'weekwheeld --help'.",
		    options->value);
		return -1;
	}
	settings->given |= UINT64_C(1) << id;
	if (options->value && !*options->value)
		return settings_bad(options, id, table[index_of(id)].argument);
	result = settings_number(settings, options, id);
	return result <= 0 ? result : read_other(settings, options, id);
}

static int read_arguments(struct settings *settings, char **arguments)
{
	struct options options = {.command = "weekwheeld", .table = table, .count = OPTIONS, .arguments = arguments};
	int result = 0;
	int id;

	while (result == 0 && (id = options_next(&options)) != OPTIONS_END)
		result = read_option(settings, &options, id);
	return result;
}

/* Lines of files and parts of options; kept for the life of the program, because settings point into them. */
struct settings_line {
	struct settings_line *next;
	char text[];
};

static struct settings_line *lines;

static struct settings_line *line_make(size_t size)
{
	struct settings_line *line = calloc(1, sizeof *line + size);

	if (!line)
		return NULL;
	line->next = lines;
	lines = line;
	return line;
}

char *settings_keep(const char *text)
{
	struct settings_line *line = line_make(strlen(text) + 1);

	return line ? strcpy(line->text, text) : NULL;
}

const char *settings_line(const struct options *options, int id, const char *what)
{
	const char *path = options->value;
	FILE *file = fopen(path, "r");
	struct settings_line *line = line_make(FILE_MAX);
	struct stat about;
	char *text = NULL;
	int error = errno;

	if (file && line && fgets(line->text, FILE_MAX, file))
		text = line->text;
	else if (file)
		error = ferror(file) ? errno : 0;
	if (file && fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) && about.st_mode & 077)
		message_line("weekwheeld: warning: others may read %s: \"chmod 600\" keeps it secret", path);
	if (file)
		fclose(file);
	if (text)
		text[strcspn(text, "\r\n")] = 0;
	if (text && *text)
		return text;
	(void)settings_bad_file(options, id, what, text || !error ? "its first line is empty" : strerror(error));
	return NULL;
}

/* Make "--name=value" of "name = value"; NULL for an empty line, a comment, or without memory. */
static char *line_option(char *text)
{
	char *end = text + strlen(text);
	char *equals;
	char *value;
	struct settings_line *line;

	while (end > text && strchr(" \t\r", end[-1]))
		*--end = 0;
	text += strspn(text, " \t");
	if (*text == 0 || *text == '#')
		return NULL;
	line = line_make(strlen(text) + 4);
	if (!line)
		return NULL;
	equals = strchr(text, '=');
	if (!equals) {
		sprintf(line->text, "--%s", text);
		return line->text;
	}
	value = equals + 1 + strspn(equals + 1, " \t");
	while (equals > text && strchr(" \t", equals[-1]))
		equals--;
	sprintf(line->text, "--%.*s=%s", (int)(equals - text), text, value);
	return line->text;
}

static int read_lines(struct settings *settings, const char *path, char *text)
{
	char *next;
	int number = 0;
	int result = 0;

	for (; text && result == 0; text = next) {
		char *arguments[2] = {NULL, NULL};

		number++;
		next = strchr(text, '\n');
		if (next)
			*next++ = 0;
		arguments[0] = line_option(text);
		if (!arguments[0])
			continue;
		if (strncmp(arguments[0], "--config", 8) == 0) {
			message_line("weekwheeld: a configuration file cannot name another");
			result = -1;
		} else {
			result = read_arguments(settings, arguments);
		}
		if (result < 0)
			message_line("weekwheeld: that is line %d of %s", number, path);
	}
	return result;
}

static int read_config(struct settings *settings, const struct options *options)
{
	FILE *file = fopen(options->value, "r");
	char *text = calloc(1, FILE_MAX);
	size_t size = file && text ? fread(text, 1, FILE_MAX, file) : 0;
	int error = errno;
	int result;

	if (!file || !text || ferror(file))
		result = settings_bad_file(options, OPTION_CONFIG, "options", strerror(error));
	else if (size == FILE_MAX)
		result = settings_bad_file(options, OPTION_CONFIG, "options", "it has more than 64 KiB");
	else
		result = read_lines(settings, options->value, text);
	if (file)
		fclose(file);
	/* The values are in the lines that were made of it. */
	free(text);
	return result;
}

int settings_read(struct settings *settings, char **arguments)
{
	int result;

	settings_default(settings);
	result = read_arguments(settings, arguments);
	if (result > 0)
		return 1;
	return result == 0 && settings_check(settings) == 0 ? 0 : 3;
}
