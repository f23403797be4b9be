/* The command sessions: how many sessions a server has, and when they expire. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "tools/weekwheel/sessions/survey.h"

enum { BATCH = 1000, PORT = 6380, HOST_MAX = 256, TIMEOUT_S = 10, LARGEST = 5 };
enum { OPTION_DATABASE = 1, OPTION_MATCH, OPTION_LARGEST };

struct sessions {
	int json;
	char host[HOST_MAX];
	int port;
	int is_given; /* the address */
	uint64_t database;
	const char *match; /* NULL: all keys */
	redisContext *redis;
	uint64_t expected; /* keys of the database, for the bar */
	struct survey survey;
};

static const struct option table[] = {
    {OPTION_DATABASE, 'n', "db", "N", "the database (0)"},
    {OPTION_MATCH, 'm', "match", "PATTERN", "only keys like this, as in 'sess:*'"},
    {OPTION_LARGEST, 'l', "largest", "N", "how many of the largest to show (5; at most 100)"},
    {JOBS_FLAG(struct sessions, json), 'j', "json", NULL, "write one JSON object"},
    JOBS_HELP_OPTION,
};

/* ---- Asking */

static int lost(const struct sessions *sessions)
{
	progress_clear();
	return message_error("%s:%d: %s; is weekwheel-sessiond running there?", sessions->host, sessions->port,
	    sessions->redis && *sessions->redis->errstr ? sessions->redis->errstr : "no memory");
}

/* The next answer, which the caller frees, or NULL after a message. */
static redisReply *answer(const struct sessions *sessions)
{
	void *reply = NULL;

	if (redisGetReply(sessions->redis, &reply) != REDIS_OK || !reply)
		lost(sessions);
	return reply;
}

/* An answer that must be no error. */
static redisReply *good(const struct sessions *sessions)
{
	redisReply *reply = answer(sessions);

	if (!reply || reply->type != REDIS_REPLY_ERROR)
		return reply;
	progress_clear();
	message_error("%s:%d: %s%s", sessions->host, sessions->port, reply->str,
	    strncmp(reply->str, "NOAUTH", 6) == 0 ? "; set REDISCLI_AUTH in the environment to the password" : "");
	freeReplyObject(reply);
	return NULL;
}

/* Read an answer of no interest. */
static int done(const struct sessions *sessions)
{
	redisReply *reply = good(sessions);

	freeReplyObject(reply);
	return reply ? 0 : -1;
}

static int start(struct sessions *sessions)
{
	const char *password = getenv("REDISCLI_AUTH");
	redisReply *reply;

	sessions->redis =
	    redisConnectWithTimeout(sessions->host, sessions->port, (struct timeval){.tv_sec = TIMEOUT_S});
	if (!sessions->redis || sessions->redis->err)
		return lost(sessions);
	(void)redisSetTimeout(sessions->redis, (struct timeval){.tv_sec = TIMEOUT_S});
	if (password && *password && (redisAppendCommand(sessions->redis, "AUTH %s", password) || done(sessions)))
		return -1;
	if (sessions->database &&
	    (redisAppendCommand(sessions->redis, "SELECT %llu", (unsigned long long)sessions->database) ||
	        done(sessions)))
		return -1;
	reply = redisAppendCommand(sessions->redis, "DBSIZE") ? NULL : good(sessions);
	if (!reply)
		return -1;
	sessions->expected = reply->type == REDIS_REPLY_INTEGER ? (uint64_t)reply->integer : 0;
	freeReplyObject(reply);
	return 0;
}

/* Ask for times and sizes of the keys of a page, all at once. */
static int ask_each(struct sessions *sessions, const redisReply *keys)
{
	for (size_t i = 0; i < keys->elements; i++) {
		const redisReply *key = keys->element[i];

		if (redisAppendCommand(sessions->redis, "PTTL %b", key->str, key->len) ||
		    redisAppendCommand(sessions->redis, "STRLEN %b", key->str, key->len))
			return lost(sessions);
	}
	for (size_t i = 0; i < keys->elements; i++) {
		redisReply *left = good(sessions);
		redisReply *size = left ? answer(sessions) : NULL;

		if (size)
			survey_add(&sessions->survey, keys->element[i]->str, keys->element[i]->len, left->integer,
			    size->type == REDIS_REPLY_INTEGER ? size->integer : -1);
		freeReplyObject(left);
		freeReplyObject(size);
		if (!size)
			return -1;
	}
	progress_show(sessions->survey.keys, sessions->expected);
	return 0;
}

static int append_scan(const struct sessions *sessions, const char *cursor)
{
	return sessions->match
	           ? redisAppendCommand(sessions->redis, "SCAN %s MATCH %s COUNT %d", cursor, sessions->match, BATCH)
	           : redisAppendCommand(sessions->redis, "SCAN %s COUNT %d", cursor, BATCH);
}

static int look_at_all(struct sessions *sessions)
{
	char cursor[32] = "0";
	int failed = 0;

	do {
		redisReply *page = append_scan(sessions, cursor) ? NULL : good(sessions);

		if (!page)
			return -1;
		failed = page->type != REDIS_REPLY_ARRAY || page->elements != 2 ||
		         page->element[1]->type != REDIS_REPLY_ARRAY;
		if (failed)
			message_error("%s:%d: this is no server of sessions", sessions->host, sessions->port);
		if (!failed) {
			snprintf(cursor, sizeof cursor, "%s", page->element[0]->str ? page->element[0]->str : "0");
			failed = ask_each(sessions, page->element[1]);
		}
		freeReplyObject(page);
	} while (!failed && strcmp(cursor, "0") != 0);
	return failed ? -1 : 0;
}

/* ---- Showing */

static const char *const wheels[SURVEY_WHEELS] = {[SURVEY_SECONDS] = "within a minute",
    [SURVEY_MINUTES] = "within an hour",
    [SURVEY_HOURS] = "within a day",
    [SURVEY_WEEK] = "within a week",
    [SURVEY_LATER] = "later",
    [SURVEY_NEVER] = "never"};

static void show_bytes(char text[32], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double number = (double)bytes;
	size_t unit = 0;

	for (; number >= 1024 && unit < sizeof units / sizeof *units - 1; unit++)
		number /= 1024;
	snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
}

static void write_row(const char *title, uint64_t count, uint64_t most)
{
	char bar[FORECAST_BAR + 1];

	forecast_bar(bar, FORECAST_BAR, count, most);
	printf(*bar ? "  %-16s %12" PRIu64 "  %s\n" : "  %-16s %12" PRIu64 "%s\n", title, count, bar);
}

static uint64_t most_of(const uint64_t *counts, size_t count)
{
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = counts[i] > most ? counts[i] : most;
	return most;
}

static void write_days(const struct survey *survey)
{
	uint64_t most = most_of(survey->by_day, SURVEY_DAYS);

	printf("\nThe next 7 days\n");
	for (int day = 0; day < SURVEY_DAYS; day++) {
		time_t from = (time_t)(time_now() / DURATION_SECOND + (uint64_t)day * 86400);
		char title[40] = "";
		struct tm tm;

		if (localtime_r(&from, &tm))
			strftime(title, sizeof title, "%a %d %b %H:%M", &tm);
		write_row(title, survey->by_day[day], most);
	}
}

static void write_largest(const struct survey *survey)
{
	if (survey->largest_count > 0)
		printf("\nThe largest\n");
	for (size_t i = 0; i < survey->largest_count; i++) {
		const struct survey_key *key = &survey->largest[i];
		char size[32], left[DURATION_TEXT], excerpt[SURVEY_KEY];

		show_bytes(size, key->size);
		message_excerpt(excerpt, sizeof excerpt, key->text, key->length);
		if (key->left_ms < 0)
			printf("  %10s  %s%s, no deadline\n", size, excerpt, key->is_cut ? "..." : "");
		else
			printf("  %10s  %s%s, expires in %s\n", size, excerpt, key->is_cut ? "..." : "",
			    duration_format(left, (uint64_t)key->left_ms * 1000000));
	}
}

static void write_text(const struct sessions *sessions)
{
	const struct survey *survey = &sessions->survey;
	uint64_t most = most_of(survey->by_wheel, SURVEY_WHEELS);
	char size[32];

	show_bytes(size, survey->bytes);
	printf("%s:%d has %" PRIu64 " session%s%s%s, with %s of values.\n", sessions->host, sessions->port,
	    survey->keys, jobs_plural(survey->keys), sessions->match ? " like " : "",
	    sessions->match ? sessions->match : "", size);
	if (survey->others > 0)
		printf("Not all are values: the size of %" PRIu64 " key%s is not counted.\n", survey->others,
		    jobs_plural(survey->others));
	printf("\nThey expire\n");
	for (int i = 0; i < SURVEY_WHEELS; i++)
		write_row(wheels[i], survey->by_wheel[i], most);
	write_days(survey);
	write_largest(survey);
}

static void write_json(const struct sessions *sessions)
{
	static const char *const names[SURVEY_WHEELS] = {"minute", "hour", "day", "week", "later", "never"};
	const struct survey *survey = &sessions->survey;

	printf("{\"sessions\":%" PRIu64 ",\"value_bytes\":%" PRIu64 ",\"other_keys\":%" PRIu64 ",\"expire_within\":{",
	    survey->keys, survey->bytes, survey->others);
	for (int i = 0; i < SURVEY_WHEELS; i++)
		printf("%s\"%s\":%" PRIu64, i ? "," : "", names[i], survey->by_wheel[i]);
	printf("},\"days\":[");
	for (int i = 0; i < SURVEY_DAYS; i++)
		printf("%s%" PRIu64, i ? "," : "", survey->by_day[i]);
	printf("],\"largest\":[");
	for (size_t i = 0; i < survey->largest_count; i++) {
		const struct survey_key *key = &survey->largest[i];

		printf("%s{\"key\":", i ? "," : "");
		json_write_string(stdout, key->text, key->length);
		printf(",\"cut\":%s,\"bytes\":%" PRIu64 ",\"left_ms\":", key->is_cut ? "true" : "false", key->size);
		printf(key->left_ms < 0 ? "null}" : "%" PRId64 "}", key->left_ms);
	}
	printf("]}\n");
}

/* ---- The command */

static int take_address(struct sessions *sessions, const struct options *options)
{
	const char *text = options->value;
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	uint64_t port = PORT;

	if (sessions->is_given++)
		return options_fail(options, "'%s': one address is expected", text);
	if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	if (!colon || length == 0 || length >= HOST_MAX || number_whole(colon + 1, strlen(colon + 1), 1, 65535, &port))
		return options_fail(options, "'%s': expected HOST:PORT, such as 127.0.0.1:6380", options->value);
	memcpy(sessions->host, text, length);
	sessions->host[length] = 0;
	sessions->port = (int)port;
	return 0;
}

static int take(void *context, struct options *options, int id)
{
	struct sessions *sessions = context;
	uint64_t number;

	switch (id) {
	case OPTION_DATABASE:
		return jobs_whole(options, "db", 0, 1000000, &sessions->database, "a whole number");
	case OPTION_MATCH:
		sessions->match = options->value;
		return 0;
	case OPTION_LARGEST:
		if (jobs_whole(options, "largest", 0, SURVEY_LARGEST_MAX, &number, "a whole number, at most 100"))
			return OPTIONS_ERROR;
		sessions->survey.largest_most = (size_t)number;
		return 0;
	default:
		return take_address(sessions, options);
	}
}

static int run(void *context)
{
	struct sessions *sessions = context;
	int failed;

	progress_begin("sessions");
	failed = start(sessions) || look_at_all(sessions);
	progress_clear();
	if (sessions->redis)
		redisFree(sessions->redis);
	if (failed)
		return -1;
	if (sessions->json)
		write_json(sessions);
	else
		write_text(sessions);
	return 0;
}

const struct jobs_command command_sessions = {
    .name = "weekwheel sessions",
    JOBS_TABLE(table),
    .context = &(struct sessions){.host = "127.0.0.1", .port = PORT, .survey = {.largest_most = LARGEST}},
    .server = JOBS_NO_SERVER,
    .take = take,
    .run = run,
    .usage = "Usage: weekwheel sessions [OPTION]... [HOST:PORT]\n"
             "\n"
             "Count the sessions of a server, 127.0.0.1:6380 unless said otherwise: by the time that\n"
             "remains to them, by the days of the week on which they expire, and the largest. Redis\n"
             "answers, too. It asks for each key; a million take some seconds.\n",
    .examples = "Example:\n"
                "  weekwheel sessions --match 'sess:*' 127.0.0.1:6380\n",
};
