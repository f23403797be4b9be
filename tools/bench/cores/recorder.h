#ifndef TOOLS_BENCH_CORES_RECORDER_H
#define TOOLS_BENCH_CORES_RECORDER_H

/*
 * Shows a model of caches what each thread reads and writes. The library is compiled for ThreadSanitizer, and calls its
 * functions at each access. recorder.c defines those functions in place of its own. Mutexes, conditions and functions
 * that copy memory are linked to wrappers there.
 *
 * What a thread does between the library's calls, and what the C library and the kernel do inside of theirs, is not
 * seen. A mutex is one that nobody waits for.
 */

#include "tools/bench/cores/coherence.h"

/* From now on all accesses of all threads are given to the model; NULL: they are not. */
void recorder_record(struct coherence *model);
/* Begin a count, and read it, while threads may run. */
void recorder_begin(void);
struct coherence_count recorder_counted(void);

#endif
