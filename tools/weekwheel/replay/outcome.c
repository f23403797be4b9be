/* The memory of a replay's outcome. */
#include "tools/weekwheel/replay/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

struct replay_expiry *expiries_add(struct expiries *expiries, uint64_t time, uint32_t id)
{
	struct replay_expiry *expiry;

	expiries->at = memory_grow(expiries->at, &expiries->capacity, expiries->count, sizeof *expiries->at);
	expiry = &expiries->at[expiries->count++];
	*expiry = (struct replay_expiry){.time = time, .id = id};
	return expiry;
}

void outcome_free(struct outcome *outcome)
{
	free(outcome->expiries.at);
	free(outcome->deadline);
	memset(outcome, 0, sizeof *outcome);
}
