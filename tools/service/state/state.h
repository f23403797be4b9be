#ifndef TOOLS_SERVICE_STATE_STATE_H
#define TOOLS_SERVICE_STATE_STATE_H

/*
 * States in which something waits or is refused: a node set aside, a full disk, a bound reached, a breaker open. The
 * log has one line when a state begins and one when it ends, with how long it lasted and how often it was met. If a
 * state begins again within STATE_QUIET_MS of its end, that is logged once more, and its next end only after that much
 * quiet. A state that comes and goes thus does not fill the log. /readyz and /metrics report the present states.
 *
 * Any thread may call these functions. They allocate nothing and cannot fail: beyond STATES_MAX states, the one that
 * ended first is forgotten, or if none has ended, the new one is only counted.
 */

#include <stdint.h>

enum { STATES_MAX = 256, STATE_KEY_MAX = 64, STATE_TEXT_MAX = 384, STATE_QUIET_MS = 10000 };

/*
 * The functions that a state stops, in part or as a whole: each makes the server not ready. 0: the state only slows the
 * server, or is one client's fault.
 */
enum { STATE_STOPS_READING = 1, STATE_STOPS_WRITING = 2 };

/*
 * A state begins; or if it goes on, it is met once more. `key` names it in metrics and must be one of few: "disk",
 * "node 127.0.0.1:7001". The text says what happened, what waits for it, and what to do.
 */
void state_begin(const char *key, unsigned stops, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* It ends. The text says what continues. Does nothing unless the state had begun. */
void state_end(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* If it goes on, it is met once more. */
void state_met(const char *key);

/* It is met, and nobody will report its end: it ends after STATE_QUIET_MS without another call. */
void state_seen(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct state_info {
	char key[STATE_KEY_MAX];
	char text[STATE_TEXT_MAX]; /* of its beginning, or once it is over, of its end */
	unsigned stops;
	int is_on;
	int is_logged;    /* the log has its beginning, but not its end */
	int is_flapping;  /* the end is logged only after some quiet */
	int is_seen;      /* it ends by itself */
	uint64_t since;   /* when its beginning was logged; this and what follows in ms of the monotonic clock */
	uint64_t started; /* when it was switched on last */
	uint64_t ended;   /* when it was switched off, or if it ends by itself, was met last */
	uint64_t due;     /* when something happens without a call, or 0 */
	uint64_t count;   /* how often it was met since `since` */
	uint64_t begun;   /* in all */
	uint64_t lasted;  /* in all, without the time since `started` */
};

/* Call `each` with all states that have begun at least once. It must not call these functions. */
void state_each(void (*each)(const struct state_info *state, void *context), void *context);

/* Return how many ms of its life the state was on, until now. */
uint64_t state_lasted(const struct state_info *state);

/* ---- For the loop */

/* Set a function, called in any thread, that makes state_settle run earlier than it last asked for. NULL: none. */
void state_watch(void (*wake)(void *context), void *context);

/* Do what is due. Return in how many ms to call this again, or -1: not before `wake`. */
int64_t state_settle(void);

/* Log the ends that still wait for some quiet, and forget all states. */
void state_finish(void);

#endif
