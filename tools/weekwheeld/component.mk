# The server of jobs, weekwheeld.
weekwheeld_PROGRAM := weekwheeld
weekwheeld_FOLDERS := tools/weekwheeld $(addprefix tools/weekwheeld/,protocol settings v1)
weekwheeld_ALSO := tools/common/tls/tls.c
weekwheeld_USES := jobs common
weekwheeld_MAY_USE := redis callback
weekwheeld_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev
weekwheeld_TESTS := tests/tools/weekwheeld tests/tools/weekwheeld/protocol
weekwheeld_FUZZERS := protocol
weekwheeld_OBJECTS := $(B)/obj/gen/v1_files.o

# What the server hands out as it is.
$(B)/gen/v1_files.c: tools/weekwheeld/v1/openapi.json scripts/file-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/file-to-c tools/weekwheeld/v1/files.h $(filter tools/%,$(filter-out %.mk,$^)) >$@
