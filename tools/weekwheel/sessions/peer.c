/* Asks a server that speaks Redis's protocol. */
#include "tools/weekwheel/sessions/peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"

int peer_fail(const struct peer *peer, const char *why)
{
	progress_clear();
	return message_error("%s: %s", peer->address, why);
}

int peer_open(struct peer *peer, const struct tls_files *tls, const char *remedy)
{
	peer->reader = redisReaderCreate();
	if (!peer->reader)
		memory_exhausted();
	ww_redis_reader_bound(&peer->bound, peer->reader, REDIS_READER_MAX);
	return client_connect(peer->client, remedy) || client_secure(peer->client, tls) ? -1 : 0;
}

void peer_close(struct peer *peer)
{
	redisReaderFree(peer->reader);
	peer->reader = NULL;
}

void peer_ask(struct peer *peer, const char *format, ...)
{
	va_list arguments;
	char *text;
	int size;

	va_start(arguments, format);
	size = redisvFormatCommand(&text, format, arguments);
	va_end(arguments);
	if (size < 0)
		memory_exhausted();
	client_bytes(peer->client, text, (size_t)size);
	redisFreeCommand(text);
}

redisReply *peer_answer(struct peer *peer)
{
	struct buffer *in = &peer->client->channel.in;
	void *reply;
	int result;

	if (client_flush(peer->client))
		return NULL;
	for (;;) {
		if (in->size > 0 && redisReaderFeed(peer->reader, in->data, in->size))
			memory_exhausted();
		buffer_drop(in, in->size);
		result = ww_redis_reader_reply(&peer->bound, peer->reader, &reply);
		if (result < 0) {
			(void)peer_fail(peer, "this is not a server of sessions: its answers are not those of Redis");
			return NULL;
		}
		if (result)
			return reply;
		if (client_await(peer->client))
			return NULL;
	}
}

redisReply *peer_good(struct peer *peer)
{
	redisReply *reply = peer_answer(peer);

	if (!reply || reply->type != REDIS_REPLY_ERROR)
		return reply;
	progress_clear();
	if (strncmp(reply->str, "NOAUTH", 6) == 0)
		message_error("%s: %s; %s", peer->address, reply->str, peer->remedy);
	else
		message_error("%s: %s", peer->address, reply->str);
	freeReplyObject(reply);
	return NULL;
}

int peer_done(struct peer *peer)
{
	redisReply *reply = peer_good(peer);

	freeReplyObject(reply);
	return reply ? 0 : -1;
}

redisReply *peer_scan(struct peer *peer, char cursor[PEER_CURSOR], const char *match, int count)
{
	redisReply *page;

	if (match)
		peer_ask(peer, "SCAN %s MATCH %s COUNT %d", cursor, match, count);
	else
		peer_ask(peer, "SCAN %s COUNT %d", cursor, count);
	page = peer_good(peer);
	if (page &&
	    (page->type != REDIS_REPLY_ARRAY || page->elements != 2 || page->element[1]->type != REDIS_REPLY_ARRAY)) {
		(void)peer_fail(peer, "this is not a server of sessions");
		freeReplyObject(page);
		return NULL;
	}
	if (page)
		snprintf(cursor, PEER_CURSOR, "%s", page->element[0]->str ? page->element[0]->str : "0");
	return page;
}
