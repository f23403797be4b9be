/* What the commands for jobs share: how one runs, the common options, and the checks of what is sent to a server. */
#include "tools/weekwheel/jobs/jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/dial.h"
#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/percent.h"
#include "tools/common/tube.h"
#include "tools/common/utf8.h"
#include "tools/job/field.h"

/* What the environment says, or else the other value. */
static const char *named(const char *name, const char *other)
{
	const char *value = getenv(name);

	return value && *value ? value : other;
}

static const char *default_server(void)
{
	return named("WEEKWHEEL_SERVER", CLIENT_DEFAULT_SERVER);
}

int jobs_tube(struct jobs *jobs, const struct options *options)
{
	if (!tube_is_name(options->value, strlen(options->value)))
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

static int take_shared(struct jobs *jobs, const struct options *options, int id)
{
	switch (id) {
	case JOBS_SERVER:
		jobs->server = options->value;
		return 0;
	case JOBS_TIMEOUT:
		return take_timeout(jobs, options);
	case JOBS_TLS_CA:
		jobs->tls.trusted = options->value;
		return 0;
	case JOBS_TLS_CERT:
		jobs->tls.certificate = options->value;
		return 0;
	case JOBS_TLS_KEY:
		jobs->tls.key = options->value;
		return 0;
	case JOBS_TOKEN_FILE:
		return jobs_token(jobs, options);
	case JOBS_TUBE:
		return jobs_tube(jobs, options);
	default:
		return jobs_key(options, "key", jobs->key);
	}
}

static int check_server(const struct jobs *jobs, const struct options *options)
{
	char excerpt[60];

	if (dial_is_address(jobs->server))
		return 0;
	return options_fail(options, "%s %s: expected HOST:PORT, [IPv6]:PORT, tls:HOST:PORT or unix:PATH",
	    jobs->server == default_server() ? "WEEKWHEEL_SERVER" : "--server",
	    message_excerpt(excerpt, sizeof excerpt, jobs->server, strlen(jobs->server)));
}

static int write_help(const struct jobs_command *command)
{
	fputs(command->usage, stdout);
	fputs("\nOptions:\n", stdout);
	options_help(stdout, command->options, command->option_count);
	printf("\n%s", command->examples);
	return STATUS_OK;
}

static int connect_as(const struct jobs_command *command, struct jobs *jobs)
{
	jobs->needs = command->needs;
	if (jobs->tube) {
		snprintf(jobs->where, sizeof jobs->where, "the tube %s", jobs->tube);
		jobs->needs.where = jobs->where;
	}
	if (command->server == JOBS_CONNECTED)
		return jobs_connect(jobs);
	return command->server == JOBS_USING_TUBE ? jobs_use_tube(jobs) : 0;
}

/* What people know from elsewhere. */
static const char *const hints[] = {"delay", "--in TIME puts it off, and --at WHEN names a time", "cron",
    "'weekwheel schedule add NAME EXPRESSION BODY' puts a job at each time of cron, and --every TIME after elapsed time",
    "tz", "write the offset into the time, as in --at 2026-12-01T09:00+02:00, or set TZ in the environment", "timezone",
    "write the offset into the time, as in --at 2026-12-01T09:00+02:00, or set TZ in the environment", "ttr",
    "--run TIME is how long a worker may take", "pri", "--priority N", "retries", "--attempts N", "queue",
    "--tube TUBE", "host", "--server HOST:PORT", "port", "--server HOST:PORT", NULL};

int jobs_command(const struct jobs_command *command, char **arguments)
{
	void *context = command->context;
	struct options options = {.command = command->name,
	    .table = command->options,
	    .count = command->option_count,
	    .arguments = arguments,
	    .repeats = command->repeats,
	    .hints = hints};
	struct jobs *jobs = command->server == JOBS_NO_SERVER ? NULL : context;
	int status, id;

	if (jobs)
		*jobs = (struct jobs){.server = default_server(),
		    .timeout_ms = CLIENT_DEFAULT_TIMEOUT_MS,
		    .tls = {named("WEEKWHEEL_TLS_CERT", NULL), named("WEEKWHEEL_TLS_KEY", NULL),
		        named("WEEKWHEEL_TLS_CA", NULL)},
		    .client = {.channel = {.fd = -1}}};
	while ((id = options_next(&options)) != OPTIONS_END) {
		if (id == JOBS_HELP)
			return write_help(command);
		if (id == OPTIONS_OPERAND && command->no_operand)
			id = options_fail(
			    &options, "'%s': no operand is expected%s", options.value, command->no_operand);
		if (id == OPTIONS_ERROR)
			return STATUS_USAGE;
		if (id >= JOBS_FLAGS)
			*(int *)((char *)context + id - JOBS_FLAGS) = 1;
		else if (jobs && id >= JOBS_SERVER ? take_shared(jobs, &options, id)
		                                   : command->take(context, &options, id))
			return STATUS_USAGE;
	}
	if ((jobs && (check_server(jobs, &options) || jobs_token_default(jobs))) ||
	    (command->check && command->check(context, &options)))
		return STATUS_USAGE;
	status = jobs && connect_as(command, jobs) ? -1 : command->run(context);
	if (jobs)
		client_close(&jobs->client);
	return status < 0 ? STATUS_FAILED : status;
}

/* ---- Values of options */

int jobs_whole(const struct options *options, const char *name, uint64_t least, uint64_t most, uint64_t *number,
    const char *expected)
{
	return options_whole(options->value, least, most, number) ? options_bad_value(options, name, expected) : 0;
}

int jobs_version(const struct options *options, uint64_t *version)
{
	return jobs_whole(
	    options, "if-version", 1, UINT64_MAX, version, "a whole number, as 'weekwheel list --json' shows it");
}

static int bad_time(const struct options *options, const char *name, const struct duration_problem *problem)
{
	const char *rest = options->value + problem->at;
	char whole[60], place[60];

	message_excerpt(whole, sizeof whole, options->value, strlen(options->value));
	message_excerpt(place, sizeof place, rest, strlen(rest));
	if (problem->at == 0)
		return options_fail(options, "--%s %s: expected %s", name, whole, problem->expected);
	return options_fail(
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
		return options_fail(options, "--%s '%s': expected a time from %s to %s", name, options->value,
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

	return time_parse_from(options->value, wall_now(), ns, &problem) ? bad_time(options, name, &problem) : 0;
}

int jobs_id(const struct options *options, uint64_t *id)
{
	char excerpt[60];

	if (options_whole(options->value, 1, UINT64_MAX, id) == 0)
		return 0;
	message_excerpt(excerpt, sizeof excerpt, options->value, strlen(options->value));
	return options_fail(
	    options, "%s: expected the id of a job, a whole number; a key is given with --key", excerpt);
}

int jobs_key(const struct options *options, const char *name, char text[JOBS_KEY_TEXT])
{
	size_t length = strlen(options->value);

	if (length == 0 || length > WW_JOB_KEY_MAX)
		return options_bad_value(options, name, "1 to 200 bytes");
	(void)percent_encode(options->value, length, text, JOBS_KEY_TEXT);
	return 0;
}

const char *jobs_key_show(const char *encoded, char *out, size_t room)
{
	const char *end = encoded + strlen(encoded);
	char key[JOBS_KEY_TEXT];
	size_t at = 0;

	while (encoded < end && at < sizeof key)
		key[at++] = percent_take(&encoded, end);
	return utf8_show(key, at, out, room);
}

void jobs_add(char *text, size_t room, const char *name, const char *value)
{
	size_t length = strlen(text);

	if (value && *value)
		snprintf(text + length, room - length, " %s=%s", name, value);
}

void jobs_add_number(char *text, size_t room, const char *name, uint64_t number)
{
	char value[24];

	snprintf(value, sizeof value, "%" PRIu64, number);
	jobs_add(text, room, name, value);
}

void jobs_warn_of_past(uint64_t at)
{
	char text[DURATION_TEXT];

	if (at < wall_now())
		message_line(
		    "weekwheel: warning: --at %s is in the past, so the job is due now", time_format_zone(text, at));
}

void jobs_print_due(uint64_t due, uint64_t left)
{
	char when[DURATION_TEXT], span[DURATION_TEXT];

	if (left)
		printf("due %s, in %s\n", time_format(when, due), duration_format(span, left));
	else
		puts("due now");
}

static void write_member(FILE *out, struct buffer *text, int error)
{
	if (error)
		memory_exhausted();
	fwrite(text->data, 1, text->size, out);
	buffer_free(text);
}

void jobs_write_time(FILE *out, const char *name, uint64_t unix_ns)
{
	struct buffer text = {0};

	write_member(out, &text, field_write_time(&text, name, unix_ns, 0));
}

void jobs_write_key(FILE *out, const char *key)
{
	const char *end = key + strlen(key);
	char bytes[WW_JOB_KEY_MAX];
	struct buffer text = {0};
	size_t size = 0;

	while (key < end && size < sizeof bytes)
		bytes[size++] = percent_take(&key, end);
	write_member(out, &text, field_write_bytes(&text, "key", bytes, size));
}

const char *jobs_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* ---- The server */

int jobs_connect(struct jobs *jobs)
{
	return jobs_open(jobs, &jobs->client);
}

int jobs_open(struct jobs *jobs, struct client *client)
{
	int failed = client_open(client, jobs->server, jobs->timeout_ms, &jobs->tls, jobs->token, jobs->remedy);

	client->needs = jobs->needs;
	return failed;
}

int jobs_use_tube(struct jobs *jobs)
{
	struct reply reply;

	if (jobs_connect(jobs))
		return -1;
	return jobs->tube ? client_expect(&jobs->client, &reply, "USING", "--tube", "use %s", jobs->tube) : 0;
}

int jobs_has_own_verbs(struct jobs *jobs)
{
	struct reply reply;

	/* It does not matter whether there is such a key. */
	if (client_ask(&jobs->client, &reply, "stats-key weekwheel"))
		return -1;
	/*
	 * beanstalkd takes this for a misspelt "stats" or does not know it. A weekwheeld that cannot reach its Redis
	 * knows the verb, but not the answer.
	 */
	return reply_is(&reply, "OK") || reply_is(&reply, "NOT_FOUND") || reply_is(&reply, "DENIED") ||
	       reply_is(&reply, "INTERNAL_ERROR");
}
