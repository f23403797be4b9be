#ifndef TOOLS_WEEKWHEELD_CLIENTS_CALL_H
#define TOOLS_WEEKWHEELD_CLIENTS_CALL_H

/* How a command is carried out: call.c takes it through its steps, which the server has for each verb. */

#include "tools/weekwheeld/clients/clients.h"

/* The most commands that go to a shared store in one task. */
enum { CALLS_MAX = 64 };

/*
 * A command on its way. A store in this process is asked in place, and the call uses the parser's command. For a shared
 * store the call is a copy that goes to a thread (task.h), alone or with others of its kind that the client sent along.
 */
struct call {
	struct task task; /* of the first call of a list */
	struct connection *connection;
	const struct command *command;
	STAILQ_ENTRY(call) following; /* in connection.calls */
	size_t size;                  /* of the copied body */
	size_t takes;                 /* bytes of memory */

	const char *text;        /* the answer, if no step needs to make it */
	int is_asking;           /* run() is to be called */
	int result;              /* of the store */
	int is_known;            /* a client uses or watches the command's tube */
	const char *used;        /* the connection's tube */
	struct ww_job_ref job;   /* that the command names */
	const struct token *who; /* whose rights in the job's tube run() needs */
	struct tokens *tokens;   /* which `who` is one of, while a task may look */
	uint64_t token;          /* of the connection's own lease; 0: it has none */
	uint64_t created;        /* of the job as that lease delivered it */
	int is_late;             /* a delete, whose lease is past */
	int ended;               /* what the store said to the end of that lease */
	uint64_t number;         /* an id, a version, a count, the end of a lease */
	uint64_t version;        /* of the job with a put's key */
	void *body;              /* of a job */
	struct buffer made;      /* lists of jobs, names of tubes */
	union {
		struct ww_job_spec spec;
		struct ww_job_info info;
		struct ww_lease lease;
		struct ww_tube_stats tube;
		struct ww_jobs_stats stats;
	};
	struct command copy; /* without its last member if the verb is not ours; the body follows */
};

/* The steps of a verb. Those that are NULL are left out. */
struct steps {
	/*
	 * In the loop: take from the connection what run() needs. Returns 1 if the store has to be called; otherwise
	 * the text or the result is known, or the command has been answered.
	 */
	int (*prepare)(struct call *call);
	/* Ask the store. In any thread if the store is shared: uses the call and jobs.h alone. */
	void (*run)(struct call *call);
	/* In the loop. The connection may be closed. */
	void (*answer)(struct call *call);
	/* The same for a call and those that follow it, which the client has sent along. */
	void (*run_all)(struct call *first);
};

/* ---- call.c */

/* Carry out a command, or refuse it, and answer. If the store is shared, it begins and is answered later. */
void command_run(struct connection *connection, const struct command *command);

/* Return 1 if what the client sent next can go to the store together with the calls that wait for call_start. */
int call_joins(const struct connection *connection, const char *data, size_t size);

/* Let the connection's calls go to the store, if it has any. */
void call_start(struct connection *connection);

/* Before run() changes the store: make sure that a write is under way. A shared store needs none. Returns a WW_E*. */
int call_begin(struct call *call);

/* The store of a call. */
#define call_jobs(call) ((call)->connection->server->jobs)

#endif
