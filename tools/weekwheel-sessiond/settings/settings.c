/* The table of all options with their help, and reading a command line. */
#include "tools/weekwheel-sessiond/settings/settings.h"

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
	OPTION_KEEP_LIFETIMES,
	OPTION_MEMORY,
	OPTION_POLICY,
	OPTION_BULK,
	OPTION_CLIENTS,
	OPTION_PER_ADDRESS,
	OPTION_BUFFERS,
	OPTION_DATA,
	OPTION_EXPIRED_TO,
	OPTION_EXPIRED_MAX,
	OPTION_EXPIRED_CA,
	OPTION_EXPIRED_TOKEN,
	OPTION_SYNC,
	OPTION_SYNC_INTERVAL,
	OPTION_RECOVER,
	OPTION_PASSWORD,
	OPTION_AUTH_FILE,
	OPTION_TLS_CERT,
	OPTION_TLS_KEY,
	OPTION_TLS_CLIENT_CA,
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
        "where to listen (127.0.0.1:6380); tls:HOST:PORT with TLS; can be given\nseveral times; port 0 takes a free one"},
    {OPTION_UNIX, 'u', "unix", "PATH", "listen on a Unix socket, for the server's own user only"},
    {OPTION_HTTP, 0, "http", "HOST:PORT",
        "serve a page for a browser, /metrics, /livez and /readyz there;\ntls:HOST:PORT with TLS"},
    {OPTION_HTTP_HOST, 0, "http-host", "NAME",
        "a name of this server for HTTP, beside its addresses and localhost;\ncan be given several times"},
    {OPTION_THREADS, 't', "threads", "N", "loops that serve clients (0: one for each processor)"},
    {OPTION_DATABASES, 0, "databases", "N", "databases for SELECT (16; 1 with --maxmemory)"},
    {OPTION_LIFETIME, 0, "lifetime", "TIME",
        "how long a key with a deadline lives at most, whatever touches it: 12h;\nSET ... LIFETIME SECONDS says another"},
    {OPTION_LIFETIMES, 0, "lifetimes", NULL, "only keys with a LIFETIME of their own have one"},
    {OPTION_KEEP_LIFETIMES, 0, "keep-lifetimes", NULL,
        "a SET of a key that is there goes on with its lifetime: most libraries\nset a session again when it changes"},
    {OPTION_MEMORY, 0, "maxmemory", "BYTES", "the most that sessions take, such as 2G, divided among the databases"},
    {OPTION_POLICY, 0, "maxmemory-policy", "POLICY",
        "at that bound: noeviction refuses sets (the default), allkeys-lru evicts\nwhat is used least, volatile-lru only keys with deadlines"},
    {OPTION_BULK, 0, "proto-max-bulk-len", "BYTES", "the longest value (512M)"},
    {OPTION_CLIENTS, 0, "maxclients", "N", "the most clients at a time (10000)"},
    {OPTION_PER_ADDRESS, 0, "max-connections-per-address", "N", "the most of these from one address (0: any)"},
    {OPTION_BUFFERS, 0, "max-buffers", "BYTES",
        "the most that commands and answers of all clients take (1G);\nbeyond it the clients with the most of them are closed"},
    {OPTION_DATA, 'd', "data", "DIR", "keep sessions in this directory over a restart"},
    {OPTION_EXPIRED_TO, 0, "expired-to", "URL",
        "make a job of each key that expires or is evicted, at weekwheeld or\nbeanstalkd: beanstalk://HOST:PORT/TUBE, beanstalks:// with TLS"},
    {OPTION_EXPIRED_MAX, 0, "expired-max", "BYTES",
        "the most that such keys take while they wait for that server (256M)"},
    {OPTION_EXPIRED_CA, 0, "expired-ca", "FILE", "certificates to trust there instead of the system's"},
    {OPTION_EXPIRED_TOKEN, 0, "expired-token-file", "FILE", "say the token in this file there"},
    {OPTION_SYNC, 0, "sync", "WHEN",
        "always: an answer means stable storage; interval (the default): a power\nfailure loses what an interval has changed; system: when the system does"},
    {OPTION_SYNC_INTERVAL, 0, "sync-interval", "TIME", "with --sync interval: the interval (1s)"},
    {OPTION_RECOVER, 0, "recover", NULL,
        "of a damaged directory load what is whole; the files as they were\ngo to DIR/damaged"},
    {OPTION_PASSWORD, 0, "requirepass-file", "FILE", "clients must say the password in the first line of this file"},
    {OPTION_AUTH_FILE, 0, "auth-file", "FILE",
        "clients need a token, and this says what each may do; lines are made\nby \"weekwheel token\"; read again on SIGHUP"},
    {OPTION_TLS_CERT, 0, "tls-cert", "FILE",
        "the certificate, in PEM, for --listen tls:HOST:PORT; read again on SIGHUP"},
    {OPTION_TLS_KEY, 0, "tls-key", "FILE", "its key (in the file of the certificate)"},
    {OPTION_TLS_CLIENT_CA, 0, "tls-client-ca", "FILE", "clients need a certificate that one of these has signed"},
    {OPTION_INSECURE, 0, "insecure", NULL, "let other machines reach this server without TLS or without tokens"},
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
    {OPTION_EXPIRED_MAX, 1, 1 << 20, UINT64_C(1) << 40, UINT64_C(256) << 20,
        offsetof(struct sessiond_settings, outbox_max), "bytes, at least 1M, as in 256M"},
    {OPTION_BULK, 1, 1 << 20, VALUE_MAX, VALUE_MAX, offsetof(struct sessiond_settings, bulk_max), "bytes, 1M to 512M"},
    {OPTION_CLIENTS, 0, 1, 10000000, 10000, offsetof(struct sessiond_settings, clients_max),
        "a whole number, at least 1"},
    {OPTION_PER_ADDRESS, 0, 0, 10000000, 0, offsetof(struct sessiond_settings, per_address_max), "a whole number"},
    {OPTION_BUFFERS, 1, 1 << 20, UINT64_C(1) << 50, UINT64_C(1) << 30, offsetof(struct sessiond_settings, buffers_max),
        "bytes, at least 1M, as in 1G"},
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

/* Read the first line of a file that is to be secret. Returns 0, or -1 after a message. */
static int read_secret(const struct options *options, int id, char secret[PASSWORD_MAX], const char *expected)
{
	FILE *file = fopen(options->value, "r");
	struct stat about;

	if (!file)
		return message_error("--%s %s: %s", name_of(id), options->value, strerror(errno));
	if (!fgets(secret, PASSWORD_MAX, file))
		*secret = 0;
	if (fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) && about.st_mode & 077)
		message_warning("others may read %s: \"chmod 600\" keeps it secret", options->value);
	(void)fclose(file);
	secret[strcspn(secret, "\r\n")] = 0;
	return *secret ? 0 : bad(options, id, expected);
}

static int read_password(struct sessiond_settings *settings, const struct options *options)
{
	static char password[PASSWORD_MAX];

	settings->password = password;
	return read_secret(options, OPTION_PASSWORD, password, "a file whose first line is the password");
}

static int read_tokens(struct sessiond_settings *settings, const struct options *options)
{
	char why[TOKEN_WHY];

	settings->auth_file = options->value;
	settings->tokens = tokens_read(options->value, why);
	return settings->tokens ? 0 : message_error("--auth-file '%s': %s", options->value, why);
}

/* What --expired-to and its kin say. A token with a blank could end the command. */
static int read_courier(struct sessiond_settings *settings, const struct options *options, int id)
{
	static char token[PASSWORD_MAX];
	struct courier_config *courier = &settings->courier;
	const char *expected;

	switch (id) {
	case OPTION_EXPIRED_TO:
		settings->is_telling = 1;
		expected = beanstalk_read(options->value, &courier->address);
		return expected ? bad(options, id, expected) : 0;
	case OPTION_EXPIRED_CA:
		courier->tls.trusted = options->value;
		return 0;
	default:
		expected = "a file whose first line is a token, as 'weekwheel token' makes it";
		courier->token = token;
		if (read_secret(options, id, token, expected) != 0)
			return -1;
		return token[strcspn(token, " \t")] ? bad(options, id, expected) : 0;
	}
}

static int read_lifetime(struct sessiond_settings *settings, const struct options *options)
{
	struct duration_problem problem;

	if (duration_parse(options->value, &settings->lifetime, &problem) != 0 || settings->lifetime == 0)
		return bad(options, OPTION_LIFETIME, "a length of time, such as 12h or 7d");
	settings->has_lifetimes = 1;
	return 0;
}

static int read_sync(struct sessiond_settings *settings, const struct options *options)
{
	static const char *const names[] = {
	    [KEEP_ALWAYS] = "always", [KEEP_INTERVAL] = "interval", [KEEP_SYSTEM] = "system"};
	int found = word_index(options->value, names, 3);

	if (found < 0)
		return bad(options, OPTION_SYNC, "always, interval or system");
	settings->sync = (enum keep_sync)found;
	return 0;
}

static int read_sync_interval(struct sessiond_settings *settings, const struct options *options)
{
	struct duration_problem problem;

	if (duration_parse(options->value, &settings->sync_interval, &problem) != 0 ||
	    settings->sync_interval < DURATION_SECOND / 1000 || settings->sync_interval > 3600 * DURATION_SECOND)
		return bad(options, OPTION_SYNC_INTERVAL, "a length of time from 1ms to 1h, such as 1s");
	return 0;
}

static int read_listen(struct sessiond_settings *settings, const struct options *options)
{
	int is_tls = address_is_tls(options->value);
	const char *expected = address_check(options->value + (is_tls ? ADDRESS_TLS_PREFIX : 0));

	settings->has_tls_listener |= is_tls;
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
	const char *expected;
	int is_tls;

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
		is_tls = address_is_tls(options->value);
		settings->has_tls_listener |= is_tls;
		expected = address_check(options->value + (is_tls ? ADDRESS_TLS_PREFIX : 0));
		return expected ? bad(options, id, expected) : 0;
	case OPTION_HTTP_HOST:
		if (settings->http_host_count == SETTINGS_LISTEN_MAX)
			return bad(options, id, "at most 16 names");
		settings->http_hosts[settings->http_host_count++] = options->value;
		return 0;
	case OPTION_DATA:
		settings->folder = options->value;
		return *options->value ? 0 : bad(options, id, "a directory");
	case OPTION_SYNC:
		return read_sync(settings, options);
	case OPTION_SYNC_INTERVAL:
		return read_sync_interval(settings, options);
	case OPTION_RECOVER:
		settings->recovers = 1;
		return 0;
	case OPTION_LIFETIME:
		return read_lifetime(settings, options);
	case OPTION_LIFETIMES:
		settings->has_lifetimes = 1;
		return 0;
	case OPTION_KEEP_LIFETIMES:
		settings->keeps_lifetimes = 1;
		return 0;
	case OPTION_POLICY:
		return read_policy(settings, options);
	case OPTION_PASSWORD:
		return read_password(settings, options);
	case OPTION_EXPIRED_TO:
	case OPTION_EXPIRED_CA:
	case OPTION_EXPIRED_TOKEN:
		return read_courier(settings, options, id);
	case OPTION_AUTH_FILE:
		return read_tokens(settings, options);
	case OPTION_TLS_CERT:
		settings->tls.certificate = options->value;
		return 0;
	case OPTION_TLS_KEY:
		settings->tls.key = options->value;
		return 0;
	case OPTION_TLS_CLIENT_CA:
		settings->tls.trusted = options->value;
		return 0;
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

static int check_tls(const struct sessiond_settings *settings)
{
	if (settings->has_tls_listener && !settings->tls.certificate)
		return message_error("tls:HOST:PORT needs a certificate: give --tls-cert FILE, too");
	if ((settings->tls.certificate || settings->tls.key || settings->tls.trusted) && !settings->has_tls_listener)
		return message_error(
		    "--tls-cert, --tls-key and --tls-client-ca are for --listen tls:HOST:PORT or --http tls:HOST:PORT");
	if (settings->password && settings->auth_file)
		return message_error("--requirepass-file and --auth-file: give one of them");
	return 0;
}

static int check(struct sessiond_settings *settings)
{
	if (check_tls(settings) != 0)
		return -1;
	if (settings->given >> OPTION_POLICY & 1 && !settings->memory)
		return message_error("--maxmemory-policy needs --maxmemory");
	if (settings->keeps_lifetimes && !settings->has_lifetimes)
		return message_error("--keep-lifetimes needs --lifetime or --lifetimes");
	for (int id = OPTION_EXPIRED_MAX; id <= OPTION_EXPIRED_TOKEN; id++)
		if (settings->given >> id & 1 && !settings->is_telling)
			return message_error("--%s needs --expired-to", name_of(id));
	if ((settings->given >> OPTION_SYNC & 1 || settings->sync_interval || settings->recovers) && !settings->folder)
		return message_error("--sync, --sync-interval and --recover need --data");
	if (settings->sync_interval && settings->sync != KEEP_INTERVAL)
		return message_error("--sync-interval is for --sync interval");
	if (!settings->sync_interval)
		settings->sync_interval = DURATION_SECOND;
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
	settings->courier.token = "";
	settings->sync = KEEP_INTERVAL;
	for (size_t i = 0; i < NUMBERS; i++)
		*number_at(settings, &numbers[i]) = numbers[i].preset;
	while (result == 0 && (id = options_next(&options)) != OPTIONS_END)
		result = read_option(settings, &options, id);
	if (result > 0)
		return 1;
	return result == 0 && check(settings) == 0 ? 0 : 3;
}
