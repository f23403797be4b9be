#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_H

/*
 * The server: a loop for each thread, and one store of sessions (data.h). A command takes this way:
 *
 *     loop.c ---> conn.c -----> protocol/ ---> commands.c ---> strings.c, expiry.c, keys.c, ... ---> data.c
 *     accepted,   its bytes     parsed         looked up,      carried out                            the maps
 *     handed on                                stripes locked
 *
 * A client belongs to one loop, so its commands are in order. A turn of a loop reads what has come, carries it out, waits
 * for the journal if that was asked for, and sends what each client gets in one write.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "tools/service/buffer.h"
#include "tools/service/teller.h"
#include "tools/weekwheel-sessiond/data.h"
#include "tools/weekwheel-sessiond/protocol/resp.h"
#include "tools/weekwheel-sessiond/settings.h"

enum {
	INPUT_SIZE = 65536,
	MAIL_MAX = 32 * 1024 * 1024, /* a client that leaves so much of channels unread is closed */
	OUTPUT_HIGH = 1024 * 1024,   /* a client that leaves so much unread is not read until it has read */
	NAME_MAX_SIZE = 64
};

struct sessiond;
struct loop;
struct command_queue;
struct subscription;
struct watched;
struct command_entry;

struct conn {
	LIST_ENTRY(conn) next;
	SLIST_ENTRY(conn) flush;
	SLIST_ENTRY(conn) mailed;
	struct loop *loop;
	uv_poll_t poll;
	int fd;
	int events; /* that poll waits for */
	uint64_t id;
	struct resp_parser parser;
	struct buffer in;
	size_t done; /* bytes of `in` that were carried out */
	struct buffer out;
	struct buffer mail;        /* from other threads, under the loop's lock */
	_Atomic unsigned database; /* this and what else is atomic others read for CLIENT LIST */
	_Atomic int protocol;      /* 2 or 3 */
	int is_in_flush;
	int is_mailed;               /* this and the next under the loop's lock */
	int is_killed;               /* it is to be closed */
	int is_dead;                 /* its output cannot be sent */
	int is_ending;               /* it is closed when its answers are sent */
	int is_known;                /* it has the password, or there is none */
	int reply_off;               /* CLIENT REPLY */
	int reply_skip;              /* answers to leave out: 2: of the next command */
	struct command_queue *queue; /* of MULTI, or NULL */
	struct watched *watched;     /* keys */
	struct subscription *subscriptions;
	_Atomic unsigned channels[3]; /* subscribed to, by enum pubsub_kind */
	char *name;                   /* CLIENT SETNAME */
	char *library;
	char *library_version;
	uint64_t since_ms;        /* of the monotonic clock */
	_Atomic uint64_t last_ms; /* it sent something */
	const struct command_entry *_Atomic last;
};

/* A loop's clients, and what other threads tell it. */
struct loop {
	struct sessiond *server;
	unsigned number;
	pthread_t thread;
	uv_loop_t uv;
	uv_prepare_t prepare;
	uv_async_t wake;
	LIST_HEAD(, conn) conns; /* changed under `lock` */
	SLIST_HEAD(, conn) flush;
	_Alignas(64) pthread_mutex_t lock;
	int *arrived; /* descriptors of new clients */
	size_t arrived_count;
	size_t arrived_room;
	SLIST_HEAD(, conn) mailed;
	_Atomic int has_mail;
	int is_stopping;
	_Alignas(64) _Atomic uint64_t commands;
	_Atomic uint64_t client_count;
	_Atomic uint64_t bytes_in;
	_Atomic uint64_t bytes_out;
	char input[INPUT_SIZE];
};

struct sessiond {
	const struct sessiond_settings *settings;
	struct web *web; /* NULL: no HTTP */
	struct data *data;
	struct keep *keep; /* NULL: nothing outlasts the server */
	struct loop *loop;
	unsigned loop_count;
	int *listener;
	uv_poll_t *listener_poll;
	unsigned listener_count;
	uv_signal_t signals[2];
	uv_timer_t watchdog;
	struct teller teller;
	uv_timer_t accept_again;
	_Atomic uint64_t client_ids;
	_Atomic uint64_t clients;
	_Atomic uint64_t clients_total;
	_Atomic uint64_t refused;
	_Atomic uint64_t saved; /* s: when it was saved last */
	unsigned next_loop;
	int64_t started_ms; /* wall */
	char run_id[41];
	int port;
	int failed;
};

/* ---- run.c, loop.c */

/* Serve until a signal or SHUTDOWN ends it. Returns the exit status. */
int sessiond_run(const struct sessiond_settings *settings);
/* Ends all loops. Any thread. */
void sessiond_stop(struct sessiond *server);

int loop_start(struct sessiond *server, struct loop *loop, unsigned number);
void loop_run(struct loop *loop);
void loop_free(struct loop *loop);
/* Hand a new client's descriptor to the loop. Any thread. */
void loop_hand_over(struct loop *loop, int fd);
/* There is mail for the client, or it is to be closed. The loop's lock is held. */
void loop_mail(struct conn *conn);
/* Give this loop's clients their mail. */
void loop_take_mail(struct loop *loop);
/* The loop whose thread this is, or NULL. */
struct loop *loop_here(void);

/* ---- conn.c */

/* A client has come. Closes fd if there is no memory. */
void conn_begin(struct loop *loop, int fd);
/* Give it a name without blanks; of no bytes: none. Returns 0, or -1. */
int conn_rename(struct conn *conn, const char *name, size_t size);
/* Its answers are to be sent at the end of this turn. */
void conn_flush(struct conn *conn);
void conn_send_all(struct loop *loop);
void conn_close(struct conn *conn);

/* ---- doors.c */

int doors_start(struct sessiond *server);
void doors_stop(struct sessiond *server);

#endif
