/* Feeds the parser as a connection does, and writes what it finds as text. */
#include "tests/tools/weekwheeld/protocol/transcript.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/protocol/protocol.h"

struct feed {
	struct protocol protocol;
	struct command command;
	char *kept; /* bytes that came and were not used yet, in a block of exactly that size */
	size_t size;
	FILE *out;
};

size_t transcript_whole(size_t at, size_t size, void *context)
{
	(void)context;
	return size - at;
}

size_t transcript_bytes(size_t at, size_t size, void *context)
{
	(void)at;
	(void)size;
	(void)context;
	return 1;
}

static void check(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "the parser breaks its contract: %s\n", what);
	abort();
}

static void show_own(FILE *out, const struct command_own *own)
{
	(void)fprintf(out, " key=%zu:%.*s reason=%s version=%" PRIu64 " every=%" PRIu64 " skip=%" PRIu64,
	    own->key_length, (int)own->key_length, (const char *)own->key, own->reason, own->job.version,
	    own->job.period, own->job.skip);
	(void)fprintf(out, " backoff=%" PRIu64 ",%" PRIu64 " attempts=%u missed=%d at=%d", own->job.backoff,
	    own->job.backoff_max, own->job.attempts, (int)own->job.missed, own->at);
	(void)fprintf(out, " from=%" PRIu64 " to=%" PRIu64 " after=%" PRIu64 " states=%u body=%d span=%" PRIu64,
	    own->from, own->to, own->after, own->states, own->with_body, own->span);
	(void)fprintf(out, " mode=%d key_span=%" PRIu64, (int)own->job.key_mode, own->job.key_span);
	check(own->key_length <= sizeof own->key, "a key is too long");
}

static int has_tube(const struct command *command)
{
	switch (command->verb) {
	case VERB_USE:
	case VERB_WATCH:
	case VERB_IGNORE:
	case VERB_STATS_TUBE:
	case VERB_PAUSE_TUBE:
		return 1;
	default:
		return command->verb >= VERB_PUT_KEY && command->own.has_tube;
	}
}

static void show(FILE *out, const struct command *command)
{
	check(command->verb < VERBS, "a verb that there is not");
	check(!command->is_last || command->refusal != REFUSAL_NONE, "a last command that is not refused");
	(void)fprintf(out, "%d", (int)command->verb);
	if (command->refusal != REFUSAL_NONE) {
		(void)fprintf(out, " refused %d%s\n", (int)command->refusal, command->is_last ? " last" : "");
		return;
	}
	if (command->verb == VERB_PUT || command->verb == VERB_PUT_KEY || command->verb == VERB_PUT_AT)
		(void)fprintf(out, " priority=%u delay=%" PRIu64 " run=%" PRIu64 " body=%zu:%.*s", command->priority,
		    command->delay, command->run, command->body_length, (int)command->body_length, command->body);
	if (has_tube(command)) {
		check(strlen(command->tube) <= WW_TUBE_MAX, "a tube's name is too long");
		(void)fprintf(out, " tube=%s", command->tube);
	}
	if (command->verb == VERB_RELEASE || command->verb == VERB_BURY || command->verb == VERB_DELETE)
		(void)fprintf(out, " id=%" PRIu64, command->id);
	if (command->verb >= VERB_PUT_KEY)
		show_own(out, &command->own);
	(void)fputc('\n', out);
}

static int keep(struct feed *feed, const char *data, size_t size)
{
	char *kept = malloc(feed->size + size);

	if (!kept)
		return -1;
	if (feed->size)
		memcpy(kept, feed->kept, feed->size);
	memcpy(kept + feed->size, data, size);
	free(feed->kept);
	feed->kept = kept;
	feed->size += size;
	return 0;
}

/* Drop the used bytes. A new block lets a sanitizer see reads beyond its end. */
static int drop(struct feed *feed, size_t used)
{
	char *rest = malloc(feed->size - used + 1);

	if (!rest)
		return -1;
	memcpy(rest, feed->kept + used, feed->size - used);
	free(feed->kept);
	feed->kept = rest;
	feed->size -= used;
	return 0;
}

static int take(struct feed *feed)
{
	size_t used = 0;

	while (protocol_next(&feed->protocol, &feed->command, feed->kept, feed->size, &used)) {
		check(used <= feed->size, "it uses more than there is");
		show(feed->out, &feed->command);
		if (drop(feed, used) != 0)
			return -1;
	}
	check(used <= feed->size, "it uses more than there is");
	return drop(feed, used);
}

char *transcript(const char *data, size_t size, size_t body_max, transcript_piece_fn *piece, void *context)
{
	struct feed feed = {.kept = NULL};
	char *text = NULL;
	size_t length = 0;
	size_t at = 0;
	int bad;

	feed.out = open_memstream(&text, &length);
	if (!feed.out)
		return NULL;
	protocol_init(&feed.protocol, body_max);
	bad = keep(&feed, "", 0);
	while (at < size && bad == 0) {
		size_t now = piece(at, size, context);

		bad = keep(&feed, data + at, now);
		bad = bad ? bad : take(&feed);
		at += now;
	}
	free(feed.kept);
	(void)fclose(feed.out);
	if (bad) {
		free(text);
		return NULL;
	}
	return text;
}
