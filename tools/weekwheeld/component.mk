# The server of jobs, weekwheeld.
weekwheeld_PROGRAM := weekwheeld
weekwheeld_FOLDERS := tools/weekwheeld $(addprefix tools/weekwheeld/,protocol settings engine clients verbs v1 standby http)
weekwheeld_USES := jobs service job common tls
weekwheeld_MAY_USE := redis postgres callback schedule
weekwheeld_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev
weekwheeld_TESTS := tests/tools/weekwheeld $(addprefix tests/tools/weekwheeld/,protocol engine)
weekwheeld_FUZZERS := protocol
weekwheeld_FUZZED := tools/weekwheeld/protocol tests/tools/weekwheeld/protocol/transcript.c
weekwheeld_OBJECTS := $(B)/obj/gen/weekwheeld_files.o

# What the server hands out as it is.
$(B)/gen/weekwheeld_files.c: $(B)/gen/openapi.json $(addprefix tools/weekwheeld/page/,page.html tubes.js jobs.js schedules.js page.js live.js) \
		scripts/file-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/file-to-c tools/weekwheeld/page/files.h $(filter-out scripts/% %.mk,$^) >$@

# The description of /v1, from the tables of its operations and fields.
$(B)/gen/openapi.json: tools/weekwheeld/v1/openapi.txt $(wildcard tools/job/*.c tools/weekwheeld/v1/*.c) \
		include/weekwheel/jobs.h include/weekwheel/driver.h scripts/make-openapi
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/make-openapi $(filter tools/% include/%,$^) >$@
