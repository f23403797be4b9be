#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_MAIL_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_MAIL_H

/*
 * What other threads leave for a loop: new clients, messages of channels, and notices. The loop takes it in its next
 * turn. Any thread may call what has no other note.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <sys/queue.h>

struct conn;
struct crowd_address;
struct loop;
struct sessiond;

/* A new client. */
struct arrival {
	int fd;
	int is_tls;
	struct crowd_address *place; /* among the clients of its address, or NULL */
};

/* A loop's, under the loop's lock. */
struct mailbox {
	struct arrival *arrived;
	size_t arrived_count;
	size_t arrived_room;
	SLIST_HEAD(, conn) clients; /* that have mail, or have to be closed */
	_Atomic int has_mail;       /* some have; read without the lock */
	int is_stopping;
	int is_to_check; /* the tokens have changed */
};

enum { MAIL_MAX = 32 * 1024 * 1024 }; /* a client that leaves this much of channels unread is closed */

/* Notices for a loop, bits. */
enum { MAIL_STOP = 1, MAIL_CHECK_TOKENS = 2 };

/* The loop whose thread this is, or NULL. */
struct loop *mail_here(void);
/* This thread runs the loop from now on. */
void mail_begin_here(struct loop *loop);

/* Hand a new client to the loop. Returns 0, or -1 if it is stopping or has no memory. */
int mail_arrival(struct loop *loop, const struct arrival *arrival);
/* There is mail for the client, or it has to be closed. The loop's lock is held. */
void mail_post(struct conn *conn);
/* In the loop's thread: deliver mail to its clients. */
void mail_take(struct loop *loop);
/* Then: take a new client. Returns 1, or 0: there is none, and *notices gets what else is to do. None comes after MAIL_STOP. */
int mail_next(struct loop *loop, struct arrival *arrival, unsigned *notices);

/* Let each loop check the tokens of its clients. */
void mail_check_tokens(struct sessiond *server);
/* End all loops. */
void mail_stop(struct sessiond *server);

#endif
