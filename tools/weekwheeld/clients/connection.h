#ifndef TOOLS_WEEKWHEELD_CLIENTS_CONNECTION_H
#define TOOLS_WEEKWHEELD_CLIENTS_CONNECTION_H

/* A client's connection: its buffers and answers, the tubes it uses and watches, the jobs it has reserved. */

#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "lib/base/address.h"
#include "tools/common/buffer.h"
#include "tools/service/net/stream.h"
#include "tools/weekwheeld/engine/server.h"
#include "tools/weekwheeld/protocol/protocol.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs.h"

struct connection;
struct call;

/* What it takes that a connection watches a tube: the struct, and its place in the two arrays. */
#define WATCH_BYTES (sizeof(struct watch) + sizeof(struct watch *) + sizeof(char *) + BOUNDS_LINE)

/* A connection watches a tube. While it waits for a job, it stands in the tube's queue. */
struct watch {
	UT_hash_handle hh; /* in clients.watches, by the two that follow */
	struct server_tube *tube;
	struct connection *connection;
	size_t index; /* in the connection's array */
	TAILQ_ENTRY(watch) queue;
};

/* A job that a connection has reserved. */
struct lease {
	UT_hash_handle hh;
	struct connection *connection; /* NULL: it is closed */
	TAILQ_ENTRY(lease) next;       /* in clients.ended, or in connection.past */
	size_t at;                     /* in the connection's heap */
	uint64_t id;
	uint64_t token;
	uint64_t created; /* when the job was put or last replaced, before it was delivered */
	uint64_t ends;    /* in elapsed time */
	uint64_t given;   /* in elapsed time */
	uint64_t ran;     /* ns, if it has ended */
	struct counts_tube *counts;
	uint32_t attempt;
	uint32_t earlier; /* deliveries of the same put to the same client, whose ends it has not said yet */
	enum count count; /* as what its end counts */
	uint32_t priority;
	unsigned is_past : 1; /* the store holds it no more */
	unsigned is_told : 1; /* and the client knows */
	/* Of one in clients.ended: */
	unsigned is_stale : 1; /* the store had ended it */
	unsigned was_past : 1;
	unsigned was_told : 1;
};

TAILQ_HEAD(leases, lease);

/* The answer up to `end` in a connection's buffer, to a command that was carried out since the store's write began. */
struct answer {
	size_t end;
	int depends; /* on the write */
};

#define WAIT_FOREVER UINT64_MAX

/* What a connection may still do in a turn (budget.c). */
struct share {
	uint64_t turn;
	uint64_t begun;
	uint64_t ends;
	unsigned commands;
	size_t unsent; /* answers of turns before */
};

/* A kick that is done in pieces (kick.c). */
struct kick {
	uint64_t left;
	uint64_t done;
	int (*go_on)(
	    struct connection *connection); /* with another piece; returns 1 if it was the last. NULL: no kick */
	int are_buried;                     /* else delayed ones are kicked */
	int error;                          /* of the write of a piece */
};

/* A client and its token. */
struct login {
	struct access_client who;
	ww_handle timer;  /* ends a pause, or the time in which a token has to be said */
	int is_held;      /* the answer to a wrong token waits, and so do all commands */
	uint64_t ends;    /* ns of the loop's clock: of the time that a client without a token has; 0: not yet */
	unsigned refused; /* lines before a right token */
};

struct connection {
	struct server *server;
	struct stream stream;
	struct login login;
	LIST_ENTRY(connection) next;
	SLIST_ENTRY(connection) next_flush;
	STAILQ_ENTRY(connection) next_resume;
	STAILQ_ENTRY(connection) next_fresh;
	SLIST_ENTRY(connection) next_batch;

	struct share share;
	struct crowd_address *place; /* among the clients of its address, or NULL */
	struct kick kick;
	struct protocol protocol;
	struct buffer in; /* bytes that were received and not parsed yet */
	struct answer *answers;
	size_t answer_count;
	size_t answer_room;
	size_t batch_start; /* where in the stream's `out` the first of answers[] begins */

	struct server_tube *used;
	struct watch **watches;
	const char **names; /* of the watched tubes, as the store takes them */
	size_t watch_count;
	size_t watch_room;
	uint32_t code; /* the greatest code of a job that it may get */

	STAILQ_HEAD(, call) calls; /* for a shared store: under way, or to go with the command that is parsed next */
	size_t call_count;
	size_t call_bytes; /* of their bodies */

	struct lease **heap; /* of leases: the first ends first */
	size_t lease_count;
	size_t lease_room;
	struct leases past; /* leases that the store ended, and of which the client may still say something */
	size_t past_count;
	uint64_t give_up; /* waiting: until this elapsed time, or WAIT_FOREVER */
	ww_handle timer;  /* waiting: fires at give_up, or when a lease is about to end */

	unsigned is_waiting : 1;
	unsigned is_busy : 1;  /* a task works for it: it is not freed, and carries out no command */
	unsigned is_fresh : 1; /* it has begun to wait in this turn */
	unsigned in_flush : 1;
	unsigned in_resume : 1;
	unsigned in_batch : 1;
	unsigned is_stalled : 1; /* it leaves too many answers unread for more of its commands */
	unsigned at_end : 1;     /* the client sends no more */
	unsigned is_over : 1;    /* it closes when all is sent */
	unsigned is_lost : 1;    /* one of its answers could not be stored */
	unsigned is_closed : 1;
	unsigned is_gone : 1; /* the loop has let go of it */
	unsigned is_producer : 1;
	unsigned is_worker : 1;
	unsigned takes_headers : 1; /* jobs that it gets have their headers before the body */
};

/* ---- connection.c: what all parts of it need */

/* Return the bytes of its buffers. */
size_t connection_takes(const struct connection *connection);

/* Return 1 if it carries out no command now. */
int connection_is_blocked(const struct connection *connection);

/* Wait for UV_READABLE or UV_WRITABLE, or no longer. */
void connection_wait(struct connection *connection, int event, int is_wanted);

/* Flush it at the end of the turn. */
void connection_to_flush(struct connection *connection);

/* Go on with its commands, or with closing it, in the next turn. */
void connection_resume(struct connection *connection);

/* The same where its next command may take long. */
void connection_look_later(struct connection *connection);

/* Its task is done, and all is answered: go on, or leave if it is closed. */
void connection_done(struct connection *connection);

/* ---- close.c */

/* Close it, and give its jobs back. */
void connection_close(struct connection *connection);

/* A closed one is freed when the loop, its task and the queues have let go of it. */
void connection_let_go(struct connection *connection);

/* A closed one, which is not busy, gives back more of what it has. */
void connection_leave(struct connection *connection);

/* ---- input.c: bytes in */

/* Begin to read, or go on, unless the client sends no more. */
void connection_read(struct connection *connection);

/* Carry out the commands that have come, as far as possible. */
void connection_process(struct connection *connection);

/* Something that its stream waits for has happened. */
void connection_came(struct stream *stream, int events);

/* ---- accept.c */

/* A client has come to the server. */
void connection_begin(void *server, int fd, const struct sockaddr *peer, int is_tls);

/* ---- output.c: bytes out */

/* Send the answers. Close it if it is over and all is sent. */
void connection_flush(struct connection *connection);

/* Send the answers of all that have some. */
void connection_flush_all(struct server *server);

/* ---- budget.c: shares of a turn */

/* A turn begins. */
void budget_turn(struct server *server);

/* The connection begins to use its share, or goes on to. */
void budget_begin(struct connection *connection);

/* Take one command, or a piece of a long one. Returns 0 if the share is used up. */
int budget_take(struct connection *connection);

/* It pauses or ends. */
void budget_end(struct connection *connection);

/* Count the time since *since for the turn, and begin anew. */
void budget_note(struct server *server, uint64_t *since);

/* The connections have used up the turn. */
int budget_is_spent(const struct server *server);

/* ---- login.c: the token of a client */

/* A connection begins, and ends. Returns 0, or -1 without memory. */
int login_open(struct connection *connection);
/* Its handshake of TLS is done. */
void login_secured(struct connection *connection);
void login_close(struct connection *connection);

/*
 * Return 1 if a command may run. By then it has a refusal, if the client lacks a right, or the guard to pass to
 * auth_may. A connection of another protocol is closed.
 */
int login_admits(struct connection *connection, struct command *command);
/* Report that the client sends a body of unknown length. */
void login_unsized(struct connection *connection);

/* Carry out "auth". */
void login_answer(struct connection *connection, const struct command *command);

/* ---- answer.c: each of these adds to the connection's answers */

void answer_text(struct connection *connection, const char *text);
/* A word of at most 32 bytes and a number. */
void answer_number(struct connection *connection, const char *word, uint64_t number);
void answer_numbers(struct connection *connection, const char *word, uint64_t number, uint64_t other);
void answer_format(struct connection *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "WORD ID LENGTH", the body of a job, and an end of line. */
void answer_job(struct connection *connection, const char *word, const struct ww_lease *job);

/* "OK LENGTH" and the block, or what the error is called. The block is freed. */
void answer_block(struct connection *connection, int error, struct buffer *block);

/* The text, or, if `error` is below 0, what it is called in the protocol. */
void answer_result(struct connection *connection, int error, const char *text);

/* The answer that began at `start` is complete. */
void answer_end(struct connection *connection, size_t start, int depends);

/* The connection gets its answer later, and is informed if the commit fails. */
void answer_expected(struct connection *connection);

/* The commit is done: the answers since its beginning stand, or become errors. */
void answer_settle(struct connection *connection, int error);

/* ---- watch.c: the tubes that a connection watches */

/* Watch a tube. Returns 0, also if it is watched already, or -1 without memory. */
int watch_add(struct connection *connection, struct server_tube *tube);
void watch_remove(struct connection *connection, struct server_tube *tube);
int watch_has(struct connection *connection, struct server_tube *tube);

/* ---- lease.c: reserved jobs */

/* Note what a connection has reserved; NULL without memory. */
struct lease *lease_add(struct connection *connection, const struct ww_lease *reserved);

/* Return the lease of that job if it is this connection's, or NULL. */
struct lease *lease_of(const struct connection *connection, uint64_t id);

/* Of the leases of that job that the connection had and the store ended, return the oldest, or the next after `older`. */
struct lease *lease_past(const struct connection *connection, uint64_t id, const struct lease *older);

/* Forget those that the connection had and the store ended. */
void lease_forget_past(struct connection *connection);

/*
 * The store was asked to end the lease and said `result`. If it did, or if it says WW_ESTALE and the client has now
 * said how its delivery ended, the lease ends with the write under way, and comes back if that fails.
 */
void lease_ended(struct server *server, struct lease *lease, int result, enum count count);

/* After a commit: forget the leases that ended, or give them back to their connections. */
void lease_settle(struct server *server, int committed);

/* A connection closes: leases that end with the write under way do not come back to it, and past ones are forgotten. */
void lease_disown(struct connection *connection);

/*
 * It is closed: one of its jobs is ready again, or a task makes some so, for which it is busy. Returns 0 if it had
 * none.
 */
int lease_release_some(struct connection *connection);

/* The store has given the lease more time. A past one was not over: the write that ended it has failed. */
void lease_touched(struct server *server, struct lease *lease, uint64_t ends);

/*
 * When the connection's first lease ends, among those that the store still holds; UINT64_MAX: it has none. A shared
 * store may have ended it already.
 */
uint64_t lease_soonest(struct connection *connection, uint64_t now);

/* The connection's first lease if it ends within a second, or NULL. */
struct lease *lease_soon(struct connection *connection, uint64_t now);

/*
 * The store does not hold the lease any more. The connection keeps it as a past one: what its client says of that
 * delivery must not be taken as said of what came after it.
 */
void lease_pass(struct server *server, struct lease *lease);

/* The same, and the client knows. */
void lease_known(struct server *server, struct lease *lease);

/* ---- waiting.c: reserving */

/* Reserve a job now, or wait up to `timeout` ns for one. */
void waiting_reserve(struct connection *connection, uint64_t timeout);

/* Answer with a job that was reserved for the connection, and note the lease. */
void waiting_give(struct connection *connection, struct ww_lease *lease);

/* Say something to a client that waits: it waits no more. */
void waiting_answer(struct connection *connection, const char *text);

/* Set the timer for the time when it gives up, or when one of its leases is about to end. */
void waiting_schedule(struct connection *connection, uint64_t now);

/* Reserve a job for a client that waits. Return 1 if it got one or an error, 0 if there is none. */
int waiting_try(struct connection *connection);

/* The client has closed its side: it gets no job any more. */
void waiting_at_end(struct connection *connection);

/* It waits no more. */
void waiting_end(struct connection *connection);

/* ---- serve.c: at the end of a turn */

/* Serve the clients that wait at tubes that may be ready. Return 1 if requests over HTTP wait at some of them. */
int serve_tubes(struct server *server);

/* Serve those that have just begun to wait. */
void serve_fresh(struct server *server);

/* ---- ask.c: reserving from a shared store */

/* So many clients ask together at most. */
enum { ASK_MOST = 16 };
/* Whether a client that waits has a question of its own: it is new, watches other tubes, too, or has a lease that ends soon. */
int ask_goes_alone(struct connection *connection);
/* Ask for a job for each of some clients that wait. They are busy until they have an answer. Only one may go alone. */
void ask_start(struct connection *const *connections, size_t count);

/* Give a job back for which there is no client any more, and free its body. Serves every kind of store. */
void ask_return(struct server *server, const struct ww_lease *lease);

#endif
