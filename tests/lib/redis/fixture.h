#ifndef TESTS_LIB_REDIS_FIXTURE_H
#define TESTS_LIB_REDIS_FIXTURE_H

/*
 * A rig for the tests of the link to Redis: it counts the link's memory, keeps its reports, and stops its clock.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/redis/link/link.h"
#include "lib/redis/link/link_internal.h"
#include "tests/support/suite.h"

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)

enum { SAID_MAX = 64, SENTENCE_MAX = 512 };

struct link_rig {
	struct redis_link *link;
	struct redis_link_config config;
	struct ww_allocator allocator;
	pthread_mutex_t lock;
	size_t blocks; /* not freed yet */
	size_t bytes;
	size_t most; /* the most bytes so far */
	size_t calls;
	size_t fail_at; /* the allocation that fails; 0: none */
	uint64_t now;   /* the link's time, by which it backs off */
	int said;
	char sentences[SAID_MAX][SENTENCE_MAX];
	char url[1024];
};

/* Fill the config, and copy the url. The timeout is long; tests that wait for it set a short one. */
void link_rig_make(struct link_rig *rig, const char *url);
/* Open, which must succeed. */
void link_rig_open(struct link_rig *rig, const char *url);
/* Close, and check that all memory is freed. */
void link_rig_close(struct link_rig *rig);
/* How many reports contain the words. */
int link_rig_said(struct link_rig *rig, const char *words);
/* A number of the statistics. */
struct redis_link_stats link_rig_stats(struct link_rig *rig);
void link_rig_pass(struct link_rig *rig, uint64_t ns);
uint64_t link_rig_now(struct link_rig *rig);

/* A script with this text. */
struct redis_script script_of(const char *name, const char *text);
/*
 * Call a script once, with up to one argument. Returns the error, and in *number the number or the length of the reply.
 */
int call_script(
    struct link_rig *rig, const struct redis_script *script, const char *key, const char *argument, long long *number);
/* The same, and again if the connection broke. */
int call_again(struct link_rig *rig, const struct redis_script *script, const char *key);
/* Send one command of up to four words to any node. Returns the error. */
int call_words(struct link_rig *rig, const char *one, const char *two, const char *three, const char *four);

#endif
