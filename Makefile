# weekwheel's one Makefile, for GNU make. "make help" lists what it does; all that it makes lies under $(B).

B ?= build
override B := $(B:/=)
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
FORCE:

# ---- Configuration: configure finds libraries and leaves $(B)/config.mk ------------------------------------------

# The goals that promise to work on a bare Debian, and the group of packages.txt that each needs.
PACKAGES := $(firstword $(if $(or $(WRAP),$(filter lint run-fuzzers,$(MAKECMDGOALS))),ci) \
	$(if $(filter check,$(MAKECMDGOALS)),check) $(if $(filter bench bench-jobs bench-redis,$(MAKECMDGOALS)),bench) \
	$(if $(filter demo-cluster,$(MAKECMDGOALS)),demo) $(if $(filter demo,$(MAKECMDGOALS)),build))

ifneq ($(filter-out help deps clean distclean format memcheck fuzz,$(or $(MAKECMDGOALS),all)),)
include $(B)/config.mk
# Other options than the configured ones configure again; only once, in case quoting alone tells them apart.
ifeq ($(MAKE_RESTARTS),)
ifneq ($(filter configure,$(MAKECMDGOALS)),)
$(B)/config.mk: FORCE
else ifdef CONFIGURE_FLAGS
ifneq ($(strip $(subst ',,$(CONFIGURE_FLAGS))),$(strip $(subst ',,$(CONFIGURED_FLAGS))))
$(B)/config.mk: FORCE
endif
endif
endif
endif
CONFIGURE_FLAGS ?= $(CONFIGURED_FLAGS)

$(B)/config.mk: $(B)/configure $(if $(PACKAGES),$(B)/packages)
	cd $(B) && ./configure --quiet $(CONFIGURE_FLAGS)

$(B)/configure: configure.ac include/weekwheel/version.h | $(if $(PACKAGES),$(B)/packages)
	@mkdir -p $(B)
	@command -v autom4te >/dev/null || { echo 'autoconf is missing: "make deps" installs it' >&2; exit 1; }
	autom4te --language=autoconf --cache=$(B)/autom4te.cache -o $@ configure.ac

$(B)/packages: FORCE
	@scripts/install-packages $(PACKAGES) $@

# ---- What is compiled of what -----------------------------------------------------------------------------------

# Jobs are a library of their own, which alone needs LMDB.
JOBS_SRC := $(if $(filter no,$(HAVE_LMDB)),,$(sort $(wildcard lib/jobs/*.c)))
# So are jobs in Redis, which alone need hiredis, and callbacks, which alone need libcurl and libcrypto.
REDIS_SRC := $(if $(and $(JOBS_SRC),$(filter-out no,$(HAVE_HIREDIS))),$(sort $(wildcard lib/redis/*.c)))
CALLBACK_SRC := $(if $(or $(if $(JOBS_SRC),,none),$(filter no,$(HAVE_CURL) $(HAVE_CRYPTO))),,$(sort $(wildcard lib/callback/*.c)))
LIB_SRC := $(filter-out $(if $(filter malloc,$(ALLOCATOR)),lib/allocator/jemalloc.c,lib/allocator/malloc.c) \
	lib/jobs/% lib/redis/% lib/callback/%,$(sort $(wildcard lib/*/*.c)))
# Of the libraries to compare with, those that are there; event_loop.c is what they have in common.
NO_PEERS := $(filter-out $(PEERS) $(if $(strip $(PEERS)),event_loop),event_loop libev libevent libuv)
# The server needs LMDB, by way of the jobs, and libuv; its parser needs nothing.
PROTOCOL_SRC := $(wildcard tools/server/protocol*.c tools/server/words.c)
SERVER_SRC := $(if $(filter no,$(HAVE_LMDB) $(HAVE_UV)),,$(sort $(wildcard tools/server/*.c)))
TOOL_SRC := $(filter-out tools/examples/% tools/server/% tools/load/% tools/bench_redis/% $(if $(JOBS_SRC),,tools/store/%) \
	$(NO_PEERS:%=tools/bench/structures/%.c),\
	$(sort $(wildcard tools/*.c tools/*/*.c tools/*/*/*.c)))
# The rules for requests need nothing, and the program has them without their library.
REQUEST_SRC := lib/callback/callback_request.c lib/callback/callback_text.c
LOAD_SRC := $(sort $(wildcard tools/load/*.c))
BENCH_REDIS_SRC := $(if $(and $(REDIS_SRC),$(CALLBACK_SRC)),$(sort $(wildcard tools/bench_redis/*.c)))
EXAMPLE_SRC := $(filter-out $(if $(JOBS_SRC),,%/jobs.c),$(sort $(wildcard tools/examples/*.c)))
TEST_SRC := $(filter-out $(if $(JOBS_SRC),,tests/jobs/%) $(if $(REDIS_SRC),,tests/redis/%) $(if $(CALLBACK_SRC),,tests/callback/%) \
	$(if $(and $(REDIS_SRC),$(CALLBACK_SRC)),,%/test_callback_redis.c),$(sort $(wildcard tests/*/test_*.c)))
FUZZ_SRC := $(filter-out $(if $(JOBS_SRC),,%/fuzz_record.c) $(if $(CALLBACK_SRC),,%/fuzz_callback.c),$(sort $(wildcard tests/fuzz/fuzz_*.c)))
# Those that a script compiles by itself are no helpers: one has a main, the others stand before the C library.
HELPER_SRC := $(filter-out $(if $(REDIS_SRC),,tests/redis/% tests/jobs/kinds_redis.c) $(if $(CALLBACK_SRC),,tests/callback/%) %/test_callback_redis.c \
	$(TEST_SRC) $(FUZZ_SRC) tests/install/% tests/server/fsck.c tests/server/faults.c tests/redis/shifted_clock.c \
	$(if $(filter yes,$(FUZZ)),tests/fuzz/main.c),\
	$(sort $(wildcard tests/*/*.c)))
TEST_SCRIPTS := $(sort $(wildcard tests/*/test_*.sh tests/*/test_*.py))

comma := ,
objects = $(patsubst %.c,$(B)/obj/%.o,$(1))
programs = $(foreach source,$(2),$(B)/$(1)/$(basename $(notdir $(source))))

HEADERS := $(sort $(wildcard include/weekwheel/*.h))
MAN1 := $(sort $(wildcard man/*.1))
# One a header, but for the two that declare nothing.
MAN3 := $(patsubst include/weekwheel/%.h,$(B)/man/weekwheel_%.3,$(filter-out %/export.h %/weekwheel.h,$(HEADERS)))

SONAME := libweekwheel.so.0
JOBS_SONAME := libweekwheel_jobs.so.0
STATIC := $(B)/lib/libweekwheel.a
SHARED := $(B)/lib/libweekwheel.so.$(VERSION)
JOBS_STATIC := $(if $(JOBS_SRC),$(B)/lib/libweekwheel_jobs.a)
JOBS_SHARED := $(if $(JOBS_SRC),$(B)/lib/libweekwheel_jobs.so.$(VERSION))
REDIS_STATIC := $(if $(REDIS_SRC),$(B)/lib/libweekwheel_redis.a)
REDIS_SHARED := $(if $(REDIS_SRC),$(B)/lib/libweekwheel_redis.so.$(VERSION))
CALLBACK_STATIC := $(if $(CALLBACK_SRC),$(B)/lib/libweekwheel_callback.a)
CALLBACK_SHARED := $(if $(CALLBACK_SRC),$(B)/lib/libweekwheel_callback.so.$(VERSION))
PROGRAM := $(B)/bin/weekwheel
LOAD := $(B)/bin/load
BENCH_REDIS := $(if $(BENCH_REDIS_SRC),$(B)/bin/bench-redis)
SERVER := $(if $(SERVER_SRC),$(B)/bin/weekwheeld)
EXAMPLES := $(call programs,examples,$(EXAMPLE_SRC))
TESTS := $(call programs,tests,$(TEST_SRC))
FUZZERS := $(call programs,fuzz,$(FUZZ_SRC))

WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
COMPILE = $(CC) -std=c11 $(WARNINGS) $(if $(filter yes,$(WERROR)),-Werror) $(if $(filter yes,$(DEBUG)),-DWW_DEBUG) \
	-Iinclude $(PART) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -pthread
LINK = $(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -pthread
# Sanitizers leave their own symbols to the program.
SHARED_FLAGS = -shared -Wl,-soname,$(patsubst %.$(VERSION),%.0,$(@F)) -Wl,--version-script=$(filter %.map,$^) $(if $(SANITIZE),,-Wl,-z,defs)
USE_SHARED = -L$(B)/lib -lweekwheel -Wl,-rpath,'$$ORIGIN/../lib'

# Two pointers side by side are stored sooner as two than gathered into one vector first.
$(B)/obj/lib/%: PART = -Ilib -fPIC -fvisibility=hidden -fno-semantic-interposition -fno-tree-slp-vectorize \
	$(JEMALLOC_CFLAGS) $(XXHASH_CFLAGS)
$(B)/obj/lib/jobs/%: PART += -D_GNU_SOURCE $(LMDB_CFLAGS)
# hiredis tells pkg-config to look in its own folder, whose names are too plain to be found by chance.
$(B)/obj/lib/redis/% $(B)/obj/gen/%: PART += -D_GNU_SOURCE $(filter-out -I%/hiredis,$(HIREDIS_CFLAGS))
$(B)/obj/lib/callback/%: PART += -D_GNU_SOURCE $(CURL_CFLAGS) $(CRYPTO_CFLAGS)
$(B)/obj/tools/%: PART = -Itools -D_POSIX_C_SOURCE=200809L $(ZLIB_CFLAGS) $(PEER_CFLAGS)
$(B)/obj/tools/main.o: PART += $(if $(JOBS_SRC),-DHAVE_LMDB)
$(B)/obj/tools/store/%: PART += -D_DEFAULT_SOURCE $(if $(REDIS_SRC),-DHAVE_REDIS)
$(B)/obj/tools/bench_redis/%: PART += -D_DEFAULT_SOURCE $(if $(filter-out no,$(HAVE_MICROHTTPD)),-DHAVE_MICROHTTPD $(MICROHTTPD_CFLAGS))
$(B)/obj/tools/server/%: PART += $(UV_CFLAGS) $(if $(filter-out no,$(HAVE_MICROHTTPD)),-DHAVE_MICROHTTPD $(MICROHTTPD_CFLAGS)) \
	$(if $(REDIS_SRC),-DHAVE_REDIS) $(if $(CALLBACK_SRC),-DHAVE_CALLBACK)
$(B)/obj/tests/%: PART = -Itests -Itools -Ilib -D_POSIX_C_SOURCE=200809L $(XXHASH_CFLAGS) $(CHECK_CFLAGS) $(PEER_CFLAGS)
$(B)/obj/tests/jobs/%: PART += $(if $(REDIS_SRC),-DHAVE_REDIS)

# V=1 shows the commands.
quiet = $(if $(V),,@printf '  %-6s%s\n' $(1) $(2);)

# ---- Build ------------------------------------------------------------------------------------------------------

all: $(STATIC) $(SHARED) $(JOBS_STATIC) $(JOBS_SHARED) $(REDIS_STATIC) $(REDIS_SHARED) $(CALLBACK_STATIC) $(CALLBACK_SHARED) $(PROGRAM) $(SERVER) $(MAN3)

configure: $(B)/config.mk

$(B)/obj/%.o: %.c $(B)/config.mk Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) -MMD -MP -c -o $@ $<

$(STATIC): $(call objects,$(LIB_SRC))
	@mkdir -p $(@D)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

$(SHARED): $(call objects,$(LIB_SRC)) lib/weekwheel.map
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) $(SHARED_FLAGS) -o $@ $(filter %.o,$^) $(JEMALLOC_LIBS)
	@ln -sf $(@F) $(@D)/$(SONAME)
	@ln -sf $(SONAME) $(@D)/libweekwheel.so

$(B)/lib/libweekwheel_jobs.a: $(call objects,$(JOBS_SRC))
	@mkdir -p $(@D)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

# The map and the slab are inside of the other library, which does not show them.
$(B)/lib/libweekwheel_jobs.so.$(VERSION): $(call objects,$(JOBS_SRC) $(filter lib/slab/% lib/table/%,$(LIB_SRC))) \
		lib/weekwheel_jobs.map $(SHARED)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) $(SHARED_FLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -lweekwheel $(LMDB_LIBS)
	@ln -sf $(@F) $(@D)/$(JOBS_SONAME)
	@ln -sf $(JOBS_SONAME) $(@D)/libweekwheel_jobs.so

# Redis runs scripts, which the library bears as text.
REDIS_OBJECTS := $(call objects,$(REDIS_SRC)) $(if $(REDIS_SRC),$(B)/obj/gen/redis_scripts.o)
$(B)/gen/redis_scripts.c: $(sort $(wildcard lib/redis/*.lua)) scripts/lua-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,LUA,$@)scripts/lua-to-c $(filter %.lua,$^) >$@

$(B)/obj/gen/redis_scripts.o: PART = -Ilib -fPIC -fvisibility=hidden
$(B)/obj/gen/redis_scripts.o: $(B)/gen/redis_scripts.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) -MMD -MP -c -o $@ $<

$(B)/lib/libweekwheel_redis.a: $(REDIS_OBJECTS)
$(B)/lib/libweekwheel_callback.a: $(call objects,$(CALLBACK_SRC))
$(B)/lib/libweekwheel_redis.a $(B)/lib/libweekwheel_callback.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

$(B)/lib/libweekwheel_redis.so.$(VERSION): $(REDIS_OBJECTS) lib/weekwheel_redis.map $(JOBS_SHARED) $(SHARED)
$(B)/lib/libweekwheel_redis.so.$(VERSION): NEEDS = $(HIREDIS_LIBS)
$(B)/lib/libweekwheel_callback.so.$(VERSION): $(call objects,$(CALLBACK_SRC)) lib/weekwheel_callback.map $(JOBS_SHARED) $(SHARED)
$(B)/lib/libweekwheel_callback.so.$(VERSION): NEEDS = $(CURL_LIBS) $(CRYPTO_LIBS)
$(B)/lib/libweekwheel_redis.so.$(VERSION) $(B)/lib/libweekwheel_callback.so.$(VERSION):
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) $(SHARED_FLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -lweekwheel_jobs -lweekwheel $(NEEDS)
	@ln -sf $(@F) $(@D)/$(@F:.$(VERSION)=.0)
	@ln -sf $(@F:.$(VERSION)=.0) $(@D)/$(@F:.$(VERSION)=)


$(PROGRAM): $(call objects,$(TOOL_SRC) $(REQUEST_SRC)) $(REDIS_SHARED) $(JOBS_SHARED) $(SHARED)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) -o $@ $(filter %.o,$^) -L$(B)/lib $(if $(REDIS_SHARED),-lweekwheel_redis) \
		$(if $(JOBS_SHARED),-lweekwheel_jobs) $(USE_SHARED) $(ZLIB_LIBS) $(PEER_LIBS) -lm

# Of the tools, what it says and how it is told; the rest is its own.
$(B)/bin/weekwheeld: $(call objects,$(SERVER_SRC) $(addprefix tools/,message.c options.c progress.c suggest.c)) \
		$(REDIS_SHARED) $(CALLBACK_SHARED) $(JOBS_SHARED) $(SHARED)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) -o $@ $(filter %.o,$^) -L$(B)/lib $(if $(REDIS_SRC),-lweekwheel_redis) \
		$(if $(CALLBACK_SRC),-lweekwheel_callback) -lweekwheel_jobs $(USE_SHARED) $(UV_LIBS) $(MICROHTTPD_LIBS)

# Loads a server of jobs; for measuring alone, and not installed.
$(LOAD): $(call objects,$(LOAD_SRC))
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) -o $@ $^

# The same of jobs in Redis.
$(B)/bin/bench-redis: $(call objects,$(BENCH_REDIS_SRC)) $(CALLBACK_SHARED) $(REDIS_SHARED) $(JOBS_SHARED) $(SHARED)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) -o $@ $(filter %.o,$^) -L$(B)/lib -lweekwheel_callback -lweekwheel_redis -lweekwheel_jobs $(USE_SHARED) $(MICROHTTPD_LIBS)

# A page tells the version and names the other pages.
$(B)/man/weekwheel_%.3: include/weekwheel/%.h $(HEADERS) scripts/header-to-man
	@mkdir -p $(@D)
	$(call quiet,MAN,$@)scripts/header-to-man $< >$@

demo: $(PROGRAM) $(SERVER)
	$(PROGRAM) replay
	@B='$(B)' scripts/demo-jobs

demo-cluster: $(PROGRAM) $(SERVER)
	@B='$(B)' scripts/demo-cluster

# ---- Speed ------------------------------------------------------------------------------------------------------

# The powers of ten from 1e4 to N, and N. What is no number is left to the program, which says so.
N ?= 1000000
TIMERS = $(shell awk -v n='$(N)' 'BEGIN { for (i = 10000; i < n + 0; i *= 10) printf "%d,", i; print n }')
# With 5 repetitions a million timers would take more than six minutes.
R ?= 3
# The last processor that this process may have; empty, nothing is pinned.
CPU ?= $(shell awk '/^Cpus_allowed_list:/ { sub(/.*[-,\t ]/, ""); print }' /proc/self/status 2>/dev/null)

bench: $(PROGRAM)
	$(PROGRAM) bench --timers '$(TIMERS)' --repetitions $(R) $(if $(CPU),--cpu '$(CPU)') --html '$(B)/bench.html'
	@echo
	@echo 'The plots: $(B)/bench.html'

bench-instructions: $(PROGRAM)
	@B='$(B)' CC='$(CC)' scripts/count-instructions

bench-jobs: all $(LOAD)
	@B='$(abspath $(B))' scripts/bench-jobs $(JOBS)

bench-redis: all $(BENCH_REDIS)
	@test -n '$(BENCH_REDIS)' || { echo 'bench-redis needs hiredis, libcurl and libcrypto: "make deps" installs them' >&2; exit 1; }
	@B='$(abspath $(B))' scripts/bench-redis $(if $(filter yes,$(JSON)),--json) $(JOBS)

# ---- Tests ------------------------------------------------------------------------------------------------------

# Each test program takes from these archives what it names: the tests' helpers, the tools without their main.
$(B)/tests/libhelpers.a: $(call objects,$(HELPER_SRC))
$(B)/tests/libtools.a: $(filter-out %/main.o,$(call objects,$(TOOL_SRC) $(PROTOCOL_SRC) $(if $(CALLBACK_SRC),,$(REQUEST_SRC))))
$(B)/tests/libhelpers.a $(B)/tests/libtools.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^
ARCHIVES := $(B)/tests/libhelpers.a $(B)/tests/libtools.a $(REDIS_STATIC) $(CALLBACK_STATIC) $(JOBS_STATIC) $(STATIC)
ARCHIVES_NEED = $(if $(REDIS_SRC),$(HIREDIS_LIBS)) $(if $(CALLBACK_SRC),$(CURL_LIBS) -lssl $(CRYPTO_LIBS)) $(LMDB_LIBS) $(JEMALLOC_LIBS) -lm

$(foreach source,$(TEST_SRC),$(eval $(call programs,tests,$(source)): $(call objects,$(source))))
$(TESTS): $(ARCHIVES)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CHECK_LIBS) $(ZLIB_LIBS) $(PEER_LIBS) $(ARCHIVES_NEED)

# Lets this test make what the library calls for memory fail.
$(B)/tests/test_allocator: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,\
	aligned_alloc free pthread_mutex_init mallocx sdallocx mallctl)

$(foreach source,$(EXAMPLE_SRC),$(eval $(call programs,examples,$(source)): $(call objects,$(source))))
$(B)/examples/jobs: USE_SHARED += -lweekwheel_jobs
$(EXAMPLES): $(SHARED) $(JOBS_SHARED)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) -o $@ $(filter %.o,$^) $(USE_SHARED) $(PEER_LIBS)

# T=name runs one program, script or Check case, T='a b_*' those that match. SKIP names those to leave out, ONLY those
# to take: test programs, whose % stands for any text. What does not run is not built. With WRAP, scripts have nothing
# to show.
RUN := $(filter-out $(if $(T),,$(foreach name,$(SKIP),%/$(name) %/$(name).sh %/$(name).py)),\
	$(if $(ONLY),$(filter $(addprefix $(B)/tests/test_,$(ONLY)),$(TESTS)),\
		$(TESTS) $(if $(WRAP),,$(EXAMPLES) $(TEST_SCRIPTS) $(FUZZERS))))
# Misspelt, a name would take nothing or leave nothing out, and all would look well. What is left out need not be part
# of this build.
UNKNOWN_ONLY = $(strip $(foreach name,$(ONLY),$(if $(filter $(B)/tests/test_$(name),$(TESTS)),,$(name))))
UNKNOWN_SKIP = $(strip $(foreach name,$(SKIP) $(TEST_ASIDE),\
	$(if $(wildcard $(addprefix tests/*/$(name).,c sh py) tools/examples/$(name).c),,$(name))))

need-check:
	@test "$(HAVE_CHECK)" != no || { echo 'The tests need Check: "make deps" installs it' >&2; exit 1; }
	$(if $(UNKNOWN_ONLY),$(error ONLY: this build has no test program for: $(UNKNOWN_ONLY)))
	$(if $(UNKNOWN_SKIP),$(error SKIP or TEST_ASIDE: there is no test named: $(UNKNOWN_SKIP)))

# These scripts start processes of a test program, whether it runs as a test or not.
ACTOR := $(if $(and $(REDIS_SRC),$(filter %/test_redis_chaos.py %/test_redis_clock.py,$(RUN))),\
	$(B)/tests/test_redis_worker)
check: need-check $(if $(filter $(TEST_SCRIPTS),$(RUN)),all) $(filter-out $(TEST_SCRIPTS),$(RUN)) $(ACTOR)
	@B='$(abspath $(B))' CC='$(CC)' CXX='$(CXX)' SANITIZE='$(SANITIZE)' ALLOCATOR='$(ALLOCATOR)' T='$(T)' \
		WRAP='$(WRAP)' scripts/run-tests $(RUN)

# jemalloc would hide from valgrind what becomes of a block. Left out are programs that step through weeks tick by tick,
# which would take valgrind most of an hour; test_bench, test_left_out and test_structures do so with structures, and measure. So
# are those that race threads, do millions of steps against an oracle or let each of many allocations fail. The
# sanitizers run them all. test_driver_fork forks among threads, and a child has what another thread was about to link.
SLOW_MEMCHECK := test_cascade test_exact test_schedule test_driver_fork test_driver_race test_driver_model \
	test_after_races test_after_late test_keyed_threads test_keyed_oracle test_session_threads test_session_oracle test_table \
	test_table_memory test_clock_threads test_jobs_model test_jobs_crash test_jobs_threads test_session_life \
	test_session_fork test_session_memory test_keyed_memory \
	test_redis_promises test_redis_worker test_redis_cluster test_redis_hostile test_redis_ear test_redis_backoff \
	test_jobs_extremes test_bench test_left_out test_structures
memcheck:
	+@$(MAKE) --no-print-directory check B=$(B)/memcheck CONFIGURE_FLAGS=--without-jemalloc \
		WW_MODEL_OPS=$${WW_MODEL_OPS:-200000} SKIP='$(SLOW_MEMCHECK)' \
		WRAP='valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite'

# With libFuzzer's own main a target searches; otherwise tests/fuzz/main.c replays its corpus.
$(foreach source,$(FUZZ_SRC),$(eval $(call programs,fuzz,$(source)): $(call objects,$(source))))
$(FUZZERS): $(ARCHIVES)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) $(if $(filter yes,$(FUZZ)),-fsanitize=fuzzer) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		$(ZLIB_LIBS) $(PEER_LIBS) $(ARCHIVES_NEED)

FUZZ_SECONDS ?= 20
fuzz:
	+@$(MAKE) --no-print-directory run-fuzzers B=$(B)/fuzz \
		CONFIGURE_FLAGS='CC=clang --enable-fuzzers --enable-sanitizers=address,undefined'
run-fuzzers: $(FUZZERS)
	@B='$(abspath $(B))' FUZZ_SECONDS='$(FUZZ_SECONDS)' T='$(T)' scripts/run-fuzzers $(FUZZERS)

# ---- What people say about the sources --------------------------------------------------------------------------

lint: all
	@B='$(abspath $(B))' CC='$(CC)' CXX='$(CXX)' scripts/lint

format:
	clang-format -i $(sort $(wildcard $(foreach folder,include lib tests tools,\
		$(folder)/*.[ch] $(folder)/*/*.[ch] $(folder)/*/*/*.[ch])))

# ---- Install ----------------------------------------------------------------------------------------------------

# Where each shell looks for completions, and systemd for units.
COMPLETIONS_BASH = $(prefix)/share/bash-completion/completions/weekwheel
COMPLETIONS_ZSH = $(prefix)/share/zsh/site-functions/_weekwheel
UNITS = $(prefix)/lib/systemd/system

# What is installed where; of jobs and the server as far as they were built.
PACKAGES_PC = $(B)/weekwheel.pc $(if $(JOBS_SRC),$(B)/weekwheel-jobs.pc) $(if $(REDIS_SRC),$(B)/weekwheel-redis.pc) \
	$(if $(CALLBACK_SRC),$(B)/weekwheel-callback.pc)
UNIT = $(if $(SERVER),$(B)/weekwheeld.service)
ARCHIVE_FILES = $(STATIC) $(JOBS_STATIC) $(REDIS_STATIC) $(CALLBACK_STATIC)
SHARED_FILES = $(SHARED) $(JOBS_SHARED) $(REDIS_SHARED) $(CALLBACK_SHARED)

$(B)/%.pc: %.pc.in $(B)/config.mk FORCE
	@sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' \
		-e 's|@VERSION@|$(VERSION)|' -e 's|@ALLOCATOR_LIBS@|$(strip $(JEMALLOC_LIBS))|' $< > $@

# It names the program by its whole path, and does not have to be copied any more.
$(B)/weekwheeld.service: tools/server/weekwheeld.service $(B)/config.mk FORCE
	@sed -e 's|^ExecStart=[^ ]*|ExecStart=$(bindir)/weekwheeld|' \
		-e 's|^\(# .*: \)copy this to .*, then |\1|' $< > $@

install: all $(PACKAGES_PC) $(UNIT)
	install -d $(addprefix $(DESTDIR),$(bindir) $(libdir)/pkgconfig $(includedir)/weekwheel $(mandir)/man1 $(mandir)/man3)
	install -m 755 $(PROGRAM) $(SERVER) $(DESTDIR)$(bindir)/
	install -m 644 $(ARCHIVE_FILES) $(DESTDIR)$(libdir)/
	install -m 755 $(SHARED_FILES) $(DESTDIR)$(libdir)/
	$(foreach shared,$(SHARED_FILES),\
		ln -sf $(notdir $(shared)) $(DESTDIR)$(libdir)/$(notdir $(shared:.$(VERSION)=.0)) && \
		ln -sf $(notdir $(shared:.$(VERSION)=.0)) $(DESTDIR)$(libdir)/$(notdir $(shared:.$(VERSION)=)) &&) true
	install -m 644 $(PACKAGES_PC) $(DESTDIR)$(libdir)/pkgconfig/
	install -m 644 $(HEADERS) $(DESTDIR)$(includedir)/weekwheel/
	install -m 644 $(MAN1) $(DESTDIR)$(mandir)/man1/
	install -m 644 $(MAN3) $(DESTDIR)$(mandir)/man3/
	install -D -m 644 tools/completion/weekwheel.bash $(DESTDIR)$(COMPLETIONS_BASH)
	install -D -m 644 tools/completion/_weekwheel $(DESTDIR)$(COMPLETIONS_ZSH)
	$(if $(UNIT),install -D -m 644 $(UNIT) $(DESTDIR)$(UNITS)/weekwheeld.service)

# Also what this configuration would not install, and one before it did.
uninstall:
	rm -f $(addprefix $(DESTDIR)$(bindir)/,weekwheel weekwheeld) \
		$(foreach name,libweekwheel libweekwheel_jobs libweekwheel_redis libweekwheel_callback,\
			$(addprefix $(DESTDIR)$(libdir)/$(name),.a .so .so.0 .so.$(VERSION))) \
		$(addprefix $(DESTDIR)$(libdir)/pkgconfig/,weekwheel.pc weekwheel-jobs.pc weekwheel-redis.pc weekwheel-callback.pc) \
		$(addprefix $(DESTDIR)$(includedir)/weekwheel/,$(notdir $(HEADERS))) \
		$(addprefix $(DESTDIR)$(mandir)/man1/,$(notdir $(MAN1))) \
		$(addprefix $(DESTDIR)$(mandir)/man3/,$(notdir $(MAN3))) \
		$(DESTDIR)$(COMPLETIONS_BASH) $(DESTDIR)$(COMPLETIONS_ZSH) $(DESTDIR)$(UNITS)/weekwheeld.service
	-rmdir $(DESTDIR)$(includedir)/weekwheel

# ---- The rest ---------------------------------------------------------------------------------------------------

deps:
	scripts/install-packages ci

clean:
	rm -rf $(B)

distclean: clean
	rm -rf autom4te.cache configure configure~ config.log

help:
	@echo 'make            build the libraries and the program weekwheel under build/'
	@echo 'make demo       build, then replay a synthetic week, and kill a job server (installs missing packages)'
	@echo 'make demo-cluster   two servers that share a Redis, one of which is killed (installs missing packages)'
	@echo 'make bench      compare with other structures at up to N=1000000 timers, R=3 times, on processor CPU'
	@echo 'make bench-jobs   compare weekwheeld with beanstalkd, with up to JOBS=1000000 jobs'
	@echo 'make bench-redis  measure jobs in Redis on this machine with JOBS=1000000 jobs, beside their goals; JSON=yes for machines'
	@echo 'make bench-instructions   count the instructions of an operation, beside the committed counts; needs valgrind'
	@echo 'make check      build and run every test (installs missing packages); T=name runs one'
	@echo 'make memcheck   run the test programs under valgrind'
	@echo 'make fuzz       run each fuzz target for FUZZ_SECONDS, 20 by default'
	@echo 'make lint       check format, layers, exports, headers, scripts and the map of files'
	@echo 'make format     format every source file'
	@echo 'make install    install below prefix (/usr/local) and DESTDIR; make uninstall removes it'
	@echo 'make configure CONFIGURE_FLAGS="..."   configure again:'
	@echo '                --without-jemalloc, --without-peers, --enable-debug, --enable-sanitizers=address,undefined,'
	@echo '                --prefix=..., CC=...;'
	@echo '                they stay until others are given; --with-jemalloc undoes --without-jemalloc'
	@echo 'make deps       install the packages that the build and all checks need'
	@echo 'make clean      remove build/; make distclean also what a configure run by hand left'
	@echo 'B=folder builds elsewhere than in build/, V=1 shows the commands.'

.PHONY: all configure demo demo-cluster bench bench-jobs bench-redis bench-instructions check need-check memcheck fuzz run-fuzzers lint format install \
	uninstall deps clean distclean help FORCE

-include $(patsubst %.o,%.d,$(call objects,$(LIB_SRC) $(JOBS_SRC) $(REDIS_SRC) $(CALLBACK_SRC) $(REQUEST_SRC) $(TOOL_SRC) $(SERVER_SRC) $(LOAD_SRC) $(BENCH_REDIS_SRC) $(PROTOCOL_SRC) \
	$(EXAMPLE_SRC) $(TEST_SRC) $(FUZZ_SRC) $(HELPER_SRC)))
