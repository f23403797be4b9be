/* When "every day at half past two in Berlin" is, around the night when clocks are put forward. */
#include <stdio.h>
#include <time.h>
#include <weekwheel/calendar.h>

int main(void)
{
	struct ww_calendar_spec spec = {.zone = "Europe/Berlin"};
	struct ww_calendar_problem problem;
	struct ww_calendar *calendar;
	char text[WW_CALENDAR_TEXT];
	uint64_t at = UINT64_C(1806105600) * 1000000000; /* 2027-03-27, 00:00 UTC */

	spec.expression = "30 2 * * *";
	if (ww_calendar_open(&calendar, &spec, &problem)) {
		fprintf(stderr, "%s\n", problem.reason);
		return 1;
	}
	ww_calendar_explain(calendar, text, sizeof text);
	puts(text);
	for (int i = 0; i < 3 && ww_calendar_next(calendar, at, &at) == WW_OK; i++) {
		time_t seconds = (time_t)(at / 1000000000);
		strftime(text, sizeof text, "%F %T UTC", gmtime(&seconds));
		puts(text);
	}
	ww_calendar_close(calendar);
	return 0;
}
