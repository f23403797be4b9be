#ifndef TESTS_SUPPORT_REDIS_REDIS_SERVER_H
#define TESTS_SUPPORT_REDIS_REDIS_SERVER_H

/*
 * Real redis-servers for tests: on free ports of the loopback, each with a folder of its own below /tmp, and clusters
 * of them. Whatever becomes of a test, its servers end with its process.
 */

#include <sys/types.h>

#include <hiredis/hiredis.h>

#include "tests/support/suite.h"

enum { REDIS_OPTIONS_MAX = 24, REDIS_SERVERS_MAX = 8 };

struct redis_server {
	pid_t pid; /* 0: it does not run */
	int port;
	int bus; /* of a cluster */
	char folder[64];
	const char *options[REDIS_OPTIONS_MAX]; /* "--name", "value", ...; NULL ends them */
};

/* Whether redis-server is there; if not, says that the test is skipped. */
int redis_server_is_there(void);

/*
 * Start one, and wait until it answers. options: "--appendonly", "yes", ...; NULL ends them; they must stay. NULL:
 * none. It keeps nothing on disk unless it is told to. A socket is at folder/socket.
 */
void redis_server_start(struct redis_server *server, const char *const *options);
/* kill -9, and wait for its end. */
void redis_server_kill(struct redis_server *server);
/* The same port, folder and options. */
void redis_server_restart(struct redis_server *server);
void redis_server_freeze(struct redis_server *server);
void redis_server_thaw(struct redis_server *server);
/* End it, whether it runs or not, and remove its folder. */
void redis_server_stop(struct redis_server *server);
/* Write its url. */
void redis_server_url(const struct redis_server *server, char *url, size_t size);
/* Start one where there is a redis-server, and write its url: 1, or 0 where there is none. */
int redis_server_begin(struct redis_server *server, char *url, size_t size);

/* Ask a command by a connection of its own. The answer may not be an error; it is freed by freeReplyObject. */
redisReply *redis_server_ask(const struct redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, and the answer is of no interest. */
void redis_server_tell(const struct redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, and the answer is a number. */
long long redis_server_number(const struct redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Wait until the answer of INFO has the words. */
void redis_server_wait_info(const struct redis_server *server, const char *section, const char *words);

/* Wait until the replica has all that is written. WAIT knows only what was written by its own connection. */
void redis_server_wait_replica(const struct redis_server *primary, const struct redis_server *replica);

/* A cluster: the first servers are the primaries, the others their replicas in turn. */
struct redis_cluster {
	struct redis_server servers[REDIS_SERVERS_MAX];
	int primaries;
	int count;
	int is_ready; /* all of them know each other and have their slots */
};

/* Slots are shared out evenly, in order. options: of each server. */
void redis_cluster_start(struct redis_cluster *cluster, int primaries, int replicas, const char *const *options);
void redis_cluster_stop(struct redis_cluster *cluster);
/* Start one that tests share, once; where that failed, try it anew. Without a redis-server nothing is started. */
void redis_cluster_share(struct redis_cluster *cluster, int primaries);
/* All keys and scripts go, and no slot is on the move any more, whatever a test that failed has left. */
void redis_cluster_empty(struct redis_cluster *cluster);
/* Which server has the slot, as the first one knows. */
int redis_cluster_owner(const struct redis_cluster *cluster, unsigned slot);
/* The slot begins to move from one server to the other; keys do not. */
void redis_cluster_move_begin(struct redis_cluster *cluster, unsigned slot, int from, int to);
/* Move its keys, and say to all who has it. */
void redis_cluster_move_end(struct redis_cluster *cluster, unsigned slot, int from, int to);

#endif
