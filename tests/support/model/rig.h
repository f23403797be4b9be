#ifndef TESTS_SUPPORT_MODEL_RIG_H
#define TESTS_SUPPORT_MODEL_RIG_H

/*
 * A wheel and its oracle side by side, and operations done to both. The operations are drawn from a source of numbers:
 * a random generator in the model test, the bytes of the input in the fuzz target.
 */

#include <stddef.h>
#include <stdint.h>

#include "tests/support/model/oracle.h"
#include "weekwheel/wheel.h"

struct rig;

/* A timer in its object, between two guards that nothing may overwrite. */
struct rig_object {
	uint64_t before;
	struct ww_timer timer;
	uint64_t after;
	struct rig *rig;
};

#define RIG_TRACE 24

/* One of the last operations, for the report of a failure. */
struct rig_trace {
	const char *what;
	int64_t timer;
	uint64_t first, second;
	int64_t answer;
};

struct rig {
	/* Set before rig_open. */
	struct ww_wheel_config config;
	uint32_t timers;
	uint32_t crowded;                               /* half of all deadlines fall into a few slots */
	uint64_t (*draw)(void *source, uint64_t below); /* a number from 0 to below - 1 */
	int (*dry)(const void *source);                 /* whether nothing is left to draw from */
	void *source;
	void (*failed)(const struct rig *rig, const char *what); /* does not return */
	uint32_t check_every;                                    /* steps between two calls of ww_wheel_check */

	struct ww_wheel *wheel;
	uint64_t horizon;
	uint64_t hot; /* where a crowd's deadlines begin */
	uint64_t hot_span;
	uint64_t steps;
	uint32_t depth; /* the nesting of callbacks */
	uint32_t inner; /* operations that callbacks of this advance have done */
	struct oracle oracle;
	struct rig_object object[ORACLE_TIMERS_MAX];
	struct rig_trace trace[RIG_TRACE];
	uint64_t traced;
};

/* Create the wheel. */
void rig_open(struct rig *rig);
/* Do one operation and compare. */
void rig_step(struct rig *rig);
/* Expire, drain or abandon the timers that are left, and destroy the wheel. */
void rig_close(struct rig *rig);
/* Print the geometry and the last operations. */
void rig_print(const struct rig *rig);

#endif
