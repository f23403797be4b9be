/* Making a wheel: the geometry, and its memory. */

#include "lib/core/wheel/place.h"

#define ALIGNMENT 64u
#define TAG_BITS (WHERE_HINT - WHERE_TAG)

/* The geometry in one table: the slots of each level, lowest first. A level's slot spans a turn of the one below. */
static const uint32_t standard_slots[] = {
    STD_SECONDS, /* of 1 tick:       a turn of 60 */
    STD_MINUTES, /* of 60 ticks:     a turn of 3,600 */
    STD_HOURS,   /* of 3,600 ticks:  a turn of 86,400 */
    STD_DAYS,    /* of 86,400 ticks: a turn of 604,800 */
};
#define STANDARD_LEVELS (sizeof standard_slots / sizeof standard_slots[0])

_Static_assert(STD_MINUTE == STD_SECONDS && STD_HOUR == STD_MINUTE * STD_MINUTES, "spans follow from the table");
_Static_assert(STD_HORIZON == STD_HOUR * STD_HOURS * STD_DAYS, "the horizon is a turn of the highest wheel");
/* Applications have this compiled in, by WW_TIMER_INIT and the inline heartbeat. */
_Static_assert(sizeof(void *) != 8 || (sizeof(struct ww_timer) == 48 && offsetof(struct ww_timer, ww_to_end) == 16 &&
                                          offsetof(struct ww_timer, ww_expire) == 40),
    "the layout of a timer is part of the binary interface");
_Static_assert(STD_HOURS *STD_DAYS <= SHARED_SLOTS_MAX, "hours and days share a ring");
_Static_assert(STD_FIRST_1 == (STD_SECONDS + 63) / 64 * 64, "ring 1 begins with a word");
_Static_assert(STD_FIRST_2 == STD_FIRST_1 + (STD_MINUTES + 63) / 64 * 64, "ring 2 begins with a word");

static int config_refused(const struct ww_wheel_config *config)
{
	if (config->levels < 1 || config->levels > WW_LEVELS_MAX)
		return WW_EINVAL;
	for (uint32_t level = 0; level < config->levels; level++)
		if (config->slots[level] < WW_SLOTS_MIN || config->slots[level] > WW_SLOTS_MAX)
			return WW_EINVAL;
	if (config->tick_ns == 0 || (config->flags & ~WW_WHEEL_BOUNDED))
		return WW_EINVAL;
	return config->start > WW_TIME_MAX ? WW_EOVERFLOW : WW_OK;
}

/*
 * How long before its boundary pre-demotion of a slot of this span begins. Over L ticks, each tick demotes a share of 1
 * / L. If the timers of ring 1's slot are spread evenly, a share of L / (2 * span) does not fit ring 0 yet and is left
 * late for the boundary. The longest tick is shortest where both shares are equal: at the square root of 2 * span.
 * Upper rings leave nothing late if the lead is at most a slot of the ring below, which then takes all.
 */
static uint64_t pre_demotion_lead(uint64_t span, uint64_t below)
{
	uint64_t lead = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
		if ((lead + bit) * (lead + bit) <= 2 * span)
			lead += bit;
	if (below > 1 && lead > below)
		lead = below;
	return lead < span ? lead : span - 1;
}

/* The constants are what pre_demotion_lead returns. */
#define IS_ROOT(lead, number) ((lead) * (lead) <= (number) && ((lead) + 1) * ((lead) + 1) > (number))
_Static_assert(IS_ROOT(STD_LEAD_1, 2 * STD_MINUTE), "lead of a minute");
_Static_assert(STD_LEAD_2 == STD_MINUTE && STD_LEAD_2 * STD_LEAD_2 <= 2 * STD_HOUR, "lead of an hour");
_Static_assert(IS_ROOT(STD_LEAD_OUTSIDE, 2 * STD_HORIZON) && STD_LEAD_OUTSIDE <= STD_HOUR, "lead of a week");

/* Give ring r its slots, and return the slot after them. */
static uint32_t add_ring(struct ww_wheel *wheel, uint32_t r, uint32_t first, uint64_t span, uint32_t slots)
{
	wheel->ring[r] = (struct ring){
	    .span = span,
	    .limit = span * slots,
	    .lead = r > 0 ? pre_demotion_lead(span, wheel->ring[r - 1].span) : 0,
	    .slots = slots,
	    .first = first,
	};
	return first + slots;
}

/* Fill in rings and special slots. The wheel's slots need no memory yet: this is how its size is found. */
static void lay_out(struct ww_wheel *wheel, const struct ww_wheel_config *config)
{
	uint64_t span = 1;
	uint32_t next = 0;
	uint32_t r = 0;

	for (uint32_t level = 0; level < config->levels; level++) {
		uint32_t slots = config->slots[level];
		if (level > 0 && level + 2 == config->levels && slots * config->slots[level + 1] <= SHARED_SLOTS_MAX)
			slots *= config->slots[++level];
		next = (add_ring(wheel, r++, next, span, slots) + 63) / 64 * 64;
		span *= slots;
	}
	/* A delay of the whole horizon fits the highest ring too. Not the lowest, which has the hand in that slot. */
	if (r > 1)
		wheel->ring[r - 1].limit++;
	wheel->rings = r;
	next = add_ring(wheel, r, next, span, OUTSIDE_SLOTS);
	wheel->late = next++;
	wheel->due_first = wheel->due = next++;
	wheel->due_next = next++;
	wheel->due_now = next++;
	span *= FARTHER_SPAN;
	wheel->slots = add_ring(wheel, r + 1, next, span, 64 - (uint32_t)__builtin_clzll(WW_TIME_MAX / span));
	wheel->ring[r + 1].lead = wheel->ring[r].lead;
	wheel->bytes = sizeof *wheel + (size_t)wheel->slots * LANES * sizeof wheel->lane[0];
}

static int is_standard(const struct ww_wheel_config *config)
{
	if (config->levels != STANDARD_LEVELS)
		return 0;
	for (uint32_t level = 0; level < STANDARD_LEVELS; level++)
		if (config->slots[level] != standard_slots[level])
			return 0;
	return 1;
}

/* A mark for this wheel's timers, mixed from its address, which differs from another wheel's and from zeroes. */
static uint32_t tag_of(const struct ww_wheel *wheel)
{
	uint64_t mixed = (uintptr_t)wheel / ALIGNMENT * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t tag = (uint32_t)(mixed >> (64 - TAG_BITS));

	return (tag ? tag : 1) << WHERE_TAG;
}

int ww_wheel_config_default(struct ww_wheel_config *config)
{
	if (!config)
		return WW_EINVAL;
	*config = (struct ww_wheel_config){.tick_ns = UINT64_C(1000000000), .levels = STANDARD_LEVELS};
	for (uint32_t level = 0; level < STANDARD_LEVELS; level++)
		config->slots[level] = standard_slots[level];
	return WW_OK;
}

/* The configuration, or the default one, built in *fallback, if there is none. */
static const struct ww_wheel_config *config_or_default(
    const struct ww_wheel_config *config, struct ww_wheel_config *fallback)
{
	if (config)
		return config;
	(void)ww_wheel_config_default(fallback);
	return fallback;
}

static void set_up(struct ww_wheel *wheel, const struct ww_wheel_config *config, const struct ww_allocator *allocator)
{
	struct ww_wheel_config fallback;

	config = config_or_default(config, &fallback);
	*wheel = (struct ww_wheel){0};
	lay_out(wheel, config);
	wheel->head.now = config->start;
	wheel->longest = config->flags & WW_WHEEL_BOUNDED ? ww_wheel_horizon(wheel) : WW_TIME_MAX;
	wheel->head.to_end = inline_to_end(wheel);
	wheel->tag = tag_of(wheel);
	wheel->standard = (uint8_t)is_standard(config);
	wheel->pre_demotion = NO_EVENT;
	move_hand(wheel, config->start);
	wheel->head.event = end_of_turn(wheel);
	wheel->tick_ns = config->tick_ns;
	wheel->allocator = allocator;
	wheel->levels = config->levels;
	for (uint32_t level = 0; level < config->levels; level++)
		wheel->level_slots[level] = (uint8_t)config->slots[level];
	wheel->nil.ww_next = &wheel->nil;
	for (uint32_t lane = 0; lane < wheel->slots * LANES; lane++)
		wheel->lane[lane] = &wheel->nil;
}

int ww_wheel_size(const struct ww_wheel_config *config, size_t *bytes)
{
	struct ww_wheel_config fallback;
	struct ww_wheel wheel;
	int error;

	if (!bytes)
		return WW_EINVAL;
	config = config_or_default(config, &fallback);
	error = config_refused(config);
	if (error)
		return error;
	lay_out(&wheel, config);
	*bytes = wheel.bytes;
	return WW_OK;
}

int ww_wheel_create_at(struct ww_wheel **wheel, void *memory, size_t size, const struct ww_wheel_config *config)
{
	size_t bytes;
	int error;

	if (!wheel || !memory || (uintptr_t)memory % ALIGNMENT)
		return WW_EINVAL;
	error = ww_wheel_size(config, &bytes);
	if (error)
		return error;
	if (size < bytes)
		return WW_EINVAL;
	set_up(memory, config, NULL);
	*wheel = memory;
	return WW_OK;
}

int ww_wheel_create(struct ww_wheel **wheel, const struct ww_wheel_config *config)
{
	size_t bytes;
	int error;

	if (!wheel)
		return WW_EINVAL;
	error = ww_wheel_size(config, &bytes);
	if (error)
		return error;
	const struct ww_allocator *allocator = config && config->allocator ? config->allocator : ww_allocator_default();
	if (!allocator->allocate || !allocator->free)
		return WW_EINVAL;
	void *memory = allocator->allocate(allocator->user, bytes);
	if (!memory)
		return WW_ENOMEM;
	set_up(memory, config, allocator);
	*wheel = memory;
	return WW_OK;
}

int ww_wheel_destroy(struct ww_wheel *wheel)
{
	if (!wheel)
		return WW_OK;
	if (wheel->busy)
		return WW_EBUSY;
	if (wheel->allocator)
		wheel->allocator->free(wheel->allocator->user, wheel, wheel->bytes);
	return WW_OK;
}

uint64_t ww_wheel_now(const struct ww_wheel *wheel)
{
	return wheel ? wheel->head.now : WW_NEVER;
}

uint64_t ww_wheel_horizon(const struct ww_wheel *wheel)
{
	return wheel ? wheel->ring[wheel->rings].span : WW_NEVER;
}

int ww_wheel_deadline_ns(const struct ww_wheel *wheel, uint64_t ns, uint64_t *deadline)
{
	if (!wheel || !deadline)
		return WW_EINVAL;
	uint64_t ticks = ns / wheel->tick_ns + (ns % wheel->tick_ns != 0);
	if (ticks > WW_TIME_MAX)
		return WW_EOVERFLOW;
	*deadline = ticks;
	return WW_OK;
}

int ww_wheel_now_ns(const struct ww_wheel *wheel, uint64_t ns, uint64_t *now)
{
	if (!wheel || !now)
		return WW_EINVAL;
	uint64_t ticks = ns / wheel->tick_ns;
	if (ticks > WW_TIME_MAX)
		return WW_EOVERFLOW;
	*now = ticks;
	return WW_OK;
}
