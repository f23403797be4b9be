#ifndef TOOLS_WEEKWHEEL_JOBS_WORK_H
#define TOOLS_WEEKWHEEL_JOBS_WORK_H

/*
 * weekwheel work: a worker that runs a command for each job.
 *
 * It has a *runner* for each job that it may run at once. Each runner has its own connection: while a connection waits
 * for a job the server answers nothing else on it, and a lease belongs to the connection that reserved the job. One
 * loop around poll() serves all runners. Nothing in it blocks, except for making a connection.
 *
 *     LOST --connected--> WAITING --job--> LOOKING --its stats--> RUNNING --command ended--> ENDING --answer--> WAITING
 *
 * When a connection breaks, its runner is LOST and the server gives the job to another worker. The command runs on to
 * its end, but nobody can be told the result. A runner that takes no more jobs is DONE. With --drain, one that got no
 * job is HELD while a limit holds some, and asks again.
 */

#include <sys/types.h>

#include "tools/weekwheel/jobs/jobs.h"

enum { WORK_RUNNERS_MAX = 256, WORK_ERROR_MAX = 255, WORK_TUBES_MAX = 64, WORK_TAIL = 2048 };

/* The pauses before connections, which double; and how long the server is asked to wait for a job. */
enum { WORK_RETRY_FIRST_MS = 1000, WORK_RETRY_MAX_MS = 30000, WORK_WAIT_S = 30 };

struct work_tube {
	char name[WW_TUBE_MAX + 1];
	uint64_t weight;
};

struct work {
	struct jobs jobs;
	char **command; /* with its arguments, ended by NULL */
	struct work_tube tubes[WORK_TUBES_MAX];
	size_t tube_count; /* 0: default */
	int has_weights;
	int has_kill_after;
	uint64_t run_timeout, kill_after; /* ns; 0: a command may run as long as it likes */
	int log;                          /* all that commands write goes to standard error, line by line */
	uint64_t runners;
	uint64_t attempts; /* 0: no limit */
	uint64_t code;     /* has_code: of jobs that its command can do */
	int has_code;
	uint64_t release_delay;
	int has_release_delay;
	int drain, no_wait, verbose;
	int history;       /* each run is reported before it ends */
	char name[100];    /* of this worker: its host and process */
	int own;           /* the server knows weekwheeld's own verbs */
	int stopping;      /* how many signals asked to stop */
	int refused;       /* the server does not let it take jobs */
	int lost_reported; /* how often a lost connection was reported since the last good one */
	/* When the next connection may be tried, which blocks; so runners try one after the other. In ms. */
	int64_t retry_at, retry_ms;
	uint64_t seed;
	uint64_t ended, failed; /* jobs */
};

enum runner_state {
	RUNNER_LOST,
	RUNNER_WAITING,
	RUNNER_LOOKING,
	RUNNER_RUNNING,
	RUNNER_ENDING,
	RUNNER_HELD,
	RUNNER_DONE
};

struct runner {
	enum runner_state state;
	struct client client;
	int64_t answer_by; /* when the answer is overdue; 0: none is expected */
	/* The tubes, by their places in struct work; see work_tubes.c. */
	unsigned char watches[WORK_TUBES_MAX], order[WORK_TUBES_MAX];
	size_t tried;
	int64_t waits_ms; /* that the server takes at most to answer the reserve */
	unsigned skips;   /* this many answers to watch and ignore come before that to the reserve */
	/* While it is HELD: how many tubes have not answered yet, what the others hold, and when to ask again. */
	size_t looks;
	uint64_t held;
	int64_t again_at, again_ms;
	/* The job. */
	uint64_t id, priority, attempt, limit, run;
	uint64_t backoff; /* ns; 0: none */
	char tube[WW_TUBE_MAX + 1], key[WW_JOB_KEY_MAX + 1], headers[WW_JOB_HEADERS_MAX];
	size_t headers_length;
	int body; /* a file, open at its beginning; -1: none */
	int64_t began, touch_at;
	int touching;    /* the answer to a touch is still missing */
	int64_t kill_at; /* when the command gets the next signal; 0: never */
	int late;        /* it was signalled, since it ran too long */
	int lease_lost;  /* its time to run expired */
	/* The command. */
	pid_t pid; /* 0: none */
	int status;
	int output; /* the pipe from its standard error; -1: closed */
	int logs;   /* lines are passed on with the job's id */
	char line[1024];
	size_t line_size;
	char last[WORK_ERROR_MAX + 1]; /* the last line with text */
	int reported;                  /* the answer to its report is missing */
	char tail[WORK_TAIL + 1];      /* of what it wrote, from tail_at on if that is full */
	size_t tail_size;
	const char *outcome; /* how the job ended, as reported to the server */
	char again[100];     /* when a released job is due again */
	char error[WORK_ERROR_MAX + 1];
};

/* Return the pause before the next connection, by the one before the last; 0: that was none. In ms. */
int64_t work_pause(int64_t before);

/* Take a --tube. Return 0, or OPTIONS_ERROR after a message. */
int work_take_tube(struct work *work, const struct options *options);

/* Watch the tubes on a new connection, ask for headers, and say the code. Return 0, or -1 after a message. */
int work_watch(struct work *work, struct runner *runner);

/* Queue the command that reserves the next job. Return how many ms the server waits for one. */
int64_t work_ask(struct work *work, struct runner *runner);

/* Queue what asks for the numbers of each tube. Return of how many. */
size_t work_look(struct work *work, struct runner *runner);

/* Copy the body at hand to a file without a name. Returns its descriptor, or -1 after a message. */
int work_body_file(const struct reply *reply);

/* Run the command for the runner's job. Return 0, or -1 after a message. */
int work_start(const struct work *work, struct runner *runner);

/* Pass on what the command has written to standard error, and keep the last line. Closes runner->output at its end. */
void work_read_output(struct runner *runner);

/* Return 1 and fill runner->status if the command has ended. */
int work_reap(struct runner *runner, int flags);

/*
 * Wait for children that have ended and are no runner's: those of the shell that this program replaced, and of all
 * processes if it is the first one of a container.
 */
void work_reap_others(const struct work *work, const struct runner *runners);

/* Describe in runner->error how the command ended. */
void work_describe(struct runner *runner);

/* Read and handle the answers that have arrived. */
void runner_receive(struct work *work, struct runner *runner);

/* Do what is due: touch the job, report the end of its command, connect again, or stop. */
void runner_turn(struct work *work, struct runner *runner);

/* Return when runner_turn has something to do even if nothing arrives; INT64_MAX: never. */
int64_t runner_next(const struct work *work, const struct runner *runner);

/* Kill the command and give the job back. */
void runner_abandon(struct work *work, struct runner *runner);

#endif
