/*
 * Stands in front of the C library (LD_PRELOAD): the wall clock is SHIFT seconds later, or as many as the file SHIFT_FILE
 * says just then. With a virtual clock, whose time begins with the process, a program then sees what it sees after the
 * machine was down for so long.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
	const char *name = getenv("SHIFT_FILE");
	const char *fixed = getenv("SHIFT");
	int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	char text[32] = "";

	if (file < 0)
		return fixed ? atol(fixed) : 0;
	(void)!read(file, text, sizeof text - 1);
	(void)close(file);
	return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (clock == CLOCK_REALTIME)
		time->tv_sec += shift();
	return result;
}
