/*
 * Preloaded: when a thread is about to tell libuv's loop of something, and the file that WW_STOP names is there, the whole
 * process stops, as by a signal from outside. Its monotonic clock stands still meanwhile, as that of a suspended machine.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

static _Atomic uint64_t stood; /* ns */

static uint64_t elapsed(void)
{
	struct timespec now;

	(void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Takes the place of the C library's function. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)) {
		uint64_t ns = (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec - stood;
		time->tv_sec = (time_t)(ns / 1000000000);
		time->tv_nsec = (long)(ns % 1000000000);
	}
	return result;
}

int uv_async_send(uv_async_t *async)
{
	const char *file = getenv("WW_STOP");
	int (*send)(uv_async_t * async);

	*(void **)&send = dlsym(RTLD_NEXT, "uv_async_send");
	if (file && unlink(file) == 0) {
		uint64_t since = elapsed();
		(void)raise(SIGSTOP);
		stood += elapsed() - since;
	}
	return send(async);
}
