#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_CONN_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_CONN_H

/* A client, as its loop has it. What is atomic, other threads read for CLIENT LIST. */

#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "tools/common/buffer.h"
#include "tools/service/net/stream.h"
#include "tools/weekwheel-sessiond/protocol/resp.h"
#include "tools/weekwheel-sessiond/server/auth.h"
#include "tools/weekwheel-sessiond/server/names.h"
#include "tools/weekwheel-sessiond/server/walk.h"

struct command_entry;
struct command_queue;
struct crowd_address;
struct loop;
struct subscription;
struct watched;

enum { OUTPUT_HIGH = 1024 * 1024 }; /* a client that leaves this much unread is not read from until it reads */

/* A client's CLIENT REPLY. Messages of channels are not answers: they come in any case. */
struct reply_silence {
	int is_off;
	int skip;       /* answers to leave out; 2: from the next command on */
	int is_skipped; /* the answer of the present command is left out */
};

/* How a client ends. It never goes back to an earlier state. */
enum conn_life {
	CONN_OPEN,
	CONN_ENDING, /* closed when its answers are sent; no further command begins */
	CONN_DEAD,   /* closed at the end of this turn; nothing more is sent */
	CONN_LEAVING /* and this takes several turns */
};

enum { CONN_CHANNEL_KINDS = 3 };

struct conn {
	LIST_ENTRY(conn) next;
	SLIST_ENTRY(conn) flush;
	SLIST_ENTRY(conn) mailed;
	struct loop *loop;
	struct stream stream;
	struct crowd_address *place;
	enum conn_life life;
	uint64_t id;
	struct resp_parser parser;
	struct buffer in;
	struct buffer aside;   /* what `walk` has found */
	struct key_walk *walk; /* a command under way: no other is carried out */
	struct access_client auth;
	uint64_t pause_ms;  /* how long the command pauses its client; the pause begins when the command returns */
	uv_timer_t *hold;   /* while it runs, no command is carried out, and no answer sent */
	struct buffer mail; /* from other threads, under the loop's lock */
	_Atomic unsigned database; /* this and what else is atomic others read for CLIENT LIST */
	_Atomic int protocol;      /* 2 or 3 */
	int is_in_flush;
	int is_mailed; /* this and the next under the loop's lock */
	int is_killed; /* another thread wants it closed: CLIENT KILL, or no room for its mail */
	int is_in_exec;
	size_t exec_looks; /* how many more keys the transaction's walks may look at */
	size_t exec_bytes; /* of values that it may copy yet */
	size_t exec_steps; /* how many steps it has taken to compare them with patterns */
	uint64_t exec_ns;  /* how long its scripts have taken */
	int is_again;      /* the present command runs again later */
	struct reply_silence silence;
	struct command_queue *queue; /* of MULTI, or NULL */
	struct buffer queued;        /* its commands */
	struct watched *watched;     /* keys */
	size_t watched_count;
	size_t kept; /* bytes of watched keys, names and subscriptions */
	TAILQ_HEAD(, subscription) subscriptions[CONN_CHANNEL_KINDS]; /* by enum pubsub_kind, as what follows */
	_Atomic unsigned channels[CONN_CHANNEL_KINDS];                /* subscribed to */
	struct client_names names;
	uint64_t since_ms;        /* of the monotonic clock */
	_Atomic uint64_t last_ms; /* it sent something */
	const struct command_entry *_Atomic last;
};

static inline void conn_move(struct conn *conn, enum conn_life life)
{
	if (conn->life < life)
		conn->life = life;
}

/* Whether it has subscribed to anything. */
static inline int conn_listens(const struct conn *conn)
{
	return conn->channels[0] + conn->channels[1] + conn->channels[2] > 0;
}

/* Close it when its answers are sent. */
static inline void conn_end(struct conn *conn)
{
	conn_move(conn, CONN_ENDING);
}

/* Close it, and send nothing more. */
static inline void conn_fail(struct conn *conn)
{
	conn_move(conn, CONN_DEAD);
}

#endif
