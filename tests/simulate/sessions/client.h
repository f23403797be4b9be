#ifndef TESTS_SIMULATE_SESSIONS_CLIENT_H
#define TESTS_SIMULATE_SESSIONS_CLIENT_H

/* The clients of the simulation: they set, read, touch and delete sessions, each at random. */

#include <stddef.h>

enum { CLIENTS = 6 };

struct load {
	unsigned clients;
	unsigned keys;
	unsigned body_most; /* bytes */
	unsigned cuts;      /* of 1,000 actions so many cut the connection */
	unsigned deaths;    /* and during so many the server dies soon */
	int has_lifetimes;
	int is_draining; /* only read */
};

extern struct load load;

void clients_begin(void);
void clients_end(void);
/* How often a client was told of an error of the server since the last call. */
unsigned clients_errors(void);

#endif
