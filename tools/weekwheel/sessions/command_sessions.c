/* The command sessions: how many sessions a server has, and when they expire. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/dial.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/survey.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "tools/weekwheel/sessions/counted.h"
#include "tools/weekwheel/sessions/peer.h"

enum { BATCH = 1000, LARGEST = 5 };
enum { OPTION_DATABASE = 1, OPTION_MATCH, OPTION_LARGEST, OPTION_KEY };

struct sessions {
	struct jobs jobs;
	const char *address;
	int is_given;           /* the address */
	const char *counted_at; /* its part after http://, or tls: for https://; NULL: it speaks Redis's protocol */
	uint64_t database;
	const char *match; /* NULL: all keys */
	const char *key;   /* the only one that is asked about; NULL: all are counted */
	struct peer peer;
	uint64_t expected; /* keys of the database, for the bar */
	struct survey survey;
	struct counted_key known;
};

static const struct option table[] = {
    {OPTION_DATABASE, 'n', "db", "N", "the database (0)"},
    {OPTION_MATCH, 'm', "match", "PATTERN", "only keys like this, as in 'sess:*'"},
    {OPTION_LARGEST, 'l', "largest", "N", "how many of the largest to show (5; at most 100)"},
    {OPTION_KEY, 'k', "key", "KEY", "what a weekwheel-expirer knows of this key"},
    JOBS_TLS_OPTIONS,
    {JOBS_TOKEN_FILE, 0, "token-file", "FILE",
        "send the token or password in this file (default\n$REDISCLI_AUTH, which is itself one)"},
    {JOBS_FLAG(struct jobs, json), 'j', "json", NULL, "write one JSON object"},
    JOBS_HELP_OPTION,
};

/* ---- Asking */

static int log_in(struct sessions *sessions)
{
	const char *password = sessions->jobs.is_token_given ? sessions->jobs.token : getenv("REDISCLI_AUTH");

	if (!password || !*password)
		return 0;
	peer_ask(&sessions->peer, "AUTH %s", password);
	return peer_done(&sessions->peer);
}

static int start(struct sessions *sessions)
{
	struct jobs *jobs = &sessions->jobs;
	struct peer *peer = &sessions->peer;
	redisReply *reply;

	*peer = (struct peer){.client = &jobs->client,
	    .address = sessions->address,
	    .remedy = "set REDISCLI_AUTH in the environment to the password, or give --token-file"};
	if (peer_open(peer, &jobs->tls, "is weekwheel-sessiond running there?") || log_in(sessions))
		return -1;
	peer_ask(peer, "SELECT %llu", (unsigned long long)sessions->database);
	peer_ask(peer, "DBSIZE");
	if (peer_done(peer))
		return -1;
	reply = peer_good(peer);
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

		peer_ask(&sessions->peer, "PTTL %b", key->str, key->len);
		peer_ask(&sessions->peer, "STRLEN %b", key->str, key->len);
	}
	for (size_t i = 0; i < keys->elements; i++) {
		redisReply *left = peer_good(&sessions->peer);
		redisReply *size = left ? peer_answer(&sessions->peer) : NULL;

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

static int ask_counted(struct sessions *sessions)
{
	struct jobs *jobs = &sessions->jobs;
	struct client *client = &jobs->client;
	const char *token = jobs->is_token_given ? jobs->token : "";
	int failed = client_connect(client, "does a weekwheel-expirer serve --http there?") ||
	             client_secure(client, &jobs->tls) ||
	             (sessions->key ? counted_ask_key(client, token, sessions->key, &sessions->known)
	                            : counted_ask(client, token, &sessions->survey));

	client_close(client);
	return failed;
}

static int look_at_all(struct sessions *sessions)
{
	char cursor[PEER_CURSOR] = "0";
	int failed = 0;

	do {
		redisReply *page = peer_scan(&sessions->peer, cursor, sessions->match, BATCH);

		failed = !page || ask_each(sessions, page->element[1]);
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
		time_t from = (time_t)(wall_now() / DURATION_SECOND + (uint64_t)day * 86400);
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

	printf("%s has %" PRIu64 " session%s%s%s", sessions->address, survey->keys, jobs_plural(survey->keys),
	    sessions->match ? " like " : "", sessions->match ? sessions->match : "");
	show_bytes(size, survey->bytes);
	if (survey->others < survey->keys || survey->keys == 0)
		printf(", with %s of values", size);
	printf(".\n");
	if (survey->others > 0 && survey->others < survey->keys)
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

/* ---- One key */

static const char *explain(const char *how)
{
	if (strcmp(how, "sure") == 0)
		return "Redis said so, and has reported no change since.";
	if (strcmp(how, "asked") == 0)
		return "That has passed: Redis is being asked whether it is gone.";
	return "It may have changed since Redis said so, and has not been looked up again.";
}

static void write_key(const struct sessions *sessions)
{
	const struct counted_key *known = &sessions->known;
	char excerpt[100], left[DURATION_TEXT];

	message_excerpt(excerpt, sizeof excerpt, sessions->key, strlen(sessions->key));
	if (!*known->how)
		printf("%s is not kept: %s.\n", excerpt,
		    known->is_exact
		        ? "it has no deadline, is gone, or is none of the keys that this weekwheel-expirer keeps"
		        : "not all keys have been found yet");
	else if (!*known->deadline)
		printf("%s is at %s, and its deadline is unknown.\n", excerpt, known->node);
	else
		printf("%s ends in %s, at %s by the clock of %s. %s\n", excerpt,
		    duration_format(left, (uint64_t)(strtod(known->left, NULL) * 1000) * 1000000), known->deadline,
		    known->node, explain(known->how));
}

static void write_string(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	if (*text)
		json_write_string(stdout, text, strlen(text));
	else
		printf("null");
}

static void write_key_json(const struct counted_key *known)
{
	printf("{\"kept\":%s,\"exact\":%s", *known->how ? "true" : "false", known->is_exact ? "true" : "false");
	write_string("how", known->how);
	write_string("deadline", known->deadline);
	write_string("node", known->node);
	printf(*known->left ? ",\"left_ms\":%.0f}\n" : ",\"left_ms\":null}\n", strtod(known->left, NULL) * 1000);
}

/* ---- The command */

/* Return 1 if it is a URL of HTTP, whose server has counted. */
static int take_url(struct sessions *sessions, const char *url)
{
	static char place[DIAL_HOST_MAX + sizeof "tls::65535"];
	int is_tls = strncmp(url, "https://", 8) == 0;
	size_t length;

	if (!is_tls && strncmp(url, "http://", 7) != 0)
		return 0;
	(void)snprintf(place, sizeof place, "%s%s", is_tls ? "tls:" : "", url + (is_tls ? 8 : 7));
	length = strlen(place);
	if (length > 0 && place[length - 1] == '/')
		place[length - 1] = 0;
	sessions->counted_at = place;
	return 1;
}

static int take_address(struct sessions *sessions, const struct options *options)
{
	const char *place = options->value;

	if (sessions->is_given++)
		return options_fail(options, "'%s': one address is expected", options->value);
	sessions->address = options->value;
	if (take_url(sessions, place))
		place = sessions->counted_at;
	if (!dial_is_address(place))
		return options_fail(options,
		    "'%s': expected HOST:PORT, such as 127.0.0.1:6380, tls:HOST:PORT, unix:PATH or http://HOST:PORT",
		    options->value);
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
	case OPTION_KEY:
		sessions->key = options->value;
		return *sessions->key ? 0 : options_fail(options, "--key is empty");
	case OPTION_LARGEST:
		if (jobs_whole(options, "largest", 0, SURVEY_LARGEST_MAX, &number, "a whole number, at most 100"))
			return OPTIONS_ERROR;
		sessions->survey.largest_most = (size_t)number;
		return 0;
	default:
		return take_address(sessions, options);
	}
}

static int check(void *context, const struct options *options)
{
	const struct sessions *sessions = context;

	if (sessions->key && !sessions->counted_at)
		return options_fail(options,
		    "--key asks a weekwheel-expirer: give the address of its --http, http://HOST:PORT. Redis itself "
		    "says it, too: redis-cli pexpiretime KEY");
	if (sessions->counted_at && (sessions->match || sessions->database))
		return options_fail(
		    options, "%s: what a server has counted cannot be asked for by --match or --db", sessions->address);
	return 0;
}

static void write_result(const struct sessions *sessions)
{
	if (sessions->key && sessions->jobs.json)
		write_key_json(&sessions->known);
	else if (sessions->key)
		write_key(sessions);
	else if (sessions->jobs.json)
		write_json(sessions);
	else
		write_text(sessions);
}

static int run(void *context)
{
	struct sessions *sessions = context;
	int failed;

	sessions->jobs.client.server = sessions->counted_at ? sessions->counted_at : sessions->address;
	sessions->jobs.client.timeout_ms = sessions->jobs.timeout_ms;
	progress_begin("sessions");
	failed = sessions->counted_at ? ask_counted(sessions) : start(sessions) || look_at_all(sessions);
	progress_clear();
	if (!sessions->counted_at)
		peer_close(&sessions->peer);
	if (failed)
		return -1;
	write_result(sessions);
	return 0;
}

const struct jobs_command command_sessions = {
    .name = "weekwheel sessions",
    JOBS_TABLE(table),
    .context = &(struct sessions){.address = "127.0.0.1:6380", .survey = {.largest_most = LARGEST}},
    .server = JOBS_ADDRESS,
    .take = take,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel sessions [OPTION]... [ADDRESS]\n"
             "\n"
             "Count the sessions of a server, 127.0.0.1:6380 unless said otherwise: by the time that\n"
             "remains to them, by the days of the week on which they expire, and the largest. An address\n"
             "is HOST:PORT, tls:HOST:PORT or unix:PATH. Redis answers, too. It asks for each key; a\n"
             "million take some seconds.\n"
             "\n"
             "http://HOST:PORT or https://HOST:PORT is the address of --http of a weekwheel-expirer, or a\n"
             "weekwheel-sessiond: it has counted, and nothing is asked of Redis. An expirer counts the keys\n"
             "with a deadline of all masters. --db and --match are not for it. --key shows when a key ends,\n"
             "and how an expirer knows that.\n",
    .examples = "Example:\n"
                "  weekwheel sessions --match 'sess:*' 127.0.0.1:6380\n"
                "  weekwheel sessions http://127.0.0.1:6382\n"
                "  weekwheel sessions --token-file token --tls-ca ca.pem tls:sessions.example.com:6381\n",
};
