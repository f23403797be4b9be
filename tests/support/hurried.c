/*
 * Stands in front of the C library (LD_PRELOAD): a program's monotonic clock runs a hundred times as fast, and poll waits by it.
 * Waits that users would not notice then take no time in a test.
 */
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HURRY = 100 };

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static struct timespec first;
	int result = (int)syscall(SYS_clock_gettime, clock, time);
	long long ns;

	if (result != 0 || clock != CLOCK_MONOTONIC)
		return result;
	if (!first.tv_sec)
		first = *time;
	ns = ((time->tv_sec - first.tv_sec) * 1000000000LL + time->tv_nsec - first.tv_nsec) * HURRY;
	time->tv_sec = (time_t)(first.tv_sec + ns / 1000000000);
	time->tv_nsec = (long)(ns % 1000000000);
	return result;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return (int)syscall(SYS_poll, fds, count, timeout > 0 ? (timeout + HURRY - 1) / HURRY : timeout);
}
