/* Asks a server over HTTP what it has counted: see counted.h. */
#include "tools/weekwheel/sessions/counted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/dial.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/common/percent.h"

enum { HEAD_MAX = 16384, TEXT_MAX = 1 << 20, EXCERPT = 300 };

struct answer {
	unsigned status;
	size_t head; /* bytes */
	size_t size; /* of the text behind it */
};

/* ---- One request */

static int fail(const struct client *client, const char *why)
{
	return message_error("%s: %s", client->server, why);
}

static void send_request(struct client *client, const char *path, const char *token)
{
	const char *host = strncmp(client->server, "tls:", 4) == 0 ? client->server + 4 : client->server;

	client_line(client, "GET /v1/%s HTTP/1.1", path);
	client_line(client, "Host: %s", strncmp(host, "unix:", 5) == 0 ? "localhost" : host);
	if (*token)
		client_line(client, "Authorization: Bearer %s", token);
	client_line(client, "%s", "");
}

/* The head, which ends in an empty line, is text[0 .. length-1]. Returns 0, or -1 if it is none. */
static int read_head(char *text, size_t length, struct answer *answer)
{
	uint64_t number;
	int has_size = 0;
	char *rest = text;

	*answer = (struct answer){.head = length};
	text[length - 2] = 0;
	if (sscanf(text, "HTTP/1.1 %3u", &answer->status) != 1)
		return -1;
	for (const char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
		if (strncasecmp(line, "Content-Length:", 15) != 0)
			continue;
		if (options_whole(line + 15 + strspn(line + 15, " "), 0, TEXT_MAX, &number))
			return -1;
		answer->size = (size_t)number;
		has_size = 1;
	}
	return has_size ? 0 : -1;
}

/* Wait until the head of an answer is there, and then its text. */
static int await_answer(struct client *client, struct answer *answer)
{
	const struct buffer *in = &client->channel.in;
	const char *end;

	while (!(end = in->size ? memmem(in->data, in->size, "\r\n\r\n", 4) : NULL)) {
		if (in->size > HEAD_MAX || (in->size >= 5 && memcmp(in->data, "HTTP/", 5) != 0))
			return fail(client, "this is not HTTP: give the address of --http");
		if (client_await(client))
			return -1;
	}
	if (read_head(in->data, (size_t)(end - in->data) + 4, answer) != 0)
		return fail(client, "this is not the HTTP of a weekwheel-expirer or weekwheel-sessiond");
	while (in->size < answer->head + answer->size)
		if (client_await(client))
			return -1;
	return 0;
}

static int refused(const struct client *client, const struct answer *answer, const char *path, const char *text)
{
	size_t size = answer->size < EXCERPT ? answer->size : EXCERPT;

	while (size > 0 && text[size - 1] == '\n')
		size--;
	if (answer->status == 404 && strncmp(path, "key?", 4) == 0)
		return fail(client, "it is no weekwheel-expirer, or an older one: only that knows about single keys");
	return answer->status == 404 ? fail(client, "it is no weekwheel-expirer or weekwheel-sessiond")
	                             : message_error("%s: %.*s", client->server, (int)size, text);
}

/* What is done with the text of an answer. Returns 0, or -1: it makes no sense. */
typedef int take_fn(const char *text, size_t size, void *context);

static int get(struct client *client, const char *token, const char *path, take_fn *take, void *context)
{
	struct buffer *in = &client->channel.in;
	struct answer answer;
	const char *text;
	int result;

	send_request(client, path, token);
	if (client_flush(client) || await_answer(client, &answer))
		return -1;
	text = in->data + answer.head;
	if (answer.status != 200)
		result = refused(client, &answer, path, text);
	else
		result = take(text, answer.size, context) ? fail(client, "its answer makes no sense") : 0;
	buffer_drop(in, answer.head + answer.size);
	return result;
}

/* ---- What is asked */

/* Of a number that fits nowhere, the most; of what is none, and of less than nothing, nothing. */
static int64_t ms_of(const char *seconds)
{
	double ms = strtod(seconds, NULL) * 1000;

	return ms >= (double)INT64_MAX ? INT64_MAX : ms > 0 ? (int64_t)ms : 0;
}

/* Those of the wheel before are among them. */
static int take_wheel(const char *text, size_t size, struct survey *survey, int wheel)
{
	uint64_t count;

	if (json_array(json_member(text, size, "counts"), &count, 1) != 1)
		return -1;
	for (int before = SURVEY_SECONDS; before < wheel; before++)
		count -= survey->by_wheel[before] < count ? survey->by_wheel[before] : count;
	survey->by_wheel[wheel] = count;
	return 0;
}

static int take_minute(const char *text, size_t size, void *survey)
{
	return take_wheel(text, size, survey, SURVEY_SECONDS);
}

static int take_hour(const char *text, size_t size, void *survey)
{
	return take_wheel(text, size, survey, SURVEY_MINUTES);
}

static int take_days(const char *text, size_t size, void *context)
{
	struct survey *survey = context;
	uint64_t *days = survey->by_day;

	if (json_array(json_member(text, size, "counts"), days, SURVEY_DAYS) != SURVEY_DAYS)
		return -1;
	for (int day = 1; day < SURVEY_DAYS; day++)
		survey->by_wheel[SURVEY_WEEK] += days[day];
	return take_wheel(text, size, survey, SURVEY_HOURS);
}

static void take_largest(const char *text, size_t size, struct survey_key *key)
{
	char left[40];

	(void)json_text(text, size, "key", key->text, sizeof key->text);
	(void)json_text(text, size, "left", left, sizeof left);
	key->length = strlen(key->text);
	key->is_cut = 1;
	key->database = (unsigned)json_whole(text, size, "database");
	key->size = json_whole(text, size, "bytes");
	key->left_ms = *left ? ms_of(left) : -1;
}

static int take_sum(const char *text, size_t size, void *context)
{
	struct survey *survey = context;
	struct json_value largest = json_member(text, size, "largest");
	struct json_value one;
	size_t at = 0;

	if (json_member(text, size, "sessions").kind != JSON_NUMBER)
		return -1;
	survey->keys = json_whole(text, size, "sessions");
	survey->others = json_whole(text, size, "other_keys");
	survey->bytes = json_whole(text, size, "value_bytes");
	survey->by_wheel[SURVEY_LATER] = json_whole(text, size, "later");
	survey->by_wheel[SURVEY_NEVER] = json_whole(text, size, "never");
	while (survey->largest_count < survey->largest_most && json_element(largest.text, largest.size, &at, &one) == 1)
		take_largest(one.text, one.size, &survey->largest[survey->largest_count++]);
	return 0;
}

int counted_ask(struct client *client, const char *token, struct survey *survey)
{
	return get(client, token, "sessions", take_sum, survey) ||
	               get(client, token, "forecast?span=60&count=1", take_minute, survey) ||
	               get(client, token, "forecast?span=3600&count=1", take_hour, survey) ||
	               get(client, token, "forecast?span=86400&count=7", take_days, survey)
	           ? -1
	           : 0;
}

/* ---- One key */

static int take_key(const char *text, size_t size, void *context)
{
	struct counted_key *known = context;
	struct json_value kept = json_member(text, size, "kept");
	struct json_value exact = json_member(text, size, "exact");

	if (kept.kind != JSON_OTHER || exact.kind != JSON_OTHER)
		return -1;
	*known = (struct counted_key){.is_exact = *exact.text == 't'};
	(void)json_text(text, size, "how", known->how, sizeof known->how);
	(void)json_text(text, size, "deadline", known->deadline, sizeof known->deadline);
	(void)json_text(text, size, "left", known->left, sizeof known->left);
	(void)json_text(text, size, "node", known->node, sizeof known->node);
	return (*kept.text == 't') == (*known->how != 0) ? 0 : -1;
}

int counted_ask_key(struct client *client, const char *token, const char *key, struct counted_key *known)
{
	static const char path[] = "key?key=";
	size_t room = 3 * strlen(key) + 1;
	char *text = memory_zeroed(1, sizeof path + room);
	int failed;

	memcpy(text, path, sizeof path);
	(void)percent_encode(key, strlen(key), text + sizeof path - 1, room);
	failed = get(client, token, text, take_key, known);
	free(text);
	return failed;
}
