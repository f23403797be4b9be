/*
 * Any text as an expression: a refusal has a reason and a place in the text. An accepted one has words, and each of its
 * times comes after the one before.
 */
/* tier: quick */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weekwheel/calendar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const zones[] = {"UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Dublin",
    "Africa/Casablanca", "America/New_York", "Asia/Kolkata"};

static void follow(const struct ww_calendar *calendar, uint64_t after)
{
	char words[WW_CALENDAR_TEXT];
	uint64_t time;

	if (ww_calendar_explain(calendar, words, sizeof words) || strlen(words) > sizeof words - 2)
		abort();
	for (int i = 0; i < 20; i++, after = time) {
		int error = ww_calendar_next(calendar, after, &time);

		if (error == WW_EOVERFLOW)
			return;
		if (error || time <= after || time > WW_CALENDAR_LAST)
			abort();
	}
}

/* Two bytes of the time and one of the zone, then the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_calendar_problem problem;
	struct ww_calendar *calendar;
	struct ww_calendar_spec spec = {0};
	char text[300] = "";
	int error;

	if (size < 3 || size > sizeof text)
		return 0;
	memcpy(text, data + 3, size - 3);
	spec.expression = text;
	spec.zone = zones[data[2] % 8];
	error = ww_calendar_open(&calendar, &spec, &problem);
	if (error && (error != WW_EINVAL || !*problem.reason || problem.at > strlen(text)))
		abort();
	if (!error) {
		/* Hours after 1970, up to 2120. */
		follow(calendar, (uint64_t)(data[0] << 8 | data[1]) * 20 * 3600 * UINT64_C(1000000000));
		ww_calendar_close(calendar);
	}
	return 0;
}
