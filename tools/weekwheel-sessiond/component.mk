# The server of sessions, weekwheel-sessiond.
sessiond_PROGRAM := weekwheel-sessiond
sessiond_FOLDERS := tools/weekwheel-sessiond $(addprefix tools/weekwheel-sessiond/,protocol data keep settings server commands http)
sessiond_USES := core journal service common tls
sessiond_NEEDS := libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev
sessiond_TESTS := tests/tools/weekwheel-sessiond $(addprefix tests/tools/weekwheel-sessiond/,protocol keep commands data)
sessiond_FUZZERS := resp
sessiond_FUZZED := tools/weekwheel-sessiond/protocol tests/tools/weekwheel-sessiond/protocol/resp_transcript.c
