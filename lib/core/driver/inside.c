/* Which calls of the application's functions this thread is in. */

#include "lib/core/driver/layer.h"

static _Thread_local const struct inside *innermost;

void ww_inside_enter(struct inside *here, const void *what)
{
	*here = (struct inside){what, innermost};
	innermost = here;
}

void ww_inside_leave(const struct inside *here)
{
	innermost = here->outer;
}

int ww_inside_of(const void *what)
{
	int calls = 0;

	for (const struct inside *here = innermost; here; here = here->outer)
		calls += here->what == what;
	return calls;
}
