# The library weekwheel_jobs: jobs that outlive the process, in a directory or in memory.
jobs_LIBRARY := weekwheel_jobs
jobs_FOLDERS := lib/jobs lib/jobs/local lib/jobs/store
jobs_HEADERS := jobs
jobs_USES := core journal
jobs_CONTAINS := journal
jobs_NEEDS := sqlite3=libsqlite3-dev uthash.h=uthash-dev
jobs_TESTS := tests/lib/jobs tests/lib/jobs/local tests/lib/jobs/store
jobs_FUZZERS := record
jobs_FUZZED := lib/jobs/headers.c lib/jobs/spec.c lib/jobs/then.c lib/jobs/local/record.c
