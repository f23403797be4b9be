/* Reads the options that say who may, and refuses to let other machines in without TLS and tokens. */
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/service/address.h"
#include "tools/weekwheeld/settings/read.h"

static int read_tokens(struct settings *settings, const struct options *options)
{
	char why[TOKEN_WHY];

	settings->auth_file = options->value;
	tokens_free(settings->tokens);
	settings->tokens = tokens_read(options->value, why);
	return settings->tokens ? 0 : settings_bad_file(options, OPTION_AUTH_FILE, "tokens", why);
}

static int read_mode(struct settings *settings, const struct options *options)
{
	const char *value = options->value;
	size_t length = strlen(value);

	if (length < 3 || length > 4 || strspn(value, "01234567") != length || (length == 4 && *value != '0'))
		return settings_bad(options, OPTION_SOCKET_MODE, "three octal digits, such as 0660");
	if (sscanf(value, "%o", &settings->socket_mode) != 1)
		settings->socket_mode = 0600;
	return 0;
}

static int read_host(struct settings *settings, const struct options *options)
{
	static const char *const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";

	if (strspn(options->value, allowed) != strlen(options->value))
		return settings_bad(options, OPTION_HTTP_HOST, "a name without a port, such as jobs.example.org");
	if (settings->http_host_count == SETTINGS_LISTEN_MAX)
		return settings_bad(options, OPTION_HTTP_HOST, "at most 16 names in all");
	settings->http_hosts[settings->http_host_count++] = options->value;
	return 0;
}

int settings_access_option(struct settings *settings, const struct options *options, int id)
{
	switch (id) {
	case OPTION_SOCKET_MODE:
		return read_mode(settings, options);
	case OPTION_SOCKET_GROUP:
		settings->socket_group = options->value;
		return 0;
	case OPTION_AUTH_FILE:
		return read_tokens(settings, options);
	case OPTION_HTTP_HOST:
		return read_host(settings, options);
	default:
		settings->is_insecure = 1;
		return 0;
	}
}

int settings_let_in(const struct settings *settings, const struct sockaddr *address, int is_tls)
{
	return settings->is_insecure ? 0
	                             : address_let_in(address, is_tls, settings->auth_file != NULL,
	                                   settings->tls.trusted != NULL, "tokens and jobs");
}

static int check_address(const struct settings *settings, const char *option, const char *text)
{
	int is_tls = address_is_tls(text);
	struct sockaddr_storage address;

	if (address_read(option, text + (is_tls ? ADDRESS_TLS_PREFIX : 0), &address) != 0)
		return -1;
	return settings_let_in(settings, (const struct sockaddr *)&address, is_tls);
}

int settings_access_check(const struct settings *settings)
{
	if (settings->is_insecure)
		return 0;
	for (size_t i = 0; i < settings->listen_count; i++) {
		if (check_address(settings, "--listen", settings->listen[i]) != 0)
			return -1;
	}
	return settings->http ? check_address(settings, "--http", settings->http) : 0;
}
