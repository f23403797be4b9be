#ifndef TESTS_LIB_JOURNAL_FAULTS_H
#define TESTS_LIB_JOURNAL_FAULTS_H

/*
 * Calls of the C library on files, which fail when told to. They stand in front of the C library's own, for the store
 * and for SQLite alike.
 */

#include <stdatomic.h>

enum fault_call {
	FAULT_OPEN = 1, /* that may make a file; also mkdir */
	FAULT_WRITE = 2,
	FAULT_SYNC = 4,
	FAULT_SIZE = 8, /* fallocate, ftruncate */
	FAULT_UNLINK = 16,
	FAULT_RENAME = 32,
	FAULT_READ = 64,
	FAULT_LOOK = 128,   /* open of what is there, opendir, statvfs, mmap */
	FAULT_MEMORY = 256, /* what a test counts as such, by fault_memory */
	FAULT_KINDS = 9
};

struct fault_plan {
	atomic_uint which;  /* enum fault_call: which calls are counted; 0: none */
	const char *file;   /* only calls on files whose path has this; NULL: any */
	atomic_uint first;  /* the first that fails, counted from 1; 0: none */
	atomic_uint times;  /* how many fail */
	atomic_int error;   /* their errno; 0: half is written, without an error */
	atomic_uint calls;  /* counted */
	atomic_uint failed; /* so far */
	atomic_int quick;   /* syncs are not made: for tests that do not ask what a power failure leaves */
};

extern struct fault_plan fault_plan;

/* Begin to count, from 1. */
void fault_arm(unsigned which, const char *file, unsigned first, unsigned times, int error);
void fault_disarm(void);
/* An allocation is asked for. Returns whether it fails. */
int fault_memory(void);

#endif
