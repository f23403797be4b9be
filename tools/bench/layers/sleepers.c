/* W: how often the processors change threads while many threads sleep. */
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include "tools/bench/layers.h"
#include "weekwheel/weekwheel.h"

enum { SLEEP_S = 4 };

static void *sleep_by_driver(void *driver)
{
	layer_check(ww_sleep(driver, SLEEP_S * WW_SECOND), "sleep");
	return NULL;
}

static void *sleep_by_kernel(void *nothing)
{
	struct timespec left = {SLEEP_S, 0};

	while (nanosleep(&left, &left))
		continue;
	return nothing;
}

/* Of all threads of the process. */
static long count_switches(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static struct layer_sample count_of(void *(*sleeper)(void *), void *argument)
{
	pthread_t thread[LAYER_SLEEPERS];
	long before = count_switches();

	for (int i = 0; i < LAYER_SLEEPERS; i++)
		layer_check(pthread_create(&thread[i], NULL, sleeper, argument) ? WW_ESYSTEM : 0, "a thread");
	for (int i = 0; i < LAYER_SLEEPERS; i++)
		(void)pthread_join(thread[i], NULL);
	return (struct layer_sample){(double)(count_switches() - before), 0};
}

struct layer_sample layer_ww_sleep(uint64_t n, uint64_t seed)
{
	struct layer_sample sample;
	struct ww_driver *driver;

	(void)n, (void)seed;
	layer_check(ww_driver_create(&driver, NULL), "the driver");
	sample = count_of(sleep_by_driver, driver);
	layer_check(ww_driver_destroy(driver), "the driver");
	return sample;
}

struct layer_sample layer_nanosleep(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return count_of(sleep_by_kernel, NULL);
}
