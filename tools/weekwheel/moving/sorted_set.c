/*
 * Sorted sets of Redis as a source: each member is the body of a job, and its score is the Unix time when it is due.
 * Sidekiq has such sets, whose members are objects of JSON that name the queue.
 */
#include "tools/weekwheel/moving/moving.h"

#ifdef HAVE_REDIS

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <math.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "tools/common/dial.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/common/percent.h"
#include "tools/common/tube.h"

enum { PRIORITY = 1024, SETS_MAX = 2, JID_MAX = 60, HASHED = 16, QUEUE_ROOM = WW_TUBE_MAX + 10 };

/* A Unix time in seconds from the year 5138 on is meant in milliseconds; and below, from 2001 on, the other way round. */
#define SECONDS_MOST 1e11
#define SECONDS_LEAST 1e9

struct sorted_sets {
	redisContext *redis;
	char host[DIAL_HOST_MAX], user[200], password[500], key[1000];
	char name[DIAL_HOST_MAX + 40]; /* HOST:PORT/DB, for messages and keys */
	int port;
	uint64_t db;
	const char *sets[SETS_MAX];
	uint64_t passed[SETS_MAX]; /* members at the beginning of a set that stay there */
	size_t count, at;
};

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
	return message_error("%s://...: expected %s://HOST:PORT%s: %s", moving->source->scheme, moving->source->scheme,
	    moving->source == &moving_redis ? "/KEY or .../DB/KEY" : " or .../DB", reason);
}

static const char *read_host(struct sorted_sets *own, const char *text, const char *end)
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

static int read_url(struct moving *moving, struct sorted_sets *own)
{
	const char *text = strstr(moving->from, "://") + 3;
	const char *end = text + strcspn(text, "/");
	const char *path = *end ? end + 1 : end;
	const char *slash = strchr(path, '/');
	const size_t first = slash ? (size_t)(slash - path) : strlen(path);
	const int has_key = moving->source == &moving_redis;
	const char *wrong = read_host(own, text, end);

	if (wrong)
		return bad_url(moving, wrong);
	/* The key may have slashes, and be a number. */
	if (first && (slash || !has_key) && number_whole(path, first, 0, 1000000, &own->db) == 0)
		path = slash ? slash + 1 : path + first;
	if (has_key)
		decode(own->key, sizeof own->key, path, strlen(path));
	if (has_key ? !*own->key : *path)
		return bad_url(moving, has_key ? "the key of the sorted set is missing" : "the database is a number");
	snprintf(own->name, sizeof own->name, "%s:%d/%" PRIu64, own->host, own->port, own->db);
	if (!*own->password && getenv("REDISCLI_AUTH"))
		snprintf(own->password, sizeof own->password, "%s", getenv("REDISCLI_AUTH"));
	return 0;
}

/* ---- Asking */

static int lost(const struct sorted_sets *own)
{
	return message_error("%s: %s; is Redis running there?", own->name, own->redis->errstr);
}

/* Takes the answer. Returns NULL. */
static redisReply *is_no_redis(const struct sorted_sets *own, redisReply *reply)
{
	freeReplyObject(reply);
	message_error("%s: what answers there is no Redis", own->name);
	return NULL;
}

/* Read the next answer, of this type. The caller frees it. Returns NULL after a message. */
static redisReply *answer(const struct sorted_sets *own, int type)
{
	void *reply = NULL;

	if (redisGetReply(own->redis, &reply) || !reply) {
		lost(own);
		return NULL;
	}
	if (((redisReply *)reply)->type == REDIS_REPLY_ERROR) {
		message_error("%s: %s", own->name, ((redisReply *)reply)->str);
		freeReplyObject(reply);
		return NULL;
	}
	return ((redisReply *)reply)->type == type ? reply : is_no_redis(own, reply);
}

/* Send a command and read its answer. */
static redisReply *ask(const struct sorted_sets *own, int type, int count, const char **words)
{
	return redisAppendCommandArgv(own->redis, count, words, NULL) ? NULL : answer(own, type);
}

#define ASK(own, type, ...)                                                                                            \
	ask(own, type, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),                            \
	    (const char *[]){__VA_ARGS__})

/* Send a command whose answer says nothing. Returns 0, or -1 after a message. */
static int done(redisReply *reply)
{
	freeReplyObject(reply);
	return reply ? 0 : -1;
}

/* A set that is missing is empty; a key of another type would be an error with each command. */
static int check_set(const struct moving *moving)
{
	const struct sorted_sets *own = moving->state;
	redisReply *reply;
	int is_missing;

	if (moving->source != &moving_redis || moving->follow)
		return 0;
	reply = ASK(own, REDIS_REPLY_STATUS, "TYPE", own->key);
	is_missing = reply && strcmp(reply->str, "none") == 0;
	if (done(reply))
		return -1;
	return is_missing ? message_error("%s: there is no sorted set '%s', or it is empty", own->name, own->key) : 0;
}

/*
 * What one import takes back, another must not have seen and removed at the source. Imports of the same sets recognize
 * each other by the names of their connections.
 */
static int be_alone(const struct sorted_sets *own)
{
	static const char label[] = "name=";
	char name[sizeof label + 40 + 3 * sizeof own->key];
	size_t length = (size_t)snprintf(name, sizeof name, "%sweekwheel-import-%" PRIu64 "-", label, own->db);
	redisReply *reply;
	int imports = 0;

	(void)percent_encode(own->sets[0], strlen(own->sets[0]), name + length, sizeof name - length);
	if (done(ASK(own, REDIS_REPLY_STATUS, "CLIENT", "SETNAME", name + strlen(label))))
		return -1;
	/* Another field follows. */
	length = strlen(name);
	name[length] = ' ';
	name[length + 1] = 0;
	reply = ASK(own, REDIS_REPLY_STRING, "CLIENT", "LIST");
	for (const char *at = reply ? reply->str : ""; (at = strstr(at, name)); at++)
		imports++;
	if (done(reply))
		return -1;
	return imports > 1
	           ? message_error("%s: another import takes its jobs now: end that one, or wait for it", own->name)
	           : 0;
}

static int open_source(struct moving *moving)
{
	struct sorted_sets *own = moving->state = memory_zeroed(1, sizeof *own);
	const struct timeval timeout = {moving->jobs.timeout_ms / 1000, moving->jobs.timeout_ms % 1000 * 1000};
	char db[30], target[80];

	if (read_url(moving, own) || target_open(moving, target, sizeof target))
		return -1;
	if (moving->source == &moving_redis) {
		own->sets[own->count++] = own->key;
	} else if (moving->dead) {
		own->sets[own->count++] = "dead";
	} else {
		own->sets[own->count++] = "schedule";
		own->sets[own->count++] = "retry";
	}
	own->redis = redisConnectWithTimeout(own->host, own->port, timeout);
	if (!own->redis)
		memory_exhausted();
	if (own->redis->err || redisSetTimeout(own->redis, timeout))
		return lost(own);
	snprintf(db, sizeof db, "%" PRIu64, own->db);
	if (*own->user && done(ASK(own, REDIS_REPLY_STATUS, "AUTH", own->user, own->password)))
		return -1;
	if (!*own->user && *own->password && done(ASK(own, REDIS_REPLY_STATUS, "AUTH", own->password)))
		return -1;
	if (done(ASK(own, REDIS_REPLY_STATUS, "SELECT", db)) || check_set(moving))
		return -1;
	return moving->dry_run ? 0 : be_alone(own);
}

static void close_source(struct moving *moving)
{
	struct sorted_sets *own = moving->state;

	if (own && own->redis)
		redisFree(own->redis);
	free(own);
}

/* ---- Taking */

static const char *read_score(const struct moving *moving, const char *score, uint64_t *ns)
{
	const double number = strtod(score, NULL);
	const double seconds = moving->is_ms ? number / 1000 : number;

	*ns = 0;
	if (moving->is_ms && number >= SECONDS_LEAST && number < SECONDS_MOST)
		return "the score is seconds rather than milliseconds: expected --unit s";
	if (seconds >= SECONDS_MOST)
		return "the score is milliseconds rather than seconds: expected --unit ms";
	if (seconds >= (double)(DURATION_TIME_MAX / DURATION_SECOND))
		return "the score is a time after the year 2115: remove that member, or give it another score";
	/* A part of a nanosecond later rather than earlier. */
	if (seconds > 0)
		*ns = (uint64_t)ceill((long double)number * (moving->is_ms ? 1e6L : 1e9L));
	return NULL;
}

/*
 * The same member with the same score is the same job. One that Sidekiq tries again has another score. Sidekiq's id is for
 * people: a job that was pushed again, into another queue, has the same one.
 */
static void make_key(const struct sorted_sets *own, struct moving_job *job, const char *jid, const char *score)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char text[sizeof own->name + sizeof own->key + MOVING_MARK], hex[2 * HASHED + 1];
	size_t length = 0;
	char *all;

	/* None of the parts but the last can have a NUL. Sidekiq's job is the same wherever its Redis is. */
	if (!*jid)
		length =
		    (size_t)snprintf(text, sizeof text, "%s%c%s%c%s", own->name, 0, own->sets[job->id], 0, score) + 1;
	all = memory_zeroed(length + job->size + 1, 1);
	memcpy(all, text, length);
	memcpy(all + length, job->body, job->size);
	(void)SHA256((unsigned char *)all, length + job->size, hash);
	free(all);
	for (size_t i = 0; i < HASHED; i++)
		(void)sprintf(hex + 2 * i, "%02x", hash[i]);
	if (*jid)
		snprintf(text, sizeof text, "sidekiq-%s-%s-%s", jid, score, hex);
	else
		snprintf(text, sizeof text, "redis-%s", hex);
	(void)percent_encode(text, strlen(text), job->key, sizeof job->key);
}

/* Whether Sidekiq could read the member; its fields are copied. */
static int read_member(const struct moving_job *job, char jid[JID_MAX + 1], char queue[QUEUE_ROOM])
{
	struct json_value name, value;
	size_t at = 0;
	int more;

	while ((more = json_next(job->body, job->size, &at, &name, &value)) == 1)
		;
	json_text(job->body, job->size, "jid", jid, JID_MAX + 1);
	json_text(job->body, job->size, "queue", queue, QUEUE_ROOM);
	/* Longer ones may begin alike, and parts of an object are no names. */
	if (more || strlen(jid) == JID_MAX)
		*jid = 0;
	return more == 0;
}

/* Fill in what the member says. Return NULL, or why it stays in its set. */
static const char *describe(const struct moving *moving, struct moving_job *job, const char *score)
{
	static char reason[QUEUE_ROOM + 200];
	const struct sorted_sets *own = moving->state;
	char jid[JID_MAX + 1] = "", queue[QUEUE_ROOM] = "", excerpt[QUEUE_ROOM];
	const int is_readable = moving->source != &moving_sidekiq || read_member(job, jid, queue);
	const char *tube = moving->jobs.tube ? moving->jobs.tube : *queue ? queue : "default";

	job->id = own->at;
	snprintf(job->mark, sizeof job->mark, "%s", score);
	job->priority = PRIORITY;
	job->run = moving->run;
	job->is_wall = 1;
	job->is_buried = strcmp(own->sets[own->at], "dead") == 0;
	make_key(own, job, jid, score);
	if (!is_readable)
		return "it is no object of JSON, which Sidekiq could not read either: remove that member";
	if (job->size > moving->largest)
		return "it is larger than the server allows: start it with a larger --max-job-size";
	if (!tube_is_name(tube, strlen(tube))) {
		message_excerpt(excerpt, sizeof excerpt, tube, strlen(tube));
		snprintf(
		    reason, sizeof reason, "the queue %s is not a name of a tube: choose one with --tube", excerpt);
		return reason;
	}
	strcpy(job->tube, tube);
	return read_score(moving, score, &job->due);
}

static void name(const struct moving *moving, const struct moving_job *job, char text[MOVING_NAME])
{
	const struct sorted_sets *own = moving->state;
	char set[100], member[100];

	message_excerpt(set, sizeof set, own->sets[job->id], strlen(own->sets[job->id]));
	message_excerpt(member, sizeof member, job->body, job->size);
	snprintf(text, MOVING_NAME, "%s: the member of %s with score %s: %s", own->name, set, job->mark, member);
}

/* Add a member to the batch, unless it stays in its set. */
static void add(struct moving *moving, const redisReply *member, const redisReply *score)
{
	struct sorted_sets *own = moving->state;
	struct moving_job *job = moving_add(moving, member->str, member->len);
	const char *reason = describe(moving, job, score->str);

	if (reason)
		moving_stays(moving, job, reason);
	if (!moving_is_odd(moving, job))
		return;
	own->passed[own->at]++;
	moving->count--;
}

/* No more than were asked for, each with a score. */
static int are_members(const redisReply *reply)
{
	int are = reply->elements % 2 == 0 && reply->elements <= (size_t)2 * MOVING_BATCH;

	for (size_t i = 0; i < reply->elements; i++)
		are &= reply->element[i]->type == REDIS_REPLY_STRING;
	return are;
}

/* Take the next members of a set, from `from` on. Return how many there were, or -1 after a message. */
static int take_page(struct moving *moving, uint64_t from)
{
	struct sorted_sets *own = moving->state;
	char first[30], most[20];
	redisReply *reply;
	int members;

	snprintf(first, sizeof first, "%" PRIu64, from);
	snprintf(most, sizeof most, "%d", MOVING_BATCH);
	reply = ASK(own, REDIS_REPLY_ARRAY, "ZRANGEBYSCORE", own->sets[own->at], "-inf", "(+inf", "WITHSCORES", "LIMIT",
	    first, most);
	if (reply && !are_members(reply))
		reply = is_no_redis(own, reply);
	if (!reply)
		return -1;
	members = (int)(reply->elements / 2);
	for (int i = 0; i < members; i++)
		add(moving, reply->element[2 * i], reply->element[2 * i + 1]);
	freeReplyObject(reply);
	return members;
}

/*
 * Take the first members of the first set that has some. Those before `passed` stay, and are looked at again when
 * nothing else is there: other members may have taken their places.
 */
static int take(struct moving *moving)
{
	struct sorted_sets *own = moving->state;
	int is_whole;

	do {
		is_whole = 1;
		for (own->at = 0; own->at < own->count; own->at++) {
			int members;

			is_whole &= !own->passed[own->at];
			do {
				members = take_page(moving, own->passed[own->at]);
				if (members < 0 || moving->count)
					return members < 0 ? -1 : 0;
			} while (members);
			own->passed[own->at] = 0;
		}
	} while (!is_whole);
	return 0;
}

/* ---- Dropping */

/*
 * Remove a member unless its score has changed: then it is another job, which is moved with its new time. Whatever has
 * become of it, the answer 1 says that it was removed now.
 */
static const char remove_script[] = "return redis.call('ZSCORE', KEYS[1], ARGV[1]) == ARGV[2]"
                                    " and redis.call('ZREM', KEYS[1], ARGV[1]) or 0";

static int send_remove(const struct sorted_sets *own, const struct moving_job *job)
{
	const char *set = own->sets[job->id];
	const char *words[] = {"EVAL", remove_script, "1", set, job->body, job->mark};
	const size_t sizes[] = {4, strlen(remove_script), 1, strlen(set), job->size, strlen(job->mark)};

	return redisAppendCommandArgv(own->redis, (int)(sizeof words / sizeof *words), words, sizes);
}

static int drop(struct moving *moving)
{
	struct sorted_sets *own = moving->state;
	int is_gone[MOVING_BATCH] = {0};

	for (size_t i = 0; i < moving->count; i++)
		if (moving->batch[i].result && send_remove(own, &moving->batch[i]))
			memory_exhausted();
	for (size_t i = 0; i < moving->count; i++) {
		redisReply *reply = moving->batch[i].result ? answer(own, REDIS_REPLY_INTEGER) : NULL;

		if (!moving->batch[i].result)
			continue;
		if (!reply)
			return -1;
		is_gone[i] = reply->integer != 1;
		moving->dropped += reply->integer == 1;
		freeReplyObject(reply);
	}
	/* What a program of the source has taken or changed meanwhile is its own. */
	for (size_t i = 0; i < moving->count; i++)
		if (is_gone[i] && target_take_back(moving, &moving->batch[i]))
			return -1;
	return 0;
}

/* ---- What is left */

static int count(const struct sorted_sets *own, const char *set, uint64_t *members)
{
	redisReply *reply = ASK(own, REDIS_REPLY_INTEGER, "ZCOUNT", set, "-inf", "(+inf");

	*members = reply ? (uint64_t)reply->integer : 0;
	return done(reply);
}

static int left(struct moving *moving, struct moving_left *left)
{
	const struct sorted_sets *own = moving->state;
	uint64_t members;

	*left = (struct moving_left){0, 0};
	for (size_t i = 0; i < own->count; i++) {
		if (count(own, own->sets[i], &members))
			return -1;
		left->waiting += members;
	}
	return 0;
}

static void print_set(const struct moving *moving, const char *set, uint64_t members, uint64_t odd)
{
	if (moving->jobs.json) {
		fputs("{\"set\": ", stdout);
		json_write_string(stdout, set, strlen(set));
		printf(", \"jobs\": %" PRIu64 ", \"left_out\": %" PRIu64 "}\n", members - odd, odd);
		return;
	}
	printf("%s: %" PRIu64 " job%s", set, members - odd, jobs_plural(members - odd));
	if (odd)
		printf(", and %" PRIu64 " that would stay", odd);
	putchar('\n');
}

static int show(struct moving *moving)
{
	struct sorted_sets *own = moving->state;

	for (own->at = 0; own->at < own->count; own->at++) {
		const uint64_t before = moving_odd(moving);
		uint64_t all = 0;
		int members;

		while ((members = take_page(moving, all)) > 0) {
			all += (uint64_t)members;
			moving->count = 0;
		}
		if (members < 0)
			return -1;
		print_set(moving, own->sets[own->at], all, moving_odd(moving) - before);
	}
	return 0;
}

#define OTHERS .take = take, .drop = drop, .left = left, .show = show, .name = name

#else

#include "tools/common/message.h"

static int open_source(struct moving *moving)
{
	return message_error("--from %s://: this weekwheel was built without Redis: it needs hiredis (libhiredis-dev)",
	    moving->source->scheme);
}

static void close_source(struct moving *moving)
{
	(void)moving;
}

/* None is called after that. */
#define OTHERS .take = NULL

#endif

const struct moving_source moving_redis = {.scheme = "redis", .open = open_source, .close = close_source, OTHERS};

const struct moving_source moving_sidekiq = {.scheme = "sidekiq", .open = open_source, .close = close_source, OTHERS};
