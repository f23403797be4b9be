/* What the compiler calls at each access (-fsanitize=thread), and wrappers of what it does not see into. */
#include "tools/bench/cores/recorder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HERE ((uintptr_t)__builtin_return_address(0))

static struct coherence *_Atomic recorded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned threads;
static _Thread_local unsigned here; /* the thread's number + 1; 0: it has none yet */
static _Thread_local int inside;    /* the model itself copies memory */

/* The linker's names of the real ones. */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __real_pthread_cond_clockwait(
    pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until);
int __real_pthread_cond_signal(pthread_cond_t *condition);
int __real_pthread_cond_broadcast(pthread_cond_t *condition);
void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int byte, size_t size);
int __real_memcmp(const void *one, const void *other, size_t size);

static unsigned number_of_thread(void)
{
	if (!here)
		here = ++threads;
	if (here > COHERENCE_THREADS) {
		fputs("bench-cores: too many threads\n", stderr);
		abort();
	}
	return here - 1;
}

static void enter(void)
{
	__real_pthread_mutex_lock(&lock);
	inside = 1;
}

static void leave(void)
{
	inside = 0;
	__real_pthread_mutex_unlock(&lock);
}

static void record(const volatile void *address, size_t bytes, int writes, uintptr_t code)
{
	if (!recorded || inside)
		return;
	enter();
	if (recorded)
		coherence_access(recorded, number_of_thread(), (uintptr_t)address, bytes, writes, code);
	leave();
}

void recorder_record(struct coherence *model)
{
	enter();
	recorded = model;
	leave();
}

void recorder_begin(void)
{
	enter();
	coherence_begin(recorded);
	leave();
}

struct coherence_count recorder_counted(void)
{
	enter();
	struct coherence_count count = coherence_counted(recorded);
	leave();
	return count;
}

/* ---- Plain accesses */

#define PLAIN(name, size, writes)                                                                                      \
	void __tsan_##name##size(void *address);                                                                       \
	void __tsan_##name##size(void *address)                                                                        \
	{                                                                                                              \
		record(address, size, writes, HERE);                                                                   \
	}
#define PLAINS(name, writes)                                                                                           \
	PLAIN(name, 1, writes)                                                                                         \
	PLAIN(name, 2, writes) PLAIN(name, 4, writes) PLAIN(name, 8, writes) PLAIN(name, 16, writes)

PLAINS(read, 0)
PLAINS(write, 1)
PLAINS(unaligned_read, 0)
PLAINS(unaligned_write, 1)
PLAINS(volatile_read, 0)
PLAINS(volatile_write, 1)

#define RANGE(name, writes)                                                                                            \
	void __tsan_##name##_range(void *address, size_t bytes);                                                       \
	void __tsan_##name##_range(void *address, size_t bytes)                                                        \
	{                                                                                                              \
		record(address, bytes, writes, HERE);                                                                  \
	}
RANGE(read, 0)
RANGE(write, 1)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* ---- Atomic accesses, all of them in the strictest order */

#define CHANGE(type, bits, name)                                                                                       \
	type __tsan_atomic##bits##_fetch_##name(volatile type *address, type value, int order);                        \
	type __tsan_atomic##bits##_fetch_##name(volatile type *address, type value, int order)                         \
	{                                                                                                              \
		(void)order;                                                                                           \
		record(address, sizeof *address, 1, HERE);                                                             \
		return __atomic_fetch_##name(address, value, __ATOMIC_SEQ_CST);                                        \
	}
#define EXCHANGE(type, bits, kind)                                                                                     \
	int __tsan_atomic##bits##_compare_exchange_##kind(                                                             \
	    volatile type *address, type *expected, type value, int order, int failed);                                \
	int __tsan_atomic##bits##_compare_exchange_##kind(                                                             \
	    volatile type *address, type *expected, type value, int order, int failed)                                 \
	{                                                                                                              \
		(void)order, (void)failed;                                                                             \
		record(address, sizeof *address, 1, HERE);                                                             \
		return __atomic_compare_exchange_n(address, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
	}
#define ATOMIC(type, bits)                                                                                             \
	type __tsan_atomic##bits##_load(const volatile type *address, int order);                                      \
	type __tsan_atomic##bits##_load(const volatile type *address, int order)                                       \
	{                                                                                                              \
		(void)order;                                                                                           \
		record(address, sizeof *address, 0, HERE);                                                             \
		return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                                     \
	}                                                                                                              \
	void __tsan_atomic##bits##_store(volatile type *address, type value, int order);                               \
	void __tsan_atomic##bits##_store(volatile type *address, type value, int order)                                \
	{                                                                                                              \
		(void)order;                                                                                           \
		record(address, sizeof *address, 1, HERE);                                                             \
		__atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                    \
	}                                                                                                              \
	type __tsan_atomic##bits##_exchange(volatile type *address, type value, int order);                            \
	type __tsan_atomic##bits##_exchange(volatile type *address, type value, int order)                             \
	{                                                                                                              \
		(void)order;                                                                                           \
		record(address, sizeof *address, 1, HERE);                                                             \
		return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);                                          \
	}                                                                                                              \
	CHANGE(type, bits, add)                                                                                        \
	CHANGE(type, bits, sub)                                                                                        \
	CHANGE(type, bits, and) CHANGE(type, bits, or) EXCHANGE(type, bits, strong) EXCHANGE(type, bits, weak)

ATOMIC(uint8_t, 8)
ATOMIC(uint16_t, 16)
ATOMIC(uint32_t, 32)
ATOMIC(uint64_t, 64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- Mutexes and conditions */

#define WRAP(type, name, parameters, arguments, object, writes)                                                        \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		record(object, sizeof *object, writes, HERE);                                                          \
		return __real_##name arguments;                                                                        \
	}
WRAP(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), mutex, 1)
WRAP(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex), mutex, 1)
WRAP(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), mutex, 1)
WRAP(int, pthread_cond_signal, (pthread_cond_t * condition), (condition), condition, 1)
WRAP(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition), condition, 1)
WRAP(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex), condition, 1)
WRAP(int, pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
    (condition, mutex, until), condition, 1)
WRAP(int, pthread_cond_clockwait,
    (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
    (condition, mutex, clock, until), condition, 1)

/* ---- Memory */

void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	record(from, size, 0, HERE);
	record(to, size, 1, HERE);
	return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size)
{
	record(from, size, 0, HERE);
	record(to, size, 1, HERE);
	return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int byte, size_t size);
void *__wrap_memset(void *to, int byte, size_t size)
{
	record(to, size, 1, HERE);
	return __real_memset(to, byte, size);
}

int __wrap_memcmp(const void *one, const void *other, size_t size);
int __wrap_memcmp(const void *one, const void *other, size_t size)
{
	record(one, size, 0, HERE);
	record(other, size, 0, HERE);
	return __real_memcmp(one, other, size);
}
