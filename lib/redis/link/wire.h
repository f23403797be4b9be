#ifndef LIB_REDIS_LINK_WIRE_H
#define LIB_REDIS_LINK_WIRE_H

/*
 * One connection: append commands, send as much as the system takes, and take replies in order. Only connect and wait
 * block, both until a deadline.
 *
 * hiredis connects, formats commands and reads the protocol. It does not send, since that raises SIGPIPE, and it does
 * not make replies, since that ends the process when memory runs out: redis_reply.c makes them, within a limit.
 *
 * One thread at a time. Errors: WW_EIO: the connection broke; WW_ECORRUPT: no reply, or one too large; WW_ENOMEM. After
 * an error the connection can only be closed; why says what was wrong.
 */

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "lib/redis/link/url.h"
#include "weekwheel/allocator.h"

/* The memory for replies of one connection. */
struct redis_budget {
	const struct ww_allocator *allocator;
	size_t max;   /* bytes of one reply */
	size_t left;  /* for the one being read */
	int exceeded; /* it needed more */
};

struct redis_node;

struct redis_wire {
	struct redisContext *context;
	struct redis_wire *next; /* in the node's idle list */
	struct redis_node *node; /* whose pool it is of; NULL: none */
	struct redis_budget budget;
	size_t sent;  /* bytes of those appended */
	int has_sent; /* anything since it was taken */
	char why[160];
};

/* On an error the reason is written to why of that size. */
int ww_redis_wire_connect(struct redis_wire **wire, const struct redis_address *address,
    const struct redis_budget *budget, uint64_t deadline, char *why, size_t size);
void ww_redis_wire_close(struct redis_wire *wire);

/* Errors: WW_ENOMEM: nothing was appended. */
int ww_redis_wire_append(struct redis_wire *wire, size_t argc, const char *const *argv, const size_t *lengths);
/* Send what the system takes now; poll for POLLOUT while it is not all sent. */
int ww_redis_wire_send(struct redis_wire *wire);
int ww_redis_wire_is_sent(const struct redis_wire *wire);
/* Read what is there. */
int ww_redis_wire_receive(struct redis_wire *wire);
/* The next reply that was received: 1 and *reply, or 0. */
int ww_redis_wire_reply(struct redis_wire *wire, struct redisReply **reply);
/* Nothing waits to be read, and the server has not closed: the connection can be used again. */
int ww_redis_wire_is_quiet(const struct redis_wire *wire);
/* Send what was appended, and wait for one reply until the deadline, which is WW_EIO. */
int ww_redis_wire_wait(struct redis_wire *wire, uint64_t deadline, struct redisReply **reply);

extern struct redisReplyObjectFunctions ww_redis_reply_functions;
void ww_redis_reply_free(struct redisReply *reply);

#endif
