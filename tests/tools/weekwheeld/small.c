/*
 * Part of a server for tests whose store has small limits: after some hundred jobs its index has taken over several
 * times, and has rewritten slots.
 */
#include "lib/jobs/store/store.h"

__attribute__((constructor)) static void make_small(void)
{
	ww_store_sizes = (struct store_sizes){.active = 30000, .journal = 200000, .view = 40, .few = 5};
}
