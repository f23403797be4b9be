/* Options whose value is a number. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/weekwheeld/settings/part.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs_redis.h"

enum kind { WHOLE, SECONDS /* kept in ns */ };

static const struct number {
	int id;
	enum kind kind;
	uint64_t least;
	uint64_t most;
	size_t at; /* in struct settings */
	const char *what;
} numbers[] = {
    {OPTION_SYNC_INTERVAL, SECONDS, WW_MILLISECOND, 3600 * WW_SECOND, offsetof(struct settings, sync_ns), "seconds"},
    {OPTION_JOB_SIZE, WHOLE, 1, WW_JOB_BODY_MAX, offsetof(struct settings, max_job_size), "bytes"},
    {OPTION_CONNECTIONS, WHOLE, 0, 10000000, offsetof(struct settings, max_connections),
        "a whole number (0: as many as \"ulimit -n\" allows)"},
    {OPTION_OUTPUT, WHOLE, 4096, WW_JOB_BODY_MAX, offsetof(struct settings, max_output), "bytes"},
    {OPTION_REDIS_SHARDS, WHOLE, 1, WW_REDIS_SHARDS_MAX, offsetof(struct settings, redis.shards), "a whole number"},
    {OPTION_REDIS_LEASE, SECONDS, WW_SECOND, 3600 * WW_SECOND, offsetof(struct settings, redis.lease), "seconds"},
    {OPTION_REDIS_TIMEOUT, SECONDS, 10 * WW_MILLISECOND, 3600 * WW_SECOND, offsetof(struct settings, redis.timeout),
        "seconds"},
    {OPTION_PUSH_IN_FLIGHT, WHOLE, 1, 65536, offsetof(struct settings, push.in_flight), "a whole number"},
    {OPTION_PUSH_PER_HOST, WHOLE, 1, 65536, offsetof(struct settings, push.per_host), "a whole number"},
    {OPTION_PUSH_TIMEOUT, SECONDS, WW_MILLISECOND, 86400 * WW_SECOND, offsetof(struct settings, push.timeout),
        "seconds"},
    {OPTION_PUSH_CONNECT_TIMEOUT, SECONDS, WW_MILLISECOND, 3600 * WW_SECOND,
        offsetof(struct settings, push.connect_timeout), "seconds"},
    {OPTION_PUSH_GRACE, SECONDS, 0, 3600 * WW_SECOND, offsetof(struct settings, push.grace), "seconds"},
};

static int read_number(const struct number *number, const char *text, uint64_t *value)
{
	if (number->kind == WHOLE)
		return options_whole(text, number->least, number->most, value);
	return words_seconds(settings_span(text), number->most / WW_SECOND, value) == 0 && *value >= number->least &&
	               *value <= number->most
	           ? 0
	           : -1;
}

static int bad_number(const struct number *number, const struct options *options)
{
	char expected[120];

	if (number->kind == WHOLE)
		snprintf(expected, sizeof expected, "%s, %" PRIu64 " to %" PRIu64, number->what, number->least,
		    number->most);
	else
		snprintf(expected, sizeof expected, "%s, %g to %g", number->what, (double)number->least / WW_SECOND,
		    (double)number->most / WW_SECOND);
	return settings_bad(options, number->id, expected);
}

int settings_number(struct settings *settings, const struct options *options, int id)
{
	uint64_t value;
	size_t i;

	for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (numbers[i].id != id)
			continue;
		if (read_number(&numbers[i], options->value, &value) != 0)
			return bad_number(&numbers[i], options);
		*(uint64_t *)(void *)((char *)settings + numbers[i].at) = value;
		return 0;
	}
	return 1;
}
