#ifndef TESTS_SIMULATE_JOBS_BOOK_H
#define TESTS_SIMULATE_JOBS_BOOK_H

/*
 * What clients did and heard, and what the store delivered: the history of a run, for tests/support/history.py, which
 * judges it. The book knows of each job only what the clients need to choose what they do.
 *
 * A *job* here is one of the store, or all jobs of one key one after the other: at most one of them lives. A command on it
 * is sent when the one before it is answered, or its connection is over.
 */

#include <stddef.h>
#include <stdint.h>

#include "tests/simulate/jobs/client.h"

enum sent_verb { PUT, DELETE, DELETE_KEY, RELEASE, BURY, KICK_JOB, MOVE, TOUCH, RESERVE_JOB, NO_VERB };

struct job {
	uint32_t number;
	unsigned tube;
	int is_keyed;
	int is_wall;       /* its due times are of the wall clock */
	uint64_t run;      /* its time to run */
	uint64_t every;    /* its period, or 0 */
	uint64_t backoff;  /* or 0 */
	unsigned attempts; /* until it is buried, or 0 */

	uint32_t puts;
	uint32_t sure;         /* the put that it certainly has the body of; 0: one of several */
	uint64_t id;           /* as last heard; 0: unknown */
	uint32_t acknowledged; /* the last put that was answered */
	uint32_t taken_puts;   /* puts that were sent when it was reserved last */
	uint64_t taken;        /* the number of that delivery in the history */
	int is_gone;           /* certainly */
	int may_be_buried;
	int is_loose;            /* it was reserved by its id, and may be delivered more often than it has attempts */
	struct client *holder;   /* who has heard that it has reserved it, and did not end that */
	uint64_t heard[CLIENTS]; /* the connection in which each has heard last that it has reserved it, or 0 */
	uint64_t delivered;      /* when it was reserved last */
	unsigned unheard;        /* deliveries since the last one that a client certainly heard of */
	uint64_t changed;        /* when something of it changed last, as far as is known */
	uint64_t base;           /* of a periodic one: it is due then at the earliest; 0: unknown */

	/* The command that is under way. */
	enum sent_verb verb;  /* NO_VERB: none is */
	uint64_t call, other; /* its numbers in the history; other: with another effect, or 0 */
	uint64_t sent, due;   /* due: at the earliest */
	uint64_t delay;
};

struct book {
	uint64_t window;  /* what was answered so long before a power failure may be lost */
	uint64_t healthy; /* since when nothing is wrong, or SIM_NEVER */
	uint64_t failed;  /* when a sync failed in this life of the server; 0: none did */
	uint64_t last_due;
	uint64_t deliveries, acknowledged, unanswered, powers, refused, late_ends;
};

extern struct book book;

/* Write the history to a file, which stays the caller's. */
void book_begin(uint64_t window, int steps, void *file);
void book_end(void);
struct job *book_new(unsigned tube, int is_keyed);
struct job *book_any(void);
unsigned book_count(void);
/* One that may be buried, and is not busy; or NULL. */
struct job *book_buried(void);
/* The one that a body names; NULL: nobody put it. */
struct job *book_of(const char *body, size_t size, uint32_t *put);

/* A command is sent. `by`: the number of the connection that has reserved the job, or 0. `due`: at the earliest. */
void book_sends(struct job *job, enum sent_verb verb, uint64_t by, uint64_t due, uint64_t delay);
void book_hears(struct job *job, const char *answer);
/* There will be no answer. */
void book_hears_nothing(struct job *job);
/* A client has heard that it has the job. Returns the number of the delivery, or 0: it is not sure which one it is. */
uint64_t book_heard(struct job *job, struct client *client, uint64_t id, uint64_t connection);
/*
 * A worker ends the delivery `of` of a job that was put again since, which that put has nothing of. Returns the command's
 * number. Others may be under way for the job. answer NULL: there will be none.
 */
uint64_t book_sends_late(const struct job *job, enum sent_verb verb, uint64_t by, uint64_t of);
void book_hears_late(enum sent_verb verb, uint64_t call, const char *answer);
/* The client of that connection is gone, or the server has left it. */
void book_left(uint64_t connection);
/* A tube pauses, from some moment since `sent` on; most: SIM_NEVER while that is not answered. */
void book_pauses(unsigned tube, uint64_t least, uint64_t most);
/* Clients wait for jobs that do nothing else: one more, or (-1) one less. */
void book_waits(int more);

/* Something is wrong from now on, or all is well. */
void book_ill(void);
void book_well(void);
/* The wall clock was set. */
void book_stepped(int64_t step);
/* The server has opened its store, which makes stable what one that was killed had not synced. */
void book_opened(void);
/* A sync of a file failed: what was written before it may be gone. */
void book_sync_failed(void);
/* All leases are over; after a power failure the last moments may be lost. */
void book_server_died(int is_power, int is_lost);
/* Nothing is known any more. */
void book_forget_all(void);
/* Whether each job that was put has certainly ended. */
int book_is_done(void);
/* No job is there any more. */
void book_final(void);

#endif
