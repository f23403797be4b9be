#ifndef TESTS_SUPPORT_SYSTEM_FAIL_H
#define TESTS_SUPPORT_SYSTEM_FAIL_H

/* The policy that makes calls fail by a plan: the program's own, or that in the file which FAULTS names. */

#include <stdatomic.h>

#include "tests/support/system/system.h"

/* A write may be short anywhere. Python reads their names here. */
enum fault_split {
	FAULT_HALF_PART = 0, /* half of the first part */
	FAULT_HALF = 1,      /* half of all parts together */
	FAULT_LAST = 2,      /* all but the last byte */
	FAULT_AT = 3         /* as many bytes as the plan says, if there are more */
};

/* tests/support/faults.py writes it, too. */
struct fault_plan {
	atomic_uint which;  /* enum call: which calls are counted; 0: none */
	atomic_uint first;  /* the first that fails, counted from 1; 0: none */
	atomic_uint times;  /* how many fail */
	atomic_uint error;  /* their errno; 0: a part is written, without an error */
	atomic_uint done;   /* how many of the writes that fail do their work all the same */
	atomic_uint quick;  /* syncs are not made: for tests that do not ask what a power failure leaves */
	atomic_uint split;  /* enum fault_split: which part a short write writes */
	atomic_uint at[2];  /* FAULT_AT: how many bytes the first one writes, and each after it */
	atomic_uint calls;  /* counted */
	atomic_uint failed; /* so far */
	char file[64];      /* only calls on files whose path has this */
};

extern struct fault_plan fault_plan;

/* Begin to count, from 1. Short writes are split as the plan says; disarming leaves that. With file NULL calls on any file count. */
void fault_arm(unsigned which, const char *file, unsigned first, unsigned times, int error);
void fault_disarm(void);
/* An allocation is asked for. Returns whether it fails. */
int fault_memory(void);

#endif
