/*
 * Stands in front of the C library (LD_PRELOAD) and makes a redis-server's clock wrong, by the number of us that the
 * file named by SHIFT contains: 8 bytes, shared with the test. The elapsed time is left alone.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("SHIFT");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *page;

	if (fd < 0)
		return;
	page = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		shift = page;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now;
	int64_t us;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	us = now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000 + (shift ? *shift : 0);
	time->tv_sec = us / 1000000;
	time->tv_usec = us % 1000000;
	return 0;
}
