#ifndef TESTS_SIMULATE_WIRE_H
#define TESTS_SIMULATE_WIRE_H

/*
 * Connections between clients and the server. loop.c plays libuv, and has the wires; system.c gives the server's ends
 * descriptors. Bytes come in pieces, after delays; a connection may be cut at either end, with or without the other
 * noticing soon.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client;
struct wire;

/* What a client is told. */
void client_heard(struct client *client, const char *bytes, size_t size);
void client_lost(struct client *client);
/* The server leaves its connection. */
void client_left(struct client *client);

/* Connect. NULL: nobody listens. */
struct wire *wire_connect(struct client *client);
/* The other way round: the server has connected to somebody who plays another server. */
struct wire *wire_dialled(struct client *client);
/* Returns when the last of it arrives. */
uint64_t wire_send(struct wire *wire, const char *bytes, size_t size);
/* The client goes away; the server notices soon, or only after a minute. The client hears nothing of it any more. */
void wire_cut(struct wire *wire, int is_silent);
/* The network cuts it. Both notice. */
void wire_break(struct wire *wire);
/* Whether the server has done all it will do with what came from there. */
int wire_is_over(const struct wire *wire);

/* The server's end, as calls of the C library see it. */
struct wire *wire_accept(void);
void wire_close(struct wire *wire);
int wire_is_readable(const struct wire *wire);
int wire_is_writable(const struct wire *wire);
ssize_t wire_read(struct wire *wire, void *bytes, size_t room);
ssize_t wire_write(struct wire *wire, const void *bytes, size_t size);

/* The server listens, and closes its listener. */
void loop_listen(void);
void loop_listen_no_more(void);
/* Whether a client waits to be accepted. */
int loop_has_arrived(void);

/* Signal the server. */
void loop_signal_server(int number);
/* The server is dead: clients lose it, and it hears nothing more. With the power its last answers are gone. */
void loop_hang_up(int is_power);
/* Whether the server listens. */
int loop_listens(void);
/* Whether the server that ended has ever listened. */
int loop_was_open(void);
void loop_begin(void);
void loop_end_of_server(void);
void loop_end_of_run(void);

#endif
