#ifndef TESTS_SUPPORT_REDIS_FAKE_SERVER_H
#define TESTS_SUPPORT_REDIS_FAKE_SERVER_H

/*
 * A fake Redis server that answers what a test wants. A thread reads commands. For each it finds the first rule with
 * uses left whose words begin the command. Without a rule it answers like a single server: PING, AUTH, SELECT and INFO
 * properly, and OK to all else.
 */

#include <pthread.h>
#include <stddef.h>

enum fake_action {
	FAKE_ANSWER,  /* the answer, and go on */
	FAKE_CUT,     /* the answer, then close the connection */
	FAKE_SILENCE, /* nothing, now or later on this connection */
	FAKE_ENDLESS  /* the answer again and again, as long as the client reads */
};

struct fake_rule {
	const char *words; /* "EVALSHA", "CLUSTER SLOTS"; "" for all. NULL ends the rules */
	int times;         /* number of uses; 0: no limit */
	enum fake_action action;
	const char *answer;
	size_t length; /* 0: answer ends with a NUL */
};

enum { FAKE_CONNECTIONS = 64, FAKE_LOG = 512, FAKE_LINE = 96 };

struct fake_server {
	int port;
	int fd;
	int stop[2];
	pthread_t thread;
	pthread_mutex_t lock; /* protects all members below */
	struct fake_rule rules[16];
	int accepts;
	int commands; /* without the greeting: PING, AUTH, SELECT, INFO */
	int logged;
	char log[FAKE_LOG][FAKE_LINE]; /* all commands, their words with spaces between */
};

void fake_server_start(struct fake_server *server, const struct fake_rule *rules);
/* Change the rules from now on. */
void fake_server_rules(struct fake_server *server, const struct fake_rule *rules);
int fake_server_accepts(struct fake_server *server);
/* The number of commands that began with the words. */
int fake_server_count(struct fake_server *server, const char *words);
void fake_server_stop(struct fake_server *server);
void fake_server_url(const struct fake_server *server, char *url, size_t size);

#endif
