# The library weekwheel_schedule: schedules that put jobs.
schedule_LIBRARY := weekwheel_schedule
schedule_FOLDERS := lib/schedule
schedule_HEADERS := schedule
schedule_USES := jobs calendar
schedule_TESTS := tests/lib/schedule
schedule_FUZZERS := schedule
schedule_FUZZED := lib/schedule/record.c
