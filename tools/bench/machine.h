#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stddef.h>

/* Keep this process on one processor; return 0, or the errno that says why not. */
int machine_pin(unsigned cpu);

/* Describe processor, caches, system and compiler in text[0 .. size-1]. */
void machine_describe(char *text, size_t size);

#endif
