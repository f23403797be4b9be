#ifndef LIB_REDIS_LINK_READER_H
#define LIB_REDIS_LINK_READER_H

/*
 * A bound on what a program takes from a server through a reader of hiredis: the third face of the link, for a program
 * with a connection of its own. Without it, twelve bytes announce an array of two thousand million elements, whose
 * memory is taken, and gone through, at once.
 */

#include <stddef.h>

#include <hiredis/read.h>

/* The bytes of one reply, more than two values of Redis may have; and the elements of one array. */
#define REDIS_READER_MAX ((size_t)1 << 30)
#define REDIS_READER_ELEMENTS (1024 * 1024)

struct redis_reader_bound {
	redisReplyObjectFunctions own;    /* hiredis's */
	redisReplyObjectFunctions within; /* the same within the bound */
	size_t max, left;                 /* bytes of a reply, and of the one being read */
};

/* Bound a new reader. The bound must stay where it is as long as the reader. */
void ww_redis_reader_bound(struct redis_reader_bound *bound, redisReader *reader, size_t max);

/* Take the next reply that was fed: 1 and *reply, or 0. Errors: WW_ECORRUPT: what came is no reply, or is too large. */
int ww_redis_reader_reply(const struct redis_reader_bound *bound, redisReader *reader, void **reply);

#endif
