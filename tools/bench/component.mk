# The benchmark, weekwheel-bench, which is not installed.
bench_PROGRAM := weekwheel-bench
bench_FOLDERS := tools/bench $(addprefix tools/bench/,structures layers)
bench_USES := core common
bench_NEEDS := uthash.h=uthash-dev
bench_WANTS := LIBEVENT:libevent_core=libevent-dev LIBUV:libuv=libuv1-dev LIBEV:ev.h=libev-dev KHASH:htslib/khash.h=libhts-dev
bench_LIBS += $(if $(WITH_LIBEV),-lev)
# The structures of libraries that are missing, and what these have in common.
bench_LEFT_OUT := $(patsubst %,tools/bench/structures/%.c,$(if $(WITH_LIBEV),,libev) $(if $(WITH_LIBEVENT),,libevent) \
	$(if $(WITH_LIBUV),,libuv) $(if $(WITH_LIBEV)$(WITH_LIBEVENT)$(WITH_LIBUV),,event_loop))
bench_TESTS := tests/tools/bench
