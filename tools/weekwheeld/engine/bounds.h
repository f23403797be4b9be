#ifndef TOOLS_WEEKWHEELD_ENGINE_BOUNDS_H
#define TOOLS_WEEKWHEELD_ENGINE_BOUNDS_H

/* The bounds of memory: how much there is, what takes it, and what was refused for lack of it. */

#include <stddef.h>
#include <stdint.h>

#include "tools/service/access/crowd.h"

struct server;
struct ww_job_spec;

struct bounds {
	uint64_t memory_most;
	uint64_t buffers_most;
	uint64_t before; /* what buffers took at the start */
	uint64_t asked;  /* ms of the loop: the store was asked last; 0: never */
	uint64_t store_bytes;
	uint64_t store_tubes;
	uint64_t store_jobs;
	uint64_t put_bytes;  /* since then, into memory */
	uint64_t put_jobs;   /* since then, and perhaps refused */
	uint64_t call_bytes; /* of commands that wait for a shared store; buffers have them, too */
	uint64_t refused;
	uint64_t over_quota; /* jobs refused */
	uint64_t ended;
	struct crowd crowd; /* clients by address */
};

/* What an allocation takes beside its object. */
enum { BOUNDS_LINE = 64 };

void bounds_start(struct server *server);

/* Return how many bytes of answers a client may leave unread now. */
size_t bounds_unread(const struct server *server);

/* Return 1 if there is memory for a job with a body of `size` bytes, or for another tube. */
int bounds_job(struct server *server, size_t size);
int bounds_tube(struct server *server);

/*
 * Return 1 if a quota of jobs has room for this one behind `before` others that are not put yet, `in_tube` of them in
 * its tube. A job that replaces another always has room.
 */
int bounds_quota(struct server *server, const struct ww_job_spec *spec, size_t before, size_t in_tube);

/* Return 1 if a client that watches `count` tubes, of `bytes` each, may watch one more. */
int bounds_watch(struct server *server, size_t count, size_t bytes);

/* Return 1 if a command of `size` bytes may wait for a shared store. */
int bounds_call(struct server *server, size_t size);

/*
 * Return 1 if buffers have room for another answer beside `begun` that are being written. Otherwise the client with the
 * most makes room, if there is one, and a later turn has it.
 */
int bounds_answer(struct server *server, unsigned begun);

/* In each turn: end what takes too much. */
void bounds_hold(struct server *server);
/* The same when a client's bytes have been taken: in one turn, all clients may bring some. */
void bounds_hold_input(struct server *server);
/* The same, but spare the client that carries out a command, and takes `bytes`. */
void bounds_hold_but(struct server *server, const void *client, size_t bytes);

#endif
