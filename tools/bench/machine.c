/* Describes the machine that measures. */
#include "tools/bench/machine.h"

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

/* What __VERSION__ leaves out. */
#ifdef __clang__
#define COMPILER ""
#else
#define COMPILER "gcc "
#endif

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

/* Read the first number in the file folder/index<i>/name; return 1 if there is one. */
static int cache_read(const char *folder, int i, const char *name, unsigned long *number)
{
	char path[256];
	FILE *file;
	int got;

	snprintf(path, sizeof path, "%s/index%d/%s", folder, i, name);
	file = fopen(path, "r");
	if (!file)
		return 0;
	got = fscanf(file, "%lu", number) == 1;
	fclose(file);
	return got;
}

unsigned long machine_cache_kib(const char *folder, unsigned level)
{
	unsigned long found, kib;

	for (int i = 0; cache_read(folder, i, "level", &found); i++)
		if (found == level && cache_read(folder, i, "size", &kib))
			return kib;
	return 0;
}

/* In KiB, 0 if unknown. sysconf may return the sum of all caches of a socket, and is asked last. */
static unsigned long cache_kib(unsigned level, int otherwise)
{
	char folder[64];
	int cpu = sched_getcpu();
	unsigned long kib;
	long bytes;

	snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d/cache", cpu < 0 ? 0 : cpu);
	kib = machine_cache_kib(folder, level);
	if (kib > 0)
		return kib;
	bytes = sysconf(otherwise);
	return bytes > 0 ? (unsigned long)bytes / 1024 : 0;
}

void machine_describe(char *text, size_t size)
{
	struct utsname system;
	char processor[128];
	unsigned long l2 = 0, l3 = 0;

	processor_name(processor, sizeof processor);
#ifdef _SC_LEVEL2_CACHE_SIZE
	l2 = cache_kib(2, _SC_LEVEL2_CACHE_SIZE);
	l3 = cache_kib(3, _SC_LEVEL3_CACHE_SIZE);
#endif
	if (uname(&system))
		snprintf(system.sysname, sizeof system.sysname, "unknown system");
	snprintf(text, size, "%s, %ld processors, L2 %lu KiB, L3 %lu KiB, %s %s, %s" __VERSION__, processor,
	    sysconf(_SC_NPROCESSORS_ONLN), l2, l3, system.sysname, system.machine, COMPILER);
}
