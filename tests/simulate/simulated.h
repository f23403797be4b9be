#ifndef TESTS_SIMULATE_SIMULATED_H
#define TESTS_SIMULATE_SIMULATED_H

/* The server that a program of the simulation plays, with its clients: what failures.c and main.c call. */

#include <stdint.h>
#include <stdio.h>

/* The setting `sync` of both servers. */
enum sync_mode { SYNC_ALWAYS, SYNC_INTERVAL, SYNC_SYSTEM };

struct simulated_count {
	const char *name;
	uint64_t value;
};

enum { SIMULATED_COUNTS = 8 };

struct simulated {
	const char *program; /* of the simulation */
	const char *server;
	const char *judge; /* of the history */
	/* A run begins: choose settings and load. The system is there only afterwards. */
	void (*choose)(enum sync_mode mode);
	/* ... and the clients begin. may_step: the clock will be set. */
	void (*begin)(int may_step, FILE *history);
	/* Be the server, from its start to its end. Returns its exit status. */
	int (*serve)(void);
	void (*opened)(void);
	/* Something is wrong from now on, or all is well. */
	void (*ill)(void);
	void (*well)(void);
	void (*stepped)(int64_t step);
	/* The sync of a file has failed. */
	void (*sync_failed)(const char *path);
	/* The server has ended; is_lost: with data that a sync had reported as stable; is_clean: in order. */
	void (*died)(int is_power, int is_lost, int is_clean);
	/* The disk is a new one. */
	void (*forget_all)(void);
	/* How often a client was told of an error of the server since the last call. */
	unsigned (*errors)(void);
	/* The weeks are over, and nothing fails any more. */
	void (*drain)(void);
	/* Whether all is done that is to be seen. ahead: what the clock was set forward by in all. */
	int (*is_done)(uint64_t ahead);
	/* The run is over: the last of the history, and what it was about. */
	void (*end)(void);
	void (*count)(struct simulated_count counts[SIMULATED_COUNTS]);
	void (*free)(void);
};

extern const struct simulated simulated;

#endif
