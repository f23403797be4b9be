# The library weekwheel_redis: jobs in Redis, shared by several machines.
redis_LIBRARY := weekwheel_redis
redis_FOLDERS := lib/redis
redis_HEADERS := jobs_redis
redis_USES := jobs link
redis_CONTAINS := link
redis_NEEDS := hiredis=libhiredis-dev libssl=libssl-dev libcrypto=libssl-dev
redis_TESTS := tests/lib/redis
redis_HELPERS := tests/support/redis
# hiredis tells pkg-config to look in its own folder, whose names are too plain to be found by chance.
redis_CFLAGS := $(filter-out -I%/hiredis,$(redis_CFLAGS))
redis_OBJECTS := $(B)/obj/gen/redis_scripts.o

# Redis runs scripts, which the library carries as text.
$(B)/gen/redis_scripts.c: $(sort $(wildcard lib/redis/lua/*.lua)) scripts/lua-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,LUA,$@)scripts/lua-to-c $(filter %.lua,$^) >$@
