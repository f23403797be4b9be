/* Reads the values of options: numbers and their defaults, files, and what is wrong with them. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/weekwheeld/settings/read.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs_redis.h"

enum { FILE_MAX = 1 << 20 };

struct span settings_span(const char *text)
{
	return (struct span){text, text + strlen(text)};
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

/* ---- Numbers */

enum kind { WHOLE, BYTES, BYTES_OR_0, TIME /* stored in ns */ };

#define MEMBER(name) offsetof(struct settings, name), sizeof((struct settings *)0)->name

static const struct number {
	int id;
	enum kind kind;
	uint64_t least;
	uint64_t most;
	uint64_t preset;
	size_t at; /* in struct settings */
	size_t size;
} numbers[] = {
    {OPTION_SYNC_INTERVAL, TIME, WW_MILLISECOND, 3600 * WW_SECOND, 50 * WW_MILLISECOND, MEMBER(sync_ns)},
    {OPTION_DOWNTIME, TIME, 0, 3650 * 86400 * WW_SECOND, 30 * 86400 * WW_SECOND, MEMBER(max_downtime)},
    {OPTION_DISK, BYTES_OR_0, WW_JOBS_DISK_LEAST, UINT64_C(1) << 50, 0, MEMBER(max_disk)},
    {OPTION_JOB_SIZE, BYTES, 1, WW_JOB_BODY_MAX, 65535, MEMBER(max_job_size)},
    {OPTION_CONNECTIONS, WHOLE, 0, 10000000, 0, MEMBER(max_connections)},
    {OPTION_PER_ADDRESS, WHOLE, 0, 10000000, 0, MEMBER(max_per_address)},
    {OPTION_BUFFERS, BYTES, 1 << 20, UINT64_C(1) << 50, 256 << 20, MEMBER(max_buffers)},
    {OPTION_MAX_MEMORY, BYTES, 16 << 20, UINT64_C(1) << 50, 0, MEMBER(max_memory)},
    {OPTION_WATCHED, WHOLE, 1, 1000000, 10000, MEMBER(max_watched)},
    {OPTION_TUBES, WHOLE, 1, 10000000, 100000, MEMBER(max_tubes)},
    {OPTION_JOBS, WHOLE, 0, UINT64_C(1) << 50, 0, MEMBER(max_jobs)},
    {OPTION_TUBE_JOBS, WHOLE, 0, UINT64_C(1) << 50, 0, MEMBER(max_tube_jobs)},
    {OPTION_HISTORY, WHOLE, 0, 10000000, 10000, MEMBER(max_history)},
    {OPTION_OUTPUT, BYTES, 4096, WW_JOB_BODY_MAX, 4 << 20, MEMBER(max_output)},
    {OPTION_REDIS_SHARDS, WHOLE, 1, WW_REDIS_SHARDS_MAX, 0, MEMBER(redis.shards)},
    {OPTION_REDIS_REPLICAS, WHOLE, 0, WW_REDIS_REPLICAS_MAX, 0, MEMBER(redis.replicas)},
    {OPTION_REDIS_LEASE, TIME, WW_SECOND, 3600 * WW_SECOND, 6 * WW_SECOND, MEMBER(redis.lease)},
    {OPTION_REDIS_TIMEOUT, TIME, 10 * WW_MILLISECOND, 3600 * WW_SECOND, 2 * WW_SECOND, MEMBER(redis.timeout)},
    {OPTION_PUSH_IN_FLIGHT, WHOLE, 1, 65536, 256, MEMBER(push.config.in_flight)},
    {OPTION_PUSH_PER_HOST, WHOLE, 1, 65536, 16, MEMBER(push.config.per_host)},
    {OPTION_PUSH_TIMEOUT, TIME, WW_MILLISECOND, 86400 * WW_SECOND, 30 * WW_SECOND, MEMBER(push.config.timeout)},
    {OPTION_PUSH_ATTEMPTS, WHOLE, 0, 1000000, 25, MEMBER(push.config.attempts)},
    {OPTION_PUSH_REST_AFTER, WHOLE, 0, 1000000, 5, MEMBER(push.config.rest_after)},
    {OPTION_PUSH_CONNECT_TIMEOUT, TIME, WW_MILLISECOND, 3600 * WW_SECOND, 5 * WW_SECOND,
        MEMBER(push.config.connect_timeout)},
    {OPTION_PUSH_GRACE, TIME, 0, 3600 * WW_SECOND, 10 * WW_SECOND, MEMBER(push.grace)},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void number_store(struct settings *settings, const struct number *number, uint64_t value)
{
	void *to = (char *)settings + number->at;

	if (number->size == sizeof(uint64_t))
		*(uint64_t *)to = value;
	else
		*(uint32_t *)to = (uint32_t)value;
}

void settings_number_defaults(struct settings *settings)
{
	for (int i = 0; i < NUMBERS; i++)
		number_store(settings, &numbers[i], numbers[i].preset);
}

static int bad_number(const struct number *number, const struct options *options)
{
	char expected[160], least[DURATION_TEXT], most[DURATION_TEXT];

	if (number->kind == TIME)
		snprintf(expected, sizeof expected, "a time such as 50ms, 2s or 30d, %s to %s",
		    duration_format(least, number->least), duration_format(most, number->most));
	else
		snprintf(expected, sizeof expected, "%s, %" PRIu64 " to %" PRIu64 "%s",
		    number->kind == WHOLE ? "a whole number" : "bytes", number->least, number->most,
		    number->kind == WHOLE   ? ""
		    : number->kind == BYTES ? ", also as in 64M and 10G"
		                            : ", also as in 64M and 10G, or 0");
	return settings_bad(options, number->id, expected);
}

int settings_number(struct settings *settings, const struct options *options, int id)
{
	const struct number *number = numbers;
	struct duration_problem problem;
	uint64_t value;
	int bad;

	while (number < numbers + NUMBERS && number->id != id)
		number++;
	if (number == numbers + NUMBERS)
		return 1;
	if (number->kind == TIME)
		bad = duration_parse(options->value, &value, &problem) != 0 || value < number->least ||
		      value > number->most;
	else
		bad = (number->kind == WHOLE ? options_whole : options_bytes)(
		          options->value, number->least, number->most, &value) != 0;
	if (number->kind == BYTES_OR_0 && options_whole(options->value, 0, 0, &value) == 0)
		bad = 0;
	if (bad)
		return bad_number(number, options);
	number_store(settings, number, value);
	return 0;
}

/* ---- Files */

/* Memory for the life of the program, since settings point into it. */
struct kept {
	struct kept *next;
	char text[];
};

static struct kept *all_kept;

char *settings_keep(size_t size)
{
	struct kept *kept = calloc(1, sizeof *kept + size);

	if (!kept)
		return NULL;
	kept->next = all_kept;
	all_kept = kept;
	return kept->text;
}

static char *read_text(const struct options *options, int id, const char *what, int is_line)
{
	char *text = settings_keep(FILE_MAX + 1);
	FILE *file = text ? fopen(options->value, "r") : NULL;
	int error = 0;

	/* The writer of a line, such as a shell, may keep its pipe open. */
	if (!file || (is_line ? !fgets(text, FILE_MAX, file) && ferror(file)
	                      : fread(text, 1, FILE_MAX, file) < FILE_MAX && ferror(file)))
		error = errno;
	if (file)
		fclose(file);
	if (!error)
		return text;
	(void)settings_bad_file(options, id, what, strerror(error));
	return NULL;
}

char *settings_file(const struct options *options, int id, const char *what)
{
	return read_text(options, id, what, 0);
}

const char *settings_line(const struct options *options, int id, const char *what)
{
	char *text = read_text(options, id, what, 1);
	struct stat about;

	if (!text)
		return NULL;
	if (stat(options->value, &about) == 0 && S_ISREG(about.st_mode) && about.st_mode & 077)
		message_warning("others may read %s: \"chmod 600\" keeps it secret", options->value);
	text[strcspn(text, "\r\n")] = 0;
	if (*text)
		return text;
	(void)settings_bad_file(options, id, what, "its first line is empty");
	return NULL;
}
