#ifndef TESTS_SIMULATE_JOBS_CLIENT_H
#define TESTS_SIMULATE_JOBS_CLIENT_H

/* The clients of the simulation: they put, reserve, end, move and lose jobs, each at random. */

enum { CLIENTS = 6, TUBES = 3 };

struct load {
	unsigned clients;
	unsigned tubes;
	unsigned body_most; /* bytes */
	unsigned cuts;      /* of 1,000 actions so many cut the connection */
	int is_draining;    /* take and delete all that is there */
};

extern struct load load;

struct client;

/* Whether the server still has its connection. */
int client_is_connected(const struct client *client);

void clients_begin(void);
void clients_end(void);
/* How often a client was told of an error of the server since the last call. */
unsigned clients_errors(void);

#endif
