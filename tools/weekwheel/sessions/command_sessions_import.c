/* The command sessions import: reads the source, and says what has become of its sessions. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/base/time.h"
#include "tools/common/command.h"
#include "tools/common/dial.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/sessions/moved.h"

enum { FROM = 1, DATABASE, MATCH };
/* Keys that are named; rest between two passes; how far deadlines of an older Redis may be off. */
enum { NAMED = 20, REST_MS = 1000, SLACK_MS = 1000 };

static const struct option table[] = {
    {FROM, 0, "from", "URL", "the server that has the sessions: redis://HOST:PORT/DB"},
    {DATABASE, 'n', "db", "N", "the database to put them into (0)"},
    {MATCH, 'm', "match", "PATTERN", "only keys like this, as in 'sess:*'"},
    {JOBS_FLAG(struct moved, follow), 'f', "follow", NULL, "go on, pass after pass, until Ctrl-C or SIGTERM"},
    {JOBS_FLAG(struct moved, dry_run), 0, "dry-run", NULL, "only count what would be done"},
    JOBS_TLS_OPTIONS,
    {JOBS_TOKEN_FILE, 0, "token-file", "FILE", "send the token in this file to weekwheel-sessiond"},
    {JOBS_FLAG(struct jobs, json), 'j', "json", NULL, "write one JSON object"},
    JOBS_HELP_OPTION,
};

static volatile sig_atomic_t is_stopped;

static void note_stop(int number)
{
	(void)number;
	is_stopped = 1;
}

int moved_is_stopped(void)
{
	return is_stopped;
}

/* ---- Connecting */

static int open_source(struct moved *moved)
{
	const struct redis_url *url = &moved->url;
	/* Not those of the target: its certificate and its authorities are no matter of the source. */
	const struct tls_files files = {
	    *url->certificate ? url->certificate : NULL, *url->key ? url->key : NULL, *url->ca ? url->ca : NULL};
	const char *password = url->has_password ? url->password : getenv("REDISCLI_AUTH");
	struct peer *peer = &moved->source;
	redisReply *reply;

	moved->source_client.server = moved->place;
	moved->source_client.timeout_ms = moved->jobs.timeout_ms;
	moved->source_client.trust = "?ca=FILE in --from";
	*peer = (struct peer){.client = &moved->source_client,
	    .address = moved->place,
	    .remedy = "give the password in --from or set REDISCLI_AUTH in the environment to it"};
	if (peer_open(peer, &files, "is it the server that has the sessions?"))
		return -1;
	if (password && *password) {
		if (*url->user)
			peer_ask(peer, "AUTH %s %s", url->user, password);
		else
			peer_ask(peer, "AUTH %s", password);
		if (peer_done(peer))
			return -1;
	}
	peer_ask(peer, "SELECT %u", url->db);
	peer_ask(peer, "PEXPIRETIME weekwheel");
	if (peer_done(peer) || !(reply = peer_answer(peer)))
		return -1;
	moved->has_times = reply->type == REDIS_REPLY_INTEGER;
	moved->slack = moved->has_times ? 0 : SLACK_MS;
	freeReplyObject(reply);
	return 0;
}

static int open_target(struct moved *moved)
{
	struct jobs *jobs = &moved->jobs;
	struct peer *peer = &moved->target;

	jobs->client.server = moved->address;
	jobs->client.timeout_ms = jobs->timeout_ms;
	*peer = (struct peer){.client = &jobs->client, .address = moved->address, .remedy = "give --token-file"};
	if (peer_open(peer, &jobs->tls, "is weekwheel-sessiond running there?"))
		return -1;
	if (jobs->is_token_given) {
		peer_ask(peer, "AUTH %s", jobs->token);
		if (peer_done(peer))
			return -1;
	}
	peer_ask(peer, "SELECT %llu", (unsigned long long)moved->database);
	return peer_done(peer);
}

int64_t moved_number(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_INTEGER ? reply->integer : MOVED_NO_KEY;
}

/* An answer that must be an array of this many; NULL after a message. Error elements are allowed. */
static redisReply *array_of(struct peer *peer, size_t count)
{
	redisReply *reply = peer_good(peer);

	if (!reply || (reply->type == REDIS_REPLY_ARRAY && reply->elements == count))
		return reply;
	freeReplyObject(reply);
	(void)peer_fail(peer, "this is not a server of sessions");
	return NULL;
}

/* Queue what reads a key at one moment, in a transaction. The last of four answers has both. */
static void ask_entry(struct moved *moved, const char *key, size_t size)
{
	struct peer *peer = &moved->source;

	peer_ask(peer, "MULTI");
	peer_ask(peer, "GET %b", key, size);
	peer_ask(peer, moved->has_times ? "PEXPIRETIME %b" : "PTTL %b", key, size);
	peer_ask(peer, "EXEC");
}

static redisReply *entry_of(struct moved *moved)
{
	if (peer_done(&moved->source) || peer_done(&moved->source) || peer_done(&moved->source))
		return NULL;
	return array_of(&moved->source, 2);
}

/* ---- What is known */

static struct known *known_of(struct moved *moved, const char *key, size_t size, uint32_t *id)
{
	size_t before = keys_count(moved->keys);

	*id = keys_intern(moved->keys, key, size);
	if (*id == before) {
		moved->known = memory_grow(moved->known, &moved->room, before, sizeof *moved->known);
		moved->known[*id] = (struct known){.there = MOVED_NO_KEY};
	}
	return &moved->known[*id];
}

uint64_t moved_hash(const redisReply *value)
{
	return XXH3_64bits(value->str, value->len);
}

static void name_other(struct moved *moved, const char *key, size_t size)
{
	char excerpt[100];

	message_excerpt(excerpt, sizeof excerpt, key, size);
	if (moved->others++ < NAMED && moved->pass == 1) {
		progress_clear();
		message_line("%s: %s is no string, such as a hash, and is not taken", moved->place, excerpt);
	}
}

/* ---- From the source */

static int is_candidate(const struct moved *moved, uint32_t id)
{
	for (size_t i = 0; i < moved->count; i++)
		if (moved->candidates[i].key == id)
			return 1;
	return 0;
}

/* Take an entry as a candidate, unless it is as it was. The reply of the value is taken out of the answer. */
static int take_entry(struct moved *moved, const redisReply *key, redisReply *entry)
{
	redisReply *value = entry->element[0];
	int64_t deadline = moved_number(entry->element[1]);
	struct known *known;
	uint32_t id;

	if (value->type == REDIS_REPLY_ERROR) {
		if (strncmp(value->str, "WRONGTYPE", 9) != 0)
			return peer_fail(&moved->source, value->str);
		name_other(moved, key->str, key->len);
		return 0;
	}
	/* It has gone since. */
	if (value->type != REDIS_REPLY_STRING)
		return 0;
	if (!moved->has_times && deadline >= 0)
		deadline += (int64_t)(time_now(CLOCK_REALTIME) / 1000000);
	known = known_of(moved, key->str, key->len, &id);
	/* A page may have a key twice. */
	if (is_candidate(moved, id))
		return 0;
	moved->read += known->pass != moved->pass;
	if (known->pass && known->hash == moved_hash(value) && moved_is_same(moved, known->deadline, deadline)) {
		moved->same += known->pass != moved->pass;
		known->pass = moved->pass;
		return 0;
	}
	moved->candidates[moved->count++] =
	    (struct candidate){.key = id, .deadline = deadline, .value = value, .hash = moved_hash(value)};
	entry->element[0] = NULL;
	return 0;
}

static int take_keys(struct moved *moved, redisReply *const *keys, size_t count)
{
	int failed = 0;

	for (size_t i = 0; i < count; i++)
		ask_entry(moved, keys[i]->str, keys[i]->len);
	for (size_t i = 0; i < count && !failed; i++) {
		redisReply *entry = entry_of(moved);
		failed = !entry || take_entry(moved, keys[i], entry);
		freeReplyObject(entry);
	}
	return failed ? -1 : 0;
}

/* ---- Passes */

static int count_source(struct moved *moved, uint64_t *count)
{
	redisReply *reply;

	peer_ask(&moved->source, "DBSIZE");
	reply = peer_good(&moved->source);
	if (!reply)
		return -1;
	*count = reply->type == REDIS_REPLY_INTEGER ? (uint64_t)reply->integer : 0;
	freeReplyObject(reply);
	return 0;
}

static int pass(struct moved *moved)
{
	char cursor[PEER_CURSOR] = "0";
	uint64_t seen = 0, total = 0;
	int failed = count_source(moved, &total);

	moved->pass++;
	moved->read = moved->same = moved->others = 0;
	do {
		redisReply *page = failed ? NULL : peer_scan(&moved->source, cursor, moved->match, MOVED_PAGE);
		size_t count = page ? page->element[1]->elements : 0;

		failed = !page;
		for (size_t at = 0; at < count && !failed; at += MOVED_PAGE)
			failed = take_keys(moved, page->element[1]->element + at,
			             count - at < MOVED_PAGE ? count - at : MOVED_PAGE) ||
			         moved_put(moved);
		seen += count;
		progress_show(seen, moved->match ? 0 : total > seen ? total : seen);
		freeReplyObject(page);
	} while (!failed && !is_stopped && strcmp(cursor, "0") != 0);
	/* What a pass that was stopped has not found may be there. */
	return failed || (!is_stopped && moved_remove(moved)) ? -1 : 0;
}

static int all_passes(struct moved *moved)
{
	int failed = open_source(moved) || open_target(moved) || pass(moved);

	while (!failed && moved->follow && !is_stopped) {
		(void)poll(NULL, 0, REST_MS);
		failed = is_stopped ? 0 : pass(moved);
	}
	return failed;
}

static void print_result(const struct moved *moved)
{
	if (moved->jobs.json) {
		printf("{\"read\": %" PRIu64 ", \"set\": %" PRIu64 ", \"same\": %" PRIu64 ", \"kept\": %" PRIu64
		       ", \"removed\": %" PRIu64 ", \"others\": %" PRIu64 "}\n",
		    moved->read, moved->set, moved->same, moved->kept, moved->removed, moved->others);
		return;
	}
	printf("%" PRIu64 " session%s there; %" PRIu64 " %s, %" PRIu64 " as they were", moved->read,
	    jobs_plural(moved->read), moved->set, moved->dry_run ? "to be set" : "set", moved->same);
	if (moved->kept)
		printf(", %" PRIu64 " kept as they are here", moved->kept);
	if (moved->removed)
		printf(", %" PRIu64 " removed", moved->removed);
	if (moved->others)
		printf("; %" PRIu64 " key%s not taken", moved->others, jobs_plural(moved->others));
	putchar('\n');
}

/* ---- The command */

static int run(void *context)
{
	struct moved *moved = context;
	const struct sigaction stop = {.sa_handler = note_stop};
	int failed;

	if (moved->follow) {
		sigaction(SIGINT, &stop, NULL);
		sigaction(SIGTERM, &stop, NULL);
	}
	moved->keys = keys_new();
	progress_begin("importing");
	failed = all_passes(moved);
	progress_clear();
	if (moved->others > NAMED)
		message_line("%s: %" PRIu64 " more are no strings", moved->place, moved->others - NAMED);
	if (moved->pass)
		print_result(moved);
	if (failed && moved->pass)
		message_line(
		    "Nothing is lost: the source has all. Do it again; what is here already is not set twice.");
	peer_close(&moved->source);
	peer_close(&moved->target);
	client_close(&moved->source_client);
	keys_free(moved->keys);
	free(moved->known);
	return failed || moved->others ? STATUS_FAILED : STATUS_OK;
}

static int take(void *context, struct options *options, int id)
{
	struct moved *moved = context;

	switch (id) {
	case FROM:
		moved->from = options->value;
		return 0;
	case DATABASE:
		return jobs_whole(options, "db", 0, 1000000, &moved->database, "a whole number");
	case MATCH:
		moved->match = options->value;
		return 0;
	default:
		if (moved->is_given++ || !dial_is_address(options->value))
			return options_fail(options,
			    "'%s': expected one address, HOST:PORT, tls:HOST:PORT or unix:PATH", options->value);
		moved->address = options->value;
		return 0;
	}
}

static int check(void *context, const struct options *options)
{
	struct moved *moved = context;
	const struct redis_address *host = &moved->url.hosts[0];
	char place[REDIS_PLACE_MAX];
	const char *why;

	if (!moved->from)
		return options_fail(options, "--from is missing: the server that has the sessions, redis://HOST:PORT");
	if (ww_redis_url_parse(&moved->url, moved->from, &why))
		return options_fail(options, "--from: %s", why);
	if (moved->url.count > 1 || *moved->url.master)
		return options_fail(options, "--from: expected one server, redis://HOST:PORT/DB");
	if (moved->url.has_password && *moved->url.password)
		message_warning("everybody on this machine can read the password in --from; REDISCLI_AUTH hides it");
	ww_redis_address_write(host, place);
	snprintf(moved->place, sizeof moved->place, "%s%s",
	    host->port == 0     ? "unix:"
	    : moved->url.is_tls ? "tls:"
	                        : "",
	    place);
	return 0;
}

const struct jobs_command command_sessions_import = {
    .name = "weekwheel sessions import",
    JOBS_TABLE(table),
    .context = &(struct moved){.address = "127.0.0.1:6380"},
    .server = JOBS_ADDRESS,
    .take = take,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel sessions import --from redis://HOST[:PORT][/DB] [OPTION]... [ADDRESS]\n"
             "\n"
             "Copy the sessions of a Redis, or of another weekwheel-sessiond, to the server at ADDRESS,\n"
             "127.0.0.1:6380 unless said otherwise, with their values and deadlines. Do it again until\n"
             "the site uses the new server: what is there already is not set again, and a session\n"
             "that was used last at the new server stays as it is there. With --follow, what goes at\n"
             "the source goes here, too. The source is only read.\n",
    .examples = "The password of the source is in --from, redis://USER:PASSWORD@HOST, or in\n"
                "REDISCLI_AUTH. The exit status is 0 if all keys were taken.\n"
                "\n"
                "Examples, the first to see what there is:\n"
                "  weekwheel sessions import --from redis://127.0.0.1:6379 --match 'sess:*' --dry-run 127.0.0.1:6380\n"
                "  weekwheel sessions import --from redis://127.0.0.1:6379/1 --follow 127.0.0.1:6380\n",
};
