#ifndef TOOLS_WEEKWHEELD_PROTOCOL_PROTOCOL_H
#define TOOLS_WEEKWHEELD_PROTOCOL_PROTOCOL_H

/*
 * The parser: bytes in, commands out, of beanstalkd 1.12's protocol and our own verbs. It is pure: it keeps no bytes,
 * allocates nothing, knows no connection, and finds the same commands wherever the bytes are split.
 *
 *                           a line               a put's line            its body
 *     LINE ---------------------------> command        LINE -----> BODY ----------> command
 *      |  too long            end of it
 *      +------------> LONG ---------------> command     a refused body: SKIP, before or after the command
 *
 * If nobody knows how long the body of a refused put is, the command is the last one: END. What follows may be a
 * body, and must not be taken for commands.
 *
 * A web page can make a browser send any body to any port, and its lines would be commands. What begins as HTTP or TLS
 * does is therefore refused as foreign, before the line has ended, and is the last one as well.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/weekwheeld/protocol/words.h"
#include "weekwheel/jobs.h"

/* Up to VERB_PAUSE_TUBE in the order in which "stats" counts them. */
enum verb {
	VERB_UNKNOWN,
	VERB_PUT,
	VERB_PEEK,
	VERB_PEEK_READY,
	VERB_PEEK_DELAYED,
	VERB_PEEK_BURIED,
	VERB_RESERVE,
	VERB_RESERVE_TIMEOUT,
	VERB_DELETE,
	VERB_RELEASE,
	VERB_USE,
	VERB_WATCH,
	VERB_IGNORE,
	VERB_BURY,
	VERB_KICK,
	VERB_TOUCH,
	VERB_STATS,
	VERB_STATS_JOB,
	VERB_STATS_TUBE,
	VERB_LIST_TUBES,
	VERB_LIST_TUBE_USED,
	VERB_LIST_TUBES_WATCHED,
	VERB_PAUSE_TUBE,
	VERB_RESERVE_JOB, /* this one and the next two are not counted there */
	VERB_KICK_JOB,
	VERB_QUIT,
	VERB_OWN, /* from here on they are ours */
	VERB_PUT_KEY = VERB_OWN,
	VERB_PUT_AT,
	VERB_MOVE,
	VERB_MOVE_KEY,
	VERB_DELETE_KEY,
	VERB_RELEASE_JOB,
	VERB_BURY_JOB,
	VERB_DELETE_JOB,
	VERB_PEEK_KEY,
	VERB_STATS_KEY,
	VERB_LIST_DELAYED,
	VERB_FORECAST,
	VERB_ADVANCE,
	VERB_AUTH,
	VERB_LIMIT_TUBE,
	VERB_LIST_LIMITS,
	VERB_PUT_SCHEDULE,
	VERB_DELETE_SCHEDULE,
	VERB_PAUSE_SCHEDULE,
	VERB_RESUME_SCHEDULE,
	VERB_RUN_SCHEDULE,
	VERB_LIST_SCHEDULES,
	VERB_REPORT,
	VERB_HISTORY,
	VERB_HEADERS,
	VERB_CODE,
	VERBS
};

/* Why a command is refused. */
enum refusal {
	REFUSAL_NONE,
	REFUSAL_BAD_FORMAT,
	REFUSAL_UNKNOWN,
	REFUSAL_CRLF,
	REFUSAL_TOO_BIG,
	REFUSAL_MEMORY,
	REFUSAL_DENIED, /* the server's word: the client may not do this */
	REFUSAL_FOREIGN /* another protocol, HTTP or TLS: what follows is not parsed */
};

enum {
	PROTOCOL_LINE_MAX = 224,      /* bytes of a line with one of beanstalkd's verbs, including its end */
	PROTOCOL_OWN_LINE_MAX = 2048, /* the same for ours, whose keys and reasons are percent-encoded */
	PROTOCOL_CRON_MAX = 255,      /* bytes of an expression and of a zone */
	PROTOCOL_LIST_MAX = 1000,     /* jobs in a page of list-delayed */
	PROTOCOL_FORECAST_MAX = 10080 /* spans of a forecast: the minutes of a week */
};

/* What only our own verbs say. It is valid for them alone. */
struct command_own {
	unsigned char key[WW_JOB_KEY_MAX]; /* list-delayed: the prefix */
	size_t key_length;                 /* 0: none */
	char reason[WW_JOB_ERROR_MAX + 1];
	struct ww_job_spec job; /* what options say of a job; 0: not given. Its key and its group are here */
	uint64_t spread;        /* of a put; that of a schedule is the command's `delay` */
	int at;                 /* delay is a time: of the wall clock (put-at), or of the job's clock (move) */
	int has_tube;           /* "tube=" was given */
	uint64_t from;          /* list-delayed */
	uint64_t to;
	uint64_t after;
	unsigned states;
	int with_body;
	uint64_t span;                    /* forecast */
	char cron[PROTOCOL_CRON_MAX + 1]; /* put-schedule */
	char zone[PROTOCOL_CRON_MAX + 1];
	uint64_t start, end;
	int overlap; /* allow, skip, wait */
	int is_paused;
	unsigned char group[WW_JOB_GROUP_MAX];
	size_t group_length;   /* 0: none */
	int each;              /* limit-tube: of each group */
	struct ww_limit limit; /* limit-tube; 0: not given */
	struct span secret;    /* auth: points into the bytes given to protocol_next */
};

/* The verb decides which members are valid. Times are in ns. */
struct command {
	enum verb verb;
	enum refusal refusal;
	int is_last;    /* nothing that follows is parsed: the connection is of no more use */
	unsigned guard; /* the server's: the rights that the client needs in the tube of the job, or 0 */
	uint32_t priority;
	uint64_t id;    /* list-delayed: the only job to list, or 0 */
	uint64_t delay; /* also a pause, a timeout, or how far to advance; WW_JOB_BACKOFF: "-" */
	uint64_t run;
	uint64_t bound; /* the most jobs to kick or list; the number of spans */
	const char *
	    body; /* points into the bytes given to protocol_next; the job's headers and then its follow-up in JSON, if it has them, come first */
	size_t body_length;
	char tube[WW_TUBE_MAX + 1];
	struct command_own own;
};

struct protocol {
	size_t body_max;
	enum { PROTOCOL_AT_LINE, PROTOCOL_AT_LONG, PROTOCOL_AT_BODY, PROTOCOL_AT_SKIP, PROTOCOL_AT_END } state;
	size_t scanned; /* bytes already searched for the line's end */
	size_t line;    /* the length of the last line; AT_BODY: of the one before the body */
	uint64_t skip;  /* AT_SKIP: how many bytes to throw away */
	enum verb verb; /* AT_SKIP: the verb to refuse afterwards; VERB_UNKNOWN: none. AT_LONG: that of the line */
	enum refusal refusal;
	size_t body; /* AT_BODY: the length of the body */
};

/* Begin. A body of more than body_max bytes is refused as too big; headers do not count, unless that is 0. */
void protocol_init(struct protocol *protocol, size_t body_max);

/*
 * Look for the next command in data[0 .. size-1]. The data begin where the last call's *used ended; more bytes may have
 * been added since. Return 1 and fill *command, or return 0 if more bytes are needed. Either way the first *used bytes
 * are dealt with. The command's body lies among them.
 */
int protocol_next(struct protocol *protocol, struct command *command, const char *data, size_t size, size_t *used);

/* Return how many of the used bytes a command without a body has: they may be given to protocol_next again, later. */
size_t protocol_line_size(const struct protocol *protocol);

/* Return 1 if the answer to a verb may be large, or take long to make, and nothing is changed. */
int protocol_is_look(enum verb verb);

/* Return how many bytes the command that has begun takes, so that a buffer can make room; 0 if that is not known. */
size_t protocol_wants(const struct protocol *protocol);

/*
 * There is no memory for the body that is coming: the `size` bytes that began with its line are dropped, the others are
 * thrown away as they come, and then its command is refused. Returns 0 if no body is coming.
 */
int protocol_drop(struct protocol *protocol, size_t size);

/* Return 1 if a verb's line is followed by a body. */
int protocol_has_body(enum verb verb);

/* ---- line.c: one line, without its end */

enum line {
	LINE_COMMAND,      /* a command, or a refusal of one */
	LINE_BODY,         /* a command whose body, of command->body_length bytes, follows */
	LINE_REFUSED_BODY, /* a refusal, and a body of command->body_length bytes follows all the same */
	LINE_LAST          /* a refusal, and a body of unknown length may follow */
};

/* Fill *command with what the line says. */
enum line protocol_line_read(struct command *command, struct span line);

/* Return the verb of a line, or of its beginning. */
enum verb protocol_line_verb(struct span line);

/* Return the name of a verb, as in "cmd-put", which may end in a space; NULL for VERB_UNKNOWN. */
const char *protocol_verb_name(enum verb verb);

#endif
