#ifndef TESTS_LIB_JOBS_LIMITS_H
#define TESTS_LIB_JOBS_LIMITS_H

/* Jobs without a delay in the default tube, and its limit. */

#include <stdint.h>

#include "tests/lib/jobs/fixture.h"

/* Leases that are there at a time. */
enum { LIMITS_MOST = 64 };

void limits_clear(struct world *world);
void limits_put(struct world *world, unsigned count);
/* Start as many as may, and finish them. Returns how many. */
unsigned limits_run_all(struct world *world);
/* How many starts there were after `from`, of those at these times. */
unsigned limits_starts_since(const uint64_t *times, unsigned count, uint64_t from);

#endif
