#ifndef TOOLS_SERVICE_HTTP_VISITORS_H
#define TOOLS_SERVICE_HTTP_VISITORS_H

/*
 * The clients that are connected by HTTP, and the choice of which one must leave. Every client that comes gets a place.
 * If all places are taken, the client that has made no request for the longest time leaves; if all have made one, the
 * client that has waited longest for its answer. A health check thus gets through whatever the other clients do. An
 * address may have half of the places; beyond that a new client takes the place of the oldest one of its address.
 *
 * The first request must be complete within REQUEST_MS, and each answer must be read within ANSWER_MS, however busily a
 * client trickles bytes. A client that has had an answer may keep its connection for IDLE_MS until its next request is
 * complete.
 *
 *     asking --> answered <--> idle     leaving       each list by `since`: the longest there is the first
 *       | oldest    | oldest     |         |
 *       o           o            o         o          by_fd finds any of them
 *       o           o
 *       o
 */

#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/base/address.h"
#include "tools/service/http/head.h"

enum { VISITORS_MAX = 1024, REQUEST_MS = 5000, ANSWER_MS = 30000, IDLE_MS = 60000 };

TAILQ_HEAD(visitor_list, visitor);

struct visitor {
	TAILQ_ENTRY(visitor) next;
	struct visitor_list *list; /* the one that it is in */
	int fd;
	uint64_t since; /* ms: when it came, or its last request was complete, or was answered */
	size_t owed;    /* bytes of its answer that it may not have read yet */
	struct address_key from;
	struct request_head head; /* of what it sends */
	const char *refusal; /* the part of its head that libmicrohttpd has not read; NULL: nothing was wrong so far */
};

struct visitors {
	struct visitor_list asking;   /* have had no complete request */
	struct visitor_list answered; /* have one */
	struct visitor_list idle;     /* have had one, and its answer */
	struct visitor_list leaving;  /* shut down; libmicrohttpd will soon notice */
	struct visitor **by_fd;       /* or NULL */
	int fd_room;
	unsigned places;
	unsigned count; /* of those that are not leaving */
	uint64_t total;
	uint64_t slow;     /* had to leave because they were slow */
	uint64_t replaced; /* had to leave for another */
};

void visitors_begin(struct visitors *visitors, unsigned places);
/* All have left. */
void visitors_end(struct visitors *visitors);

/* Add a new visitor, and let another leave if all places are taken. Returns 0, or -1 without memory. */
int visitors_enter(struct visitors *visitors, int fd, const struct sockaddr *address, uint64_t now);

/* Return the visitor with this descriptor, or NULL. */
struct visitor *visitors_find(const struct visitors *visitors, int fd);

/* A request of it is complete (1), or answered (0). */
void visitors_note(struct visitors *visitors, int fd, int is_answered, uint64_t now);

/* It is being sent an answer of this many bytes. */
void visitors_owe(struct visitors *visitors, int fd, size_t bytes);

/* Return 1 if it has to leave: its further bytes are useless. */
int visitors_is_leaving(const struct visitors *visitors, int fd);

/* Return how many bytes the leaving ones still have. */
size_t visitors_going(const struct visitors *visitors);

/* Let the one leave that is owed the most bytes. Returns how many. */
size_t visitors_worst(const struct visitors *visitors);
void visitors_end_worst(struct visitors *visitors);

/* Its connection has ended. */
void visitors_leave(struct visitors *visitors, int fd);

/* Let slow ones leave. Returns in how many ms to call this again, or -1. */
int64_t visitors_sweep(struct visitors *visitors, uint64_t now);

#endif
