/*
 * Sorted sets of Redis as a source: each member is the body of a job, and its score is the Unix time when it is due.
 * Sidekiq has such sets, whose members are objects of JSON that name the queue.
 */
#include "tools/weekwheel/moving/moving.h"

#ifdef HAVE_REDIS

#include <inttypes.h>
#include <math.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/moment.h"
#include "tools/common/number.h"
#include "tools/common/percent.h"
#include "tools/common/tube.h"
#include "tools/weekwheel/moving/library.h"
#include "tools/weekwheel/moving/redis_source.h"

enum { PRIORITY = 1024, JID_MAX = 60, HASHED = 16, QUEUE_ROOM = WW_TUBE_MAX + 10 };

/* A Unix time in seconds from the year 5138 on is meant in milliseconds; and below, from 2001 on, the other way round. */
#define SECONDS_MOST 1e11
#define SECONDS_LEAST 1e9

/* The key of a set; as many members at its beginning stay there. */
struct set {
	char *key;
	uint64_t passed;
};

struct sorted_sets {
	struct redis_source source;
	const struct library *library; /* NULL: the member is the body, and the score the time */
	struct set *sets;
	size_t count, room, at;
	uint64_t others; /* members seen that are no jobs of the library */
};

/* A set that is missing is empty; a key of another type would be an error with each command. */
static int check_set(const struct moving *moving)
{
	const struct sorted_sets *own = moving->state;
	redisReply *reply;
	int is_missing;

	if (moving->source != &moving_redis || moving->follow)
		return 0;
	reply = REDIS_SOURCE_ASK(&own->source, REDIS_REPLY_STATUS, "TYPE", own->source.key);
	is_missing = reply && strcmp(reply->str, "none") == 0;
	if (redis_source_done(reply))
		return -1;
	return is_missing
	           ? message_error("%s: there is no sorted set '%s', or it is empty", own->source.name, own->source.key)
	           : 0;
}

static void add_set(struct sorted_sets *own, const char *key, size_t size)
{
	own->sets = memory_grow(own->sets, &own->room, own->count, sizeof *own->sets);
	own->sets[own->count] = (struct set){memory_zeroed(size + 1, 1), 0};
	memcpy(own->sets[own->count++].key, key, size);
}

static void forget_sets(struct sorted_sets *own)
{
	while (own->count)
		free(own->sets[--own->count].key);
}

static int is_set(const struct library *library, const char *key, size_t size)
{
	const char *colon = memrchr(key, ':', size);
	const size_t rest = colon ? size - 1 - (size_t)(colon - key) : 0;

	return !library->ends_in_digits || (rest > 0 && strspn(colon + 1, "0123456789") == rest);
}

/* Add the sets of the library of which SCAN tells now, and move on its cursor. */
static int scan(struct sorted_sets *own, const char *pattern, char cursor[30])
{
	redisReply *reply = REDIS_SOURCE_ASK(&own->source, REDIS_REPLY_ARRAY, "SCAN", cursor, "MATCH", pattern, "COUNT",
	    "1000", "TYPE", own->library->type);
	const redisReply *keys = reply && reply->elements == 2 ? reply->element[1] : NULL;

	if (reply && (!keys || keys->type != REDIS_REPLY_ARRAY || reply->element[0]->type != REDIS_REPLY_STRING))
		reply = redis_source_is_none(&own->source, reply);
	if (!reply)
		return -1;
	snprintf(cursor, 30, "%s", reply->element[0]->str);
	for (size_t i = 0; i < keys->elements; i++)
		if (keys->element[i]->type == REDIS_REPLY_STRING &&
		    is_set(own->library, keys->element[i]->str, keys->element[i]->len))
			add_set(own, keys->element[i]->str, keys->element[i]->len);
	freeReplyObject(reply);
	return 0;
}

/* Look anew which sets there are, and begin at the first. */
static int list_sets(struct moving *moving)
{
	struct sorted_sets *own = moving->state;
	const struct library *library = own->library;
	const char *prefix = library && !*own->source.key ? library->prefix : own->source.key;
	char text[sizeof own->source.key + 40], cursor[30] = "0";

	forget_sets(own);
	own->at = 0;
	if (moving->source == &moving_redis)
		add_set(own, own->source.key, strlen(own->source.key));
	else if (moving->dead)
		add_set(own, "dead", strlen("dead"));
	else if (!library) {
		add_set(own, "schedule", strlen("schedule"));
		add_set(own, "retry", strlen("retry"));
	}
	if (!library)
		return 0;
	snprintf(text, sizeof text, "%s%s", prefix, library->pattern);
	do
		if (scan(own, text, cursor))
			return -1;
	while (strcmp(cursor, "0") != 0);
	if (library->held) {
		snprintf(text, sizeof text, "%s%s", prefix, library->held);
		add_set(own, text, strlen(text));
	}
	return 0;
}

static int open_source(struct moving *moving)
{
	struct sorted_sets *own = moving->state = memory_zeroed(1, sizeof *own);
	char target[80];

	own->library = library_find(moving->source->scheme);
	if (redis_source_url(moving, &own->source) || target_open(moving, target, sizeof target) ||
	    redis_source_connect(moving, &own->source) || check_set(moving) || list_sets(moving))
		return -1;
	return moving->dry_run
	           ? 0
	           : redis_source_be_alone(&own->source, own->library ? own->library->scheme : own->sets[0].key);
}

static void close_source(struct moving *moving)
{
	struct sorted_sets *own = moving->state;

	if (!own)
		return;
	if (own->source.redis)
		redisFree(own->source.redis);
	forget_sets(own);
	free(own->sets);
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
 * The same member with the same score is the same job. One that Sidekiq tries again has another score. An id alone is for
 * people: a job of Sidekiq that was pushed again, into another queue, has the same one.
 */
static void make_key(const struct moving *moving, struct moving_job *job, const char *id)
{
	const struct sorted_sets *own = moving->state;
	const int is_anywhere = own->library ? own->library->id_is_all : *id != 0;
	const int has_id = *id && strlen(id) < JID_MAX;
	const size_t size = own->library && own->library->id_is_all ? 0 : job->size;
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char text[sizeof own->source.name + sizeof own->source.key + 2 * MOVING_NAME], hex[2 * HASHED + 1];
	size_t length = 0;
	char *all;

	/* None of the parts but the last can have a NUL. Sidekiq's job is the same wherever its Redis is. */
	if (!is_anywhere)
		length = (size_t)snprintf(text, sizeof text, "%s%c%.*s%c%s", own->source.name, 0,
		             (int)sizeof own->source.key, own->sets[job->id].key, 0, job->mark) +
		         1;
	if (own->library)
		length += (size_t)snprintf(text + length, sizeof text - length, "%s%c%s", job->name, 0, job->mark) + 1;
	all = memory_zeroed(length + size + 1, 1);
	memcpy(all, text, length);
	memcpy(all + length, job->body, size);
	(void)SHA256((unsigned char *)all, length + size, hash);
	free(all);
	for (size_t i = 0; i < HASHED; i++)
		(void)sprintf(hex + 2 * i, "%02x", hash[i]);
	if (has_id)
		snprintf(text, sizeof text, "%s-%s-%s-%s", moving->source->scheme, id, job->mark, hex);
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

/* Set the tube: --tube, or this one. Return NULL, or why it cannot be. */
static const char *set_tube(const struct moving *moving, struct moving_job *job, const char *tube)
{
	static char reason[QUEUE_ROOM + 200];
	char excerpt[QUEUE_ROOM];

	tube = moving->jobs.tube ? moving->jobs.tube : tube;
	if (job->size > moving->largest)
		return "it is larger than the server allows: start it with a larger --max-job-size";
	if (tube_is_name(tube, strlen(tube))) {
		strcpy(job->tube, tube);
		return NULL;
	}
	message_excerpt(excerpt, sizeof excerpt, tube, strlen(tube));
	snprintf(reason, sizeof reason, "the queue %s is not a name of a tube: choose one with --tube", excerpt);
	return reason;
}

/* Fill in what the member says. Return NULL, or why it stays in its set. */
static const char *describe(const struct moving *moving, struct moving_job *job, const char *score)
{
	char jid[JID_MAX + 1] = "", queue[QUEUE_ROOM] = "";
	const int is_readable = moving->source != &moving_sidekiq || read_member(job, jid, queue);
	const char *reason;

	snprintf(job->mark, sizeof job->mark, "%s", score);
	job->priority = PRIORITY;
	make_key(moving, job, jid);
	if (!is_readable)
		return "it is no object of JSON, which Sidekiq could not read either: remove that member";
	reason = set_tube(moving, job, *queue ? queue : "default");
	return reason ? reason : read_score(moving, score, &job->due);
}

/* The time that a library's script has answered: seconds, or a date with its zone. */
static const char *read_due(const char *text, uint64_t *ns)
{
	struct duration_problem problem;
	struct moment due = {0, 0};
	enum number kind;

	if (strchr(text, 'T'))
		return time_parse(text, ns, &problem) ? "its time cannot be read: give it another one, or remove it"
		                                      : NULL;
	kind = moment_parse(text, strlen(text), &due);
	if (kind == NUMBER_INVALID || kind == NUMBER_TOO_LARGE || due.seconds >= DURATION_TIME_MAX / DURATION_SECOND)
		return "its time is after the year 2115: give it another one, or remove it";
	*ns = due.seconds * DURATION_SECOND + due.ns;
	return NULL;
}

/* It is a schedule, which has a name of its queue and id: it replaces the one of an import that was killed. */
static void make_name(const struct moving *moving, struct moving_job *job, redisReply **row)
{
	char text[MOVING_NAME];

	snprintf(job->schedule, sizeof job->schedule, "%s", row[LIBRARY_SCHEDULE]->str);
	snprintf(text, sizeof text, "%s-%s-%s", moving->source->scheme, row[LIBRARY_TUBE]->str, job->name);
	(void)percent_encode(text, strlen(text), job->key, sizeof job->key);
}

/* Fill in what the library's script says of a job. Return as above. */
static const char *describe_row(const struct moving *moving, struct moving_job *job, redisReply **row)
{
	const char *id = row[LIBRARY_ID]->str;
	const char *reason;

	snprintf(job->name, sizeof job->name, "%s", id);
	snprintf(job->mark, sizeof job->mark, "%s", row[LIBRARY_MARK]->str);
	job->priority = strtoull(row[LIBRARY_PRIORITY]->str, NULL, 10);
	snprintf(job->words, sizeof job->words, "%s", row[LIBRARY_WORDS]->str);
	make_key(moving, job, id);
	if (*row[LIBRARY_SCHEDULE]->str)
		make_name(moving, job, row);
	if (*row[LIBRARY_REASON]->str) {
		static char own[300];

		snprintf(own, sizeof own, "%s", row[LIBRARY_REASON]->str);
		return own;
	}
	if (strlen(id) != row[LIBRARY_ID]->len || strlen(id) >= sizeof job->name ||
	    row[LIBRARY_MARK]->len >= sizeof job->mark || row[LIBRARY_SCHEDULE]->len >= sizeof job->schedule)
		return "its id is too long, or has a NUL: give it another one";
	reason = set_tube(moving, job, row[LIBRARY_TUBE]->str);
	return reason ? reason : read_due(row[LIBRARY_DUE]->str, &job->due);
}

static void name(const struct moving *moving, const struct moving_job *job, char text[MOVING_NAME])
{
	const struct sorted_sets *own = moving->state;
	char set[100], member[100], id[100] = "";

	message_excerpt(set, sizeof set, own->sets[job->id].key, strlen(own->sets[job->id].key));
	message_excerpt(member, sizeof member, job->body, job->size);
	if (*job->name)
		message_excerpt(id, sizeof id, job->name, strlen(job->name));
	snprintf(text, MOVING_NAME, "%s: the member %s%sof %s with score %s: %s", own->source.name, id, *id ? " " : "",
	    set, job->mark, member);
}

/* Add a member to the batch, unless it stays in its set: a member and its score, or what a library's script says. */
static void add(struct moving *moving, redisReply **row)
{
	struct sorted_sets *own = moving->state;
	const redisReply *body = row[own->library ? LIBRARY_BODY : 0];
	struct moving_job *job = moving_add(moving, body->str, body->len);
	const char *reason;

	job->id = own->at;
	job->run = moving->run;
	job->is_wall = 1;
	job->is_buried = moving->dead;
	reason = own->library ? describe_row(moving, job, row) : describe(moving, job, row[1]->str);
	if (reason)
		moving_stays(moving, job, reason);
	if (!moving_is_odd(moving, job))
		return;
	own->sets[own->at].passed++;
	moving->count--;
}

/* No more rows than were asked for, behind a number if a script has answered. */
static int are_rows(const redisReply *reply, size_t first, size_t row, size_t most)
{
	int are = reply->elements >= first && (reply->elements - first) % row == 0 &&
	          reply->elements <= first + row * most &&
	          (!first || (reply->element[0]->type == REDIS_REPLY_INTEGER && reply->element[0]->integer >= 0));

	for (size_t i = first; are && i < reply->elements; i++)
		are = reply->element[i]->type == REDIS_REPLY_STRING;
	return are;
}

/*
 * Take the next members of a set, from `from` on, as many as the batch has room for. Store whether there were as many.
 * Return how many there were, or -1 after a message.
 */
static int take_page(struct moving *moving, uint64_t from)
{
	struct sorted_sets *own = moving->state;
	const char *key = own->sets[own->at].key;
	const size_t asked = MOVING_BATCH - moving->count;
	const size_t first = own->library ? 1 : 0, row = own->library ? LIBRARY_ROW : 2;
	char begin[30], most[20];
	const char *words[] = {"EVAL", own->library ? own->library->take : "", "1", key, begin, most, moving->zone};
	redisReply *reply;
	int members;

	snprintf(begin, sizeof begin, "%" PRIu64, from);
	snprintf(most, sizeof most, "%zu", asked);
	reply = own->library ? redis_source_ask(&own->source, REDIS_REPLY_ARRAY, moving->zone ? 7 : 6, words)
	                     : REDIS_SOURCE_ASK(&own->source, REDIS_REPLY_ARRAY, "ZRANGEBYSCORE", key, "-inf", "(+inf",
	                           "WITHSCORES", "LIMIT", begin, most);
	if (reply && !are_rows(reply, first, row, asked))
		reply = redis_source_is_none(&own->source, reply);
	if (!reply)
		return -1;
	members = (int)((reply->elements - first) / row);
	if (first) {
		own->others += (uint64_t)reply->element[0]->integer - (uint64_t)members;
		own->sets[own->at].passed += (uint64_t)reply->element[0]->integer - (uint64_t)members;
		members = (int)reply->element[0]->integer;
	}
	for (size_t i = first; i < reply->elements; i += row)
		add(moving, reply->element + i);
	freeReplyObject(reply);
	return members;
}

/* Whether the set at hand is of jobs that the source's workers have. Returns -1 after a message. */
static int is_held(const struct sorted_sets *own)
{
	return own->library && own->library->held && own->at + 1 == own->count ? redis_source_has_workers(&own->source)
	                                                                       : 0;
}

/*
 * Fill the batch from the set at hand and the next ones. Those before `passed` stay, and are looked at again when
 * nothing else is there: other members may have taken their places.
 */
static int take(struct moving *moving)
{
	struct sorted_sets *own = moving->state;

	for (int listed = 0; moving->count < MOVING_BATCH;) {
		const size_t before = moving->count;
		int members, held;

		if (own->at == own->count) {
			if (moving->count || listed++)
				return 0;
			if (list_sets(moving))
				return -1;
			continue;
		}
		held = is_held(own);
		members = held ? 0 : take_page(moving, own->sets[own->at].passed);
		if (held < 0 || members < 0)
			return -1;
		/* What was taken is still there. */
		if ((size_t)members == MOVING_BATCH - before && moving->count > before)
			return 0;
		own->at += (size_t)members < MOVING_BATCH - before;
	}
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
	const char *set = own->sets[job->id].key;
	const char *script = own->library ? own->library->drop : remove_script;
	const char *first = own->library ? job->name : job->body;
	const size_t size = own->library ? strlen(job->name) : job->size;
	const char *words[] = {"EVAL", script, "1", set, first, job->mark, job->body};
	const size_t sizes[] = {4, strlen(script), 1, strlen(set), size, strlen(job->mark), job->size};

	return redisAppendCommandArgv(own->source.redis, own->library ? 7 : 6, words, sizes);
}

static int drop(struct moving *moving)
{
	struct sorted_sets *own = moving->state;
	int is_gone[MOVING_BATCH] = {0};

	for (size_t i = 0; i < moving->count; i++)
		if (moving->batch[i].result && send_remove(own, &moving->batch[i]))
			memory_exhausted();
	for (size_t i = 0; i < moving->count; i++) {
		redisReply *reply =
		    moving->batch[i].result ? redis_source_answer(&own->source, REDIS_REPLY_INTEGER) : NULL;

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

/* Count the members of a sorted set or list, which are jobs, by the command. Return 0, or -1 after a message. */
static int count(const struct sorted_sets *own, const char *set, const char *command, uint64_t *members)
{
	const char *words[] = {command, set, "-inf", "(+inf"};
	redisReply *reply =
	    redis_source_ask(&own->source, REDIS_REPLY_INTEGER, strcmp(command, "LLEN") == 0 ? 2 : 4, words);

	*members = reply ? (uint64_t)reply->integer : 0;
	return redis_source_done(reply);
}

/* Walk through the set at hand, and count its jobs; name those that would stay. Return as above. */
static int walk(struct moving *moving, uint64_t *jobs)
{
	struct sorted_sets *own = moving->state;
	const uint64_t passed = own->sets[own->at].passed, others = own->others;
	uint64_t from = 0;
	int members;

	*jobs = 0;
	while ((members = take_page(moving, from)) > 0) {
		from += (uint64_t)members;
		moving->count = 0;
	}
	*jobs = from - (own->others - others);
	own->sets[own->at].passed = passed;
	return members < 0 ? -1 : 0;
}

static int left(struct moving *moving, struct moving_left *left)
{
	struct sorted_sets *own = moving->state;
	const char *command = own->library ? own->library->count : "ZCOUNT";

	*left = (struct moving_left){0, 0};
	if (list_sets(moving))
		return -1;
	for (; own->at < own->count; own->at++) {
		const int held = is_held(own);
		uint64_t members;

		if (held < 0 ||
		    (command ? count(own, own->sets[own->at].key, command, &members) : walk(moving, &members)))
			return -1;
		*(held ? &left->reserved : &left->waiting) += members;
	}
	own->at = 0;
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
	int shown = 0;

	for (own->at = 0; own->at < own->count; own->at++) {
		const uint64_t before = moving_odd(moving);
		uint64_t jobs;

		if (walk(moving, &jobs))
			return -1;
		if (own->library && !jobs)
			continue;
		print_set(moving, own->sets[own->at].key, jobs, moving_odd(moving) - before);
		shown = 1;
	}
	if (!shown && !moving->jobs.json)
		puts("no jobs: look for them in another database, or under another prefix");
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

const struct moving_source moving_bullmq = {.scheme = "bullmq", .open = open_source, .close = close_source, OTHERS};

const struct moving_source moving_celery = {.scheme = "celery", .open = open_source, .close = close_source, OTHERS};

const struct moving_source moving_laravel = {.scheme = "laravel", .open = open_source, .close = close_source, OTHERS};

const struct moving_source moving_resque = {.scheme = "resque", .open = open_source, .close = close_source, OTHERS};
