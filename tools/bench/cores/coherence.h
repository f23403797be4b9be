#ifndef TOOLS_BENCH_CORES_COHERENCE_H
#define TOOLS_BENCH_CORES_COHERENCE_H

/*
 * A model of the caches of processors that keep each other coherent, as MESI does. Each thread has a processor, and each
 * processor a cache without end: what is counted is communication alone, not what finds no room.
 *
 *     read                  write                       each line: who has it, and who alone may write it
 *     others have it:       others have it:
 *     1 transfer, all       1 transfer, the others
 *     have it now           lose it
 *
 * A line that nobody has comes from memory, which is no transfer. A write to a line that the processor has, and others
 * have, too, is a transfer: it waits until they have lost it.
 *
 * Threads: none of its own; the caller locks.
 */

#include <stddef.h>
#include <stdint.h>

enum { COHERENCE_LINE = 64, COHERENCE_THREADS = 448 };

struct coherence;

struct coherence_count {
	uint64_t transfers;
	uint64_t shared; /* lines that two threads have written since the count began */
};

/* Code that has caused transfers. */
struct coherence_cause {
	uintptr_t code;
	uint64_t transfers;
};

/* Ends the program if there is no memory. */
struct coherence *coherence_make(void);
void coherence_free(struct coherence *model);
/* Begin to count; caches stay as they are. */
void coherence_begin(struct coherence *model);
/* A thread, below COHERENCE_THREADS, reads or writes these bytes. `code` is where it does so. */
void coherence_access(
    struct coherence *model, unsigned thread, uintptr_t address, size_t bytes, int writes, uintptr_t code);
struct coherence_count coherence_counted(const struct coherence *model);
/* Store the causes of most transfers, the worst first; returns how many, at most `room`. */
size_t coherence_causes(const struct coherence *model, struct coherence_cause *causes, size_t room);

#endif
