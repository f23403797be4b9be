#ifndef TESTS_SUPPORT_REDIS_STORE_RIG_H
#define TESTS_SUPPORT_REDIS_STORE_RIG_H

/*
 * A store of jobs in real Redis, on one server or a cluster of three, and other processes that use it.
 *
 * Such a process is an *actor*: the test program itself, started again with the words "actor", URL, prefix and lease
 * (ms). It opens the store, says "ok", and obeys the lines on its input. It answers each with a line:
 *
 *     put TUBE DELAY_US BODY     the id
 *     wait TUBE TIMEOUT_MS       "1 ID TOKEN ATTEMPT ENDS_US BODY", 0, or an error
 *     finish ID TOKEN            the result
 *     stats                      "WATCHED WORKERS RESETS SKEW_S"
 *     work TUBE                  from then on, without end: "J ID TOKEN ATTEMPT ENDS_US BODY" of each job, and
 *                                "F ID TOKEN RESULT" of its end; a job is held for up to ACTOR_HOLD_US us
 *     produce TUBE NAME RUN_MS SPREAD_US   likewise: jobs NAME-0 and so on, due within the spread: "T BODY DUE_US"
 *                                before each is put, and "P BODY ID" when that is acknowledged
 *
 * ACTOR_SHIFT_S puts its clock that many seconds ahead.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tests/support/redis/redis_server.h"
#include "tests/support/suite.h"
#include "weekwheel/jobs_redis.h"
#include "weekwheel/weekwheel.h"

enum { STORE_SINGLE, STORE_CLUSTER };
enum { STORE_SAID_MAX = 64, STORE_SENTENCE_MAX = 256 };

struct store_rig {
	struct redis_cluster servers; /* a single server is the first */
	int is_shared;
	struct ww_jobs_redis_config config;
	struct ww_jobs *jobs;
	char url[64];
	uint64_t now; /* ns, if the rig has its own time */
	pthread_mutex_t lock;
	int said;
	char sentences[STORE_SAID_MAX][STORE_SENTENCE_MAX];
};

extern const char *const store_kinds[]; /* "single", "cluster" */
const char *store_kind_name(size_t i);

/* Start the cluster that tests share: a cluster needs two seconds to become ready, however fast the machine is. */
void store_rig_share(void);
/*
 * Start servers with the options, and fill the config. Returns 0 if there is no redis-server. A cluster without options
 * is the shared one, emptied. A test that kills or configures its servers passes options and gets its own cluster.
 */
int store_rig_make(struct store_rig *rig, int kind, const char *const *options);
int store_rig_make_cluster(struct store_rig *rig, int primaries, int replicas, const char *const *options);
/* From now on the rig tells the time. */
void store_rig_own_time(struct store_rig *rig);
void store_rig_open(struct store_rig *rig);
void store_rig_close(struct store_rig *rig);
/* Close the store if it is open, and end the servers. */
void store_rig_end(struct store_rig *rig);
/* The number of reported sentences with these words. */
int store_rig_said(struct store_rig *rig, const char *words);
/* The number of keys in Redis whose name has none of these words. Prints their names. */
int store_rig_keys_without(struct store_rig *rig, const char *const *words, size_t count);
void store_rig_check(struct store_rig *rig);

uint64_t store_put(struct store_rig *rig, const struct ww_job_spec *spec);
struct ww_job_spec store_spec(const char *tube, const char *body);
/*
 * Reserve a job, or wait up to a minute for it. It must be there. Its body is copied to `body` (64 bytes) unless NULL.
 */
struct ww_lease store_take(struct store_rig *rig, const char *tube, char *body);
struct ww_lease store_wait(struct store_rig *rig, const char *tube, char *body);
void store_none(struct store_rig *rig, const char *tube);

struct actor {
	pid_t pid;
	int to;
	FILE *from;
};

/* environment: "NAME=value" strings in addition to ours; NULL: none. */
void actor_start(struct actor *actor, const struct store_rig *rig, const char *const *environment);
void actor_tell(struct actor *actor, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next line without its end. It must come. */
void actor_hear(struct actor *actor, char *line, size_t size);
/* Tell, and return the first number of the answer. */
long long actor_ask(struct actor *actor, const char *format, ...) __attribute__((format(printf, 2, 3)));
void actor_kill(struct actor *actor);
/* Let it close the store and end. */
void actor_end(struct actor *actor);
/* The main function of a program started as an actor. */
int actor_main(int argc, char **argv);

/*
 * The main function of a test program whose tests run once for each kind. Tests for single servers alone begin with
 * NEEDS_SINGLE.
 */
#define STORE_MAIN(name, ...)                                                                                          \
	int main(int argc, char **argv)                                                                                \
	{                                                                                                              \
		const TTest *const tests[] = {__VA_ARGS__};                                                            \
		if (argc > 1)                                                                                          \
			return actor_main(argc, argv);                                                                 \
		return suite_run_kinds(                                                                                \
		    name, tests, sizeof tests / sizeof tests[0], store_kind_name, 2, store_rig_share);                 \
	}

#define NEEDS_SINGLE                                                                                                   \
	do {                                                                                                           \
		if (_i != STORE_SINGLE)                                                                                \
			return;                                                                                        \
	} while (0)

#endif
