/* Reads the options of jobs that are delivered over HTTP: lists of words, a secret, certificates. */
#include <stdio.h>
#include <string.h>

#include "tools/service/address.h"
#include "tools/weekwheeld/settings/read.h"

void settings_push_default(struct settings_push *push)
{
#ifdef HAVE_CALLBACK
	(void)ww_callback_config_default(&push->config);
#endif
	push->config.tubes = push->tubes;
	push->config.success = push->success;
	push->config.allow = push->allow;
	push->config.deny = push->deny;
}

/* ---- Lists: each function takes one word, word->value, and returns 0, or -1 after a message */

static int take_tube(struct settings_push *push, const struct options *word)
{
	char tube[WW_TUBE_MAX + 1];

	if (words_tube(settings_span(word->value), tube) != 0)
		return settings_bad(word, OPTION_PUSH,
		    "a tube's name of up to 200 letters, digits and + / ; . $ _ ( ) -, which does not begin with a dash");
	if (push->config.tube_count == SETTINGS_TUBES_MAX)
		return settings_bad(word, OPTION_PUSH, "at most 64 tubes in all");
	push->tubes[push->config.tube_count++] = word->value;
	return 0;
}

static int take_status(struct settings_push *push, const struct options *word)
{
	uint64_t status;

	if (options_whole(word->value, 200, 599, &status) != 0)
		return settings_bad(word, OPTION_PUSH_SUCCESS, "a status of HTTP, 200 to 599");
	if (push->config.success_count == SETTINGS_STATUSES_MAX)
		return settings_bad(word, OPTION_PUSH_SUCCESS, "at most 64 statuses");
	push->success[push->config.success_count++] = (uint16_t)status;
	return 0;
}

static int take_range(const struct options *word, int id, const char *expected, const char **ranges, size_t *count)
{
	char right[ADDRESS_TEXT];
	char instead[ADDRESS_TEXT + 80];
	int result = address_range(word->value, right);

	if (result < 0)
		return settings_bad(word, id, expected);
	if (result > 0) {
		snprintf(
		    instead, sizeof instead, "%s, since a range has no bits behind its prefix, or one address", right);
		return settings_bad(word, id, instead);
	}
	if (*count == SETTINGS_RANGES_MAX)
		return settings_bad(word, id, "at most 64 ranges in all");
	ranges[(*count)++] = word->value;
	return 0;
}

static int take_network(struct settings_push *push, const struct options *word)
{
	static const char *const names[] = {"loopback", "private", "link-local", "special"};
	static const uint32_t flags[] = {
	    WW_CALLBACK_LOOPBACK, WW_CALLBACK_PRIVATE, WW_CALLBACK_LINK_LOCAL, WW_CALLBACK_SPECIAL};
	int found = words_find(settings_span(word->value), names, 4);

	if (found < 0)
		return take_range(word, OPTION_PUSH_NETWORKS,
		    "loopback, private, link-local, special, or a range such as 10.1.0.0/16 or fd00::/8", push->allow,
		    &push->config.allow_count);
	push->config.networks |= flags[found];
	return 0;
}

static int take_deny(struct settings_push *push, const struct options *word)
{
	return take_range(word, OPTION_PUSH_DENY, "a range of addresses such as 192.0.2.0/24 or 2001:db8::/32",
	    push->deny, &push->config.deny_count);
}

static int take_scheme(struct settings_push *push, const struct options *word)
{
	if (strcmp(word->value, "http") == 0)
		push->config.schemes |= WW_CALLBACK_HTTP;
	else if (strcmp(word->value, "https") == 0)
		push->config.schemes |= WW_CALLBACK_HTTPS;
	else
		return settings_bad(word, OPTION_PUSH_SCHEMES, "http, https, or http,https");
	return 0;
}

static const struct list {
	int id;
	int (*take)(struct settings_push *push, const struct options *word);
} lists[] = {{OPTION_PUSH, take_tube}, {OPTION_PUSH_SUCCESS, take_status}, {OPTION_PUSH_NETWORKS, take_network},
    {OPTION_PUSH_DENY, take_deny}, {OPTION_PUSH_SCHEMES, take_scheme}};

static int read_list(struct settings_push *push, const struct list *list, const struct options *options)
{
	char *rest = settings_keep(strlen(options->value) + 1);
	struct options word = *options;

	if (!rest)
		return settings_bad(options, list->id, "less: there is no memory");
	strcpy(rest, options->value);
	while (rest) {
		word.value = strsep(&rest, ",");
		if (!*word.value)
			return settings_bad(
			    options, list->id, "something before and behind each comma, without a space");
		if (list->take(push, &word) != 0)
			return -1;
	}
	return 0;
}

/* ---- Files */

/* curl reads the file only when it connects, which is too late for a message. */
static int check_certificates(const struct options *options)
{
	const char *text = settings_file(options, OPTION_PUSH_CA_FILE, "certificates (PEM)");

	if (!text)
		return -1;
	return strncmp(text, "-----BEGIN ", 11) == 0 || strstr(text, "\n-----BEGIN ")
	           ? 0
	           : settings_bad_file(options, OPTION_PUSH_CA_FILE, "certificates (PEM)", "it has none");
}

int settings_push_option(struct settings *settings, const struct options *options, int id)
{
	struct settings_push *push = &settings->push;

	/* These two replace earlier values. */
	if (id == OPTION_PUSH_SUCCESS)
		push->config.success_count = 0;
	if (id == OPTION_PUSH_SCHEMES)
		push->config.schemes = 0;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (lists[i].id == id)
			return read_list(push, &lists[i], options);
	if (id == OPTION_PUSH_SECRET_FILE) {
		push->config.secret = settings_line(options, id, "the secret");
		return push->config.secret ? 0 : -1;
	}
	push->config.ca_file = options->value;
	return check_certificates(options);
}
