#ifndef TESTS_SUPPORT_REDIS_FAKE_SERVER_H
#define TESTS_SUPPORT_REDIS_FAKE_SERVER_H

/*
 * A server that answers what a test wants: a thread that reads commands and, for each, finds the first rule whose words
 * the command begins with and that is not used up. What no rule is for is answered as a single server would: PING,
 * AUTH, SELECT and INFO, and OK to all else.
 */

#include <pthread.h>
#include <stddef.h>

enum fake_action {
	FAKE_ANSWER,  /* the answer, to be gone on with */
	FAKE_CUT,     /* the answer, and then the connection is closed */
	FAKE_SILENCE, /* nothing, and nothing ever after on this connection */
	FAKE_ENDLESS  /* the answer again and again, as long as somebody reads */
};

struct fake_rule {
	const char *words; /* "EVALSHA", "CLUSTER SLOTS"; "" for all. NULL ends the rules */
	int times;         /* how often; 0: always */
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
	pthread_mutex_t lock; /* of all below */
	struct fake_rule rules[16];
	int accepts;
	int commands; /* without those of greeting: PING, AUTH, SELECT, INFO */
	int logged;
	char log[FAKE_LOG][FAKE_LINE]; /* all commands, their words with spaces between */
};

void fake_server_start(struct fake_server *server, const struct fake_rule *rules);
/* Other rules from here on. */
void fake_server_rules(struct fake_server *server, const struct fake_rule *rules);
int fake_server_accepts(struct fake_server *server);
/* How many commands began with the words. */
int fake_server_count(struct fake_server *server, const char *words);
void fake_server_stop(struct fake_server *server);
void fake_server_url(const struct fake_server *server, char *url, size_t size);

#endif
