/* Slows clients that guess tokens: see culprit.h. */
#include "tools/service/access/culprit.h"

#include <stddef.h>

#include "weekwheel/driver.h"

/* The first rest of an address, how often it doubles, how long others wait for a turn, and when a failure is forgotten. */
#define REST_LEAST (100 * WW_MILLISECOND)
#define WAIT_MOST (30 * WW_SECOND)
#define FORGOTTEN (600 * WW_SECOND)
enum { REST_DOUBLINGS = 6 };

static int is_remembered(const struct culprit *culprit, uint64_t now)
{
	return culprit->failures && (now < culprit->rests || now - culprit->last <= FORGOTTEN);
}

static const struct culprit *find(const struct culprits *culprits, const struct address_key *from, uint64_t now)
{
	for (const struct culprit *culprit = culprits->list; culprit < culprits->list + CULPRITS_MAX; culprit++)
		if (is_remembered(culprit, now) && address_key_equal(&culprit->from, from))
			return culprit;
	return NULL;
}

/* Return the place of an expired address, or else of the oldest with the fewest failures. */
static struct culprit *find_place(struct culprits *culprits, uint64_t now)
{
	struct culprit *best = culprits->list;

	for (struct culprit *culprit = culprits->list; culprit < culprits->list + CULPRITS_MAX; culprit++) {
		if (!is_remembered(culprit, now)) {
			culprit->failures = 0;
			return culprit;
		}
		if (culprit->failures < best->failures ||
		    (culprit->failures == best->failures && culprit->last < best->last))
			best = culprit;
	}
	return best;
}

static uint64_t rest_of(const struct culprit *culprit)
{
	return REST_LEAST << (culprit->failures <= REST_DOUBLINGS ? culprit->failures - 1 : REST_DOUBLINGS);
}

uint64_t culprit_rests(const struct culprits *culprits, const struct address_key *from, uint64_t now)
{
	const struct culprit *culprit = find(culprits, from, now);

	return culprit && culprit->rests > now ? culprit->rests - now : 0;
}

uint64_t culprit_turn(struct culprits *culprits, const struct address_key *from, uint64_t now)
{
	struct culprit *culprit = (struct culprit *)find(culprits, from, now);
	uint64_t wait;

	if (!culprit || culprit->rests <= now)
		return 0;
	wait = culprit->rests - now;
	if (wait > WAIT_MOST)
		return CULPRIT_CROWD;
	culprit->rests += rest_of(culprit);
	return wait;
}

uint32_t culprit_again(struct culprits *culprits, const struct address_key *from, uint64_t now)
{
	struct culprit *culprit = (struct culprit *)find(culprits, from, now);

	culprits->failures++;
	if (!culprit)
		return 1;
	culprit->failures += culprit->failures < UINT32_MAX;
	return culprit->failures;
}

uint64_t culprit_failed(struct culprits *culprits, const struct address_key *from, uint64_t now, uint32_t *number)
{
	struct culprit *culprit = (struct culprit *)find(culprits, from, now);
	uint64_t rest;

	if (!culprit) {
		culprit = find_place(culprits, now);
		culprit->from = *from;
		culprit->rests = now;
	}
	culprit->last = now;
	culprit->failures += culprit->failures < UINT32_MAX;
	culprits->failures++;
	*number = culprit->failures;
	rest = rest_of(culprit);
	if (culprit->rests < now + rest)
		culprit->rests = now + rest;
	return rest;
}
