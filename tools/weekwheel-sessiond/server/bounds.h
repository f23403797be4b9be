#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_BOUNDS_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_BOUNDS_H

/*
 * The memory of clients: commands that were received and not yet carried out, what MULTI, WATCH and SUBSCRIBE keep, and
 * answers that they have not read. All of it is counted (tools/common/buffer.h). Beyond --max-buffers, a loop that has
 * its share of it or more closes its clients with the most memory, until it has less.
 */

#include <stddef.h>
#include <stdint.h>

struct conn;
struct loop;
struct sessiond;

/* The client keeps this many more bytes outside its buffers, or fewer if negative. */
void bounds_count(struct conn *conn, size_t bytes);
void bounds_count_out(struct conn *conn, size_t bytes);

/* Whether this many more bytes would exceed the bound. */
int bounds_are_passed(const struct sessiond *server, size_t more);
/* Whether one client may have answers of this many bytes before it can read any. */
int bounds_have_share(const struct sessiond *server, size_t bytes);
/* Whether one more pattern is allowed beyond `all`, for a client that has `own`. */
int bounds_have_pattern(const struct sessiond *server, uint64_t all, uint64_t own);
/* The bytes that closing the client would free. */
size_t bounds_size(const struct conn *conn);
/*
 * Whether this loop has to close clients; *least gets the size from which on. If other loops have more, they are
 * notified.
 */
int bounds_find_large(struct loop *loop, size_t *least);

#endif
