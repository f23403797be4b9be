/* Draws the numbers for the operations of a rig, most of them near a boundary. */
#include "tests/support/model/draw.h"

uint64_t draw(struct rig *rig, uint64_t below)
{
	return rig->draw(rig->source, below);
}

/* Small numbers as often as large ones. */
uint64_t draw_log(struct rig *rig, uint64_t below)
{
	uint32_t bits = 0;

	while (bits < 63 && below >> bits > 1) {
		bits++;
	}
	return draw(rig, UINT64_C(1) << draw(rig, bits + 1)) % below;
}

uint64_t draw_span(const struct rig *rig, uint64_t level)
{
	uint64_t span = 1;

	for (uint64_t i = 0; i < level; i++) {
		span *= rig->config.slots[i];
	}
	return span;
}

/*
 * A delay near values where something could go wrong: around the spans of levels, at the start of their slots, near,
 * far and very far.
 */
uint64_t draw_delay(struct rig *rig)
{
	uint64_t now = rig->oracle.now;
	uint64_t span;

	if (rig->crowded && draw(rig, 4) > 0) {
		if (rig->hot <= now) {
			rig->hot_span = draw_span(rig, 1 + draw(rig, rig->config.levels));
			rig->hot = (now / rig->hot_span + 1 + draw(rig, 3)) * rig->hot_span;
		}
		return rig->hot + draw(rig, rig->hot_span) - now;
	}
	switch (draw(rig, 16)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
	case 3:
	case 4:
		return draw(rig, 2 * (uint64_t)rig->config.slots[0]);
	case 5:
	case 6:
		span = draw_span(rig, draw(rig, rig->config.levels + 1));
		return span * (1 + draw(rig, 4)) + draw(rig, 3) - 1;
	case 7:
		span = draw_span(rig, draw(rig, rig->config.levels + 1));
		return (now / span + 1 + draw(rig, 64)) * span - now;
	case 8:
	case 9:
	case 10:
		return draw_log(rig, rig->horizon);
	case 11:
		return draw(rig, rig->horizon);
	case 12:
		return rig->horizon - 1 + draw(rig, 3);
	case 13:
		return draw(rig, 4 * rig->horizon);
	case 14:
		return draw(rig, 64) * rig->horizon + draw(rig, rig->horizon);
	default:
		return draw(rig, 8) == 0 ? draw_log(rig, WW_TIME_MAX) : draw(rig, rig->config.slots[0]);
	}
}

/* The same as an absolute deadline, also in the past and within the running jump. */
uint64_t draw_deadline(struct rig *rig)
{
	uint64_t now = rig->oracle.now;
	uint64_t delay;

	switch (draw(rig, 8)) {
	case 0:
		delay = draw_log(rig, rig->horizon);
		return delay < now ? now - delay : 0;
	case 1:
		return rig->oracle.hand + draw(rig, 3);
	case 2:
		return rig->oracle.hand + draw(rig, now - rig->oracle.hand + 2);
	default:
		delay = draw_delay(rig);
		return delay <= WW_TIME_MAX ? now + delay : WW_NEVER;
	}
}

/* The time to advance to, at most WW_TIME_MAX: the wheel's own time if the draw lies beyond. */
uint64_t draw_target(struct rig *rig)
{
	uint64_t now = rig->oracle.now;
	uint64_t target = now;
	uint64_t span;
	uint32_t i;

	switch (draw(rig, 20)) {
	case 0:
		break;
	case 1:
	case 2:
		target = now + draw(rig, rig->config.slots[0]);
		break;
	case 3:
		(void)ww_wheel_next(rig->wheel, &target);
		break;
	case 4:
		(void)ww_wheel_next(rig->wheel, &target);
		target = target > now ? target - 1 : target;
		break;
	case 5:
	case 6:
		i = (uint32_t)draw(rig, rig->timers);
		if (oracle_pending(&rig->oracle, i)) {
			target = rig->oracle.deadline[i] + draw(rig, 3) - 1;
		}
		break;
	case 7:
		span = draw_span(rig, draw(rig, rig->config.levels + 1));
		target = (now / span + 1) * span + draw(rig, 3) - 1;
		break;
	case 8:
		target = now + draw_log(rig, rig->horizon);
		break;
	case 9:
		target = now + (draw(rig, 8) ? 1 : draw(rig, 4 * rig->horizon));
		break;
	case 10:
		if (draw(rig, 64) == 0) {
			target = now + draw_log(rig, WW_TIME_MAX);
		}
		break;
	default:
		target = now + 1;
	}
	return target < now || target > WW_TIME_MAX ? now : target;
}
