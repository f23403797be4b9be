# The server of sessions, weekwheel-sessiond.
sessiond_PROGRAM := weekwheel-sessiond
sessiond_FOLDERS := tools/weekwheel-sessiond tools/weekwheel-sessiond/protocol
sessiond_ALSO := $(addprefix tools/service/,address.c buffer.c certificate.c crowd.c culprit.c gate.c metric.c notify.c page.c reply.c shake.c state.c teller.c tokens.c visitors.c web.c) \
	$(addprefix tools/common/tls/,tls.c handshake.c)
sessiond_USES := core journal common
sessiond_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev xxhash.h=libxxhash-dev
sessiond_TESTS := tests/tools/weekwheel-sessiond tests/tools/weekwheel-sessiond/protocol
sessiond_FUZZERS := resp
sessiond_OBJECTS := $(addprefix $(B)/obj/gen/,sessiond_files.o service_files.o)

# What the server hands out as it is. tools/weekwheeld has the rule for what both servers share.
$(B)/gen/sessiond_files.c: $(addprefix tools/weekwheel-sessiond/page/,sessions.html sessions.js) scripts/file-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/file-to-c tools/weekwheel-sessiond/files.h $(filter tools/%,$^) >$@
