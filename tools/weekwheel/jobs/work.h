#ifndef TOOLS_WEEKWHEEL_JOBS_WORK_H
#define TOOLS_WEEKWHEEL_JOBS_WORK_H

/*
 * weekwheel work: a worker that runs a command for each job.
 *
 * It has a *slot* for each job that it may run at once, and a slot has a connection of its own: while one waits for a
 * job, the server answers nothing else on its connection, and a lease belongs to the connection that took it. All slots
 * turn in one loop around poll(); nothing in it waits for anything else, but for a connection to be made.
 *
 *     LOST --connected--> WAITING --job--> LOOKING --its stats--> RUNNING --command ended--> ENDING --told--> WAITING
 *
 * Whenever a connection breaks the slot is LOST, and the server gives its job to another worker; a command that runs
 * goes on to its end, though nobody can be told. A slot that is to do no more is DONE.
 */

#include <sys/types.h>

#include "tools/weekwheel/jobs/jobs.h"

enum { WORK_SLOTS_MAX = 256, WORK_ERROR_MAX = 255 };

struct work {
	struct jobs jobs;
	char **command; /* with its arguments, ended by NULL */
	uint64_t slots;
	uint64_t attempts; /* 0: no limit */
	uint64_t release_delay;
	int has_release_delay;
	int drain, verbose;
	int own;       /* the server has verbs of its own */
	int stopping;  /* signals that asked for that */
	int lost_told; /* that the server is away, since it was there last */
	uint64_t seed;
	uint64_t ended, failed; /* jobs */
};

enum slot_state { SLOT_LOST, SLOT_WAITING, SLOT_LOOKING, SLOT_RUNNING, SLOT_ENDING, SLOT_DONE };

struct slot {
	enum slot_state state;
	struct client client;
	int64_t retry_at, retry_ms;
	int64_t answer_by; /* when the server has to have answered; 0: it may wait for a job as long as it likes */
	/* The job. */
	uint64_t id, priority, attempt, limit, run;
	int has_backoff;
	char tube[JOBS_TUBE_MAX + 1], key[JOBS_KEY_MAX + 1];
	int body; /* a file that is read from its beginning; -1: none */
	int64_t began, touch_at;
	int touching;   /* its answer is still to come */
	int lease_lost; /* its time was over */
	/* The command. */
	pid_t pid; /* 0: none */
	int status;
	int output; /* what it writes to standard error; -1: closed */
	char line[1024];
	size_t line_size;
	char last[WORK_ERROR_MAX + 1]; /* line */
	const char *told;              /* what the server was told, for messages */
	char again[64];                /* when a released job is due again */
	char error[WORK_ERROR_MAX + 1];
};

/* Read the command line: 0, 1 after a help, or -1 after a message. */
int work_parse(struct work *work, char **arguments);
void work_help(FILE *out);

/* Copy what is at hand of the body to a file without a name. Returns its descriptor, or -1 after a message. */
int work_body_file(const struct reply *reply);

/* Run the command for the slot's job. Return 0, or -1 after a message. */
int work_start(const struct work *work, struct slot *slot);

/* Pass on what the command has written to standard error, and keep the last line. Closes slot->output at its end. */
void work_read_output(struct slot *slot);

/* Return 1 if the command has ended, and fill slot->status. */
int work_reap(struct slot *slot, int flags);

/* Describe the command's end in slot->error. */
void work_describe(struct slot *slot);

/* Let a slot begin, and let it go on with what has arrived. */
void slot_connect(struct work *work, struct slot *slot);
void slot_receive(struct work *work, struct slot *slot);

/* Do what is due: touch, report the command's end, connect again, stop. */
void slot_turn(struct work *work, struct slot *slot);

/* When slot_turn has something to do without anything arriving; INT64_MAX: never. */
int64_t slot_next(const struct slot *slot);

/* End the command at once and give the job back. */
void slot_abandon(struct work *work, struct slot *slot);

#endif
