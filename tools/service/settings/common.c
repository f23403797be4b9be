/* The options that every server has. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/service/net/address.h"
#include "tools/service/net/certificate.h"
#include "tools/service/settings/settings.h"

/* ---- Where it listens */

/* Returns NULL, or what was expected. */
static const char *check_address(const char *text)
{
	return address_check(text + (address_is_tls(text) ? ADDRESS_TLS_PREFIX : 0));
}

static int read_listen(void *to, const struct given *given)
{
	struct service_settings *settings = to;
	const char *expected = check_address(given->value);

	return expected ? settings_bad(given, expected)
	                : settings_add(given, settings->listen, &settings->listen_count, SETTINGS_LISTEN_MAX);
}

static int read_unix(void *to, const struct given *given)
{
	((struct service_settings *)to)->unix_path = given->value;
	/* beanstalkd and memcached have -u for this. */
	if (!strchr(given->value, '/') && getpwnam(given->value))
		return settings_bad(given,
		    "the path of a socket: this is the name of a user; start the server as that user instead, or write "
		    "./NAME");
	return strlen(given->value) < sizeof((struct sockaddr_un *)0)->sun_path
	           ? 0
	           : settings_bad(given, "the path of a socket, at most 107 bytes");
}

static int read_mode(void *to, const struct given *given)
{
	const char *value = given->value;
	size_t length = strlen(value);

	if (length < 3 || length > 4 || strspn(value, "01234567") != length || (length == 4 && *value != '0') ||
	    sscanf(value, "%o", &((struct service_settings *)to)->socket_mode) != 1)
		return settings_bad(given, "three octal digits, such as 0660");
	return 0;
}

static int read_http(void *to, const struct given *given)
{
	const char *expected = check_address(given->value);

	((struct service_settings *)to)->http = given->value;
	return expected ? settings_bad(given, expected) : 0;
}

static int read_host(void *to, const struct given *given)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
	struct service_settings *settings = to;

	if (strspn(given->value, allowed) != strlen(given->value))
		return settings_bad(given, "a name without a port, such as jobs.example.org");
	return settings_add(given, settings->http_hosts, &settings->http_host_count, SETTINGS_LISTEN_MAX);
}

/* ---- Who may */

static int read_tokens(void *to, const struct given *given)
{
	struct service_settings *settings = to;
	char why[TOKEN_WHY];

	settings->is_http_only = strcmp(given->setting->name, "http-auth-file") == 0;
	settings->auth_file = given->value;
	tokens_free(settings->tokens);
	settings->tokens = tokens_read(given->value, why);
	return settings->tokens ? 0 : settings_bad_file(given, "tokens", why);
}

int settings_let_in(const void *of, const struct sockaddr *address, int is_tls, int is_http)
{
	const struct service_settings *settings = of;
	const int has_tokens = settings->auth_file && (is_http || !settings->is_http_only);

	return settings->is_insecure ? 0
	                             : address_let_in(address, is_tls, has_tokens || settings->has_password,
	                                   settings->tls.trusted != NULL, settings->server->passes);
}

static int may_listen(const struct service_settings *settings, const char *option, const char *text)
{
	int is_tls = address_is_tls(text);
	struct sockaddr_storage address;
	int result = address_read(option, text + (is_tls ? ADDRESS_TLS_PREFIX : 0), &address);
	int is_http = text == settings->http;

	return result ? result : settings_let_in(settings, (const struct sockaddr *)&address, is_tls, is_http);
}

/* ---- Time and messages, which take effect at once: for messages about the other options */

static int read_clock(void *to, const struct given *given)
{
	static const char ahead[] = "virtual:";
	struct service_settings *settings = to;
	const char *value = given->value;

	settings->is_virtual = strcmp(value, "real") != 0;
	settings->ahead = 0;
	settings->is_ahead_given = 0;
	if (!settings->is_virtual || strcmp(value, "virtual") == 0)
		return 0;
	if (strncmp(value, ahead, sizeof ahead - 1) == 0) {
		value += sizeof ahead - 1;
		settings->is_ahead_given = 1;
		if (number_seconds(value, strlen(value), UINT32_MAX, &settings->ahead) == 0)
			return 0;
	}
	return settings_bad(given, "real, virtual or virtual:SECONDS");
}

static int read_level(void *to, const struct given *given)
{
	static const char *const words[] = {"error", "warning", "info", "debug", NULL};
	static const enum message_level levels[] = {MESSAGE_ERROR, MESSAGE_WARNING, MESSAGE_INFO, MESSAGE_DEBUG};
	int found = settings_word(given->value ? given->value : "debug", words);

	(void)to;
	if (found < 0)
		return settings_bad(given, "error, warning, info or debug");
	message_level = levels[found];
	return 0;
}

static int read_form(void *to, const struct given *given)
{
	static const char *const words[] = {"text", "json", NULL};
	int found = settings_word(given->value, words);

	(void)to;
	if (found < 0)
		return settings_bad(given, "text or json");
	message_form = found ? MESSAGE_JSON : message_form_found();
	return 0;
}

/* ---- What goes together */

int settings_has(const void *of, const char *name)
{
	const struct service_settings *settings = of;

	for (size_t i = 0; i < settings->given_count; i++)
		if (strcmp(settings->given[i]->name, name) == 0)
			return 1;
	return 0;
}

static int check_tls(const struct service_settings *settings)
{
	static const char *const files[] = {"tls-cert", "tls-key", "tls-client-ca"};
	const char *option = settings->http && address_is_tls(settings->http) ? "http" : NULL;

	for (size_t i = 0; i < settings->listen_count; i++)
		if (address_is_tls(settings->listen[i]))
			option = "listen";
	if (option && !settings->tls.certificate)
		return settings_refuse(option, "tls:HOST:PORT needs a certificate: give --tls-cert FILE, too");
	for (size_t i = 0; !option && i < sizeof files / sizeof *files; i++)
		if (settings_has(settings, files[i]))
			return settings_refuse(files[i],
			    settings_knows(settings, "listen")
			        ? "is for TLS: --listen tls:HOST:PORT or --http tls:HOST:PORT is missing; give that too, or leave it out"
			        : "is for TLS: --http tls:HOST:PORT is missing; give that too, or leave it out");
	return 0;
}

int settings_check_common(struct service_settings *settings)
{
	int result = 0;

	if (check_tls(settings) != 0)
		return -1;
	if (settings_has(settings, "auth-file") && settings_has(settings, "http-auth-file"))
		return settings_refuse("http-auth-file", "and --auth-file exclude each other: leave one out");
	if (settings->sync != SETTINGS_INTERVAL && settings_has(settings, "sync-interval"))
		return settings_refuse("sync-interval", "is for --sync interval: give that too, or leave it out");
	for (size_t i = 0; result == 0 && i < settings->listen_count; i++)
		result = may_listen(settings, "--listen", settings->listen[i]);
	if (result == 0 && settings->http)
		result = may_listen(settings, "--http", settings->http);
	if (result == 0 && settings->tls.certificate) {
		settings->certificate = certificate_read(&settings->tls);
		result = settings->certificate ? 0 : -1;
	}
	return result;
}

/* ---- The table */

#define AT(member) SETTING_AT(service_settings, member)

static const char *const syncs[] = {
    [SETTINGS_ALWAYS] = "always", [SETTINGS_INTERVAL] = "interval", [SETTINGS_SYSTEM] = "system", NULL};

const struct setting settings_common[] = {
    {'l', "listen", "HOST:PORT",
        "where to listen (%s); tls:HOST:PORT with TLS; can be given\nseveral times; port 0 takes a free one",
        .read = read_listen, .repeats = 1},
    {'u', "unix", "PATH", "listen on a Unix socket, for the server's own user only", .read = read_unix},
    {0, "socket-mode", "MODE", "the mode of that socket, such as 0660 (%s)", "0600", .read = read_mode,
        .needs = "unix"},
    {0, "socket-group", "NAME", "the group of that socket", NULL, SETTING_TEXT, AT(socket_group), .needs = "unix"},
    {0, "http", "HOST:PORT",
        "a page for a browser, JSON under /v1/, /metrics, /livez, /readyz;\ntls:HOST:PORT with TLS", .read = read_http},
    {0, "http-host", "NAME", "a name by which --http is reached, such as jobs.example.org;\ncan be given several times",
        .read = read_host, .repeats = 1, .needs = "http"},
    {0, "tls-cert", "FILE", "the certificate, in PEM, for tls:HOST:PORT; read again on SIGHUP", NULL, SETTING_TEXT,
        AT(tls.certificate)},
    {0, "tls-key", "FILE", "its key (in the file of the certificate)", NULL, SETTING_TEXT, AT(tls.key)},
    {0, "tls-client-ca", "FILE", "clients need a certificate that one of these has signed", NULL, SETTING_TEXT,
        AT(tls.trusted)},
    {0, "auth-file", "FILE",
        "clients need a token, and this says what each may do; lines are made\nby \"weekwheel token\"; read again on SIGHUP",
        .read = read_tokens},
    {0, "http-auth-file", "FILE",
        "the same for HTTP alone: other clients need no token, and the page\nmay change things all the same",
        .read = read_tokens, .needs = "http"},
    {0, "insecure", NULL, "let other machines reach this server without TLS or without tokens", NULL, SETTING_FLAG,
        AT(is_insecure)},
    {0, "max-connections-per-address", "N", "the most clients from one address (0: any)", NULL, SETTING_WHOLE,
        AT(max_per_address), .most = 10000000},
    {0, "max-buffers", "BYTES",
        "the most that commands and answers of all clients take (%s);\nbeyond it the client with the most of them ends",
        "256M", SETTING_BYTES, AT(max_buffers), 1 << 20, UINT64_C(1) << 50},
    {0, "sync", "WHEN",
        "always: an answer means stable storage; interval: sync at regular\nintervals; system: when the system does (%s)",
        "always", SETTING_WORD, AT(sync), .words = syncs},
    {0, "sync-interval", "TIME", "with --sync interval: the interval (%s)", "50ms", SETTING_TIME, AT(sync_interval),
        DURATION_SECOND / 1000, 3600 * DURATION_SECOND},
    {0, "clock", "CLOCK",
        "real (the default), or virtual: time stands still until \"advance\";\nvirtual:SECONDS: this much has passed at the start",
        .read = read_clock},
    {0, "log-level", "LEVEL", "what to report: error, warning, info (the default), debug", .read = read_level},
    {0, "log-format", "FORMAT", "text (the default), or json: one object per line", .read = read_form},
    {'v', "verbose", NULL, "the same as --log-level debug: also clients that come and go", .read = read_level},
    {'c', "config", "FILE", "read options from a file, one \"name = value\" a line", .read = settings_config},
    {0, "version", NULL, "show the version", .read = settings_version},
    {'h', "help", NULL, "show this help", .read = settings_help},
};

const size_t settings_common_count = sizeof settings_common / sizeof *settings_common;
