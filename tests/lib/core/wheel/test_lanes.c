/*
 * How evenly the lanes of a slot are filled. From outside only the time of a walk shows it: this is the one test of the
 * wheel that looks inside.
 */
/* tier: quick, every-build */

#include "lib/core/wheel/wheel_internal.h"
#include "tests/lib/core/wheel/fixture.h"

#define EACH 256u /* timers of each kind */
#define KINDS 16u

static uint32_t length_of(const struct ww_wheel *wheel, const struct ww_timer *first)
{
	uint32_t length = 0;

	for (; first != &wheel->nil; first = first->ww_next) {
		length++;
	}
	return length;
}

START_TEST(timers_of_several_kinds_in_turn_fill_all_lanes_of_their_slots)
{
	for (uint32_t kinds = 1; kinds <= KINDS; kinds++) {
		struct ww_wheel *wheel = make(NULL);
		static struct ww_timer timers[KINDS * EACH];
		uint32_t slots = 0;

		for (uint32_t i = 0; i < kinds * EACH; i++) {
			OK(ww_timer_init(&timers[i], note));
			OK(ww_wheel_schedule(wheel, &timers[i], DAY + i % kinds * HOUR));
		}
		for (uint32_t slot = 0; slot < wheel->slots; slot++) {
			for (uint32_t lane = 0; slot_count(wheel, slot) && lane < LANES; lane++) {
				uint32_t length = length_of(wheel, wheel->lane[slot * LANES + lane]);

				ck_assert_msg(length >= EACH / LANES / 2 && length <= EACH / LANES * 2,
				    "of %u kinds, lane %u of slot %u has %u of %u timers", kinds, lane, slot, length,
				    EACH);
			}
			slots += slot_count(wheel, slot) != 0;
		}
		ck_assert_uint_eq(slots, kinds);
		unmake(wheel);
	}
}
END_TEST

TEST_MAIN("wheel/lanes", timers_of_several_kinds_in_turn_fill_all_lanes_of_their_slots)
