#ifndef TESTS_SIMULATE_JUDGE_H
#define TESTS_SIMULATE_JUDGE_H

/*
 * What clients did and heard, and whether the server may do what it does.
 *
 * An *entity* is a job, or all jobs of one key one after the other: at most one of them lives. The judge keeps the set of
 * states in which it may be. An answered command has happened, and one without an answer may have happened. After a
 * power failure the states of the last moments come back as far as the mode of syncing allows. A command on an entity is
 * sent when the one before it is answered, or its connection is over.
 */

#include <stdint.h>

#include "weekwheel/jobs.h"

struct client;

enum verb_kind { PUT, PUT_KEY, DELETE, RELEASE, BURY, KICK_JOB, MOVE, TOUCH, NO_VERB };

enum { STATES = 12, PASTS = 6 };

struct state {
	enum { ABSENT, WAITING, BURIED } kind;
	uint32_t put;
	uint64_t id; /* 0: unknown */
	uint64_t due_least, due_most;
};

struct states {
	unsigned count;
	struct state state[STATES];
};

struct command_sent {
	enum verb_kind verb; /* NO_VERB: none is under way */
	uint64_t sent;
	uint64_t delay;
	uint64_t id; /* which job it names */
	uint32_t put;
};

struct entity {
	uint32_t number;
	int tube;
	int is_keyed;
	int is_wild; /* a disk that lied has lost what was known of it */
	uint32_t puts;
	uint64_t id; /* as last heard; 0: unknown */
	struct states now;
	struct {
		uint64_t until;
		struct states states;
	} past[PASTS];
	unsigned past_count;
	struct command_sent command;
	struct client *holder;            /* who has heard that it has reserved it, and did not end that */
	uint64_t delivered;               /* when it was reserved last */
	uint64_t lease_least, lease_most; /* when its lease ends */
	uint64_t free;                    /* when the lease before that one had ended */
	uint64_t run;                     /* its time to run */
};

/* Whether the server still has its connection. */
int client_is_connected(const struct client *client);

struct judge {
	uint64_t window;  /* what was answered so long before a power failure may be lost */
	uint64_t healthy; /* since when nothing is wrong */
	uint64_t early;   /* the clock of elapsed time may be ahead by that */
	uint64_t late;    /* or behind by that */
	uint64_t failed;  /* when a sync failed in this life of the server; 0: none did */
	uint64_t last_due;
	uint64_t deliveries, acknowledged, unanswered, powers, refused;
};

extern struct judge judge;

void judge_begin(uint64_t window);
void judge_end(void);
struct entity *judge_new(int tube, int is_keyed);
struct entity *judge_any(void);
unsigned judge_count(void);
/* One that may be buried, and its id then, and is not busy; or NULL. */
struct entity *judge_buried(uint64_t *id);
/* The one that a body names, with the number of the put; NULL: nobody put it. */
struct entity *judge_of(const char *body, uint64_t size, uint32_t *put);

void judge_sends(struct entity *entity, enum verb_kind verb, uint64_t id, uint64_t delay);
/* The answer: whether it was done, and the id if it says one. */
void judge_hears(struct entity *entity, const char *answer);
/* There will be no answer. */
void judge_hears_nothing(struct entity *entity);
void judge_client_heard(struct entity *entity, struct client *client, uint64_t id, uint64_t since);

/* The server has opened its store, which makes stable what one that was killed had not synced. */
void judge_opened(void);
/* A sync of a file failed: what was written before it may be gone. */
void judge_sync_failed(void);
/* All leases are over; after a power failure the last moments may be lost. */
void judge_server_died(int is_power, int is_lost);
/* Whether each job that was acknowledged has ended. */
int judge_is_done(void);
void judge_final(void);
/* Nothing is known any more. */
void judge_forget_all(void);

#endif
