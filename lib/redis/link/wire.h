#ifndef LIB_REDIS_LINK_WIRE_H
#define LIB_REDIS_LINK_WIRE_H

/*
 * One connection: commands are appended, sent as far as the system takes them, and replies come out in their order. It
 * never waits but in connect, which has a deadline, and in ask.
 *
 * Of hiredis it has the connecting, the format of commands and the reader. Not its way of sending, which raises
 * SIGPIPE; and not its replies, which end the process for want of memory: those are made in redis_reply.c, within a
 * limit.
 *
 * One thread at a time. Errors: WW_EIO: it broke; WW_ECORRUPT: what came is no reply, or too large; WW_ENOMEM. After an
 * error it can only be closed; why says what was wrong.
 */

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "lib/redis/link/url.h"
#include "weekwheel/allocator.h"

/* What replies of one connection are made of. */
struct redis_budget {
	const struct ww_allocator *allocator;
	size_t max;   /* of one reply */
	size_t left;  /* of the one that is being read */
	int exceeded; /* it would have taken more */
};

struct redis_node;

struct redis_wire {
	struct redisContext *context;
	struct redis_wire *next; /* that is idle, too */
	struct redis_node *node; /* whose it is; NULL: nobody's */
	struct redis_budget budget;
	size_t sent;  /* of what was appended */
	int has_sent; /* anything, since it was taken */
	char why[160];
};

/* ns of the system's monotonic clock. */
static inline uint64_t redis_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* What is left until then, in ms for poll, rounded up; 0: it is over. */
int ww_redis_wire_left(uint64_t deadline);

/* Errors: also WW_ENOMEM. What was wrong is written to why of that size. */
int ww_redis_wire_connect(struct redis_wire **wire, const struct redis_address *address,
    const struct redis_budget *budget, uint64_t deadline, char *why, size_t size);
void ww_redis_wire_close(struct redis_wire *wire);

/* Errors: WW_ENOMEM: nothing was appended. */
int ww_redis_wire_append(struct redis_wire *wire, size_t argc, const char *const *argv, const size_t *lengths);
/* Send what the system takes; wants POLLOUT if something is left. */
int ww_redis_wire_send(struct redis_wire *wire);
int ww_redis_wire_is_sent(const struct redis_wire *wire);
/* Read what is there. */
int ww_redis_wire_receive(struct redis_wire *wire);
/* The next reply that was received: 1 and *reply, or 0. */
int ww_redis_wire_reply(struct redis_wire *wire, struct redisReply **reply);
/* Nothing is there to be read, nor has the other side closed: it can be used again. */
int ww_redis_wire_is_quiet(const struct redis_wire *wire);
/* Send what was appended, and wait for one reply. WW_EIO: or the deadline. */
int ww_redis_wire_wait(struct redis_wire *wire, uint64_t deadline, struct redisReply **reply);

extern struct redisReplyObjectFunctions ww_redis_reply_functions;
void ww_redis_reply_free(struct redisReply *reply);

#endif
