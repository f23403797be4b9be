#ifndef TOOLS_WEEKWHEEL_SESSIONS_PEER_H
#define TOOLS_WEEKWHEEL_SESSIONS_PEER_H

/* A server that speaks Redis's protocol: commands are queued, and their answers come in order. */

#include <hiredis/hiredis.h>

#include "lib/redis/link/reader.h"
#include "tools/weekwheel/jobs/client.h"

struct peer {
	struct client *client;
	redisReader *reader;
	struct redis_reader_bound bound;
	const char *address; /* for messages */
	const char *remedy;  /* if it wants a password or token */
};

/* Connect the client, whose server and timeout are set. Return 0, or -1 after a message; so do all others. */
int peer_open(struct peer *peer, const struct tls_files *tls, const char *remedy);
void peer_close(struct peer *peer);

/* Say what is wrong with it. Returns -1. */
int peer_fail(const struct peer *peer, const char *why);

/* Queue a command. */
void peer_ask(struct peer *peer, const char *format, ...);
/* The next answer, which the caller frees, or NULL after a message. The second also refuses an error. */
redisReply *peer_answer(struct peer *peer);
redisReply *peer_good(struct peer *peer);
/* Read an answer that is no error, and of no interest. */
int peer_done(struct peer *peer);

/* The keys of a page, whose cursor is in *cursor; NULL after a message. The caller frees the reply, of two elements. */
enum { PEER_CURSOR = 32 };
redisReply *peer_scan(struct peer *peer, char cursor[PEER_CURSOR], const char *match, int count);

#endif
