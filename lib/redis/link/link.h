#ifndef LIB_REDIS_LINK_LINK_H
#define LIB_REDIS_LINK_LINK_H

/*
 * The link to Redis: connections to one server or to a cluster, and calls that go over them.
 *
 * A run takes any number of calls: they are grouped by the node that has their key, sent to all nodes, and only then
 * are replies read, so that a run takes one round trip however many calls and nodes it has. What a node says about
 * where a key lives, what it has forgotten or that it is not ready is dealt with here; see the errors of
 * ww_redis_link_run.
 *
 * Threads: any number may use a link at once; an ear belongs to one thread at a time. Not across a fork.
 * Errors: 0 or positive, or a negative WW_E* of error.h. Nothing aborts the process, and no signal is raised.
 * Time: a run, an open and an ear's open end after the configured timeout at the latest, whatever the server does, but
 * for the time that the system takes to resolve a host's name.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"

struct redis_link;
struct redisReply; /* of hiredis/hiredis.h */

struct redis_script {
	const char *name;
	const char *text;
	size_t length;
	char sha[41]; /* SHA-1 of the text, in lower case: by that name a server knows the script */
};

/* It is harmless to do this twice: it is repeated if the connection broke after it was sent. */
#define REDIS_CALL_AGAIN 1U

/* One script call or command. */
struct redis_call {
	const struct redis_script *script; /* NULL: a plain command, argv[0] is its name */
	const char *key; /* KEYS[1] of a script; its hash tag decides the node. NULL: any node, no KEYS */
	/*
	 * KEYS[2], of the same tag, or NULL. A script that works on more keys than it names names two of which one is
	 * never there: while their slot moves and each node has a part of the keys, no node runs it, and it is later
	 * (WW_EAGAIN).
	 */
	const char *also;
	size_t argc;             /* at most REDIS_ARGS_MAX */
	const char *const *argv; /* ARGV, or the command */
	const size_t *lengths;   /* of each; NULL: they end with a NUL */
	unsigned flags;
	struct redisReply *reply; /* not NULL only after an answer: freed by ww_redis_link_free, never by hiredis */
	int error;                /* WW_OK, or why there is no answer */
};

#define REDIS_ARGS_MAX (1000 * 1000)

struct redis_link_config {
	const char *url;                      /* see redis_url.h; copied */
	uint64_t timeout;                     /* ns, of a run with all that it has to repeat */
	uint64_t backoff_max;                 /* ns, between attempts to reach a server that is not there */
	unsigned connections;                 /* at most, to one node; 1 or more */
	size_t reply_max;                     /* bytes of memory that one reply may take */
	const struct ww_allocator *allocator; /* of links, ears and replies; hiredis has malloc */
	/*
	 * What a person should know, in a sentence: a server lost or back, and answers that end as WW_EDENIED or
	 * WW_ECORRUPT. Called in any thread that uses the link, by several at once, without a lock; it may not use the
	 * link. NULL: nobody.
	 */
	void (*report)(const char *sentence, void *context);
	/* The time by which backing off counts, ns, never backwards. NULL: the system's. For tests. */
	uint64_t (*now)(void *context);
	void *context; /* of both */
};

/* 5 s, 2 s, 16 connections, 256 MiB, the default allocator; no url. */
void ww_redis_link_config_default(struct redis_link_config *config);

/*
 * Connect, and find out whether it is a cluster. The allocator and the context must outlive the link.
 * Errors: WW_EINVAL: a value out of range, or a url that is none, has a db that the server lacks, or several hosts that
 * are no cluster. WW_EIO: no host answers. WW_EDENIED: the password or the rights are not enough. WW_EAGAIN: a cluster
 * that has no slots yet. WW_ECORRUPT: what answers is no Redis. WW_ENOMEM. WW_ESYSTEM: no mutex. Each was reported.
 */
int ww_redis_link_open(struct redis_link **link, const struct redis_link_config *config);

/* NULL is harmless. No run may be under way and no ear open. */
void ww_redis_link_close(struct redis_link *link);

/*
 * Do all calls. Returns WW_OK if each was answered, or else the error of the first that was not; those that were have
 * their reply all the same. The calls of a run may happen in any order: one that rests on another belongs into a later
 * run. reply and error need not be set before; what they hold afterwards is to be given to ww_redis_link_free.
 *
 * Errors, of a call: WW_EINVAL: no script or command, or too many arguments. WW_EIO: no connection, which is said at
 * once while it is too soon to try again: it has not happened; or the connection broke or said nothing for the timeout
 * after it was sent: it may have happened. WW_EAGAIN: the server was loading, electing or busy for the whole timeout,
 * or all connections in use: it has not happened. WW_EFULL: Redis's memory, or its disk: not happened. WW_EDENIED: no
 * rights, or the server is a replica: not happened. WW_ECORRUPT: an error that is not known, or no Redis's reply.
 * WW_ENOMEM.
 */
int ww_redis_link_run(struct redis_link *link, struct redis_call *calls, size_t count);

/* Free the replies and set them to NULL. */
void ww_redis_link_free(struct redis_call *calls, size_t count);

/* Report that a call's reply is not what was wanted ("an array of 3"), and return WW_ECORRUPT. */
int ww_redis_link_unexpected(struct redis_link *link, const struct redis_call *call, const char *wanted);

/* Report a sentence, but none that was reported so within the last minute and was the last. */
void ww_redis_link_complain(struct redis_link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct redis_link_stats {
	uint64_t commands;     /* sent, those of the link itself too */
	uint64_t round_trips;  /* of runs: one for all nodes */
	uint64_t connections;  /* made in all */
	uint64_t failures;     /* attempts to connect that failed, and connections that broke */
	uint64_t redirections; /* MOVED and ASK */
	uint64_t loads;        /* of scripts */
	uint64_t refreshes;    /* of the map of slots */
	uint32_t nodes;        /* that have slots; 1: a single server */
	uint32_t open;         /* connections now, without those of ears */
	int is_cluster;
};

void ww_redis_link_stats(struct redis_link *link, struct redis_link_stats *stats);

/* How many nodes have slots; 1: a single server. */
uint32_t ww_redis_link_nodes(struct redis_link *link);

/* The slot of a key in a cluster, 0 to 16383. Pure. */
unsigned ww_redis_link_slot(const char *key, size_t length);

/* An ear hears the messages of one channel, from one node; in a cluster each node has all messages. */
struct redis_ear;

/*
 * Subscribe, on another node of a cluster than the last time. Returns after the server has confirmed it: no message
 * that is published afterwards is missed while the ear lives.
 * Errors: as ww_redis_link_run, of nodes all of which fail. WW_EIO, at once: it is too soon, since the ears before were
 * lost soon after they were opened.
 */
int ww_redis_ear_open(struct redis_ear **ear, struct redis_link *link, const char *channel);

/*
 * Wait for messages, and call with each that has come. Returns how many came; 0 after so many nanoseconds, or when
 * wake_fd can be read, which stays to be read (-1: none). message is valid during the call, which may use the link but
 * not the ear.
 * Errors: WW_EIO: lost, also when the server said nothing for twice the timeout, though it is asked in between;
 * messages may have been missed. Close the ear and open another. WW_ECORRUPT, WW_ENOMEM: likewise.
 */
int ww_redis_ear_wait(struct redis_ear *ear, int wake_fd, uint64_t timeout,
    void (*hear)(const char *message, size_t length, void *context), void *context);

/* NULL is harmless. */
void ww_redis_ear_close(struct redis_ear *ear);

#endif
