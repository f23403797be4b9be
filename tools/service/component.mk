# What the servers share: listening, tokens, HTTP in their loop, states, and the common part of their pages.
service_FOLDERS := $(addprefix tools/service/,state net access http settings outbox census)
service_USES := base core common tls
service_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev xxhash.h=libxxhash-dev
service_TESTS := $(addprefix tests/tools/service/,state net access http settings outbox)
service_OBJECTS := $(addprefix $(B)/obj/gen/,service_files.o service_sessions.o)

$(B)/gen/service_files.c: tools/service/page/page.css tools/service/page/common.js scripts/file-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/file-to-c tools/service/http/files.h $(filter tools/service/%,$^) >$@

$(B)/gen/service_sessions.c: tools/service/page/sessions.html tools/service/page/sessions.js scripts/file-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/file-to-c tools/service/census/files.h $(filter tools/service/%,$^) >$@
