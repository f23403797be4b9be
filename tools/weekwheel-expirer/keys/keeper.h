#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_KEEPER_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_KEEPER_H

/*
 * What is known of one Redis: its keys with their deadlines, and its time. The keeper decides what to ask Redis next,
 * and learns from the answers. It has no socket and reads no clock, so tests run it on virtual time.
 *
 *     heard: a key has changed --.
 *     SCAN: a page of keys ------+--> waiting --> PEXPIRETIME of each --> deadlines --> due --> one EXISTS for all
 *                                        ^                                                        |
 *                                        `-------- "not yet": some of these still exist ----------'
 *
 * One request is on its way at a time, the most urgent first: what time it is, keys that are due, keys that wait, the
 * next page. Keys that are due leave others a turn, and keys that wait leave one to the page. None takes
 * Redis much longer than half a millisecond, and between two Redis serves others.
 *
 * Due: Redis expires a key when its clock has passed the deadline, which it counts in ms. The keeper asks when it knows
 * for certain that this ms is over (estimate.h). An EXISTS then finds the key expired, and Redis deletes it,
 * publishes that, and informs its replicas, as when any client looks at it.
 *
 * A key with an empty name is left out: the right to all keys, %R~*, does not cover it.
 *
 * In a cluster a keeper keeps the keys that its node has, whoever serves their slots: see slots.h.
 *
 * Exact: from the moment when a pass through all keys has ended, until something is missed.
 *
 * With a window, keys that are due later are not kept. A pass begins whenever half of the window has gone by, so that
 * it finds each of them in time: between two looks at a key lie half a window and the time that a pass takes. What
 * was due within a window of the beginning of a pass is known when that has ended.
 *
 * Times are ns of a clock that never goes backwards. Threads: one at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/weekwheel-expirer/keys/deadlines.h"
#include "tools/weekwheel-expirer/keys/estimate.h"
#include "tools/weekwheel-expirer/keys/waiting.h"

struct keeper;
struct redisReply; /* of hiredis/hiredis.h */

#define KEEPER_NEVER UINT64_MAX
#define KEEPER_EVENTS "notify-keyspace-events"
#define KEEPER_SLOTS 16384

enum { KEEPER_BATCH = 512, KEEPER_READS = 32, KEEPER_LOOKS = 512, KEEPER_BUCKETS = 10 };

/* The upper bounds of the buckets of lateness, in us. */
extern const uint32_t keeper_bounds[KEEPER_BUCKETS];

/* A key that has ended: see ends.h. */
struct ended_key {
	const char *key;
	size_t length;
	int64_t deadline;  /* ms of Redis's clock */
	int is_sure;       /* it has expired; 0: expired or deleted */
	const char *value; /* NULL: it was not read */
	size_t size;
	int is_type;       /* that is the name of its type */
	uint32_t early_ms; /* by how much it was read before the deadline */
};

/* Functions of the owner, called in the threads of the keepers. Members other than `ended` may be NULL. */
struct keeper_watch {
	void *context;
	void (*ended)(void *context, const struct ended_key *ended);
	void (*kept)(void *context, const char *key, size_t length, int64_t deadline);
	void (*dropped)(void *context, const char *key, size_t length); /* also one that has ended */
	void (*turned)(void *context, struct keeper *keeper);           /* before the next request is sent */
	void (*joined)(void *context, struct keeper *keeper);           /* it begins */
	void (*left)(void *context, struct keeper *keeper);             /* it ends, and hands over all that it knows */
	void (*settled)(void *context); /* the keepers have taken over what was known before */
};

struct keeper_config {
	const char *match;                /* the pattern of the keys that count; NULL: all */
	uint64_t window_ms;               /* keep only keys that are due within it; 0: all */
	int only_later;                   /* deadlines only move on: a change of a known key is no news */
	const struct keeper_watch *watch; /* NULL: ends are not reported */
	unsigned (*slot)(const char *key, size_t length); /* of a cluster; NULL: there is none */
	uint64_t lead_ms;            /* read values this long before the deadlines; 0: do not read them */
	size_t value_max;            /* bytes; of a longer value only the type is read */
	size_t values_max;           /* bytes of all values in memory */
	struct deadlines *deadlines; /* what is known before; the keeper takes it over. NULL: nothing */
	/* Append a command to be sent. Returns 0, or an error, which keeper_next then returns. */
	int (*append)(void *context, size_t argc, const char *const *argv, const size_t *lengths);
	void *context;
};

struct keeper_stats {
	uint64_t known;   /* keys with a deadline */
	uint64_t bytes;   /* that they take */
	uint64_t due;     /* asked for at their deadline or after it */
	uint64_t expired; /* of these, those that Redis has expired */
	uint64_t later;   /* and those that had been given a later deadline */
	uint64_t heard;   /* changes */
	uint64_t looks;   /* keys looked up */
	uint64_t passes;
	uint64_t steps;                    /* of Redis's clock */
	uint64_t doubts;                   /* times when messages were late: see ends.h */
	uint64_t unread;                   /* ends without a value: no time to read it, no right or no memory */
	uint64_t too_long;                 /* keys that are longer than DEADLINES_KEY_MAX */
	uint64_t refused;                  /* keys that the user has no right to */
	uint64_t late[KEEPER_BUCKETS + 1]; /* of those expired: by how much at most; the last is beyond all bounds */
	uint64_t late_ns;                  /* of all of them */
	int is_exact;
};

enum keeper_kind { KEEPER_IDLE, KEEPER_CLOCK, KEEPER_ASK, KEEPER_LOOK, KEEPER_SCAN, KEEPER_READ };

struct keeper {
	struct keeper_config config;
	struct deadlines *deadlines;
	struct waiting waiting;
	struct estimate estimate;
	int64_t step_ns; /* of Redis's clock, the last one; the owner takes it back to 0 */

	/* The request on its way. */
	enum keeper_kind kind;
	unsigned owed; /* replies */
	uint64_t sent;
	struct due_key due[KEEPER_BATCH];
	size_t due_count;
	size_t asked;          /* of these, those with an answer */
	unsigned batch;        /* how many keys one request may have */
	uint64_t key_ns;       /* the time of Redis for one of these; 0: unknown */
	enum keeper_kind last; /* request */
	int64_t shown_ms;      /* TIME before PTTLs */

	int has_times;    /* the server has PEXPIRETIME; otherwise PTTL is used */
	uint64_t look_at; /* when changes have waited long enough; 0: none waits */
	uint64_t clock_at;
	unsigned clocks; /* requests of that kind */
	int is_master;
	int by_events; /* changes come as keyspace events; the owner sets it */
	int is_told;   /* these are on */

	int begins_pass; /* as soon as nothing is in flight */
	int is_passing;
	char cursor[24];
	int is_last;        /* page */
	uint64_t page_from; /* the page's keys among those that wait, in order of their coming */
	uint64_t page;
	uint64_t page_at; /* the pass goes on */
	int is_paced;     /* the request belongs to the pass */
	uint64_t pass_began;
	uint64_t covered; /* with a window: all that is due before is known; local time */
	int is_outrun;    /* a pass takes longer than the window allows */
	int is_sweeping;
	int is_exact;
	struct keeper_stats stats;

	/* See ends.h. */
	uint64_t reached; /* ms of Redis's clock: changes reported now are hardly from before */
	uint64_t doubted; /* messages were late: keys due until then are not sure */
	uint64_t turned;  /* the last keeper_next */

	/* Of the journal: see keep.h. */
	unsigned round;
	uint32_t noted; /* keys in that round */

	/* See values.h. */
	struct due_key early[KEEPER_BATCH];
	size_t early_count;
	struct due_key reading[KEEPER_READS];
	size_t reading_count;
	char type[32];
	struct read_value *values;
	size_t values_bytes;

	/* In a cluster: see slots.h. */
	uint8_t serves[KEEPER_SLOTS / 8]; /* a bit for each slot that the node serves, as far as the owner knows */
	int is_misled;                    /* it does not serve one of these; the owner sets it back to 0 */
	int is_down;                      /* it serves nothing for now: the cluster is down */
	int is_asking;                    /* the request asks with ASKING */
	uint64_t asking_until;
	struct due_key *held; /* due keys that are asked for again, the first next */
	size_t held_head;
	size_t held_end; /* of those that this round asks for; held_head: none goes on */
	size_t held_count;
	size_t held_room;
	uint64_t held_began; /* the round */
	uint64_t held_at;    /* the next one begins */
};

/* Returns 0, or -1 without memory. */
int keeper_begin(struct keeper *keeper, const struct keeper_config *config);
void keeper_end(struct keeper *keeper);

/* A connection is made: nothing is in flight, and a pass begins. */
void keeper_connected(struct keeper *keeper, uint64_t now, int has_times);

/*
 * All keys are gone, or something was missed: begin another pass. It waits for the answer in flight, which may be from
 * before.
 */
void keeper_pass(struct keeper *keeper);

/* Redis has been silent: its reports of changes may be late. */
void keeper_doubt(struct keeper *keeper, uint64_t now);

/* A key has changed. Returns 0, or -1 without memory. */
int keeper_heard(struct keeper *keeper, const char *key, size_t length);

/*
 * Append the next request if none is in flight and one is due now. *again gets when to call this again if nothing
 * happens before. Returns 0, or an error of append.
 */
int keeper_next(struct keeper *keeper, uint64_t now, uint64_t *again);

/* Whether an error concerns a single key. Pass it to the keeper as a reply; any other error ends the connection. */
int keeper_takes_error(const struct keeper *keeper, const struct redisReply *reply);

/*
 * A reply came that is no error, or one that concerns a single key. Returns 0, or -1 if Redis never sends such a
 * reply, or without memory.
 */
int keeper_reply(struct keeper *keeper, const struct redisReply *reply, uint64_t now);

/* Whether the answer to CONFIG GET KEEPER_EVENTS includes changes of deadlines. */
int keeper_are_events_on(const struct redisReply *reply);

void keeper_read_stats(const struct keeper *keeper, struct keeper_stats *stats);

#endif
