# The server of jobs, weekwheeld.
weekwheeld_PROGRAM := weekwheeld
weekwheeld_FOLDERS := tools/weekwheeld $(addprefix tools/weekwheeld/,protocol settings engine clients verbs v1 http)
weekwheeld_USES := jobs service common tls
weekwheeld_MAY_USE := redis callback schedule
weekwheeld_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev
weekwheeld_TESTS := tests/tools/weekwheeld $(addprefix tests/tools/weekwheeld/,protocol engine)
weekwheeld_FUZZERS := protocol
weekwheeld_OBJECTS := $(B)/obj/gen/weekwheeld_files.o

# What the server hands out as it is.
$(B)/gen/weekwheeld_files.c: $(addprefix tools/weekwheeld/,v1/openapi.json page/page.html page/page.js page/schedules.js \
		page/live.js) \
		scripts/file-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/file-to-c tools/weekwheeld/page/files.h $(filter tools/weekwheeld/%,$^) >$@
