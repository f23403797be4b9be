#ifndef TOOLS_WEEKWHEELD_ENGINE_TASK_H
#define TOOLS_WEEKWHEELD_ENGINE_TASK_H

/*
 * Tasks: questions to the store that the loop does not wait for. A store in this process answers in microseconds: there
 * a task runs where it is started. A store that is shared is asked by a pool of threads:
 *
 *     the loop     task_start ---> waiting              +--> done(): answer, go on
 *                                     |                 |
 *     a thread                        +---> run() ------+    calls jobs.h, knows nothing else of the server
 *
 * Tasks run side by side and end in any order. What has to follow another task is started by its done().
 *
 * A short task that is alone pays for no threads: the loop's own thread runs it between two turns. If Redis does not answer it
 * within a millisecond (`slow` of jobs_redis.h), that thread gives the loop to its deputy, and gets it back when the task
 * has run. So nobody waits for another's call for longer than that:
 *
 *     the loop's thread   turns | run() ... slow! ........ its end | turns
 *     its deputy                            | turns ............... |
 */

#include <pthread.h>
#include <signal.h>
#include <sys/queue.h>
#include <uv.h>

#include "tools/common/buffer.h"
#include "weekwheel/jobs.h"

struct server;
struct thread;

/* The first member of what run() and done() work on. */
struct task {
	struct server *server;
	/* In any thread: reads and writes only the task's own memory, and calls jobs.h. */
	void (*run)(struct task *task);
	/*
	 * In the loop, after run(), or without it when the server ends: what run() was to find is then as it was when the
	 * task was started. May free the task.
	 */
	void (*done)(struct task *task);
	int is_short;
	int is_heavy;
	int is_large;
	uint64_t begun; /* ns of uv_hrtime(): when a heavy one was started */
	uint64_t ran;   /* ns of CLOCK_BOOTTIME: when run() ended; 0: the store is not shared */
	STAILQ_ENTRY(task) next;
};

STAILQ_HEAD(task_list, task);

/* Cached answers of a shared store about all tubes. Only the task in verbs/stats.c uses them. */
struct heard {
	uint64_t tubes_at; /* ns of uv_hrtime(), when it was asked; 0: never */
	uint64_t stats_at;
	struct buffer tubes; /* names, each ended by NUL */
	struct ww_jobs_stats stats;
};

/* Of the loop: they wait for a turn with time. */
struct task_queue {
	struct task_list waiting;
	uint64_t turn; /* in which the last ones began, and the ns that they took */
	uint64_t spent;
};

struct tasks {
	pthread_mutex_t lock;
	struct task_list fresh;   /* of the loop: started in this turn */
	struct task_list waiting; /* in order of arrival */
	struct task_list ended;
	struct task_list heavy; /* of the loop: wait for the one that runs */
	int is_heavy;           /* one is under way */
	struct heard heard;     /* by those that follow one another */
	struct task_queue timed;
	struct task_queue large; /* they wait for buffers with room, too */
	unsigned large_begun;    /* and not done */
	unsigned waiting_count;
	struct thread *threads;
	unsigned thread_count;
	unsigned under_way; /* of the loop: started and not done */
	int is_stopping;
	uv_async_t async;
	uv_timer_t look; /* while tasks wait */

	pthread_t deputy;
	pthread_cond_t
	    handed;       /* the loop has changed hands, is asked back or has ended, or a task of its thread has run */
	sigset_t signals; /* that its own thread does not take */
	int has_deputy;
	int is_deputys; /* the deputy has the loop */
	int is_back;    /* its own thread wants it */
	int is_slow;    /* and its task has not run */
	int is_over;
	int is_alone;   /* its own thread runs a task */
	uint64_t rest;  /* until then, by uv_hrtime(), it runs none */
	uint64_t pause; /* ns, the last rest; 0: its last task was fast */
};

/* Make ready for tasks. Returns 0, or -1 after a message. */
int tasks_start(struct server *server);

/* Let run() be called in time, then done(). If the store is not shared, both have been called on return. */
void task_start(struct server *server, struct task *task);

/* The same for one that makes one call or two of the store, and computes little. */
void task_start_short(struct server *server, struct task *task);

/*
 * The same for one that asks the store about all that it has. They run one after the other: a store does little else
 * meanwhile. So run() may keep its answer for those that were begun before it asked.
 */
void task_start_heavy(struct server *server, struct task *task);

/* The same, and no turn of the loop has more of them than it has time for. So done() may be called later for any store. */
void task_start_timed(struct server *server, struct task *task);

/*
 * The same for one that may have a large answer: it waits until buffers have room for that, and no turn of the loop makes
 * more of them than it has time for, however many clients ask at once. So done() may be called later for any store.
 */
void task_start_large(struct server *server, struct task *task, int is_heavy);

/* In done(): whether this lease, which run() got, may be over, as the process was stopped in between. */
int task_outlasted(const struct task *task, const struct ww_lease *lease);

/* In each turn, when nothing waits for its write: start timed and large tasks that wait. */
void tasks_turn(struct server *server);

/* Go round the loop until it has nothing left. */
void tasks_loop(struct server *server);

/* Before the loop sleeps: it does not, if tasks were started. */
void tasks_prepare(struct server *server);

/* The store lets this thread wait: let others have the loop meanwhile. For `slow` of jobs_redis.h. */
void tasks_slow(void *server);

/*
 * Wait for the threads, each of which may be in a call of the store, and end all tasks. Those that wait do not run, nor
 * do those that are started afterwards.
 */
void tasks_stop(struct server *server);

#endif
