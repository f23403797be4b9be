#ifndef TESTS_SIMULATE_SESSIONS_PEER_H
#define TESTS_SIMULATE_SESSIONS_PEER_H

/* Plays the server of jobs that --expired-to names: what expires is told to it. Now and then it is away, or slow, or full. */

#include <stddef.h>

struct client;

void peer_begin(void);
void peer_end(void);
/* From now on it is always there. */
void peer_drain(void);
/* Whether this stands for the peer in what loop.c calls. */
int peer_is(const struct client *client);
void peer_heard(const char *bytes, size_t size);
void peer_lost(void);

#endif
