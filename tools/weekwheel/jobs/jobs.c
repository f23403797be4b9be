/* The options that all commands of jobs have, and the checks of what is sent. */
#include "tools/weekwheel/jobs/jobs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/percent.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/connect.h"

const char *jobs_default_server(void)
{
	const char *server = getenv("WEEKWHEEL_SERVER");

	return server && *server ? server : CLIENT_DEFAULT_SERVER;
}

void jobs_init(struct jobs *jobs)
{
	memset(jobs, 0, sizeof *jobs);
	jobs->server = jobs_default_server();
	jobs->timeout_ms = CLIENT_DEFAULT_TIMEOUT_MS;
	jobs->client.fd = -1;
}

/* The name becomes part of a command: what is no tube's name could end it and begin another. */
static int take_tube(struct jobs *jobs, const struct options *options)
{
	static const char *const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()";
	size_t length = strlen(options->value);

	if (length == 0 || length > JOBS_TUBE_MAX || *options->value == '-' ||
	    strspn(options->value, allowed) != length)
		return options_bad_value(options, "tube",
		    "a name of up to 200 letters, digits and + / ; . $ _ ( ) -,\n"
		    "which does not begin with a dash");
	jobs->tube = options->value;
	return 0;
}

static int take_timeout(struct jobs *jobs, const struct options *options)
{
	uint64_t ns;

	if (jobs_duration(options, "timeout", DURATION_SECOND / 1000, 86400 * DURATION_SECOND, &ns))
		return OPTIONS_ERROR;
	jobs->timeout_ms = (int)(ns / 1000000);
	return 0;
}

int jobs_check_server(const struct jobs *jobs, const struct options *options)
{
	char excerpt[60];

	if (connect_is_address(jobs->server))
		return 0;
	return jobs_complain(options, "%s %s: expected HOST:PORT, [IPv6]:PORT or unix:PATH",
	    jobs->server == jobs_default_server() ? "WEEKWHEEL_SERVER" : "--server",
	    message_excerpt(excerpt, sizeof excerpt, jobs->server, strlen(jobs->server)));
}

int jobs_next(struct jobs *jobs, struct options *options)
{
	int wrong = 0;
	int id;

	while (!wrong) {
		id = options_next(options);
		switch (id) {
		case JOBS_SERVER:
			jobs->server = options->value;
			break;
		case JOBS_TIMEOUT:
			wrong = take_timeout(jobs, options);
			break;
		case JOBS_JSON:
			jobs->json = 1;
			break;
		case JOBS_TUBE:
			wrong = take_tube(jobs, options);
			break;
		case JOBS_KEY:
			wrong = jobs_key(options, "key", jobs->key);
			break;
		case OPTIONS_END:
			return jobs_check_server(jobs, options) ? OPTIONS_ERROR : OPTIONS_END;
		default:
			return id;
		}
	}
	return OPTIONS_ERROR;
}

int jobs_parse(struct jobs *jobs, struct options *options,
    int (*take)(void *context, const struct options *options, int id), void *context, void (*help)(FILE *out))
{
	int id;

	jobs_init(jobs);
	while ((id = jobs_next(jobs, options)) != OPTIONS_END) {
		if (id == JOBS_HELP) {
			help(stdout);
			return STATUS_OK;
		}
		if (id == OPTIONS_ERROR || take(context, options, id))
			return STATUS_USAGE;
	}
	return JOBS_PARSED;
}

int jobs_no_operand(const struct options *options)
{
	return jobs_complain(options, "'%s': no operand is expected; a tube is given with --tube", options->value);
}

int jobs_complain(const struct options *options, const char *format, ...)
{
	char text[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	message_line("%s: %s\nTry '%s --help'.", options->command, text, options->command);
	return OPTIONS_ERROR;
}

static int bad_time(const struct options *options, const char *name, const struct duration_problem *problem)
{
	const char *rest = options->value + problem->at;
	char whole[60], place[60];

	message_excerpt(whole, sizeof whole, options->value, strlen(options->value));
	message_excerpt(place, sizeof place, rest, strlen(rest));
	if (problem->at == 0)
		return jobs_complain(options, "--%s %s: expected %s", name, whole, problem->expected);
	return jobs_complain(
	    options, "--%s %s: at %s: expected %s", name, whole, *rest ? place : "its end", problem->expected);
}

int jobs_duration(const struct options *options, const char *name, uint64_t least, uint64_t most, uint64_t *ns)
{
	struct duration_problem problem;
	char from[DURATION_TEXT], to[DURATION_TEXT];
	uint64_t value;

	if (duration_parse(options->value, &value, &problem))
		return bad_time(options, name, &problem);
	if (value < least || value > most)
		return jobs_complain(options, "--%s '%s': expected a time from %s to %s", name, options->value,
		    duration_format(from, least), duration_format(to, most));
	*ns = value;
	return 0;
}

int jobs_time(const struct options *options, const char *name, uint64_t *ns)
{
	struct duration_problem problem;

	return time_parse(options->value, ns, &problem) ? bad_time(options, name, &problem) : 0;
}

int jobs_time_from(const struct options *options, const char *name, uint64_t *ns)
{
	struct duration_problem problem;

	return time_parse_from(options->value, time_now(), ns, &problem) ? bad_time(options, name, &problem) : 0;
}

int jobs_id(const struct options *options, uint64_t *id)
{
	char excerpt[60];

	if (options_whole(options->value, 1, UINT64_MAX, id) == 0)
		return 0;
	message_excerpt(excerpt, sizeof excerpt, options->value, strlen(options->value));
	return jobs_complain(
	    options, "%s: expected the id of a job, a whole number; a key is given with --key", excerpt);
}

int jobs_key(const struct options *options, const char *name, char text[JOBS_KEY_TEXT])
{
	size_t length = strlen(options->value);

	if (length == 0 || length > JOBS_KEY_MAX)
		return options_bad_value(options, name, "1 to 200 bytes");
	(void)percent_encode(options->value, length, text, JOBS_KEY_TEXT);
	return 0;
}

const char *jobs_key_show(const char *encoded, char *out, size_t room)
{
	const char *end = encoded + strlen(encoded);
	size_t at = 0;

	while (encoded < end && at + 1 < room) {
		unsigned char byte = (unsigned char)percent_take(&encoded, end);

		out[at++] = byte < ' ' || byte >= 0x7f ? '?' : (char)byte;
	}
	out[at] = 0;
	return out;
}

int jobs_open(struct jobs *jobs)
{
	struct reply reply;

	if (client_open(&jobs->client, jobs->server, jobs->timeout_ms))
		return -1;
	if (!jobs->tube)
		return 0;
	if (client_ask(&jobs->client, &reply, "use %s", jobs->tube))
		return -1;
	return reply_is(&reply, "USING") ? 0 : reply_refused(&jobs->client, &reply, "--tube");
}

void jobs_close(struct jobs *jobs)
{
	client_close(&jobs->client);
}

int jobs_has_own_verbs(struct jobs *jobs)
{
	struct reply reply;

	/* Whether there is such a key does not matter. */
	if (client_ask(&jobs->client, &reply, "stats-key weekwheel"))
		return -1;
	/*
	 * Other servers take it for a misspelt "stats", or know nothing like it. One whose Redis is away knows the
	 * verb, and cannot tell.
	 */
	return reply_is(&reply, "OK") || reply_is(&reply, "NOT_FOUND") || reply_is(&reply, "INTERNAL_ERROR");
}
