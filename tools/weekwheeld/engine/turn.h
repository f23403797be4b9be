#ifndef TOOLS_WEEKWHEELD_ENGINE_TURN_H
#define TOOLS_WEEKWHEELD_ENGINE_TURN_H

/* A turn of the loop: one write of the store for all commands that it brings. */

#include <stddef.h>
#include <stdint.h>

struct server;

struct turn {
	uint64_t number;
	uint64_t spent; /* ns of it that connections took */
	size_t bytes;   /* that were read in it */
	int is_begun;   /* a write of the store is under way */
	int is_failing; /* the last write failed */
	uint64_t commit_errors;
};

/* Make sure that a write of the store is under way. Returns 0 or a WW_E*. */
int turn_begin(struct server *server);

/* Commit the write under way, and settle the answers that wait for it. */
void turn_commit(struct server *server);

#endif
