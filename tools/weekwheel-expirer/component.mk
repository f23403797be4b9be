# The companion of Redis, weekwheel-expirer.
expirer_PROGRAM := weekwheel-expirer
expirer_FOLDERS := tools/weekwheel-expirer $(addprefix tools/weekwheel-expirer/,keys node masters keep ends)
expirer_USES := core link journal service common tls
expirer_NEEDS := hiredis=libhiredis-dev libuv=libuv1-dev libmicrohttpd=libmicrohttpd-dev openssl=libssl-dev uthash.h=uthash-dev xxhash.h=libxxhash-dev
expirer_TESTS := $(addprefix tests/tools/weekwheel-expirer/,keys keep)
# As for the link.
expirer_CFLAGS := $(filter-out -I%/hiredis,$(expirer_CFLAGS))
