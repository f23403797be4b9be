/* Connects to the Redis that a URL names, and asks it. */
#ifdef HAVE_REDIS

#include "tools/weekwheel/moving/redis_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/common/percent.h"

/* ---- The URL: redis://[[USER]:PASSWORD@]HOST[:PORT][/DB][/KEY] */

static void decode(char *out, size_t room, const char *text, size_t size)
{
	const char *end = text + size;
	size_t at = 0;

	while (text < end && at < room - 1)
		out[at++] = percent_take(&text, end);
	out[at] = 0;
}

static int bad_url(const struct moving *moving, const char *reason)
{
	/* It may have a password. */
	const char *path = moving->source == &moving_redis     ? "/KEY or .../DB/KEY"
	                   : moving->source == &moving_sidekiq ? " or .../DB"
	                                                       : ", .../DB or .../DB/PREFIX";

	return message_error(
	    "%s://...: expected %s://HOST:PORT%s: %s", moving->source->scheme, moving->source->scheme, path, reason);
}

static const char *read_host(struct redis_source *own, const char *text, const char *end)
{
	const char *at = text;
	const char *colon;
	uint64_t port = 6379;

	for (const char *c = text; c < end; c++)
		at = *c == '@' ? c + 1 : at;
	if (at > text) {
		colon = memchr(text, ':', (size_t)(at - text));
		if (!colon)
			return "expected USER:PASSWORD before the @, or :PASSWORD";
		decode(own->user, sizeof own->user, text, (size_t)(colon - text));
		decode(own->password, sizeof own->password, colon + 1, (size_t)(at - colon) - 2);
		message_warning("everybody on this machine can read the password in --from; REDISCLI_AUTH hides it");
	}
	colon = memrchr(at, ':', (size_t)(end - at));
	if (colon && !memchr(colon, ']', (size_t)(end - colon))) {
		if (number_whole(colon + 1, (size_t)(end - colon) - 1, 1, 65535, &port))
			return "the port is not a number from 1 to 65535";
		end = colon;
	}
	if (end > at + 1 && *at == '[' && end[-1] == ']') {
		at++;
		end--;
	}
	if (end == at || end - at >= DIAL_HOST_MAX)
		return "the host is missing";
	memcpy(own->host, at, (size_t)(end - at));
	own->port = (int)port;
	return NULL;
}

int redis_source_url(struct moving *moving, struct redis_source *own)
{
	const char *text = strstr(moving->from, "://") + 3;
	const char *end = text + strcspn(text, "/");
	const char *path = *end ? end + 1 : end;
	const char *slash = strchr(path, '/');
	const size_t first = slash ? (size_t)(slash - path) : strlen(path);
	const int has_key = moving->source != &moving_sidekiq;
	const char *wrong = read_host(own, text, end);

	if (wrong)
		return bad_url(moving, wrong);
	/* The key may have slashes, and be a number. */
	if (first && (slash || moving->source != &moving_redis) && number_whole(path, first, 0, 1000000, &own->db) == 0)
		path = slash ? slash + 1 : path + first;
	if (has_key)
		decode(own->key, sizeof own->key, path, strlen(path));
	if (moving->source == &moving_redis ? !*own->key : !has_key && *path)
		return bad_url(moving, has_key ? "the key of the sorted set is missing" : "the database is a number");
	snprintf(own->name, sizeof own->name, "%s:%d/%" PRIu64, own->host, own->port, own->db);
	if (!*own->password && getenv("REDISCLI_AUTH"))
		snprintf(own->password, sizeof own->password, "%s", getenv("REDISCLI_AUTH"));
	return 0;
}

/* ---- Asking */

static int lost(const struct redis_source *own)
{
	return message_error("%s: %s; is Redis running there?", own->name, own->redis->errstr);
}

redisReply *redis_source_is_none(const struct redis_source *own, redisReply *reply)
{
	freeReplyObject(reply);
	message_error("%s: what answers there is no Redis", own->name);
	return NULL;
}

/* Send what was asked, and wait for the next answer. Returns 1, WW_EIO or WW_ECORRUPT. */
static int await(const struct redis_source *own, void **reply)
{
	int result, is_sent = 0;

	while (!is_sent)
		if (redisBufferWrite(own->redis, &is_sent))
			return WW_EIO;
	while ((result = ww_redis_reader_reply(&own->bound, own->redis->reader, reply)) == 0)
		if (redisBufferRead(own->redis))
			return WW_EIO;
	return result;
}

redisReply *redis_source_answer(const struct redis_source *own, int type)
{
	void *reply;
	int result = await(own, &reply);

	if (result == WW_EIO)
		lost(own);
	if (result < 0)
		return result == WW_EIO ? NULL : redis_source_is_none(own, NULL);
	if (((redisReply *)reply)->type == REDIS_REPLY_ERROR) {
		message_error("%s: %s", own->name, ((redisReply *)reply)->str);
		freeReplyObject(reply);
		return NULL;
	}
	return ((redisReply *)reply)->type == type ? reply : redis_source_is_none(own, reply);
}

redisReply *redis_source_ask(const struct redis_source *own, int type, int count, const char **words)
{
	return redisAppendCommandArgv(own->redis, count, words, NULL) ? NULL : redis_source_answer(own, type);
}

int redis_source_done(redisReply *reply)
{
	freeReplyObject(reply);
	return reply ? 0 : -1;
}

int redis_source_connect(const struct moving *moving, struct redis_source *own)
{
	const struct timeval timeout = {moving->jobs.timeout_ms / 1000, moving->jobs.timeout_ms % 1000 * 1000};
	char db[30];

	own->redis = redisConnectWithTimeout(own->host, own->port, timeout);
	if (!own->redis)
		memory_exhausted();
	if (own->redis->err || redisSetTimeout(own->redis, timeout))
		return lost(own);
	ww_redis_reader_bound(&own->bound, own->redis->reader, REDIS_READER_MAX);
	snprintf(db, sizeof db, "%" PRIu64, own->db);
	if (*own->user &&
	    redis_source_done(REDIS_SOURCE_ASK(own, REDIS_REPLY_STATUS, "AUTH", own->user, own->password)))
		return -1;
	if (!*own->user && *own->password &&
	    redis_source_done(REDIS_SOURCE_ASK(own, REDIS_REPLY_STATUS, "AUTH", own->password)))
		return -1;
	return redis_source_done(REDIS_SOURCE_ASK(own, REDIS_REPLY_STATUS, "SELECT", db));
}

int redis_source_be_alone(const struct redis_source *own, const char *what)
{
	static const char label[] = "name=";
	char name[sizeof label + 40 + 3 * sizeof own->key];
	size_t length = (size_t)snprintf(name, sizeof name, "%sweekwheel-import-%" PRIu64 "-", label, own->db);
	redisReply *reply;
	int imports = 0;

	(void)percent_encode(what, strlen(what), name + length, sizeof name - length);
	if (redis_source_done(REDIS_SOURCE_ASK(own, REDIS_REPLY_STATUS, "CLIENT", "SETNAME", name + strlen(label))))
		return -1;
	/* Another field follows. */
	length = strlen(name);
	name[length] = ' ';
	name[length + 1] = 0;
	reply = REDIS_SOURCE_ASK(own, REDIS_REPLY_STRING, "CLIENT", "LIST");
	for (const char *at = reply ? reply->str : ""; (at = strstr(at, name)); at++)
		imports++;
	if (redis_source_done(reply))
		return -1;
	return imports > 1
	           ? message_error("%s: another import takes its jobs now: end that one, or wait for it", own->name)
	           : 0;
}

int redis_source_has_workers(const struct redis_source *own)
{
	char db[30];
	redisReply *reply = REDIS_SOURCE_ASK(own, REDIS_REPLY_STRING, "CLIENT", "LIST");
	int has = reply ? 0 : -1;

	snprintf(db, sizeof db, " db=%" PRIu64 " ", own->db);
	for (char *line = reply ? reply->str : NULL, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		has |= strstr(line, db) && (strstr(line, " cmd=brpop ") || strstr(line, " cmd=psubscribe "));
	}
	freeReplyObject(reply);
	return has;
}

#else

/* C wants something here. */
typedef int redis_source_is_left_out;

#endif
