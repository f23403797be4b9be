# How tests, examples and fuzz targets are built, which of them "make check" takes, and where they run.

TEST_SRC := $(call sources,$(foreach name,$(COMPONENTS),$($(name)_TESTS)),test_*.c)
TESTS := $(call named,tests,$(TEST_SRC))
TEST_SCRIPTS := $(shell find tests -name 'test_*.sh' -o -name 'test_*.py' | sort)
FUZZ_SRC := $(foreach name,$(COMPONENTS),$($(name)_FUZZERS:%=tests/fuzz/fuzz_%.c))
FUZZERS := $(call named,fuzz,$(FUZZ_SRC))
# The program of a header that this build does not have is left out.
EXAMPLE_SRC := $(filter-out $(patsubst include/weekwheel/%.h,tools/examples/%.c,$(filter-out $(HEADERS),$(wildcard include/weekwheel/*.h))),\
	$(call sources,tools/examples,*.c))
EXAMPLES := $(call named,examples,$(EXAMPLE_SRC))
# Those that a script compiles by itself are no helpers.
HELPER_SRC := $(filter-out $(TEST_SRC) %/fsck.c %/fault_memory.c %/known.c %/small.c %/store_actor.c %/short_ring.c %/short_reads.c %/shifted_clock.c %/shifted_wall.c,\
	$(call sources,$(foreach name,$(COMPONENTS),$($(name)_TESTS) $($(name)_HELPERS)),*.c)) \
	$(if $(FUZZ),,tests/fuzz/main.c)

# In no archive: another test that names clock_gettime would take the benchmark's.
BENCH_TESTS := $(filter $(call named,tests,$(call sources,$(bench_TESTS),test_*.c)),$(TESTS))
$(BENCH_TESTS): $(filter-out %/main.o,$(bench_OBJECTS))
$(filter %/test_coherence,$(TESTS)): $(call objects,tools/bench/cores/coherence.c)
# In no archive either: other tests would take its calls on files.
$(filter %/test_jobs_copy %/test_jobs_faults %/test_jobs_each_fault %/test_journal_faults,$(TESTS)): \
	$(call objects,tests/support/system/calls.c)
$(filter %/test_jobs_faults %/test_jobs_each_fault %/test_journal_faults,$(TESTS)): $(call objects,tests/support/system/fail.c)
# A linker that goes back to earlier archives would take its clock, and the whole library of Redis, for every test.
$(filter %/test_redis_aside %/test_redis_promises %/test_redis_replicas %/test_redis_worker,$(TESTS)): \
	$(call objects,tests/support/redis/store_actor.c)
$(filter %/test_jobs_each_fault,$(TESTS)): $(call objects,tests/lib/jobs/store/fault_memory.c tests/lib/jobs/store/known.c)
# Each test program takes from these archives what it names: the tests' helpers, the programs without their main, the parts and
# the libraries, users before what they use.
$(B)/tests/libhelpers.a: $(call listed,$(B)/tests/libhelpers.a,$(call objects,$(HELPER_SRC)))
$(B)/tests/libtools.a: $(call listed,$(B)/tests/libtools.a,$(filter-out %/main.o,$(foreach name,$(filter-out bench,$(PROGRAMS)),\
	$($(name)_OBJECTS) $(call objects,$($(name)_ALSO)))))
BELOW := $(call each,part,$(filter $(PARTS),$(call unique,$(foreach name,$(COMPONENTS),$($(name)_LINKS))))) \
	$(call each,archive,$(call built,callback redis postgres schedule jobs calendar core))
ARCHIVES := $(B)/tests/libhelpers.a $(B)/tests/libtools.a $(BELOW)
ALL_LIBS = $(tests_LIBS) $(foreach name,$(COMPONENTS),$($(name)_LIBS)) $(JEMALLOC_LIBS) -lm
# Tests that play functions of the C library define them, which its own checked ones would stand before.
$(B)/obj/tests/%: PART += $(tests_CFLAGS) -U_FORTIFY_SOURCE
$(addprefix $(B)/obj/,$(addsuffix /%,$(bench_TESTS)) tools/examples/%): PART += $(bench_CFLAGS)

$(foreach source,$(TEST_SRC),$(eval $(call named,tests,$(source)): $(call objects,$(source))))
$(TESTS): $(ARCHIVES)
	$(call link,$(ALL_LIBS))

# The server whose store has small limits. Scripts start it instead of the other one.
SMALL := $(if $(call built,weekwheeld),$(B)/tests/weekwheeld_small)
$(SMALL): $(weekwheeld_OBJECTS) $(call objects,tests/tools/weekwheeld/small.c) $(BELOW)
	$(call link,$(ALL_LIBS))

# The whole server, whose functions stand before those of other programs.
$(filter %/test_sessiond_threads $(call named,tests,$(wildcard tests/tools/weekwheel-sessiond/commands/test_*.c)),$(TESTS)): $(filter-out %/main.o,$(sessiond_OBJECTS))

# Let these tests make what the library calls for memory fail, the one in a process with jemalloc, the other without.
$(B)/tests/test_allocator $(B)/tests/test_allocator_malloc: LDFLAGS += $(addprefix -Xlinker --wrap=,\
	aligned_alloc free pthread_mutex_init $(if $(JEMALLOC_LIBS),mallocx sdallocx mallctl))
$(B)/tests/test_allocator_malloc: JEMALLOC_LIBS =
$(B)/tests/test_jobs_each_fault: LDFLAGS += $(addprefix -Xlinker --wrap=,malloc calloc realloc strdup)
# Lets another call come first where the map locks.
$(B)/tests/test_session_races: LDFLAGS += $(addprefix -Xlinker --wrap=,ww_source_lock ww_source_lock_two)

# The servers on a simulated system, whose functions stand before those of libuv and of the C library.
SIMULATE := $(if $(call built,weekwheeld),$(B)/tests/simulate) $(if $(call built,sessiond),$(B)/tests/simulate_sessions)
$(B)/tests/simulate: LDFLAGS += $(addprefix -Xlinker --wrap=,ww_jobs_reserve_known ww_jobs_reserve_job)
$(B)/tests/simulate: $(call objects,$(call sources,tests/simulate/jobs,*.c)) $(filter-out %/main.o,$(weekwheeld_OBJECTS))
$(B)/tests/simulate_sessions: LDFLAGS += $(addprefix -Xlinker --wrap=,dial_connect)
$(B)/tests/simulate_sessions: $(call objects,$(call sources,tests/simulate/sessions,*.c)) $(filter-out %/main.o,$(sessiond_OBJECTS))
$(addprefix $(B)/tests/,simulate simulate_sessions): JEMALLOC_LIBS =
$(addprefix $(B)/tests/,simulate simulate_sessions): $(call objects,$(call sources,tests/simulate,*.c) tests/support/system/calls.c) $(BELOW)
	$(call link,$(ALL_LIBS))

$(foreach source,$(EXAMPLE_SRC),$(eval $(call named,examples,$(source)): $(call objects,$(source))))
# The path serves the libraries that a library needs, too.
$(EXAMPLES): $(call each,shared,$(call built,schedule calendar callback redis postgres jobs core))
	$(call link,$(RPATH) -Xlinker --disable-new-dtags $(bench_LIBS) $(JEMALLOC_LIBS))

# With libFuzzer's own main (FUZZ=-fsanitize=fuzzer) a target searches. Otherwise tests/fuzz/main.c replays its corpus. To
# search, nothing is compiled but the files and folders that components name in their FUZZED: what a target calls beside them
# is missed when it is linked.
FUZZED := $(foreach name,$(COMPONENTS),$($(name)_FUZZED))
$(B)/fuzz/libfuzzed.a: $(call listed,$(B)/fuzz/libfuzzed.a,\
	$(call objects,$(filter %.c,$(FUZZED)) $(call sources,$(filter-out %.c,$(FUZZED)),*.c)))
$(FUZZERS): LDFLAGS += $(FUZZ)
$(foreach source,$(FUZZ_SRC),$(eval $(call named,fuzz,$(source)): $(call objects,$(source))))
$(FUZZERS): $(if $(FUZZ),$(B)/fuzz/libfuzzed.a,$(ARCHIVES))
	$(call link,$(ALL_LIBS))

# "make check-quick" takes the tests of the tier quick, "make check" those of check as well, "make check-long" those of long; each test
# says below its first comment which it is of (scripts/run-tests has the tiers and traits). ONLY='TRAIT...' and SKIP='TRAIT...'
# take those that have one of these traits and leave them out. T=name runs one program, script or Check case of any tier, T='a b_*'
# the programs and scripts that match. What does not run is not built; for a Check case, whose program is not known here, all is.
# With WRAP, scripts have nothing to show.
CHECKS := $(filter check check-quick check-long,$(MAKECMDGOALS))
TIERS := $(sort $(patsubst check-%,%,$(CHECKS)) $(if $(filter check,$(CHECKS)),quick))
SCRIPTS = $(if $(WRAP),,$(EXAMPLES) $(TEST_SCRIPTS) $(FUZZERS))
ALL_TESTS = $(SCRIPTS) $(TESTS)
MATCHING = $(foreach path,$(ALL_TESTS),$(if $(filter $(subst *,%,$(T) $(T:%=test_%) $(T:%=fuzz_%)),$(basename $(notdir $(path)))),$(path)))
# An unknown trait would take nothing or leave nothing out, and all would look well.
CHOSEN := $(if $(CHECKS),$(if $(T),,$(shell scripts/run-tests --choose '$(TIERS)' '$(ONLY)' '$(SKIP)' $(ALL_TESTS) || echo FAILED)))
RUN := $(or $(strip $(MATCHING)),$(CHOSEN),$(if $(T),$(ALL_TESTS)))
RUN_SCRIPTS := $(filter $(TEST_SCRIPTS),$(RUN))
NEEDED := $(if $(CHECKS),$(filter $(TESTS) $(EXAMPLES) $(SMALL) $(SIMULATE),$(addprefix $(B)/,\
	$(if $(RUN_SCRIPTS),$(shell scripts/run-tests --needs $(RUN_SCRIPTS))))))

need-check:
	@test '$(call built,tests)' || { echo 'The tests need Check: "make deps" installs it' >&2; exit 1; }
	$(if $(filter FAILED,$(RUN)),$(error the tests were not chosen))

run-chosen: need-check $(if $(RUN_SCRIPTS),all) $(filter-out $(TEST_SCRIPTS),$(RUN)) $(NEEDED)
	@B='$(abspath $(B))' CC='$(CC)' CXX='$(CXX)' SANITIZE='$(SANITIZE)' ALLOCATOR='$(ALLOCATOR)' T='$(T)' \
		WRAP='$(WRAP)' scripts/run-tests $(RUN)
check check-quick check-long: run-chosen
