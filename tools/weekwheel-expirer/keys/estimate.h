#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_ESTIMATE_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_ESTIMATE_H

/*
 * What time it is at Redis, from its answers to TIME. An answer was made between the sending of the command and its
 * arrival here. That bounds how far Redis's clock is ahead of this machine's:
 *
 *     sent                received                 low = shown - received       high = shown - sent
 *      |------ shown ------|
 *
 * The best bounds of the last answers hold. They become wider with age, since the clocks do not run alike. A quick
 * answer narrows them to its round trip, and a slow one does no harm.
 *
 * Times are ns: `local` of a clock here that never goes backwards, and Redis's since 1970. Pure.
 */

#include <stdint.h>

enum { ESTIMATE_SAMPLES = 16 };

struct estimate {
	struct {
		int64_t low;
		int64_t high;
		uint64_t at;
	} sample[ESTIMATE_SAMPLES];
	unsigned count;
	unsigned next;
};

/*
 * Redis showed this time, in us. Returns how far its clock was stepped, in ns: 0, negative if backwards. After a step only
 * what is shown from now on counts.
 */
int64_t estimate_add(struct estimate *estimate, uint64_t sent, uint64_t received, int64_t shown_us);

/* The quickest round trip of the last answers, in ns: no answer takes less. 0 without an answer. */
uint64_t estimate_trip(const struct estimate *estimate);

/* The time that Redis's clock has reached in any case, and the latest that it may show. There has to be an answer. */
int64_t estimate_reached(const struct estimate *estimate, uint64_t local);
int64_t estimate_latest(const struct estimate *estimate, uint64_t local);

#endif
