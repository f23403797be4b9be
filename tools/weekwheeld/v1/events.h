#ifndef TOOLS_WEEKWHEELD_V1_EVENTS_H
#define TOOLS_WEEKWHEELD_V1_EVENTS_H

/*
 * Events: what becomes of jobs, kept for a while and sent to those who read them (GET /v1/events):
 *
 *     the store --> heard() --> ring of the last events --> events_take() --> a stream --> its client
 *      any thread    JSON                                    the loop, when the client can take more
 *
 * The store is listened to while somebody reads, and for a minute after that, so that a reader who comes back misses
 * nothing. A stream has a place in the ring and no queue of its own. One that the ring has overtaken is ended: its
 * client comes back, and learns that it has missed some.
 */

#include <sys/queue.h>

#include "tools/service/access/tokens.h"
#include "tools/service/http/web.h"
#include "tools/weekwheeld/engine/server.h"

enum {
	EVENTS_KEPT = 4096,
	EVENTS_BYTES = 2 << 20, /* of all that are kept */
	EVENTS_STREAMS = 16,
	EVENTS_GATHER_MS = 10,  /* how long events are gathered before they are sent */
	EVENTS_BEAT_MS = 10000, /* how long a stream says nothing: less than the time in which answers must be read */
	EVENTS_LINGER_MS = 60000
};

/* Fill with zeros, then the first members. They stay as they are until it leaves. */
struct events_stream {
	struct web_visit *visit;
	const struct token *who; /* NULL: tokens are not used */
	const struct tokens *tokens;
	const char *const *tubes; /* whose events it gets */
	size_t tube_count;        /* 0: those of all that the token may read */

	LIST_ENTRY(events_stream) next;
	uint64_t number; /* of the next event */
	uint64_t said;   /* ms of the loop: when something was sent last */
	int is_asleep;
	int is_gone;
	struct buffer out;
	size_t sent;
};

/*
 * A stream begins, after the event whose id is `last` unless that is NULL. Returns 0, or -1 if there are as many as may
 * be, or no memory.
 */
int events_join(struct server *server, struct events_stream *stream, const char *last);
void events_leave(struct server *server, struct events_stream *stream);

/*
 * Copy what the stream has to say to to[0 .. room-1]. Returns how many bytes, 0 if it has nothing to say and is resumed
 * by http_resume later, or -1 if it is over.
 */
long events_take(struct server *server, struct events_stream *stream, char *to, size_t room);

/* ---- As the rest of the server sees them */

/* Returns 0, or -1 after a message. */
int events_start(struct server *server);
/* End all streams. */
void events_stop(struct server *server);
/* The store is closed: no event can come any more. */
void events_free(struct server *server);

/* The tokens have changed. */
void events_reload(struct server *server);

/* Of a shared store: jobs of a tube may be ready. Any thread. */
void events_ready(struct server *server, const char *tube);

int events_numbers(struct server *server, struct buffer *out, number_fn *add);

#endif
