#ifndef TESTS_SIMULATE_WIRE_H
#define TESTS_SIMULATE_WIRE_H

/*
 * Connections between clients and the server, which libuv would serve: loop.c plays libuv. Bytes come in pieces, after
 * delays; a connection may be cut at either end, with or without the other noticing soon.
 */

#include <stddef.h>
#include <stdint.h>

struct client;
struct wire;

/* What a client is told. */
void client_heard(struct client *client, const char *bytes, size_t size);
void client_lost(struct client *client);

/* Connect. NULL: nobody listens. */
struct wire *wire_connect(struct client *client);
/* Returns when the last of it arrives. */
uint64_t wire_send(struct wire *wire, const char *bytes, size_t size);
/* The client goes away; the server notices soon, or only after a minute. The client hears nothing of it any more. */
void wire_cut(struct wire *wire, int is_silent);
/* The network cuts it. Both notice. */
void wire_break(struct wire *wire);
/* Whether the server has done all it will do with what came from there. */
int wire_is_over(const struct wire *wire);

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
