/*
 * Any bytes as operations on a small wheel, which is compared with the oracle of the model test.
 *
 * The first bytes choose the geometry, the flags, the number of timers and the start. All others are the numbers from
 * which tests/support/model/rig.c and draw.c draw the operations: one byte for a choice of up to 256, two for one of up
 * to 65,536, eight for more.
 */
/* tier: quick */

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/model/rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Enough for any order of events, and few enough that each timer takes part in several. */
#define TIMERS_MAX 24
#define STEPS_MAX 1000

struct bytes {
	const uint8_t *next;
	size_t left;
};

static uint64_t draw_bytes(void *source, uint64_t below)
{
	struct bytes *bytes = source;
	size_t wanted = below <= 256 ? 1 : below <= 65536 ? 2 : 8;
	uint64_t number = 0;

	for (; wanted > 0 && bytes->left > 0; wanted--, bytes->left--) {
		number = number << 8 | *bytes->next++;
	}
	return number % below;
}

static int is_dry(const void *source)
{
	const struct bytes *bytes = source;

	return bytes->left == 0;
}

static void stop(const struct rig *rig, const char *what)
{
	(void)fprintf(stderr, "fuzz_wheel: %s\n", what);
	rig_print(rig);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rig rig;
	static const uint64_t starts[] = {0, 1, 59, 604799, UINT64_C(1) << 32, WW_TIME_MAX - 1000, WW_TIME_MAX};
	struct bytes bytes = {data, size};

	if (size < 8) {
		return 0;
	}
	(void)ww_wheel_config_default(&rig.config);
	/* The default geometry as often as any other. */
	if (draw_bytes(&bytes, 2) == 1) {
		rig.config.levels = 1 + (uint32_t)draw_bytes(&bytes, WW_LEVELS_MAX);
		for (uint32_t i = 0; i < rig.config.levels; i++) {
			rig.config.slots[i] =
			    WW_SLOTS_MIN + (uint32_t)draw_bytes(&bytes, WW_SLOTS_MAX - WW_SLOTS_MIN + 1);
		}
	}
	rig.config.flags = draw_bytes(&bytes, 4) == 0 ? WW_WHEEL_BOUNDED : 0;
	rig.config.start = starts[draw_bytes(&bytes, sizeof starts / sizeof starts[0])];
	rig.timers = 1 + (uint32_t)draw_bytes(&bytes, TIMERS_MAX);
	rig.crowded = 0;
	rig.draw = draw_bytes;
	rig.dry = is_dry;
	rig.source = &bytes;
	rig.failed = stop;
	rig.check_every = size < 200 ? 1 : 16;
	rig_open(&rig);
	for (int i = 0; i < STEPS_MAX && !is_dry(&bytes); i++) {
		rig_step(&rig);
	}
	rig_close(&rig);
	return 0;
}
