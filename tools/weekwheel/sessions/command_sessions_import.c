/* The command sessions import: reads the source, and says what has become of its sessions. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/dial.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/sessions/moved.h"

enum { FROM = 1, DATABASE, MATCH };
/* The rest between two passes; how many at most while slots move, or a master is lost. */
enum { REST_MS = 1000, PASSES = 60 };

static const struct option table[] = {
    {FROM, 0, "from", "URL",
        "the server that has the sessions, redis://HOST:PORT/DB,\nor some of a cluster, redis://HOST:PORT,HOST:PORT"},
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

/* ---- Passes */

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

/* Take what one server of the source has. */
static int take_all(struct moved *moved, struct moved_node *node, uint64_t *seen, uint64_t total)
{
	char cursor[PEER_CURSOR] = "0";
	int failed = 0;

	do {
		redisReply *page = failed ? NULL : moved_scan(moved, node, cursor);
		size_t count = page ? page->element[1]->elements : 0;

		failed = !page;
		for (size_t at = 0; at < count && !failed; at += MOVED_PAGE)
			failed = moved_take(moved, node, page->element[1]->element + at,
			             count - at < MOVED_PAGE ? count - at : MOVED_PAGE) ||
			         moved_put(moved);
		*seen += count;
		progress_show(*seen, moved->match ? 0 : total > *seen ? total : *seen);
		freeReplyObject(page);
	} while (!failed && !is_stopped && strcmp(cursor, "0") != 0);
	return failed ? -1 : 0;
}

static int pass(struct moved *moved)
{
	uint64_t seen = 0, total = 0;
	int failed = moved_count(moved, &total);

	moved->pass++;
	moved->read = moved->same = moved->others = moved->on_move = 0;
	for (size_t i = 0; i < moved->node_count && !failed && !is_stopped; i++)
		if (moved->nodes[i]->is_master)
			failed = take_all(moved, moved->nodes[i], &seen, total);
	/* What a pass that was stopped has not found may be there. */
	return failed || (!is_stopped && moved_remove(moved)) ? -1 : 0;
}

/*
 * A key whose slot moved may have been passed by, so the pass is made again. While a slot is on its way two passes find all of
 * its keys: each key goes once, so that one which went during a pass was found before it, or is found after it.
 */
static int whole_pass(struct moved *moved)
{
	int is_new = 0;
	int failed = moved->is_cluster && moved_find(moved, &is_new);

	for (int i = 0; i < PASSES && !failed && !is_stopped; i++) {
		failed = pass(moved) || (moved->is_cluster && moved_find(moved, &is_new));
		if (failed || moved->follow || (!is_new && !moved->on_move && (!moved->is_moving || i)))
			return failed;
		(void)poll(NULL, 0, REST_MS);
	}
	return failed || is_stopped ? failed
	                            : message_error("slots of the cluster do not stop moving: do it again then");
}

/* Where a master is lost, a replica takes over. Failures: how many passes have failed, one after the other. */
static int goes_on(const struct moved *moved, int failures)
{
	return moved->follow && !is_stopped &&
	       (!failures || (failures < PASSES && moved->pass && moved->is_cluster && moved->is_lost));
}

static int all_passes(struct moved *moved)
{
	int is_new;
	int failures = moved_find(moved, &is_new) || open_target(moved) || whole_pass(moved);

	while (goes_on(moved, failures)) {
		(void)poll(NULL, 0, REST_MS);
		failures = is_stopped || whole_pass(moved) == 0 ? 0 : failures + 1;
	}
	return failures;
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
	moved_name_rest(moved);
	if (moved->pass)
		print_result(moved);
	if (failed && moved->pass)
		message_line(
		    "Nothing is lost: the source has all. Do it again; what is here already is not set twice.");
	moved_close(moved);
	peer_close(&moved->target);
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
	const char *why;

	if (!moved->from)
		return options_fail(options, "--from is missing: the server that has the sessions, redis://HOST:PORT");
	if (ww_redis_url_parse(&moved->url, moved->from, &why))
		return options_fail(options, "--from: %s", why);
	if (*moved->url.master)
		return options_fail(options, "--from: expected redis://HOST:PORT/DB, the server that has the sessions");
	if (moved->url.has_password && *moved->url.password)
		message_warning("everybody on this machine can read the password in --from; REDISCLI_AUTH hides it");
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
