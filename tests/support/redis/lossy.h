#ifndef TESTS_SUPPORT_REDIS_LOSSY_H
#define TESTS_SUPPORT_REDIS_LOSSY_H

/*
 * A connection to Redis that breaks when a test wants it: a thread passes bytes on between clients and a server. Once a
 * client says a word that the test has named, that request or its answer is lost, and the connection is closed.
 */

#include <pthread.h>

enum { LOSSY_PAIRS = 32 };
enum lossy_part { LOSSY_ANSWER, LOSSY_REQUEST };

struct lossy {
	int port;
	int server; /* its port */
	int listener;
	int stop[2];
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	char word[64];        /* "": nothing is lost */
	enum lossy_part part;
	unsigned lost;
};

void lossy_start(struct lossy *lossy, int server_port);
/* Lose the next request with that word, or the answer to it. */
void lossy_lose(struct lossy *lossy, const char *word, enum lossy_part part);
/* How many were lost. */
unsigned lossy_lost(struct lossy *lossy);
void lossy_stop(struct lossy *lossy);

#endif
