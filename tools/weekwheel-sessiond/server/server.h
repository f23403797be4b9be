#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_SERVER_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_SERVER_H

/*
 * The server: a loop for each thread, and one store of sessions (data/data.h). A command takes this way:
 *
 *     loop.c ---> conn.c ---> input.c ------> commands/dispatch.c ---> strings.c, expiry.c, keys.c, ... ---> data/
 *     accepted,   its bytes   cut into        looked up,               carried out                           the maps
 *     handed on               commands        stripes locked
 *
 * A client belongs to one loop, so its commands are in order. A turn of a loop reads the commands that have come,
 * carries them out, waits for the journal if that was asked for, and sends each client its answers in one write.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "tools/common/tls/tls.h"
#include "tools/service/buffer.h"
#include "tools/service/crowd.h"
#include "tools/service/shake.h"
#include "tools/service/teller.h"
#include "tools/weekwheel-sessiond/data/data.h"
#include "tools/weekwheel-sessiond/outbox/courier.h"
#include "tools/weekwheel-sessiond/protocol/resp.h"
#include "tools/weekwheel-sessiond/server/auth.h"
#include "tools/weekwheel-sessiond/server/walk.h"
#include "tools/weekwheel-sessiond/settings/settings.h"

enum {
	INPUT_SIZE = 65536,
	MAIL_MAX = 32 * 1024 * 1024, /* a client that leaves so much of channels unread is closed */
	OUTPUT_HIGH = 1024 * 1024    /* a client that leaves so much unread is not read until it has read */
};

struct sessiond;
struct loop;
struct viewer;
struct command_queue;
struct subscription;
struct watched;
struct command_entry;

/* How a client ends. It never goes back. */
enum conn_life {
	CONN_OPEN,
	CONN_ENDING, /* it is closed when its answers are sent; nothing more is carried out */
	CONN_DEAD,   /* it is closed at the end of this turn, and nothing more is sent */
	CONN_LEAVING /* and this takes several turns */
};

struct conn {
	LIST_ENTRY(conn) next;
	SLIST_ENTRY(conn) flush;
	SLIST_ENTRY(conn) mailed;
	struct loop *loop;
	uv_poll_t poll;
	int fd;
	struct crowd_address *place;
	int events; /* that poll waits for */
	enum conn_life life;
	uint64_t id;
	struct resp_parser parser;
	struct buffer in;
	struct buffer out;
	struct buffer aside;   /* what `walk` has found */
	struct key_walk *walk; /* a command under way: no other is carried out */
	struct tls_link *tls;  /* NULL: it has none */
	struct shake shake;
	struct buffer sealed; /* answers that are enciphered */
	struct known_client auth;
	uint64_t pause_ms;         /* that a command asks for, which ends with it */
	uv_timer_t *hold;          /* while it runs, no command is carried out, and no answer sent */
	struct buffer mail;        /* from other threads, under the loop's lock */
	_Atomic unsigned database; /* this and what else is atomic others read for CLIENT LIST */
	_Atomic int protocol;      /* 2 or 3 */
	int is_in_flush;
	int is_mailed; /* this and the next under the loop's lock */
	int is_killed; /* another client wants it closed */
	int is_known;  /* it has said a token or the password, or there is none */
	int is_in_exec;
	int is_again;                /* the command of now is to be carried out again later */
	int reply_off;               /* CLIENT REPLY */
	int reply_skip;              /* answers to leave out: 2: of the next command */
	int is_skipped;              /* the answer of the command of now is left out */
	struct command_queue *queue; /* of MULTI, or NULL */
	struct watched *watched;     /* keys */
	size_t kept;                 /* bytes of these, and of subscriptions */
	struct subscription *subscriptions;
	_Atomic unsigned channels[3]; /* subscribed to, by enum pubsub_kind */
	char *name;                   /* CLIENT SETNAME */
	char *library;
	char *library_version;
	uint64_t since_ms;        /* of the monotonic clock */
	_Atomic uint64_t last_ms; /* it sent something */
	const struct command_entry *_Atomic last;
};

static inline void conn_move(struct conn *conn, enum conn_life life)
{
	if (conn->life < life)
		conn->life = life;
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

struct arrival {
	int fd;
	int is_tls;
	struct crowd_address *place; /* among the clients of its address, or NULL */
};

/* A loop's clients, and its mail from other threads. */
struct loop {
	struct sessiond *server;
	unsigned number;
	pthread_t thread;
	uv_loop_t uv;
	uv_prepare_t prepare;
	uv_async_t wake;
	LIST_HEAD(, conn) conns; /* changed under `lock` */
	SLIST_HEAD(, conn) flush;
	struct walks walks;
	struct shakes shakes;
	uv_timer_t sweep; /* closes who does not say a token */
	_Alignas(64) pthread_mutex_t lock;
	struct arrival *arrived; /* new clients */
	size_t arrived_count;
	size_t arrived_room;
	SLIST_HEAD(, conn) mailed;
	_Atomic int has_mail;
	int is_stopping;
	int is_over;          /* no turn follows */
	int is_to_check;      /* the tokens have changed */
	uint64_t told_bounds; /* ms: when it told other loops that there is too much */
	_Alignas(64) _Atomic uint64_t commands;
	_Atomic uint64_t client_count;
	_Atomic uint64_t bytes_in;
	_Atomic uint64_t bytes_out;
	char input[INPUT_SIZE];
};

/* The numbers of INFO that CONFIG RESETSTAT sets to 0. */
enum { SESSIOND_COUNTS = 9 };

struct sessiond {
	const struct sessiond_settings *settings;
	struct web *web; /* NULL: no HTTP */
	struct viewer *view;
	struct data *data;
	struct keep *keep;     /* NULL: nothing outlasts the server */
	struct outbox *outbox; /* filled with --expired-to */
	struct courier *courier;
	struct loop *loop;
	unsigned loop_count;
	struct admission auth;
	struct tls *tls; /* NULL: none; changed under tls_lock */
	pthread_mutex_t tls_lock;
	int *listener;
	int *listener_is_tls;
	uv_poll_t *listener_poll;
	unsigned listener_count;
	uv_signal_t signals[3];
	uv_timer_t watchdog;
	struct teller teller;
	uv_timer_t accept_again;
	_Atomic uint64_t client_ids;
	_Atomic uint64_t clients;
	_Atomic uint64_t clients_total;
	_Atomic uint64_t refused;
	struct crowd crowd;
	_Atomic uint64_t forgotten[SESSIOND_COUNTS]; /* what they were at the last CONFIG RESETSTAT */
	_Atomic uint64_t saved;                      /* s: when it was saved last */
	unsigned next_loop;
	int64_t started_ms; /* wall */
	char run_id[41];
	int port;
	int failed;
};

#endif
