# The server of sessions, weekwheel-sessiond.
sessiond_PROGRAM := weekwheel-sessiond
sessiond_FOLDERS := tools/weekwheel-sessiond tools/weekwheel-sessiond/protocol
sessiond_ALSO := $(addprefix tools/service/,address.c buffer.c gate.c metric.c notify.c reply.c state.c teller.c visitors.c web.c)
sessiond_USES := core common
sessiond_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev uthash.h=uthash-dev xxhash.h=libxxhash-dev
sessiond_TESTS := tests/tools/weekwheel-sessiond tests/tools/weekwheel-sessiond/protocol
sessiond_FUZZERS := resp
