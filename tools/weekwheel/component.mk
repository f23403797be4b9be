# The command line, weekwheel. It has the commands for jobs as far as their libraries are built.
weekwheel_PROGRAM := weekwheel
weekwheel_FOLDERS := tools/weekwheel $(addprefix tools/weekwheel/,input replay jobs moving $(if $(filter redis,$(COMPONENTS)),sessions) $(if $(filter postgres,$(COMPONENTS)),postgres) $(if $(filter jobs,$(COMPONENTS)),store) $(if $(filter calendar,$(COMPONENTS)),calendar))
# The rules for requests need no other library.
weekwheel_ALSO := lib/callback/request.c lib/callback/text.c $(if $(filter redis,$(COMPONENTS)),$(addprefix lib/redis/link/,reader.c url.c))
weekwheel_USES := core job common tls
weekwheel_MAY_USE := jobs redis postgres calendar
weekwheel_NEEDS := zlib=zlib1g-dev openssl=libssl-dev uthash.h=uthash-dev xxhash.h=libxxhash-dev
# It asks servers that speak the protocol of Redis, and reads sorted sets.
weekwheel_LIBS += $(if $(filter redis,$(COMPONENTS)),$(redis_LIBS))
weekwheel_TESTS := tests/tools/weekwheel $(addprefix tests/tools/weekwheel/,input replay jobs sessions $(if $(filter postgres,$(COMPONENTS)),postgres))
weekwheel_FUZZERS := csv log swf reply
weekwheel_FUZZED := $(addprefix tools/weekwheel/,input replay jobs)
