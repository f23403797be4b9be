/* The outcome of a replay. */
#include "tools/weekwheel/replay/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

struct expiry *expiries_add(struct expiries *expiries, uint64_t time, uint32_t id)
{
	struct expiry *expiry;

	expiries->at = memory_grow(expiries->at, &expiries->capacity, expiries->count, sizeof *expiries->at);
	expiry = &expiries->at[expiries->count++];
	memset(expiry, 0, sizeof *expiry);
	expiry->time = time;
	expiry->id = id;
	return expiry;
}

void outcome_free(struct outcome *outcome)
{
	free(outcome->expiries.at);
	free(outcome->deadline);
	memset(outcome, 0, sizeof *outcome);
}
