#ifndef LIB_REDIS_LINK_LINE_H
#define LIB_REDIS_LINK_LINE_H

/*
 * A line: one connection to one Redis, for a program that waits by itself. It is the other face of the link, beside
 * link.h, whose runs choose connections and wait.
 *
 *     open ---> append commands ---> poll(fd, events) ---> move ---> take replies, in the order of the commands
 *
 * Threads: one at a time. Errors: 0 or positive, or a negative WW_E* of error.h, and a sentence that says why. After an
 * error a line can only be closed.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"

struct redis_line;
struct redis_address; /* of url.h, as the next */
struct redis_url;
struct redisReply; /* of hiredis/hiredis.h */

enum { REDIS_LINE_WHY = 700 };

struct redis_line_config {
	const char *url;                      /* see url.h */
	const struct redis_address *address;  /* of a server that another has named; NULL: the url's first */
	int is_sentinel;                      /* it gets neither the url's user and password nor a database */
	const char *user;                     /* NULL: the url's */
	const char *password;                 /* NULL: the url's */
	size_t reply_max;                     /* bytes of memory that one reply may take */
	const struct ww_allocator *allocator; /* of the line and its replies; hiredis uses malloc */
};

/*
 * Connect, log in and choose the database, until `deadline` of CLOCK_MONOTONIC at the latest; a host's name takes as
 * long as the system needs to resolve it. why gets the reason.
 * Errors: WW_EINVAL: the url is malformed, a file of TLS cannot be used, or there is no such database. WW_EIO: no answer.
 * WW_EDENIED: wrong password. WW_ECORRUPT: the server is no Redis. WW_ENOMEM.
 */
int ww_redis_line_open(
    struct redis_line **line, const struct redis_line_config *config, uint64_t deadline, char why[REDIS_LINE_WHY]);

/* Read the files that the url names. Errors: WW_EINVAL: one cannot be used, and why says which. WW_ENOMEM. */
int ww_redis_line_check_files(const struct redis_url *url, char why[REDIS_LINE_WHY]);

/* NULL is harmless. */
void ww_redis_line_close(struct redis_line *line);

/* What poll is to wait for. */
int ww_redis_line_fd(const struct redis_line *line);
short ww_redis_line_events(const struct redis_line *line);

/* Append a command. lengths NULL: the arguments end with a NUL. Errors: WW_ENOMEM. */
int ww_redis_line_append(struct redis_line *line, size_t argc, const char *const *argv, const size_t *lengths);

/* Send what the system takes, and receive what is there. Errors: WW_EIO, WW_ENOMEM. */
int ww_redis_line_move(struct redis_line *line);

/* Whether a part of a reply has come whose rest has not, or more may be there than was received. */
int ww_redis_line_is_amid(const struct redis_line *line);

/*
 * Take the next reply that has come: 1 and *reply, which the caller frees, or 0. Errors: WW_ECORRUPT: what came is no
 * reply, or one too large. WW_ENOMEM.
 */
int ww_redis_line_reply(struct redis_line *line, struct redisReply **reply);

/* Send a command and wait for its reply, while no other is due. Errors: as the last two. */
int ww_redis_line_call(
    struct redis_line *line, size_t argc, const char *const *argv, uint64_t deadline, struct redisReply **reply);

/* Never hiredis's own. NULL is harmless. */
void ww_redis_line_free(struct redisReply *reply);

/*
 * Whether a reply is an error: WW_OK, or WW_EAGAIN: later; WW_EFULL; WW_EDENIED; WW_ECORRUPT: any other. `text` gets
 * it without control characters, unless NULL.
 */
int ww_redis_line_judge(const struct redisReply *reply, char *text, size_t size);

/* Why the last call failed. */
const char *ww_redis_line_why(const struct redis_line *line);

#endif
