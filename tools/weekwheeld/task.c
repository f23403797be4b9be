/* Runs questions to a shared store in a pool of threads, so that the loop goes on while Redis is asked. */
#include "tools/weekwheeld/task.h"

#include <signal.h>
#include <stdlib.h>

#include "tools/weekwheeld/server.h"

/*
 * More threads at once than CALLS_GOOD only get into each other's way. One that has waited for LONG_NS does not: it is in
 * a network, or at a node that is silent, while others have work for the rest. So others may begin in its place.
 */
enum { THREADS_MAX = 64, CALLS_GOOD = 6, LONG_NS = 2000000, LOOK_MS = 2 };

struct thread {
	struct tasks *tasks;
	pthread_t thread;
	pthread_cond_t wake;
	int is_idle;
	uint64_t begun; /* when it was woken or its call began; 0: it has none */
};

static struct task *take_first(struct task_list *list)
{
	struct task *task = STAILQ_FIRST(list);

	if (task)
		STAILQ_REMOVE_HEAD(list, next);
	return task;
}

/* Whether another task may begin. */
static int has_room(const struct tasks *tasks)
{
	uint64_t now = uv_hrtime();
	unsigned calls = 0;

	for (unsigned i = 0; i < tasks->thread_count; i++)
		calls += tasks->threads[i].begun && now - tasks->threads[i].begun < LONG_NS;
	return calls < CALLS_GOOD;
}

static void *work(void *context)
{
	struct thread *thread = context;
	struct tasks *tasks = thread->tasks;
	struct task *task;

	pthread_mutex_lock(&tasks->lock);
	while (!tasks->is_stopping) {
		thread->begun = 0;
		task = has_room(tasks) ? take_first(&tasks->waiting) : NULL;
		if (!task) {
			thread->is_idle = 1;
			while (thread->is_idle && !tasks->is_stopping)
				pthread_cond_wait(&thread->wake, &tasks->lock);
			continue;
		}
		tasks->waiting_count--;
		thread->begun = uv_hrtime();
		pthread_mutex_unlock(&tasks->lock);
		task->run(task);
		pthread_mutex_lock(&tasks->lock);
		/* The loop takes all that have ended at once, and is woken for the first. */
		if (STAILQ_EMPTY(&tasks->ended))
			uv_async_send(&tasks->async);
		STAILQ_INSERT_TAIL(&tasks->ended, task, next);
	}
	pthread_mutex_unlock(&tasks->lock);
	return NULL;
}

/* Signals are the loop's. */
static int thread_make(struct tasks *tasks)
{
	sigset_t all;
	sigset_t before;
	struct thread *thread = &tasks->threads[tasks->thread_count];
	int error;

	*thread = (struct thread){.tasks = tasks, .wake = PTHREAD_COND_INITIALIZER, .begun = uv_hrtime()};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread->thread, NULL, work, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	tasks->thread_count += error == 0;
	return error;
}

/* Wake a thread for a task that waits. It counts from now on. The first ones are taken first: the rest may sleep. */
static void wake_one(struct tasks *tasks)
{
	struct thread *thread = tasks->threads;
	struct thread *end = thread + tasks->thread_count;

	if (tasks->waiting_count == 0 || !has_room(tasks))
		return;
	while (thread < end && !thread->is_idle)
		thread++;
	if (thread < end) {
		thread->is_idle = 0;
		thread->begun = uv_hrtime();
		pthread_cond_signal(&thread->wake);
	} else if (tasks->thread_count < THREADS_MAX) {
		(void)thread_make(tasks);
	}
}

/* While tasks wait: threads that did not count may do by now, and others not any more. */
static void tasks_look(uv_timer_t *timer)
{
	struct tasks *tasks = timer->data;

	pthread_mutex_lock(&tasks->lock);
	if (tasks->waiting_count == 0)
		uv_timer_stop(timer);
	wake_one(tasks);
	pthread_mutex_unlock(&tasks->lock);
}

static void take_ended(struct tasks *tasks)
{
	struct task_list ended = STAILQ_HEAD_INITIALIZER(ended);
	struct task *task;

	pthread_mutex_lock(&tasks->lock);
	STAILQ_CONCAT(&ended, &tasks->ended);
	pthread_mutex_unlock(&tasks->lock);
	while ((task = take_first(&ended)) != NULL) {
		tasks->under_way--;
		task->done(task);
	}
}

static void tasks_ended(uv_async_t *async)
{
	take_ended(async->data);
}

int tasks_start(struct server *server)
{
	struct tasks *tasks = &server->tasks;
	int error;

	STAILQ_INIT(&tasks->waiting);
	STAILQ_INIT(&tasks->ended);
	if (!server->is_shared)
		return 0;
	tasks->threads = calloc(THREADS_MAX, sizeof *tasks->threads);
	if (!tasks->threads || pthread_mutex_init(&tasks->lock, NULL) != 0 ||
	    uv_async_init(&server->loop, &tasks->async, tasks_ended) != 0 ||
	    uv_timer_init(&server->loop, &tasks->look) != 0)
		return server_no_loop();
	tasks->async.data = tasks->look.data = tasks;
	/* With one thread every task ends, if not soon. */
	pthread_mutex_lock(&tasks->lock);
	error = thread_make(tasks);
	pthread_mutex_unlock(&tasks->lock);
	if (error)
		return message_error("no thread: the limit of processes (\"ulimit -u\") may be reached");
	return 0;
}

void task_start(struct server *server, struct task *task)
{
	struct tasks *tasks = &server->tasks;

	task->server = server;
	if (!server->is_shared) {
		task->run(task);
		task->done(task);
		return;
	}
	if (tasks->is_stopping) {
		task->done(task);
		return;
	}
	tasks->under_way++;
	pthread_mutex_lock(&tasks->lock);
	STAILQ_INSERT_TAIL(&tasks->waiting, task, next);
	tasks->waiting_count++;
	wake_one(tasks);
	pthread_mutex_unlock(&tasks->lock);
	if (!uv_is_active((uv_handle_t *)&tasks->look))
		uv_timer_start(&tasks->look, tasks_look, LOOK_MS, LOOK_MS);
}

void tasks_stop(struct server *server)
{
	struct tasks *tasks = &server->tasks;

	if (!tasks->threads)
		return;
	pthread_mutex_lock(&tasks->lock);
	tasks->is_stopping = 1;
	for (unsigned i = 0; i < tasks->thread_count; i++)
		pthread_cond_signal(&tasks->threads[i].wake);
	pthread_mutex_unlock(&tasks->lock);
	for (unsigned i = 0; i < tasks->thread_count; i++)
		pthread_join(tasks->threads[i].thread, NULL);
	free(tasks->threads);
	tasks->threads = NULL;
	STAILQ_CONCAT(&tasks->ended, &tasks->waiting);
	take_ended(tasks);
	pthread_mutex_destroy(&tasks->lock);
}
