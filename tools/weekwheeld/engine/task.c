/* Runs questions to a shared store in a pool of threads, so that the loop goes on while Redis is asked. */
#include "tools/weekwheeld/engine/task.h"

#include <signal.h>
#include <stdlib.h>

#include "lib/base/time.h"
#include "tools/service/state/handles.h"
#include "tools/weekwheeld/engine/server.h"

/*
 * More than CALLS_GOOD running calls slow each other down. A call older than LONG_NS is waiting for the network, or
 * for a silent node, and does not count: another may begin in its place.
 */
enum { THREADS_MAX = 64, CALLS_GOOD = 6, LONG_NS = 2000000, LOOK_MS = 2 };
/* What tasks that wait for time take of a turn. */
#define TURN_NS UINT64_C(2000000)
/* After a slow task the loop's thread leaves tasks to others for a while: the first time, and at most. */
#define REST UINT64_C(5000000)
#define REST_MAX UINT64_C(1000000000)

/* A lease that has waited this long for the loop may be over. */
#define STOPPED_NS UINT64_C(100000000)

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

static void run_task(struct task *task)
{
	task->run(task);
	task->ran = time_now(CLOCK_BOOTTIME);
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
		run_task(task);
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
static int begin_thread(pthread_t *thread, void *(*run)(void *context), void *context)
{
	sigset_t all;
	sigset_t before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static int thread_make(struct tasks *tasks)
{
	struct thread *thread = &tasks->threads[tasks->thread_count];
	int error;

	*thread = (struct thread){.tasks = tasks, .wake = PTHREAD_COND_INITIALIZER, .begun = uv_hrtime()};
	error = begin_thread(&thread->thread, work, thread);
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

/* A heavy task has run. */
static void next_heavy(struct server *server)
{
	struct tasks *tasks = &server->tasks;
	struct task *task = take_first(&tasks->heavy);

	tasks->is_heavy = task != NULL;
	if (task) {
		STAILQ_INSERT_TAIL(&tasks->fresh, task, next);
	} else {
		server->tasks.heard.tubes_at = 0;
		buffer_free(&server->tasks.heard.tubes);
	}
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
		if (task->is_large)
			tasks->large_begun--;
		if (task->is_heavy)
			next_heavy(task->server);
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

	STAILQ_INIT(&tasks->fresh);
	STAILQ_INIT(&tasks->waiting);
	STAILQ_INIT(&tasks->ended);
	STAILQ_INIT(&tasks->heavy);
	STAILQ_INIT(&tasks->timed.waiting);
	STAILQ_INIT(&tasks->large.waiting);
	if (!server->is_shared)
		return 0;
	tasks->threads = calloc(THREADS_MAX, sizeof *tasks->threads);
	if (!tasks->threads || pthread_mutex_init(&tasks->lock, NULL) != 0 ||
	    uv_async_init(&server->loop, &tasks->async, tasks_ended) != 0 ||
	    uv_timer_init(&server->loop, &tasks->look) != 0)
		return handles_not_made();
	tasks->async.data = tasks->look.data = tasks;
	/* With one thread every task ends, if not soon. */
	pthread_mutex_lock(&tasks->lock);
	error = thread_make(tasks);
	pthread_mutex_unlock(&tasks->lock);
	if (error)
		return message_error("no thread: the limit of processes (\"ulimit -u\") may be reached");
	return 0;
}

static void start(struct server *server, struct task *task, int is_short, int is_heavy, int is_large)
{
	struct tasks *tasks = &server->tasks;

	task->server = server;
	task->is_short = is_short;
	task->is_heavy = is_heavy;
	task->is_large = is_large;
	task->begun = is_heavy ? uv_hrtime() : 0;
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
	if (task->is_heavy && tasks->is_heavy) {
		STAILQ_INSERT_TAIL(&tasks->heavy, task, next);
		return;
	}
	tasks->is_heavy |= task->is_heavy;
	STAILQ_INSERT_TAIL(&tasks->fresh, task, next);
}

void task_start(struct server *server, struct task *task)
{
	start(server, task, 0, 0, 0);
}

void task_start_short(struct server *server, struct task *task)
{
	start(server, task, 1, 0, 0);
}

void task_start_heavy(struct server *server, struct task *task)
{
	start(server, task, 0, 1, 0);
}

static int has_time(const struct server *server, struct task_queue *queue)
{
	if (queue->turn != server->turn.number)
		queue->spent = 0;
	queue->turn = server->turn.number;
	return queue->spent < TURN_NS;
}

static void timed_begin(struct server *server, struct task *task)
{
	uint64_t since = uv_hrtime();

	start(server, task, 0, 1, 0);
	server->tasks.timed.spent += uv_hrtime() - since;
}

static void queue_add(struct server *server, struct task_queue *queue, struct task *task)
{
	STAILQ_INSERT_TAIL(&queue->waiting, task, next);
	loop_again(server);
}

void task_start_timed(struct server *server, struct task *task)
{
	struct task_queue *timed = &server->tasks.timed;

	/* A shared store takes none of the loop's time. */
	if (server->is_shared || (STAILQ_EMPTY(&timed->waiting) && has_time(server, timed)))
		timed_begin(server, task);
	else
		queue_add(server, timed, task);
}

static int large_may_begin(struct server *server)
{
	struct tasks *tasks = &server->tasks;

	return has_time(server, &tasks->large) && bounds_answer(server, tasks->large_begun);
}

static void large_begin(struct server *server, struct task *task)
{
	struct tasks *tasks = &server->tasks;
	uint64_t since = uv_hrtime();

	tasks->large_begun++;
	start(server, task, 0, task->is_heavy, 1);
	if (!server->is_shared)
		tasks->large_begun--;
	tasks->large.spent += uv_hrtime() - since;
}

int task_outlasted(const struct task *task, const struct ww_lease *lease)
{
	uint64_t since = time_now(CLOCK_BOOTTIME) - task->ran;

	return task->ran && since >= STOPPED_NS && lease->ends <= store_now(task->server) + since;
}

void task_start_large(struct server *server, struct task *task, int is_heavy)
{
	task->is_heavy = is_heavy;
	if (STAILQ_EMPTY(&server->tasks.large.waiting) && large_may_begin(server))
		large_begin(server, task);
	else
		queue_add(server, &server->tasks.large, task);
}

void tasks_turn(struct server *server)
{
	struct task_queue *timed = &server->tasks.timed;
	struct task_queue *large = &server->tasks.large;

	while (!STAILQ_EMPTY(&timed->waiting) && has_time(server, timed))
		timed_begin(server, take_first(&timed->waiting));
	while (!STAILQ_EMPTY(&large->waiting) && large_may_begin(server))
		large_begin(server, take_first(&large->waiting));
	/* For lack of room, a turn comes when a client has read or has gone. */
	if (!STAILQ_EMPTY(&timed->waiting) || (!STAILQ_EMPTY(&large->waiting) && !has_time(server, large)))
		loop_again(server);
}

void tasks_prepare(struct server *server)
{
	if (!STAILQ_EMPTY(&server->tasks.fresh))
		loop_again(server);
}

/* Let the pool run what was started. */
static void send_fresh(struct tasks *tasks)
{
	struct task *task;

	if (STAILQ_EMPTY(&tasks->fresh))
		return;
	pthread_mutex_lock(&tasks->lock);
	while ((task = take_first(&tasks->fresh)) != NULL) {
		STAILQ_INSERT_TAIL(&tasks->waiting, task, next);
		tasks->waiting_count++;
		wake_one(tasks);
	}
	pthread_mutex_unlock(&tasks->lock);
	if (!uv_is_active((uv_handle_t *)&tasks->look))
		uv_timer_start(&tasks->look, tasks_look, LOOK_MS, LOOK_MS);
}

/* ---- The loop's thread and its deputy */

/* Signals are for the thread that has the loop: those that the server had at its start. */
static void leave_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void take_signals(const struct tasks *tasks)
{
	pthread_sigmask(SIG_SETMASK, &tasks->signals, NULL);
}

static void deputy_turns(struct server *server)
{
	struct tasks *tasks = &server->tasks;
	int is_left = 1;

	take_signals(tasks);
	while (is_left) {
		send_fresh(tasks);
		is_left = uv_run(&server->loop, UV_RUN_ONCE) != 0;
		pthread_mutex_lock(&tasks->lock);
		if (!is_left)
			tasks->is_over = 1;
		else
			is_left = !tasks->is_back;
		pthread_mutex_unlock(&tasks->lock);
	}
	leave_signals();
}

static void *deputy(void *context)
{
	struct server *server = context;
	struct tasks *tasks = &server->tasks;

	pthread_mutex_lock(&tasks->lock);
	while (!tasks->is_over) {
		if (!tasks->is_deputys) {
			pthread_cond_wait(&tasks->handed, &tasks->lock);
			continue;
		}
		pthread_mutex_unlock(&tasks->lock);
		deputy_turns(server);
		pthread_mutex_lock(&tasks->lock);
		tasks->is_deputys = 0;
		pthread_cond_broadcast(&tasks->handed);
	}
	pthread_mutex_unlock(&tasks->lock);
	return NULL;
}

void tasks_slow(void *context)
{
	struct server *server = context;
	struct tasks *tasks = &server->tasks;

	/* Set and read by the loop's thread alone. */
	if (!pthread_equal(pthread_self(), server->thread) || !tasks->has_deputy || tasks->is_slow || !tasks->is_alone)
		return;
	leave_signals();
	pthread_mutex_lock(&tasks->lock);
	tasks->is_slow = tasks->is_deputys = 1;
	pthread_cond_broadcast(&tasks->handed);
	pthread_mutex_unlock(&tasks->lock);
}

/* The slow task has run: the thread that has the loop answers it, and then gives the loop back to this one. */
static void take_back(struct tasks *tasks, struct task *task)
{
	pthread_mutex_lock(&tasks->lock);
	tasks->is_slow = 0;
	STAILQ_INSERT_TAIL(&tasks->ended, task, next);
	tasks->is_back = 1;
	pthread_cond_broadcast(&tasks->handed);
	if (tasks->is_deputys && !tasks->is_stopping)
		uv_async_send(&tasks->async);
	while (tasks->is_deputys)
		pthread_cond_wait(&tasks->handed, &tasks->lock);
	tasks->is_back = 0;
	pthread_mutex_unlock(&tasks->lock);
	take_signals(tasks);
	tasks->pause = tasks->pause ? 2 * tasks->pause : REST;
	if (tasks->pause > REST_MAX)
		tasks->pause = REST_MAX;
	tasks->rest = uv_hrtime() + tasks->pause;
	if (!tasks->is_over)
		take_ended(tasks);
}

/* If one short task was started and nothing else is under way, run it here. */
static int run_alone(struct tasks *tasks)
{
	struct task *task = STAILQ_FIRST(&tasks->fresh);

	if (!task || tasks->under_way > 1 || !task->is_short || !tasks->has_deputy || uv_hrtime() < tasks->rest)
		return 0;
	STAILQ_REMOVE_HEAD(&tasks->fresh, next);
	tasks->is_alone = 1;
	run_task(task);
	tasks->is_alone = 0;
	if (tasks->is_slow) {
		take_back(tasks, task);
		return 1;
	}
	tasks->pause = 0;
	tasks->under_way--;
	task->done(task);
	return 1;
}

void tasks_loop(struct server *server)
{
	struct tasks *tasks = &server->tasks;

	pthread_sigmask(SIG_SETMASK, NULL, &tasks->signals);
	if (server->is_shared)
		tasks->has_deputy =
		    pthread_cond_init(&tasks->handed, NULL) == 0 && begin_thread(&tasks->deputy, deputy, server) == 0;
	while (!tasks->is_over && uv_run(&server->loop, STAILQ_EMPTY(&tasks->fresh) ? UV_RUN_ONCE : UV_RUN_NOWAIT) != 0)
		if (!run_alone(tasks))
			send_fresh(tasks);
	if (!tasks->has_deputy)
		return;
	pthread_mutex_lock(&tasks->lock);
	tasks->is_over = 1;
	pthread_cond_broadcast(&tasks->handed);
	pthread_mutex_unlock(&tasks->lock);
	pthread_join(tasks->deputy, NULL);
	pthread_cond_destroy(&tasks->handed);
	pthread_mutex_destroy(&tasks->lock);
}

void tasks_stop(struct server *server)
{
	struct tasks *tasks = &server->tasks;
	struct task *task;

	while ((task = take_first(&tasks->timed.waiting)) != NULL)
		task->done(task);
	while ((task = take_first(&tasks->large.waiting)) != NULL)
		task->done(task);
	if (!tasks->threads)
		return;
	pthread_mutex_lock(&tasks->lock);
	tasks->is_stopping = 1;
	for (unsigned i = 0; i < tasks->thread_count; i++)
		pthread_cond_signal(&tasks->threads[i].wake);
	/* The deputy may be here. */
	while (tasks->is_slow)
		pthread_cond_wait(&tasks->handed, &tasks->lock);
	pthread_mutex_unlock(&tasks->lock);
	for (unsigned i = 0; i < tasks->thread_count; i++)
		pthread_join(tasks->threads[i].thread, NULL);
	free(tasks->threads);
	tasks->threads = NULL;
	STAILQ_CONCAT(&tasks->ended, &tasks->waiting);
	STAILQ_CONCAT(&tasks->ended, &tasks->fresh);
	STAILQ_CONCAT(&tasks->ended, &tasks->heavy);
	take_ended(tasks);
	if (!tasks->has_deputy)
		pthread_mutex_destroy(&tasks->lock);
}
