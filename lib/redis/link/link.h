#ifndef LIB_REDIS_LINK_LINK_H
#define LIB_REDIS_LINK_LINK_H

/*
 * The link to Redis: connections to one server or a cluster, and the calls that go over them. Code outside the link
 * includes this header, line.h, a single connection, or url.h.
 *
 * A run takes any number of calls. It groups them by the node that has their key, sends to all nodes, and only then
 * reads replies: a run takes one round trip, however many calls and nodes it has. The link itself handles a node that
 * redirects, has forgotten a script or is not ready; see the errors of ww_redis_link_run.
 *
 * Threads: any number may use a link at once; an ear belongs to one thread at a time. Not across a fork.
 * Errors: 0 or positive, or a negative WW_E* of error.h. Nothing aborts the process, and no signal is raised.
 * Time: a run, an open and an ear's open end after the configured timeout at the latest, whatever the server does. The
 * time that the system takes to resolve a host's name comes on top.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/redis/link/url.h"
#include "weekwheel/allocator.h"

struct redis_link;
struct redisReply; /* of hiredis/hiredis.h */

struct redis_script {
	const char *name;
	const char *text;
	size_t length;
	char sha[41]; /* SHA-1 of the text in lower case, the server's name for the script */
};

/* Doing this twice is harmless: repeat it if the connection breaks after it was sent. */
#define REDIS_CALL_AGAIN 1U
/*
 * Others wait for the caller: while other nodes serve, end it at once where its node says "later" (WW_EAGAIN), and with
 * REDIS_CALL_AGAIN also when its node is silent for an eighth of the timeout (WW_EIO).
 */
#define REDIS_CALL_SOON 2U
/* Wait until config.replicas have it: a WAIT after all such calls to a node. WW_ETIMEOUT: they have not confirmed it. */
#define REDIS_CALL_SAFE 4U

/* One script call or command. */
struct redis_call {
	const struct redis_script *script; /* NULL: a plain command, argv[0] is its name */
	const char *key; /* KEYS[1] of a script; its hash tag decides the node. NULL: any node, no KEYS */
	/*
	 * KEYS[2], of the same tag, or NULL. A script that works on keys it does not name gives two, one of which never
	 * exists. While their slot moves, no node has both, so none runs the script on half of the keys; the call waits
	 * (WW_EAGAIN).
	 */
	const char *also;
	size_t argc;             /* at most REDIS_ARGS_MAX */
	const char *const *argv; /* ARGV, or the command */
	const size_t *lengths;   /* of each; NULL: they end with a NUL */
	unsigned flags;
	struct redisReply *reply; /* NULL before an answer. ww_redis_link_free frees it, never hiredis */
	int error;                /* WW_OK, or why there is no answer */
	int is_sent;              /* with an error: it may have happened */
};

#define REDIS_ARGS_MAX (1000 * 1000)
#define REDIS_SLOTS 16384
#define REDIS_NODES_MAX 1024

struct redis_link_config {
	const char *url;                      /* copied */
	const char *user;                     /* copied; NULL: the url's */
	const char *password;                 /* copied; NULL: the url's */
	int is_cluster;                       /* it is known to be one; 0: Redis is asked, with INFO */
	uint64_t timeout;                     /* ns, of a run with all its repetitions */
	uint64_t backoff_max;                 /* ns, between attempts to reach a lost server */
	unsigned connections;                 /* at most, to one node; 1 or more */
	unsigned replicas;                    /* that a REDIS_CALL_SAFE waits for */
	size_t reply_max;                     /* bytes of memory that one reply may take */
	const struct ww_allocator *allocator; /* of links, ears and replies; hiredis uses malloc */
	/* Called when a node is set aside, as an ear may then be deaf; by any thread, as report. May be NULL. */
	void (*aside)(void *context);
	void *aside_context;
	/* Called by a thread in a run before it waits for more than 1 ms, or may. At most once a run. May be NULL. */
	void (*slow)(void *context);
	/*
	 * Takes a sentence for people: a server lost, set aside or back, and answers that end as WW_EDENIED or
	 * WW_ECORRUPT. Any thread that uses the link calls it, several at once, without a lock. It may not use the
	 * link. NULL: nobody.
	 */
	void (*report)(const char *sentence, void *context);
	/* The time for backing off, ns, never backwards. NULL: the system's. For tests. */
	uint64_t (*now)(void *context);
	void *context; /* of slow, report and now */
};

/*
 * Whether a url has the right form. Errors: WW_EINVAL: *why is a constant sentence that says what is wrong and never
 * contains the password.
 */
int ww_redis_link_check_url(const char *url, const char **why);

/*
 * Connect, and find out whether this is a cluster. The allocator and the context must outlive the link.
 * Errors: WW_EINVAL: a value out of range, a malformed url, a file of it that cannot be used, a db that the server
 * lacks, or several hosts that are no cluster. WW_EIO: no host answers. WW_EDENIED: wrong password or missing rights.
 * WW_EAGAIN: the cluster has no slots yet. WW_ECORRUPT: the server is no Redis. WW_ENOMEM. WW_ESYSTEM: no mutex. Each
 * is reported.
 */
int ww_redis_link_open(struct redis_link **link, const struct redis_link_config *config);

/* NULL is harmless. No run may be under way and no ear open. */
void ww_redis_link_close(struct redis_link *link);

/*
 * Do all calls. Returns WW_OK if each was answered, otherwise the error of the first that was not; the answered ones
 * have their reply in any case. The calls of a run may happen in any order: one that depends on another belongs in a
 * later run. reply and error need no value before; afterwards the caller gives them to ww_redis_link_free.
 *
 * Errors of a call, with what is known about its effect:
 *   WW_EINVAL    no script or command, or too many arguments
 *   WW_EIO       no connection (at once, while it is too soon to try again): it has not happened. Or the connection
 *                broke, or was silent for the timeout, after the call was sent: it may have happened
 *   WW_EAGAIN    the server was loading, electing or busy, its slot was moving, or all connections were in use: it has
 *                not happened. If that has just begun, the call has waited: for the whole timeout while no other node
 *                serves, otherwise for an eighth of it. Later calls hear it at once, and now and then one is a probe
 *   WW_EFULL     Redis's memory or disk is full: it has not happened
 *   WW_EDENIED   missing rights, or the server is a replica: it has not happened
 *   WW_ECORRUPT  an unknown error, or a reply that is not Redis's
 *   WW_ETIMEOUT  fewer replicas than asked for have confirmed it within half of the timeout: it has happened, and is
 *                lost if its node is lost before they have it
 *   WW_ENOMEM
 */
int ww_redis_link_run(struct redis_link *link, struct redis_call *calls, size_t count);

/* Whether a call with that key would be sent at once: its node and slot are not set aside. */
int ww_redis_link_serves(struct redis_link *link, const char *key);

enum redis_node_state { REDIS_NODE_SERVES, REDIS_NODE_ASIDE, REDIS_NODE_LOST };

/* How a node fares. */
struct redis_node_report {
	char place[300]; /* host:port, or the path of a socket */
	enum redis_node_state state;
	char why[96];     /* "": it serves */
	uint64_t since;   /* ns since it was set aside or lost */
	uint64_t probe;   /* ns until the next call asks it; 0: the next one does */
	uint64_t refused; /* calls that have ended because of it */
	uint32_t keys;    /* of those given, that are its */
};

/* Fill in up to `room` nodes that have slots. keys: `count` keys to be counted. Returns how many nodes there are. */
size_t ww_redis_link_nodes(struct redis_link *link, struct redis_node_report *nodes, size_t room,
    const char *(*key)(size_t i, void *context), size_t count, void *context);

/* Free the replies and set them to NULL. */
void ww_redis_link_free(struct redis_call *calls, size_t count);

/* Report a sentence. */
void ww_redis_link_log(struct redis_link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Report a sentence, unless the last one within a minute was the same. */
void ww_redis_link_complain(struct redis_link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct redis_link_stats {
	uint64_t commands;     /* sent, including the link's own */
	uint64_t round_trips;  /* of runs; all nodes together count as one */
	uint64_t connections;  /* made in all */
	uint64_t failures;     /* attempts to connect that failed, and connections that broke */
	uint64_t redirections; /* MOVED and ASK */
	uint64_t loads;        /* of scripts */
	uint64_t refreshes;    /* of the map of slots */
	uint32_t nodes;        /* with slots; 1: a single server */
	uint32_t open;         /* connections now, not counting ears */
	int is_cluster;
};

void ww_redis_link_stats(struct redis_link *link, struct redis_link_stats *stats);

/* Which node serves which slot of a cluster. */
struct redis_map {
	uint16_t count; /* of nodes that serve some */
	struct redis_address nodes[REDIS_NODES_MAX];
	uint16_t slots[REDIS_SLOTS]; /* the place in `nodes`, or UINT16_MAX if there is none */
};

/*
 * Ask a node for the map of slots now, and copy it. A node about which is_doubted, if any, returns 1 is asked after the
 * others: cut off from them, it would still name itself. is_doubted may not use the link.
 * Errors: WW_EINVAL: this is no cluster. As ww_redis_link_run, when all nodes fail.
 */
int ww_redis_link_map(struct redis_link *link, struct redis_map *map,
    int (*is_doubted)(const struct redis_address *address, void *context), void *context);

/* The slot of a key in a cluster, 0 to 16383. Pure. */
unsigned ww_redis_link_slot(const char *key, size_t length);

/* An ear receives the messages of one channel from one node; every node of a cluster passes on all messages. */
struct redis_ear;

/*
 * Subscribe; in a cluster, on the node after the last ear's. Returns after the server has confirmed: the ear misses no
 * message published from then on while it lives.
 * Errors: as ww_redis_link_run, when all nodes fail. WW_EIO at once: the last ears were lost soon after they were
 * opened, and it is too soon for the next.
 */
int ww_redis_ear_open(struct redis_ear **ear, struct redis_link *link, const char *channel);

/*
 * Wait for messages, and call `hear` with each. Returns how many came; 0 after `timeout` ns, or when wake_fd becomes
 * readable, which is left unread (-1: none). A message is valid during the call, which may use the link but not the
 * ear.
 * Errors: WW_EIO: the ear is lost, or the server was silent for twice the timeout although it was pinged in between;
 * messages may have been missed. Close the ear and open another. WW_ECORRUPT, WW_ENOMEM: likewise.
 */
int ww_redis_ear_wait(struct redis_ear *ear, int wake_fd, uint64_t timeout,
    void (*hear)(const char *message, size_t length, void *context), void *context);

/* NULL is harmless. */
void ww_redis_ear_close(struct redis_ear *ear);

#endif
