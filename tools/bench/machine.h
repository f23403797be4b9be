#ifndef TOOLS_BENCH_MACHINE_H
#define TOOLS_BENCH_MACHINE_H

/* Pins the process to a processor and describes the machine. */

#include <stddef.h>

/* Keep this process on one processor; return 0, or the errno that says why not. */
int machine_pin(unsigned cpu);

/* Describe processor, caches, system and compiler in text[0 .. size-1]. */
void machine_describe(char *text, size_t size);

/*
 * Return the size in KiB of the cache of a level, 2 or 3, or 0 if it is unknown. The folder is like
 * /sys/devices/system/cpu/cpu0/cache and has index<i>/level and index<i>/size, "32768K".
 */
unsigned long machine_cache_kib(const char *folder, unsigned level);

#endif
