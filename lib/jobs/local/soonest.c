/* What is known of the delayed jobs of a tube that are due first: kept while jobs come and go. */
#include "lib/jobs/local/soonest.h"

#include <string.h>

#include "lib/jobs/local/local.h"

/* What is known of a tube, or NULL. */
static struct soonest *known_of(const struct tube *tube, int wall)
{
	struct soonest *known = tube->soonest ? &tube->soonest[wall] : NULL;

	return known && known->taken_back == tube->jobs->taken_back ? known : NULL;
}

static void drop(struct soonest *known, unsigned at)
{
	known->count--;
	memmove(&known->jobs[at], &known->jobs[at + 1], (known->count - at) * sizeof known->jobs[0]);
}

void ww_jobs_soonest_remove(struct tube *tube, int wall, uint64_t due, uint64_t id)
{
	struct soonest *known = known_of(tube, wall);

	for (unsigned i = 0; known && i < known->count; i++)
		if (known->jobs[i].due == due && known->jobs[i].id == id) {
			drop(known, i);
			return;
		}
}

void ww_jobs_soonest_add(struct tube *tube, int wall, uint64_t due, uint64_t id)
{
	struct soonest *known = known_of(tube, wall);
	unsigned at = 0;

	if (!known || !soonest_is_before(due, id, known->until_due, known->until_id))
		return;
	while (at < known->count && soonest_is_before(known->jobs[at].due, known->jobs[at].id, due, id))
		at++;
	if (at < known->count && known->jobs[at].due == due && known->jobs[at].id == id)
		return;
	if (known->count == SOONEST_MOST) {
		/* The last one, or this one, is found again by a search. */
		known->until_due = at < known->count ? known->jobs[known->count - 1].due : due;
		known->until_id = at < known->count ? known->jobs[known->count - 1].id : id;
		if (at == known->count)
			return;
		known->count--;
	}
	memmove(&known->jobs[at + 1], &known->jobs[at], (known->count - at) * sizeof known->jobs[0]);
	known->jobs[at].due = due;
	known->jobs[at].id = id;
	known->count++;
}

void ww_jobs_soonest_ask(struct soonest *known, uint64_t taken_back, uint64_t now)
{
	if (known->taken_back != taken_back || now < known->now)
		*known = (struct soonest){.taken_back = taken_back};
	known->now = now;
}

void ww_jobs_soonest_drop(struct soonest *known)
{
	drop(known, 0);
}

void ww_jobs_soonest_skip(struct soonest *known, uint64_t due, uint64_t id)
{
	known->until_due = due;
	known->until_id = id;
}

void ww_jobs_soonest_find(struct soonest *known, uint64_t due, uint64_t id)
{
	known->jobs[0].due = due;
	known->jobs[0].id = id;
	known->count = 1;
	known->until_due = due;
	known->until_id = id + 1;
}
