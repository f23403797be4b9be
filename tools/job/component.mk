# What a job is in JSON: a table of its fields, one writer and one reader, for the server and the command line.
job_FOLDERS := tools/job
job_USES := common
job_TESTS := tests/tools/job
job_FUZZERS := then
job_FUZZED := tools/job
