#ifndef TOOLS_WEEKWHEELD_TASK_H
#define TOOLS_WEEKWHEELD_TASK_H

/*
 * Tasks: questions to the store that the loop does not wait for. A store in this process answers in microseconds: there
 * a task runs where it is started. A store that is shared is asked by a pool of threads:
 *
 *     the loop     task_start ---> waiting              +--> done(): answer, go on
 *                                     |                 |
 *     a thread                        +---> run() ------+    calls jobs.h, knows nothing else of the server
 *
 * Tasks run side by side and end in any order. What has to follow another task is started by its done().
 */

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

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
	STAILQ_ENTRY(task) next;
};

STAILQ_HEAD(task_list, task);

struct tasks {
	pthread_mutex_t lock;
	struct task_list waiting; /* in order of arrival */
	struct task_list ended;
	unsigned waiting_count;
	struct thread *threads;
	unsigned thread_count;
	unsigned under_way; /* of the loop: started and not done */
	int is_stopping;
	uv_async_t async;
	uv_timer_t look; /* while tasks wait */
};

/* Make ready for tasks. Returns 0, or -1 after a message. */
int tasks_start(struct server *server);

/* Let run() be called in time, then done(). If the store is not shared, both have been called on return. */
void task_start(struct server *server, struct task *task);

/*
 * Wait for the threads, each of which may be in a call of the store, and end all tasks. Those that wait do not run, nor
 * do those that are started afterwards.
 */
void tasks_stop(struct server *server);

#endif
