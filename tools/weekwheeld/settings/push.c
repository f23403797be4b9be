/* Reads the options of jobs that are delivered over HTTP: the words of lists, and certificates. */
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/service/net/address.h"
#include "tools/weekwheeld/protocol/words.h"
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

/* ---- Words of lists */

int settings_push_tube(void *to, const struct given *word)
{
	struct settings_push *push = &((struct settings *)to)->push;
	char tube[WW_TUBE_MAX + 1];

	if (words_tube((struct span){word->value, word->value + strlen(word->value)}, tube) != 0)
		return settings_bad(word,
		    "a tube's name of up to 200 letters, digits and + / ; . $ _ ( ) -, which does not begin with a dash");
	if (word->is_first && tube[strspn(tube, "0123456789")] == '\0')
		message_warning(
		    "the jobs of a tube \"%s\" are pushed: a port is given as --listen HOST:PORT, and not as "
		    "beanstalkd's -p",
		    tube);
	return settings_add(word, push->tubes, &push->config.tube_count, SETTINGS_TUBES_MAX);
}

/* A list of these, or of schemes, replaces the one before. */
int settings_push_status(void *to, const struct given *word)
{
	struct settings_push *push = &((struct settings *)to)->push;
	uint64_t status;

	if (word->is_first)
		push->config.success_count = 0;
	if (options_whole(word->value, 200, 599, &status) != 0)
		return settings_bad(word, "a status of HTTP, 200 to 599");
	if (push->config.success_count == SETTINGS_STATUSES_MAX)
		return settings_bad(word, "at most 64 statuses");
	push->success[push->config.success_count++] = (uint16_t)status;
	return 0;
}

static int take_range(const struct given *word, const char *expected, const char **ranges, size_t *count)
{
	char right[ADDRESS_TEXT];
	char instead[ADDRESS_TEXT + 80];
	int result = address_range(word->value, right);

	if (result < 0)
		return settings_bad(word, expected);
	if (result > 0) {
		snprintf(
		    instead, sizeof instead, "%s, since a range has no bits behind its prefix, or one address", right);
		return settings_bad(word, instead);
	}
	return settings_add(word, ranges, count, SETTINGS_RANGES_MAX);
}

int settings_push_network(void *to, const struct given *word)
{
	static const char *const names[] = {"loopback", "private", "link-local", "special", NULL};
	static const uint32_t flags[] = {
	    WW_CALLBACK_LOOPBACK, WW_CALLBACK_PRIVATE, WW_CALLBACK_LINK_LOCAL, WW_CALLBACK_SPECIAL};
	struct settings_push *push = &((struct settings *)to)->push;
	int found = settings_word(word->value, names);

	if (found < 0)
		return take_range(word,
		    "loopback, private, link-local, special, or a range such as 10.1.0.0/16 or fd00::/8", push->allow,
		    &push->config.allow_count);
	push->config.networks |= flags[found];
	return 0;
}

int settings_push_deny(void *to, const struct given *word)
{
	struct settings_push *push = &((struct settings *)to)->push;

	return take_range(
	    word, "a range of addresses such as 192.0.2.0/24 or 2001:db8::/32", push->deny, &push->config.deny_count);
}

int settings_push_scheme(void *to, const struct given *word)
{
	static const char *const names[] = {"http", "https", NULL};
	struct ww_callback_config *config = &((struct settings *)to)->push.config;
	int found = settings_word(word->value, names);

	if (found < 0)
		return settings_bad(word, "http, https, or http,https");
	config->schemes = (word->is_first ? 0 : config->schemes) | (found ? WW_CALLBACK_HTTPS : WW_CALLBACK_HTTP);
	return 0;
}

/* ---- A file */

/* curl reads the file only when it connects, which is too late for a message, and each time. */
int settings_push_certificates(void *to, const struct given *given)
{
	const char *text = settings_file(given, "certificates (PEM)", 1);

	if (!text)
		return -1;
	((struct settings *)to)->push.config.ca_file = given->value;
	return strncmp(text, "-----BEGIN ", 11) == 0 || strstr(text, "\n-----BEGIN ")
	           ? 0
	           : settings_bad_file(given, "certificates (PEM)", "it has none");
}
