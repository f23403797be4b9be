/* The options of jobs that are delivered over HTTP. */
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "settings_part.h"
#include "weekwheel/callback.h"
#include "weekwheel/driver.h"

void settings_push_default(struct settings *settings)
{
	settings->push.in_flight = 256;
	settings->push.per_host = 16;
	settings->push.connect_timeout = 5 * WW_SECOND;
	settings->push.grace = 10 * WW_SECOND;
	settings->push.schemes = WW_CALLBACK_HTTP | WW_CALLBACK_HTTPS;
}

static int read_tubes(struct settings_push *push, const struct options *options)
{
	size_t room = SETTINGS_TUBES_MAX - push->tube_count;
	int count = settings_split(options->value, push->tubes + push->tube_count, room);
	char tube[WW_TUBE_MAX + 1];
	int i;

	for (i = 0; i < count; i++)
		if (words_tube(settings_span(push->tubes[push->tube_count + (size_t)i]), tube) != 0)
			count = -1;
	if (count < 0)
		return settings_bad(options, OPTION_PUSH, "names of tubes, with commas between them, at most 64");
	push->tube_count += (size_t)count;
	return 0;
}

static int read_success(struct settings_push *push, const struct options *options)
{
	const char *parts[SETTINGS_STATUSES_MAX];
	int count = settings_split(options->value, parts, SETTINGS_STATUSES_MAX);
	uint64_t status;
	int i;

	for (i = 0; i < count; i++) {
		if (options_whole(parts[i], 200, 599, &status) != 0)
			count = -1;
		else
			push->success[i] = (uint16_t)status;
	}
	if (count < 0)
		return settings_bad(options, OPTION_PUSH_SUCCESS, "statuses from 200 to 599, with commas between them");
	push->success_count = (size_t)count;
	return 0;
}

/* Kinds of networks, and ranges such as 10.1.0.0/16, which the library reads. */
static int read_networks(struct settings_push *push, const struct options *options)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} kinds[] = {{"loopback", WW_CALLBACK_LOOPBACK}, {"private", WW_CALLBACK_PRIVATE},
	    {"link-local", WW_CALLBACK_LINK_LOCAL}, {"special", WW_CALLBACK_SPECIAL}};
	const char *parts[SETTINGS_RANGES_MAX];
	int count = settings_split(options->value, parts, SETTINGS_RANGES_MAX - push->allow_count);
	size_t kind;
	int i;

	for (i = 0; i < count; i++) {
		for (kind = 0; kind < 4 && strcmp(parts[i], kinds[kind].name) != 0; kind++)
			;
		if (kind < 4)
			push->networks |= kinds[kind].flag;
		else if (strspn(parts[i], "0123456789abcdefABCDEF.:/") == strlen(parts[i]))
			push->allow[push->allow_count++] = parts[i];
		else
			count = -1;
	}
	if (count < 0)
		return settings_bad(options, OPTION_PUSH_NETWORKS,
		    "loopback, private, link-local, special, or ranges such as 10.1.0.0/16, with commas between them");
	return 0;
}

static int read_deny(struct settings_push *push, const struct options *options)
{
	int count =
	    settings_split(options->value, push->deny + push->deny_count, SETTINGS_RANGES_MAX - push->deny_count);

	if (count < 0)
		return settings_bad(options, OPTION_PUSH_DENY, "ranges such as 192.0.2.0/24, with commas between them");
	push->deny_count += (size_t)count;
	return 0;
}

static int read_schemes(struct settings_push *push, const struct options *options)
{
	const char *parts[2];
	int count = settings_split(options->value, parts, 2);
	int i;

	push->schemes = 0;
	for (i = 0; i < count; i++) {
		if (strcmp(parts[i], "http") == 0)
			push->schemes |= WW_CALLBACK_HTTP;
		else if (strcmp(parts[i], "https") == 0)
			push->schemes |= WW_CALLBACK_HTTPS;
		else
			count = -1;
	}
	return count < 0 ? settings_bad(options, OPTION_PUSH_SCHEMES, "http, https, or http,https") : 0;
}

static int read_count(const struct options *options, int id, uint64_t *number)
{
	return options_whole(options->value, 1, 65536, number) == 0
	           ? 0
	           : settings_bad(options, id, "a whole number, 1 to 65536");
}

int settings_push_option(struct settings *settings, const struct options *options, int id)
{
	struct settings_push *push = &settings->push;

	push->is_set |= id != OPTION_PUSH;
	switch (id) {
	case OPTION_PUSH:
		return read_tubes(push, options);
	case OPTION_PUSH_IN_FLIGHT:
		return read_count(options, id, &push->in_flight);
	case OPTION_PUSH_PER_HOST:
		return read_count(options, id, &push->per_host);
	case OPTION_PUSH_TIMEOUT:
		return settings_seconds(options, id, WW_MILLISECOND, 86400 * WW_SECOND, &push->timeout);
	case OPTION_PUSH_CONNECT_TIMEOUT:
		return settings_seconds(options, id, WW_MILLISECOND, 3600 * WW_SECOND, &push->connect_timeout);
	case OPTION_PUSH_GRACE:
		return settings_seconds(options, id, 0, 3600 * WW_SECOND, &push->grace);
	case OPTION_PUSH_SUCCESS:
		return read_success(push, options);
	case OPTION_PUSH_NETWORKS:
		return read_networks(push, options);
	case OPTION_PUSH_DENY:
		return read_deny(push, options);
	case OPTION_PUSH_SCHEMES:
		return read_schemes(push, options);
	case OPTION_PUSH_SECRET_FILE:
		push->secret = settings_line(options->value);
		return push->secret ? 0 : -1;
	default:
		push->ca_file = options->value;
		return 0;
	}
}

int settings_push_check(struct settings *settings)
{
	struct settings_push *push = &settings->push;
	const char *secret = getenv("WEEKWHEELD_PUSH_SECRET");

	if (!push->secret && secret && *secret)
		push->secret = secret;
	if (push->tube_count || !push->is_set)
		return 0;
	message_line("weekwheeld: --push-... is for jobs that are delivered over HTTP: --push TUBE is missing");
	return -1;
}
