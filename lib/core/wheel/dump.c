/* The wheels drawn for a person. */

#include "lib/core/wheel/wheel_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* A text that is cut off at its end but counted to it. */
struct drawing {
	char *text;
	size_t size;
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void draw(struct drawing *drawing, const char *format, ...)
{
	size_t room = drawing->length < drawing->size ? drawing->size - drawing->length : 0;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(room ? drawing->text + drawing->length : NULL, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		drawing->length += (size_t)length;
}

/* One character a slot: empty, 1 to 9 timers, then a letter a power of ten. */
static char filling(uint64_t timers)
{
	const char *letter = "abcdefghijk";

	if (timers == 0)
		return '.';
	if (timers < 10)
		return (char)('0' + timers);
	for (timers /= 100; timers; timers /= 10)
		letter++;
	return *letter;
}

/* What a level is made of: this many slots of a length, in the largest unit that it fills. */
static void draw_label(struct drawing *drawing, uint32_t slots, double ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{86400e9, "d"}, {3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
	size_t unit = 0;
	char label[32];

	while (unit + 1 < sizeof units / sizeof units[0] && ns < units[unit].ns)
		unit++;
	(void)snprintf(label, sizeof label, "%2u x %.4g %s", slots, ns / units[unit].ns, units[unit].name);
	draw(drawing, "%-15s", label);
}

static void draw_level(struct drawing *drawing, const struct ww_wheel *wheel, uint32_t level, uint64_t span)
{
	uint64_t slots[WW_SLOTS_MAX];
	uint64_t late = level == 1 ? slot_count(wheel, wheel->late) : 0;
	uint32_t hand = (uint32_t)(wheel->head.hand / span % wheel->level_slots[level]);

	ww_wheel_level_slots(wheel, level, span, slots);
	draw_label(drawing, wheel->level_slots[level], (double)span * (double)wheel->tick_ns);
	for (uint32_t slot = 0; slot < wheel->level_slots[level]; slot++)
		draw(drawing, slot == hand ? "[%c]" : "%c", filling(slots[slot]));
	if (late)
		draw(drawing, "  +%" PRIu64 " at the boundary", late);
	draw(drawing, "\n");
}

int ww_wheel_dump(const struct ww_wheel *wheel, char *text, size_t size)
{
	struct drawing drawing = {text, size, 0};
	struct ww_stats stats;
	uint64_t span = 1;

	if (!wheel || (!text && size))
		return WW_EINVAL;
	(void)ww_wheel_stats(wheel, &stats);
	draw(&drawing, "time %" PRIu64 ", %" PRIu64 " pending, %" PRIu64 " of them due now", stats.now, stats.pending,
	    stats.due);
	if (wheel->head.hand < wheel->head.now)
		draw(&drawing, ", expired up to %" PRIu64, wheel->head.hand);
	draw(&drawing, "\n");
	for (uint32_t level = 0; level < wheel->levels; level++) {
		draw_level(&drawing, wheel, level, span);
		span *= wheel->level_slots[level];
	}
	draw(&drawing, "outside        %" PRIu64 "\n", stats.outside);
	draw(&drawing, "[] the hand   . empty   1-9 timers   a: 10 or more, b: 100, c: 1,000 ...\n");
	return (int)drawing.length;
}
