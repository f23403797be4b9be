# The library weekwheel_calendar: expressions of cron and intervals, with zones.
calendar_LIBRARY := weekwheel_calendar
calendar_FOLDERS := lib/calendar
calendar_HEADERS := calendar
calendar_USES := core
calendar_NEEDS := glib-2.0=libglib2.0-dev
calendar_TESTS := tests/lib/calendar
calendar_FUZZERS := calendar
calendar_FUZZED := lib/calendar
