# The server of jobs, weekwheeld.
weekwheeld_PROGRAM := weekwheeld
weekwheeld_FOLDERS := tools/weekwheeld $(addprefix tools/weekwheeld/,protocol settings)
weekwheeld_ALSO := tools/common/tls/tls.c
weekwheeld_USES := jobs common
weekwheeld_MAY_USE := redis callback
weekwheeld_NEEDS := libuv=libuv1-dev openssl=libssl-dev uthash.h=uthash-dev
weekwheeld_WANTS := MICROHTTPD:libmicrohttpd=libmicrohttpd-dev
weekwheeld_TESTS := tests/tools/weekwheeld tests/tools/weekwheeld/protocol
weekwheeld_FUZZERS := protocol
