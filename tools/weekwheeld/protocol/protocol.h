#ifndef TOOLS_WEEKWHEELD_PROTOCOL_PROTOCOL_H
#define TOOLS_WEEKWHEELD_PROTOCOL_PROTOCOL_H

/*
 * Bytes in, commands out: the protocol of beanstalkd 1.12, and verbs of our own. Pure: it keeps no bytes, takes no
 * memory, knows no connection, and finds the same commands wherever the bytes are split.
 *
 *                           a line               a put's line            its body
 *     LINE ---------------------------> command        LINE -----> BODY ----------> command
 *      |  too long            end of it
 *      +------------> LONG ---------------> command     a body that is refused: SKIP, before or after the command
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"

enum verb {
	VERB_UNKNOWN,
	VERB_PUT,
	VERB_PEEK,
	VERB_PEEK_READY,
	VERB_PEEK_DELAYED,
	VERB_PEEK_BURIED,
	VERB_RESERVE,
	VERB_RESERVE_TIMEOUT,
	VERB_RESERVE_JOB,
	VERB_DELETE,
	VERB_RELEASE,
	VERB_BURY,
	VERB_KICK,
	VERB_KICK_JOB,
	VERB_TOUCH,
	VERB_USE,
	VERB_WATCH,
	VERB_IGNORE,
	VERB_LIST_TUBES,
	VERB_LIST_TUBE_USED,
	VERB_LIST_TUBES_WATCHED,
	VERB_STATS,
	VERB_STATS_JOB,
	VERB_STATS_TUBE,
	VERB_PAUSE_TUBE,
	VERB_QUIT,
	/* Ours. */
	VERB_PUT_KEY,
	VERB_PUT_AT,
	VERB_MOVE,
	VERB_MOVE_KEY,
	VERB_DELETE_KEY,
	VERB_RELEASE_JOB,
	VERB_BURY_JOB,
	VERB_PEEK_KEY,
	VERB_STATS_KEY,
	VERB_LIST_DELAYED,
	VERB_FORECAST,
	VERB_ADVANCE,
	VERBS
};

/* Why a command is answered without being carried out. */
enum refusal { REFUSAL_NONE, REFUSAL_BAD_FORMAT, REFUSAL_UNKNOWN, REFUSAL_CRLF, REFUSAL_TOO_BIG };

enum {
	PROTOCOL_LINE_MAX = 224,      /* bytes of a line of beanstalkd's verbs, with its end */
	PROTOCOL_OWN_LINE_MAX = 2048, /* of ours, whose keys and reasons are percent-encoded */
	PROTOCOL_LIST_MAX = 1000,     /* jobs of a page of list-delayed */
	PROTOCOL_FORECAST_MAX = 10080 /* spans of a forecast: the minutes of a week */
};

/* What our own verbs say beside; only there it is filled. */
struct command_own {
	unsigned char key[WW_JOB_KEY_MAX]; /* or the prefix of a list */
	size_t key_length;                 /* 0: none */
	char reason[WW_JOB_ERROR_MAX + 1];
	uint64_t version; /* 0: any */
	uint64_t every;
	uint64_t skip;
	uint64_t backoff;
	uint64_t backoff_max; /* 0: the default */
	uint32_t attempts;
	enum ww_missed missed;
	int at;        /* delay is a time of the wall clock (put-at), or of the job's own (move) */
	int has_tube;  /* "tube=" was given */
	uint64_t from; /* list-delayed */
	uint64_t to;
	uint64_t after;
	unsigned states;
	int with_body;
	uint64_t span; /* forecast */
};

/* Which members count is up to the verb. Times are in ns. */
struct command {
	enum verb verb;
	enum refusal refusal;
	uint32_t priority;
	uint64_t id;    /* list-delayed: the one job that is meant, or 0 */
	uint64_t delay; /* also a pause, a timeout, or how far to advance; WW_JOB_BACKOFF: "-" */
	uint64_t run;
	uint64_t bound;   /* of jobs to kick or list, of spans */
	const char *body; /* in the bytes given to protocol_next */
	size_t body_length;
	char tube[WW_TUBE_MAX + 1];
	struct command_own own;
};

struct protocol {
	size_t body_max;
	enum { PROTOCOL_AT_LINE, PROTOCOL_AT_LONG, PROTOCOL_AT_BODY, PROTOCOL_AT_SKIP } state;
	size_t scanned; /* bytes of the line in which there is no end */
	size_t line;    /* AT_BODY: bytes of the line before it */
	uint64_t skip;  /* AT_SKIP: bytes to throw away */
	enum verb verb; /* AT_SKIP: of the command that is refused after it; VERB_UNKNOWN: none is */
	size_t body;    /* AT_BODY: bytes of the body */
};

/* Begin; bodies over body_max bytes are JOB_TOO_BIG. */
void protocol_init(struct protocol *protocol, size_t body_max);

/*
 * Look for the next command in data[0 .. size-1], which begins where the last call's *used ended and has grown since,
 * or not. Return 1 and fill *command, or 0: more bytes are needed. Either way the first *used bytes have been dealt
 * with; the command's body lies in them.
 */
int protocol_next(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used);

/*
 * Return how many bytes the command that has begun takes, 0 if that is not known: what a buffer should have room for.
 */
size_t protocol_wants(const struct protocol *protocol);

#endif
