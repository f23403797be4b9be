#ifndef TESTS_SUPPORT_MODEL_DRAW_H
#define TESTS_SUPPORT_MODEL_DRAW_H

/* The numbers that a rig's operations are done with: drawn near what could go wrong. */

#include "tests/support/model/rig.h"

/* A number from 0 to below - 1; the second favours small ones. */
uint64_t draw(struct rig *rig, uint64_t below);
uint64_t draw_log(struct rig *rig, uint64_t below);

/* The ticks that a slot of this level spans; of one beyond the highest: the horizon. */
uint64_t draw_span(const struct rig *rig, uint64_t level);

/* A delay; an absolute deadline, also in the past; a time to advance to. The first two may be beyond WW_TIME_MAX. */
uint64_t draw_delay(struct rig *rig);
uint64_t draw_deadline(struct rig *rig);
uint64_t draw_target(struct rig *rig);

#endif
