#ifndef TOOLS_WEEKWHEEL_SESSIOND_BOUNDS_H
#define TOOLS_WEEKWHEEL_SESSIOND_BOUNDS_H

/*
 * The memory of clients: commands that were received and not yet carried out, what MULTI, WATCH and SUBSCRIBE keep, and
 * answers that they have not read. All of it is counted (tools/service/buffer.h). Beyond --max-buffers, a loop that has
 * its share of it or more closes its clients with the most memory, until it has less.
 */

#include <stddef.h>

struct conn;
struct loop;
struct sessiond;

/* The client keeps so many bytes outside its buffers, and no more. */
void bounds_count(struct conn *conn, size_t bytes);
void bounds_count_out(struct conn *conn, size_t bytes);

/* Whether there is more than there may be when so many bytes are added. */
int bounds_are_passed(const struct sessiond *server, size_t more);
/* In each turn. Closes clients, but none whose commands are carried out. */
void bounds_keep(struct loop *loop);

#endif
