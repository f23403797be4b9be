# The link to Redis, private to the library of jobs in Redis and to the programs that contain it.
link_FOLDERS := lib/redis/link
link_USES := base
link_NEEDS := hiredis=libhiredis-dev libssl=libssl-dev libcrypto=libssl-dev
link_TESTS := tests/lib/redis/link
# hiredis tells pkg-config to look in its own folder, whose names are too plain to be found by chance.
link_CFLAGS := $(filter-out -I%/hiredis,$(link_CFLAGS))
