/* The two connections to a Redis: see node.h. */
#include "tools/weekwheel-expirer/node/talk.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "lib/base/time.h"
#include "weekwheel/error.h"

#define CHANNEL "__redis__:invalidate"

/* A reply at the ear lists the keys that one turn of Redis changed. */
static const size_t reply_max = (size_t)256 << 20;

/* How long a command waits for its answer. Where replicas may take over, a silent node is left soon. */
static uint64_t patience(const struct talk *talk)
{
	return time_now(CLOCK_MONOTONIC) + (talk->kind == NODE_ALONE ? 3 : 1) * TIME_SECOND;
}

/* ---- What is wrong */

static enum talk_result wrong(struct talk *talk, const char *remedy)
{
	size_t length = strlen(talk->why);

	(void)snprintf(talk->why + length, sizeof talk->why - length, "%s%s", length ? ": " : "", remedy);
	return TALK_WRONG;
}

static enum talk_result judge_error(struct talk *talk, int error)
{
	switch (error) {
	case WW_EDENIED:
		return wrong(
		    talk, "check user, password and rights; weekwheel-expirer(1) has the rights that it needs");
	case WW_EINVAL:
		return wrong(talk, "check the address");
	case WW_ECORRUPT:
		return wrong(talk, "give the address of a Redis from version 6 on, or of what behaves as one");
	default:
		return TALK_AGAIN;
	}
}

int talk_is_ended(int wake)
{
	struct pollfd polled = {.fd = wake, .events = POLLIN};

	return poll(&polled, 1, 0) > 0;
}

/* Send a command. Its answer may be an error. */
static enum talk_result ask(
    struct talk *talk, struct redis_line *line, size_t argc, const char *const *argv, struct redisReply **reply)
{
	int error;

	if (talk_is_ended(talk->wake))
		return TALK_AGAIN;
	error = ww_redis_line_call(line, argc, argv, patience(talk), reply);
	if (error)
		(void)snprintf(talk->why, sizeof talk->why, "%s", ww_redis_line_why(line));
	return error ? TALK_AGAIN : TALK_WORKS;
}

/* The key of the trial is another node's: the command is allowed. */
static int is_elsewhere(const struct redisReply *reply)
{
	return strncmp(reply->str, "MOVED ", 6) == 0 || strncmp(reply->str, "ASK ", 4) == 0 ||
	       strncmp(reply->str, "TRYAGAIN ", 9) == 0;
}

/* Check the answer to a command that must succeed, and free an error. */
static enum talk_result judge_answer(struct talk *talk, const char *command, struct redisReply *reply)
{
	char text[200];
	int error = ww_redis_line_judge(reply, text, sizeof text);

	if (!error || (talk->kind == NODE_OF_CLUSTER && is_elsewhere(reply)))
		return TALK_WORKS;
	(void)snprintf(talk->why, sizeof talk->why, "it answers %s with \"%s\"", command, text);
	ww_redis_line_free(reply);
	return judge_error(talk, error);
}

static enum talk_result call(
    struct talk *talk, struct redis_line *line, size_t argc, const char *const *argv, struct redisReply **reply)
{
	enum talk_result result = ask(talk, line, argc, argv, reply);

	return result == TALK_WORKS ? judge_answer(talk, argv[0], *reply) : result;
}

/* ---- What is there */

static const char *field(const struct redisReply *reply, const char *name)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (reply->element[i]->str && strcmp(reply->element[i]->str, name) == 0)
			return reply->element[i + 1]->str ? reply->element[i + 1]->str : "";
	return "";
}

static enum talk_result judge_server(struct talk *talk, const struct redisReply *hello)
{
	int is_cluster = strcmp(field(hello, "mode"), "cluster") == 0;

	talk->why[0] = 0;
	if (is_cluster != (talk->kind == NODE_OF_CLUSTER))
		return wrong(talk, is_cluster ? "it is a node of a cluster now: start weekwheel-expirer again"
		                              : "it is no node of a cluster any more: start weekwheel-expirer again");
	if (strcmp(field(hello, "role"), "master") == 0)
		return TALK_WORKS;
	if (talk->kind == NODE_ALONE)
		return wrong(talk, "it is a replica, where nothing expires: give the address of its master");
	(void)snprintf(talk->why, sizeof talk->why, "it is a replica");
	return TALK_AGAIN;
}

/* Send HELLO. The caller frees the answer. */
static enum talk_result greet(struct talk *talk, struct redisReply **hello)
{
	int error = ww_redis_line_call(talk->line, 2, (const char *[]){"HELLO", "2"}, patience(talk), hello);
	enum talk_result result = TALK_AGAIN;

	if (error) {
		(void)snprintf(talk->why, sizeof talk->why, "%s", ww_redis_line_why(talk->line));
		return judge_error(talk, error);
	}
	error = ww_redis_line_judge(*hello, talk->why, sizeof talk->why);
	if (error == WW_EDENIED)
		result = judge_error(talk, error);
	else if (error && error != WW_EAGAIN)
		result =
		    wrong(talk, "it does not know HELLO: a Redis from version 6 on is needed, or what behaves as one");
	else if (!error && strcmp(field(*hello, "mode"), "sentinel") == 0)
		result =
		    wrong(talk, "it is a Sentinel: write redis+sentinel://HOST:PORT/NAME, with the name of the master");
	else if (!error)
		return TALK_WORKS;
	ww_redis_line_free(*hello);
	return result;
}

static enum talk_result find_server(struct talk *talk)
{
	static const char *const name[] = {"CLIENT", "SETNAME", "weekwheel-expirer"};
	struct redisReply *reply;
	enum talk_result result = greet(talk, &reply);

	if (result != TALK_WORKS)
		return result;
	result = judge_server(talk, reply);
	ww_redis_line_free(reply);
	/* The name helps readers of CLIENT LIST. Without the right to set it, nothing is lost. */
	if (result == TALK_WORKS && ww_redis_line_call(talk->line, 3, name, patience(talk), &reply) == WW_OK)
		ww_redis_line_free(reply);
	return result;
}

/* ---- Beginning to hear */

static enum talk_result track(struct talk *talk, long long id)
{
	char number[24];
	const char *argv[] = {"CLIENT", "TRACKING", "ON", "REDIRECT", number, "BCAST", "PREFIX", talk->prefix};
	struct redisReply *reply;
	enum talk_result result;

	(void)snprintf(number, sizeof number, "%lld", id);
	result = call(talk, talk->line, *talk->prefix ? 8 : 6, argv, &reply);
	if (result == TALK_WORKS)
		ww_redis_line_free(reply);
	return result;
}

static enum talk_result listen_by_tracking(struct talk *talk)
{
	struct redisReply *reply;
	long long id;
	enum talk_result result = call(talk, talk->ear, 2, (const char *[]){"CLIENT", "ID"}, &reply);

	if (result != TALK_WORKS)
		return result;
	id = reply->integer;
	ww_redis_line_free(reply);
	result = call(talk, talk->ear, 2, (const char *[]){"SUBSCRIBE", CHANNEL}, &reply);
	if (result != TALK_WORKS)
		return result;
	ww_redis_line_free(reply);
	return track(talk, id);
}

/*
 * Keys that come or go, or get another deadline. Any other event leaves the deadline as it is, or the change is found
 * at the old one.
 */
static const char *const events[] = {
    "expire", "persist", "del", "rename_from", "rename_to", "restore", "copy_to", "move_from", "move_to"};
enum { EVENTS = sizeof events / sizeof *events };

/* The answers for all channels except the first arrive at the ear as messages of no interest. */
static enum talk_result subscribe_to_events(struct talk *talk, unsigned db)
{
	char channels[EVENTS][40];
	const char *argv[EVENTS + 1] = {"SUBSCRIBE"};
	struct redisReply *reply;
	enum talk_result result;

	for (size_t i = 0; i < EVENTS; i++) {
		(void)snprintf(channels[i], sizeof channels[i], "__keyevent@%u__:%s", db, events[i]);
		argv[i + 1] = channels[i];
	}
	result = call(talk, talk->ear, EVENTS + 1, argv, &reply);
	if (result == TALK_WORKS)
		ww_redis_line_free(reply);
	return result;
}

/* Ask whether these events are on. The caller frees the answer, which may be an error. */
static enum talk_result ask_for_events(struct talk *talk, struct redisReply **reply)
{
	return ask(talk, talk->line, 3, (const char *[]){"CONFIG", "GET", KEEPER_EVENTS}, reply);
}

static enum talk_result listen_by_events(struct talk *talk, unsigned db)
{
	struct redisReply *reply;
	enum talk_result result = ask_for_events(talk, &reply);

	if (result == TALK_WORKS)
		result = judge_answer(talk, "CONFIG GET", reply);
	if (result != TALK_WORKS)
		return result;
	talk->by_events = keeper_are_events_on(reply);
	ww_redis_line_free(reply);
	if (!talk->by_events)
		return wrong(talk, KEEPER_EVENTS " lacks E or g: add them to what CONFIG GET shows");
	return subscribe_to_events(talk, db);
}

/*
 * Where events of all keys are on, they cost Redis less. But none reports a flush, and they cannot be limited to some
 * keys: to report ends, or to keep keys with a prefix, use tracking unless it is refused.
 */
static enum talk_result prefer_events(struct talk *talk, const struct node_config *config, int *prefers)
{
	struct redisReply *reply;
	enum talk_result result;

	*prefers = config->changes == CHANGES_EVENTS;
	if (config->changes != CHANGES_AUTO || config->watch || *talk->prefix)
		return TALK_WORKS;
	result = ask_for_events(talk, &reply);
	if (result == TALK_WORKS) {
		*prefers = keeper_are_events_on(reply);
		ww_redis_line_free(reply);
	}
	return result;
}

static enum talk_result listen_to_changes(struct talk *talk, const struct node_config *config)
{
	char why[sizeof talk->why];
	int prefers;
	enum talk_result result = prefer_events(talk, config, &prefers);

	if (result != TALK_WORKS)
		return result;
	result = prefers ? listen_by_events(talk, config->db) : listen_by_tracking(talk);
	if (prefers || result != TALK_WRONG || config->changes == CHANGES_TRACKING)
		return result;
	memcpy(why, talk->why, sizeof why);
	talk->why[0] = 0;
	result = listen_by_events(talk, config->db);
	/* What is missing is the right to use tracking. */
	if (result == TALK_WRONG)
		memcpy(talk->why, why, sizeof why);
	return result;
}

/* A key for the trial, which the rights must cover. To Redis an empty one matches no user's pattern. */
static const char *probe(const struct talk *talk)
{
	return *talk->prefix ? talk->prefix : "weekwheel-expirer";
}

/* PEXPIRETIME came with Redis 7. Any other error, such as LOADING, says nothing about it. */
static int is_missing(const struct redisReply *reply)
{
	static const char unknown[] = "ERR unknown command";
	static const char denied[] = "NOPERM ";

	return reply->type == REDIS_REPLY_ERROR && (strncmp(reply->str, unknown, sizeof unknown - 1) == 0 ||
	                                               strncmp(reply->str, denied, sizeof denied - 1) == 0);
}

static enum talk_result find_times(struct talk *talk)
{
	const char *const argv[] = {"PEXPIRETIME", probe(talk)};
	struct redisReply *reply;
	enum talk_result result = ask(talk, talk->line, 2, argv, &reply);

	if (result != TALK_WORKS)
		return result;
	talk->has_times = !is_missing(reply);
	if (talk->has_times)
		result = judge_answer(talk, argv[0], reply);
	if (result == TALK_WORKS)
		ww_redis_line_free(reply);
	return result;
}

/* Try each request once: this shows what is not allowed. */
static enum talk_result try_rights(struct talk *talk)
{
	const char *const key = probe(talk);
	const char *const tries[][2] = {{"TIME", NULL}, {"EXISTS", key},
	    {talk->has_times ? "PEXPIRETIME" : "PTTL", key}, {"SCAN", "0"}, {"ASKING", NULL}};
	size_t count = sizeof tries / sizeof *tries - (talk->kind != NODE_OF_CLUSTER);
	enum talk_result result = TALK_WORKS;

	for (size_t i = 0; i < count && result == TALK_WORKS; i++) {
		struct redisReply *reply;
		size_t length;

		result = call(talk, talk->line, tries[i][1] ? 2 : 1, tries[i], &reply);
		if (result == TALK_WORKS)
			ww_redis_line_free(reply);
		length = strlen(talk->why);
		if (result == TALK_WRONG && tries[i][1] == key)
			(void)snprintf(
			    talk->why + length, sizeof talk->why - length, "; the key that was tried is '%s'", key);
	}
	return result;
}

/* ---- Opening */

static enum talk_result open_line(struct talk *talk, const struct node_config *config,
    const struct redis_address *address, struct redis_line **opened)
{
	const struct redis_line_config line = {.url = config->url,
	    .address = address,
	    .user = config->user,
	    .password = config->password,
	    .reply_max = reply_max,
	    .allocator = ww_allocator_default()};
	int error;

	if (talk_is_ended(talk->wake))
		return TALK_AGAIN;
	error = ww_redis_line_open(opened, &line, patience(talk), talk->why);
	return error ? judge_error(talk, error) : TALK_WORKS;
}

enum talk_result talk_find_cluster(
    struct talk *talk, const struct node_config *config, const struct redis_address *address, int wake, int *is_cluster)
{
	struct redisReply *hello;
	enum talk_result result;

	*talk = (struct talk){.wake = wake, .kind = NODE_ALONE};
	result = open_line(talk, config, address, &talk->line);
	if (result == TALK_WORKS)
		result = greet(talk, &hello);
	if (result == TALK_WORKS) {
		*is_cluster = strcmp(field(hello, "mode"), "cluster") == 0;
		ww_redis_line_free(hello);
	}
	talk_close(talk);
	return result;
}

/* The literal beginning of a pattern, up to the first special character. */
static void keep_prefix(struct talk *talk, const char *match)
{
	size_t length = strcspn(match, "*?[\\");

	length = length < sizeof talk->prefix ? length : sizeof talk->prefix - 1;
	memcpy(talk->prefix, match, length);
	talk->prefix[length] = 0;
}

enum talk_result talk_open(
    struct talk *talk, const struct node_config *config, const struct redis_address *address, int wake)
{
	enum talk_result result;

	*talk = (struct talk){.wake = wake, .kind = config->kind};
	keep_prefix(talk, config->match ? config->match : "");
	result = open_line(talk, config, address, &talk->line);
	if (result == TALK_WORKS)
		result = open_line(talk, config, address, &talk->ear);
	if (result == TALK_WORKS)
		result = find_server(talk);
	if (result == TALK_WORKS)
		result = listen_to_changes(talk, config);
	if (result == TALK_WORKS)
		result = find_times(talk);
	if (result == TALK_WORKS)
		result = try_rights(talk);
	if (result != TALK_WORKS)
		talk_close(talk);
	return result;
}

void talk_close(struct talk *talk)
{
	ww_redis_line_close(talk->line);
	ww_redis_line_close(talk->ear);
	talk->line = NULL;
	talk->ear = NULL;
}

/* ---- Hearing */

int talk_hear(const struct redisReply *reply, struct keeper *keeper)
{
	const struct redisReply *keys;
	int result = 0;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 || !reply->element[0]->str ||
	    strcmp(reply->element[0]->str, "message") != 0)
		return 0;
	keys = reply->element[2];
	if (keys->type == REDIS_REPLY_STRING)
		return keeper_heard(keeper, keys->str, keys->len);
	/* No keys: FLUSHALL, or FLUSHDB of any database. */
	if (keys->type != REDIS_REPLY_ARRAY)
		return 1;
	for (size_t i = 0; i < keys->elements && result == 0; i++)
		if (keys->element[i]->str)
			result = keeper_heard(keeper, keys->element[i]->str, keys->element[i]->len);
	return result;
}
