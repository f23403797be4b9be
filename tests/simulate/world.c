/* Chance, time, events and tasks. The tasks play the threads of the server: its calls of pthread_* end here. */
#include "tests/simulate/world.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "lib/base/random.h"

enum { TASKS = 16, STACK = 1 << 19 };

struct event {
	uint64_t time;
	uint64_t order;
	world_fn *fn;
	void *context;
	uint64_t number;
};

enum state { FREE, RUNS, WAITS, ENDED };

struct task {
	ucontext_t context;
	enum state state;
	const void *at; /* WAITS: for this to be woken */
	uint64_t until;
	int woken;
	void *stack;
	void *(*run)(void *);
	void *argument;
	void *result;
	void *locals; /* its thread-local variables while another one runs */
	int error;    /* and errno */
};

struct world world;
unsigned world_bads;

static struct event *events;
static size_t event_count, event_room;
static uint64_t order;
static uint64_t chance;
static uint64_t died; /* when the ghost did */
static struct task tasks[TASKS];
static int current;

/* ---- Chance */

uint64_t world_random(void)
{
	return random_next(&chance);
}

uint64_t world_below(uint64_t below)
{
	return random_below(&chance, below);
}

uint64_t world_between(uint64_t least, uint64_t most)
{
	return least + world_below(most - least + 1);
}

int world_chance(unsigned often)
{
	return world_below(1000) < often;
}

/* ---- What happens */

static void add(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < size; i++)
		world.hash = (world.hash ^ at[i]) * UINT64_C(0x100000001b3);
}

static void print_time(void)
{
	uint64_t s = world.now / SIM_S;

	printf("%2" PRIu64 "d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64 " %c%d ", s / 86400, s / 3600 % 24,
	    s / 60 % 60, s % 60, world.now % SIM_S / 1000, world.is_ghost ? '~' : ' ', current);
}

void world_trace(const char *what, uint64_t a, uint64_t b)
{
	uint64_t numbers[] = {world.now, a, b};

	add(what, strlen(what));
	add(numbers, sizeof numbers);
	world.events++;
	if (!world.verbose)
		return;
	print_time();
	printf("%s %" PRIu64 " %" PRIu64 "\n", what, a, b);
}

void world_trace_bytes(const char *what, uint64_t a, const void *bytes, size_t size)
{
	const char *text = bytes;
	uint64_t number = a;

	add(what, strlen(what));
	add(&world.now, sizeof world.now);
	add(&number, sizeof number);
	add(bytes, size);
	world.events++;
	if (!world.verbose)
		return;
	print_time();
	printf("%s %" PRIu64 " ", what, a);
	for (size_t i = 0; i < size && i < 100; i++)
		putchar(text[i] == '\n' ? '|' : text[i] < ' ' || text[i] > '~' ? '.' : text[i]);
	printf("%s\n", size > 100 ? "..." : "");
}

static void say(const char *before, const char *format, va_list arguments)
{
	char text[600];
	int size = vsnprintf(text, sizeof text, format, arguments);

	add(text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
	if (!world.verbose && !*before)
		return;
	print_time();
	printf("%s%s\n", before, text);
}

void world_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("", format, arguments);
	va_end(arguments);
}

void world_bad(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (world_bads++ < 10)
		say("BAD: ", format, arguments);
	va_end(arguments);
}

/* ---- Events: a heap */

static int is_before(const struct event *a, const struct event *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

void world_at(uint64_t time, world_fn *fn, void *context, uint64_t number)
{
	struct event event = {time > world.now ? time : world.now, order++, fn, context, number};
	size_t at = event_count++;

	if (at == event_room) {
		event_room = event_room ? 2 * event_room : 256;
		events = realloc(events, event_room * sizeof *events);
	}
	for (; at && is_before(&event, &events[(at - 1) / 2]); at = (at - 1) / 2)
		events[at] = events[(at - 1) / 2];
	events[at] = event;
}

static struct event take_event(void)
{
	struct event first = events[0], last = events[--event_count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < event_count) {
		child += child + 1 < event_count && is_before(&events[child + 1], &events[child]);
		if (!is_before(&events[child], &last))
			break;
		events[at] = events[child];
		at = child;
	}
	events[at] = last;
	return first;
}

static uint64_t next_event(void)
{
	return event_count && !world.is_ghost ? events[0].time : SIM_NEVER;
}

void world_events(void)
{
	while (next_event() <= world.now) {
		struct event event = take_event();
		event.fn(event.context, event.number);
	}
}

/* ---- Tasks */

int world_task(void)
{
	return current;
}

static uint64_t next_task(void)
{
	uint64_t next = SIM_NEVER;

	for (int i = 0; i < TASKS; i++)
		if (tasks[i].state == WAITS && tasks[i].until < next)
			next = tasks[i].until;
	return next;
}

static void wake_due(void)
{
	for (int i = 0; i < TASKS; i++)
		if (tasks[i].state == WAITS && tasks[i].until <= world.now) {
			tasks[i].state = RUNS;
			world.wakes += i != 0 && tasks[i].at;
		}
}

/* One of those that can run, by chance, or -1. */
static int choose(void)
{
	int can[TASKS], count = 0;

	for (int i = 0; i < TASKS; i++)
		if (tasks[i].state == RUNS)
			can[count++] = i;
	return count == 0 ? -1 : can[count == 1 ? 0 : world_below((uint64_t)count)];
}

/* ---- Thread-local variables of the program, as the one thread of the system has them */

static struct {
	void *at;
	size_t size;
	void *fresh; /* as a thread begins */
} locals;

static int find_locals(struct dl_phdr_info *object, size_t size, void *context)
{
	(void)size;
	(void)context;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_TLS) {
			locals.at = object->dlpi_tls_data;
			locals.size = object->dlpi_phdr[i].p_memsz;
		}
	/* The program is the first. */
	return 1;
}

static void begin_locals(void)
{
	if (locals.fresh)
		return;
	(void)dl_iterate_phdr(find_locals, NULL);
	locals.fresh = malloc(locals.size + 1);
	if (locals.size)
		memcpy(locals.fresh, locals.at, locals.size);
}

void world_new_process(void)
{
	if (locals.size)
		memcpy(locals.at, locals.fresh, locals.size);
}

static void switch_task(struct task *from, struct task *to)
{
	if (!from->locals)
		from->locals = malloc(locals.size + 1);
	from->error = errno;
	if (locals.size) {
		memcpy(from->locals, locals.at, locals.size);
		memcpy(locals.at, to->locals ? to->locals : locals.fresh, locals.size);
	}
	errno = to->error;
	swapcontext(&from->context, &to->context);
}

/* Go on with a task that can run. */
static void schedule(void)
{
	int chosen, before = current;

	while ((chosen = choose()) < 0) {
		uint64_t event = next_event(), task = next_task();
		uint64_t next = event < task ? event : task;
		if (next == SIM_NEVER) {
			world_bad("all threads of the server wait for each other");
			exit(1);
		}
		world.now = next > world.now ? next : world.now;
		world_events();
		wake_due();
	}
	if (chosen == before)
		return;
	current = chosen;
	switch_task(&tasks[before], &tasks[chosen]);
}

int world_wait(const void *at, uint64_t until)
{
	struct task *task = &tasks[current];

	task->state = WAITS;
	task->at = at;
	task->until = until;
	task->woken = 0;
	schedule();
	return task->woken;
}

void world_wake(const void *at)
{
	for (int i = 0; i < TASKS; i++)
		if (tasks[i].state == WAITS && tasks[i].at == at) {
			tasks[i].state = RUNS;
			tasks[i].woken = 1;
		}
}

void world_sleep(uint64_t ns)
{
	uint64_t until = world.now + ns;

	/* Mostly nothing happens in between. */
	if (next_event() > until && next_task() > until) {
		world.now = until;
		return;
	}
	while (world.now < until)
		(void)world_wait(NULL, until);
}

void world_yield(void)
{
	int others = 0;

	for (int i = 0; i < TASKS; i++)
		others += i != current && tasks[i].state == RUNS;
	if (others && world_chance(100))
		schedule();
}

void world_ghost_begin(void)
{
	world.is_ghost = 1;
	died = world.now;
}

void world_ghost_end(void)
{
	world.is_ghost = 0;
	world.now = died;
}

void world_begin(uint64_t seed, int verbose)
{
	world = (struct world){.seed = seed, .hash = UINT64_C(0xcbf29ce484222325), .verbose = verbose};
	chance = seed;
	order = 0;
	event_count = 0;
	tasks[0].state = RUNS;
	begin_locals();
}

void world_end(void)
{
	free(events);
	events = NULL;
	event_count = event_room = 0;
	for (int i = 1; i < TASKS; i++) {
		free(tasks[i].stack);
		free(tasks[i].locals);
		tasks[i] = (struct task){.state = FREE};
	}
}

/* ---- Threads. In one of the system's, a mutex is a number: who has it, plus one. */

static void start(void)
{
	struct task *task = &tasks[current];

	task->result = task->run(task->argument);
	task->state = ENDED;
	world_wake(task);
	schedule();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	int i = 1;

	(void)attributes;
	while (i < TASKS && tasks[i].state != FREE)
		i++;
	if (i == TASKS)
		return EAGAIN;
	if (!tasks[i].stack)
		tasks[i].stack = malloc(STACK);
	getcontext(&tasks[i].context);
	tasks[i].context.uc_stack.ss_sp = tasks[i].stack;
	tasks[i].context.uc_stack.ss_size = STACK;
	tasks[i].context.uc_link = NULL;
	tasks[i].run = run;
	tasks[i].argument = argument;
	free(tasks[i].locals);
	tasks[i].locals = NULL;
	makecontext(&tasks[i].context, start, 0);
	tasks[i].state = RUNS;
	*thread = (pthread_t)i;
	return 0;
}

int pthread_join(pthread_t thread, void **result)
{
	struct task *task = &tasks[(int)thread];

	while (task->state != ENDED)
		(void)world_wait(task, SIM_NEVER);
	if (result)
		*result = task->result;
	task->state = FREE;
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int me = current + 1;

	while (mutex->__data.__lock && mutex->__data.__lock != me)
		(void)world_wait(mutex, SIM_NEVER);
	mutex->__data.__lock = me;
	mutex->__data.__count++;
	return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int is_recursive = (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE;

	if (mutex->__data.__lock && (mutex->__data.__lock != current + 1 || !is_recursive))
		return EBUSY;
	return pthread_mutex_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (--mutex->__data.__count)
		return 0;
	mutex->__data.__lock = 0;
	world_wake(mutex);
	world_yield();
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

static int wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
	int woken;

	mutex->__data.__lock = 0;
	mutex->__data.__count = 0;
	world_wake(mutex);
	woken = world_wait(cond, until);
	(void)pthread_mutex_lock(mutex);
	return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return wait_for(cond, mutex, SIM_NEVER);
}

/* All that wait for a time use the monotonic clock. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	struct timespec now;
	int64_t left;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	left = (int64_t)(until->tv_sec - now.tv_sec) * (int64_t)SIM_S + until->tv_nsec - now.tv_nsec;
	return left <= 0 ? ETIMEDOUT : wait_for(cond, mutex, world.now + (uint64_t)left);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	world_wake(cond);
	return 0;
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	return pthread_cond_broadcast(cond);
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
	(void)cond;
	return 0;
}

pthread_t pthread_self(void)
{
	return (pthread_t)current;
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
	return 0;
}
