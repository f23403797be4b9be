#ifndef TESTS_LIB_REDIS_FIXTURE_H
#define TESTS_LIB_REDIS_FIXTURE_H

/*
 * What the tests of the link to Redis share: a link whose memory is counted, whose reports are kept, and whose clock
 * stands.
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
	size_t blocks; /* that live */
	size_t bytes;
	size_t most; /* bytes, ever */
	size_t calls;
	size_t fail_at; /* the allocation that fails; 0: none */
	uint64_t now;   /* what the link takes for the time, to back off */
	int said;
	char sentences[SAID_MAX][SENTENCE_MAX];
	char url[1024];
};

/* Fill the config. url: to be copied. The timeout is generous; tests that wait for it set a short one. */
void link_rig_make(struct link_rig *rig, const char *url);
/* Open; must go well. */
void link_rig_open(struct link_rig *rig, const char *url);
/* Close, and all memory must have been given back. */
void link_rig_close(struct link_rig *rig);
/* How many sentences had the words. */
int link_rig_said(struct link_rig *rig, const char *words);
/* A number of the statistics. */
struct redis_link_stats link_rig_stats(struct link_rig *rig);
void link_rig_pass(struct link_rig *rig, uint64_t ns);
uint64_t link_rig_now(struct link_rig *rig);

/* A script of that text. */
struct redis_script script_of(const char *name, const char *text);
/*
 * One call of a script, with up to one argument; returns the error, and the reply's number, or length of text, in
 * *number.
 */
int call_script(
    struct link_rig *rig, const struct redis_script *script, const char *key, const char *argument, long long *number);
/* The same, again if it broke. */
int call_again(struct link_rig *rig, const struct redis_script *script, const char *key);
/* One command of up to four words, any node. Returns the error. */
int call_words(struct link_rig *rig, const char *one, const char *two, const char *three, const char *four);

#endif
