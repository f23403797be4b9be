#ifndef TOOLS_BENCH_LOAD_CONNECTION_H
#define TOOLS_BENCH_LOAD_CONNECTION_H

/* A connection of the load generator: commands go out as far as the socket takes them, answers come in line by line. */

#include <stddef.h>
#include <stdint.h>

enum { CONNECTION_IN = 65536, CONNECTION_WAITING = 4096 };

struct load_connection {
	int fd;
	char *out; /* bytes to send */
	size_t out_size;
	size_t out_room;
	size_t sent;
	char in[CONNECTION_IN];
	size_t in_size;
	size_t body;         /* bytes of a body, with its line end, that are still to come */
	char body_start[64]; /* its first bytes */
	size_t body_have;
	char line[256];   /* the answer that announced the body */
	int is_in_head;   /* of an answer over HTTP */
	size_t announced; /* by that head */
	uint64_t waiting_since[CONNECTION_WAITING];
	unsigned first_waiting; /* a ring */
	unsigned waiting;
	int phase; /* of the user */
};

/*
 * Called for each answer, with the first bytes of its body, ended by 0, if it has one. `took` is the time in ns since
 * the command was queued.
 */
typedef void connection_fn(struct load_connection *connection, const char *line, const char *body, uint64_t took);

/* Connect to HOST:PORT or unix:PATH; ends the program after a message if that fails. */
void connection_open(struct load_connection *connection, const char *address);
/* Queue a command. */
void connection_send(struct load_connection *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Send what is queued; returns 1 if something is left. */
int connection_flush(struct load_connection *connection);
/* Read what is there, and call fn for each answer. Ends the program after a message if the peer is gone. */
void connection_read(struct load_connection *connection, connection_fn *fn);

#endif
