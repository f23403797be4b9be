#ifndef TESTS_SUPPORT_MODEL_DRAW_H
#define TESTS_SUPPORT_MODEL_DRAW_H

/* Draws the numbers for a rig's operations, mostly near values where something could go wrong. */

#include "tests/support/model/rig.h"

/* A number from 0 to below - 1. The second function prefers small ones. */
uint64_t draw(struct rig *rig, uint64_t below);
uint64_t draw_log(struct rig *rig, uint64_t below);

/* The ticks that a slot of this level spans. For a level beyond the highest: the horizon. */
uint64_t draw_span(const struct rig *rig, uint64_t level);

/*
 * A delay, an absolute deadline that may lie in the past, and a time to advance to. The first two may be beyond
 * WW_TIME_MAX.
 */
uint64_t draw_delay(struct rig *rig);
uint64_t draw_deadline(struct rig *rig);
uint64_t draw_target(struct rig *rig);

#endif
