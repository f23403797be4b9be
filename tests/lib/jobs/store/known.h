#ifndef TESTS_LIB_JOBS_STORE_KNOWN_H
#define TESTS_LIB_JOBS_STORE_KNOWN_H

/* What a test of faults knows of its jobs: what was acknowledged, what has ended, and what may be either. */

#include <stddef.h>
#include <stdint.h>

enum { KNOWN_MOST = 400, KNOWN_BODY = 1500 };

enum fate { NEVER, ALIVE, ENDED, EITHER };

/* The number of a job is in its body. */
struct known {
	enum fate fate[KNOWN_MOST];
	uint64_t id[KNOWN_MOST];
	int jobs;
	int keyed; /* the job with the key */
};

extern struct known known;
extern int known_allowed[3]; /* errors, besides 0 */

/* A call has answered. Returns whether it did what it should; `also`: an answer that follows from an earlier error. */
int known_step(const char *call, int result, int also);
/* A call that should give a job that fate has answered; job < 0: none. */
void known_judge(int job, int result, enum fate fate);
/* The body of a job, until the next call, and the job of a body. */
const char *known_body_of(int job);
int known_number_in(const void *body, size_t size);

#endif
