# The server of sessions, weekwheel-sessiond.
sessiond_PROGRAM := weekwheel-sessiond
sessiond_FOLDERS := tools/weekwheel-sessiond $(addprefix tools/weekwheel-sessiond/,protocol data keep settings server commands http $(if $(filter lua,$(COMPONENTS)),script))
sessiond_USES := core journal service common tls
sessiond_MAY_USE := lua
sessiond_CFLAGS += $(if $(filter lua,$(COMPONENTS)),$(lua_CFLAGS))
sessiond_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev
sessiond_TESTS := tests/tools/weekwheel-sessiond $(addprefix tests/tools/weekwheel-sessiond/,protocol keep commands data $(if $(filter lua,$(COMPONENTS)),script))
sessiond_FUZZERS := resp
sessiond_FUZZED := tools/weekwheel-sessiond/protocol tests/tools/weekwheel-sessiond/protocol/resp_transcript.c
