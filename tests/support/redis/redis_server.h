#ifndef TESTS_SUPPORT_REDIS_REDIS_SERVER_H
#define TESTS_SUPPORT_REDIS_REDIS_SERVER_H

/*
 * Real redis-servers for tests, and clusters of them. Each is on a free port of the loopback and has a folder of its
 * own below /tmp. However a test ends, its servers end with its process.
 */

#include <sys/types.h>

#include <hiredis/hiredis.h>

#include "tests/support/suite.h"

enum { REDIS_OPTIONS_MAX = 24, REDIS_SERVERS_MAX = 8 };

struct redis_server {
	pid_t pid; /* 0: it does not run */
	int port;
	int bus; /* the port of the cluster's bus */
	char folder[64];
	const char *options[REDIS_OPTIONS_MAX]; /* "--name", "value", ...; NULL ends them */
};

/* Whether redis-server is installed. If not, says that the test is skipped. */
int redis_server_is_there(void);

/*
 * Start a server, and wait until it answers. Options are "--appendonly", "yes", ..., NULL, and must stay valid. NULL
 * means none. The server keeps nothing on disk unless told to. It has a socket at folder/socket.
 */
void redis_server_start(struct redis_server *server, const char *const *options);
/* kill -9, and wait for its end. */
void redis_server_kill(struct redis_server *server);
/* Start it again with the same port, folder and options. */
void redis_server_restart(struct redis_server *server);
void redis_server_freeze(struct redis_server *server);
void redis_server_thaw(struct redis_server *server);
/* End it if it runs, and remove its folder. */
void redis_server_stop(struct redis_server *server);
/* Write its URL. */
void redis_server_url(const struct redis_server *server, char *url, size_t size);
/* Start a server and write its URL. Returns 0 if redis-server is not installed, otherwise 1. */
int redis_server_begin(struct redis_server *server, char *url, size_t size);

/* Send a command on a connection of its own. The answer must not be an error. freeReplyObject frees it. */
redisReply *redis_server_ask(const struct redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, without the answer. */
void redis_server_tell(const struct redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, for an answer that is a number. */
long long redis_server_number(const struct redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Wait until the answer of INFO contains the words. */
void redis_server_wait_info(const struct redis_server *server, const char *section, const char *words);

/* Wait until the replica has everything that was written. WAIT knows only the writes of its own connection. */
void redis_server_wait_replica(const struct redis_server *primary, const struct redis_server *replica);

/* A cluster: the first servers are the primaries, the others their replicas in turn. */
struct redis_cluster {
	struct redis_server servers[REDIS_SERVERS_MAX];
	int primaries;
	int count;
	int is_ready; /* all servers know each other and have their slots */
};

/* Slots are divided evenly, in order. Each server gets the options. */
void redis_cluster_start(struct redis_cluster *cluster, int primaries, int replicas, const char *const *options);
void redis_cluster_stop(struct redis_cluster *cluster);
/*
 * Start the cluster that tests share, once. A start that failed is tried again. Without a redis-server nothing is
 * started.
 */
void redis_cluster_share(struct redis_cluster *cluster, int primaries);
/* Remove all keys and scripts, and end any move of a slot, whatever a failed test has left. */
void redis_cluster_empty(struct redis_cluster *cluster);
/* The server that has the slot, as the first one sees it. */
int redis_cluster_owner(const struct redis_cluster *cluster, unsigned slot);
/* Begin to move the slot from one server to the other. The keys stay. */
void redis_cluster_move_begin(struct redis_cluster *cluster, unsigned slot, int from, int to);
/* Move the slot's keys, and tell all servers who has it. */
void redis_cluster_move_end(struct redis_cluster *cluster, unsigned slot, int from, int to);

#endif
