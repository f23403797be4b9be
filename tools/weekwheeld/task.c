/* Runs questions to a shared store in a pool of threads, so that the loop goes on while Redis is asked. */
#include "tools/weekwheeld/task.h"

#include <signal.h>
#include <stdlib.h>

#include "tools/weekwheeld/server.h"

/* Some threads may wait for a node that is silent while others have work for the rest. They are made when needed. */
enum { THREADS_MAX = 64 };

static struct task *take_first(struct task_list *list)
{
	struct task *task = STAILQ_FIRST(list);

	if (task)
		STAILQ_REMOVE_HEAD(list, next);
	return task;
}

static void *work(void *context)
{
	struct tasks *tasks = context;
	struct task *task;

	pthread_mutex_lock(&tasks->lock);
	while (!tasks->is_stopping) {
		task = take_first(&tasks->waiting);
		if (!task) {
			tasks->idle++;
			pthread_cond_wait(&tasks->wake, &tasks->lock);
			tasks->idle--;
			continue;
		}
		tasks->waiting_count--;
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
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&tasks->threads[tasks->thread_count], NULL, work, tasks);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	tasks->thread_count += error == 0;
	return error;
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

	STAILQ_INIT(&tasks->waiting);
	STAILQ_INIT(&tasks->ended);
	if (!server->is_shared)
		return 0;
	tasks->threads = calloc(THREADS_MAX, sizeof *tasks->threads);
	if (!tasks->threads || pthread_mutex_init(&tasks->lock, NULL) != 0 ||
	    pthread_cond_init(&tasks->wake, NULL) != 0 || uv_async_init(&server->loop, &tasks->async, tasks_ended) != 0)
		return server_no_loop();
	tasks->async.data = tasks;
	/* With one thread every task ends, if not soon. */
	if (thread_make(tasks) != 0)
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
	if (tasks->waiting_count <= tasks->idle)
		pthread_cond_signal(&tasks->wake);
	else if (tasks->thread_count < THREADS_MAX)
		(void)thread_make(tasks);
	pthread_mutex_unlock(&tasks->lock);
}

void tasks_stop(struct server *server)
{
	struct tasks *tasks = &server->tasks;

	if (!tasks->threads)
		return;
	pthread_mutex_lock(&tasks->lock);
	tasks->is_stopping = 1;
	pthread_cond_broadcast(&tasks->wake);
	pthread_mutex_unlock(&tasks->lock);
	for (unsigned i = 0; i < tasks->thread_count; i++)
		pthread_join(tasks->threads[i], NULL);
	free(tasks->threads);
	tasks->threads = NULL;
	STAILQ_CONCAT(&tasks->ended, &tasks->waiting);
	take_ended(tasks);
	pthread_cond_destroy(&tasks->wake);
	pthread_mutex_destroy(&tasks->lock);
}
