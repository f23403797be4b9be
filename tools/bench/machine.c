/* The machine that measures. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "bench/machine.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

int machine_pin(unsigned cpu)
{
	cpu_set_t set;

	if (cpu >= CPU_SETSIZE)
		return EINVAL;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof set, &set) ? errno : 0;
}

/* What /proc/cpuinfo calls the processor, or "unknown processor". */
static void processor_name(char *name, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(name, size, "unknown processor");
	if (!file)
		return;
	while (fgets(line, sizeof line, file)) {
		const char *value = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && value && value[1]) {
			snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
			break;
		}
	}
	fclose(file);
}

/* The size of a cache in KiB, 0 where the system does not say. */
static long cache_kib(int which)
{
	long bytes = sysconf(which);

	return bytes > 0 ? bytes / 1024 : 0;
}

void machine_describe(char *text, size_t size)
{
	struct utsname system;
	char processor[128];
	long l2 = 0, l3 = 0;

	processor_name(processor, sizeof processor);
#ifdef _SC_LEVEL2_CACHE_SIZE
	l2 = cache_kib(_SC_LEVEL2_CACHE_SIZE);
	l3 = cache_kib(_SC_LEVEL3_CACHE_SIZE);
#endif
	if (uname(&system))
		snprintf(system.sysname, sizeof system.sysname, "unknown system");
	snprintf(text, size, "%s, %ld processors, L2 %ld KiB, L3 %ld KiB, %s %s, %s " __VERSION__, processor,
	    sysconf(_SC_NPROCESSORS_ONLN), l2, l3, system.sysname, system.machine,
#ifdef __clang__
	    ""
#else
	    "gcc"
#endif
	);
}
