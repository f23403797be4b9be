#ifndef TOOLS_BENCH_LOAD_CONNECTION_H
#define TOOLS_BENCH_LOAD_CONNECTION_H

/* A connection of the load generator: commands go out as far as the socket takes them, answers come in line by line. */

#include <stddef.h>
#include <stdint.h>

enum { CONNECTION_IN = 65536 };

struct connection {
	int fd;
	unsigned index;
	char *out; /* what is to be sent */
	size_t out_size;
	size_t out_room;
	size_t sent;
	char in[CONNECTION_IN];
	size_t in_size;
	size_t body;         /* bytes of a body, with its line end, that are still to be passed over */
	char body_start[64]; /* its first bytes */
	size_t body_have;
	char line[256]; /* the answer that announced the body */
	uint64_t waiting_since[4096];
	unsigned first_waiting; /* a ring */
	unsigned waiting;
	uint64_t next_job; /* of the user */
	int phase;
};

/* Called for each answer, with its body's first bytes, ended by 0, if it has one. */
typedef void connection_fn(struct connection *connection, const char *line, const char *body, void *context);

/* Connect to HOST:PORT or unix:PATH; ends the program after a message if that fails. */
void connection_open(struct connection *connection, unsigned index, const char *address);
/* Queue a command; what it is answered with is counted as its end. */
void connection_send(struct connection *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Send what is queued; returns 1 if something is left. */
int connection_flush(struct connection *connection);
/* Read what is there, and call fn for each answer. Returns -1 if the peer is gone. */
int connection_read(struct connection *connection, connection_fn *fn, void *context);

uint64_t load_now(void);

#endif
