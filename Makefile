# weekwheel's one Makefile, for GNU make. "make help" lists what it does. All that it makes lies under $(B).
# Each component has a list of its own, component.mk, in its folder: what it is built from, uses and needs.

B ?= build
# One folder has one spelling: another would count as other files, and make anew what lies there.
override B := $(patsubst $(CURDIR)/%,%,$(B:/=))
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
FORCE:

# ---- Configuration: configure decides which components are built and leaves $(B)/config.mk ------------------------

LISTS := $(wildcard lib/*/component.mk lib/*/*/component.mk tools/*/component.mk tools/*/*/component.mk tests/component.mk)
# The goals that promise to work on a bare Debian, after the group of packages.txt that each needs.
GOALS := ci:lint ci:run-fuzzers $(foreach goal,check check-quick check-long,$(if $(WRAP),ci,check):$(goal)) bench:bench bench:bench-jobs \
	bench:bench-postgres bench:bench-redis demo:demo-cluster demo:demo-postgres demo:demo-sessions \
	build:demo
GROUP := $(firstword $(foreach group,ci check bench demo build,\
	$(if $(filter $(addprefix $(group):,$(MAKECMDGOALS)),$(GOALS)),$(group))))

# It is there before make looks: a stamp that is made anew would count as newer than the configuration, with nothing installed.
$(if $(GROUP),$(shell mkdir -p $(B) && { [ -e $(B)/packages ] || touch -d @1 $(B)/packages; }))

ifneq ($(filter-out help deps clean distclean format memcheck fuzz flakes,$(or $(MAKECMDGOALS),all)),)
include $(B)/config.mk
# Options other than the configured ones configure again, but only once: quoting alone may tell them apart.
ifeq ($(MAKE_RESTARTS),)
ifneq ($(filter configure,$(MAKECMDGOALS)),)
$(B)/config.mk: FORCE
else ifdef CONFIGURE_FLAGS
ifneq ($(strip $(subst ',,$(CONFIGURE_FLAGS))),$(strip $(subst ',,$(CONFIGURED_FLAGS))))
$(B)/config.mk: FORCE
endif
endif
endif
include $(LISTS)
endif
CONFIGURE_FLAGS ?= $(CONFIGURED_FLAGS)

$(B)/config.mk: $(B)/configure $(GROUP:%=$(B)/packages)
	cd $(B) && ./configure --quiet $(CONFIGURE_FLAGS)

$(B)/configure: configure.ac include/weekwheel/version.h $(LISTS) | $(GROUP:%=$(B)/packages)
	@mkdir -p $(B)
	@command -v autom4te >/dev/null || [ -f configure ] || { echo 'autoconf is missing: "make deps" installs it' >&2; exit 1; }
	if command -v autom4te >/dev/null; then \
		autom4te --force --language=autoconf --cache=$(B)/autom4te.cache -o $@ configure.ac; else cp configure $@; fi
	@touch $@

$(B)/packages: FORCE
	@scripts/install-packages $(GROUP) $@

# ---- Components -------------------------------------------------------------------------------------------------

sources = $(sort $(wildcard $(addsuffix /$(2),$(1))))
objects = $(patsubst %.c,$(B)/obj/%.o,$(1))
named = $(foreach source,$(2),$(B)/$(1)/$(basename $(notdir $(source))))
built = $(filter $(COMPONENTS),$(1))
# A component with all that it uses, users first. What it may use counts where it is built.
closure = $(1) $(foreach used,$($(1)_USES) $(call built,$($(1)_MAY_USE)),$(call closure,$(used)))
unique = $(if $(1),$(call unique,$(filter-out $(lastword $(1)),$(1))) $(lastword $(1)))
using = $(call unique,$(call closure,$(1)))

LIBRARIES := $(foreach name,$(COMPONENTS),$(if $($(name)_LIBRARY),$(name)))
PROGRAMS := $(foreach name,$(COMPONENTS),$(if $($(name)_PROGRAM),$(name)))
# The others with code are parts: archives, from which each library and program takes what it calls.
PARTS := $(filter-out $(LIBRARIES) $(PROGRAMS),$(foreach name,$(COMPONENTS),$(if $($(name)_FOLDERS),$(name))))
# The number of the binary interface of all libraries: docs/versions.md.
SONAME := 1
shared = $(B)/lib/lib$($(1)_LIBRARY).so.$(VERSION)
archive = $(B)/lib/lib$($(1)_LIBRARY).a
program = $(B)/bin/$($(1)_PROGRAM)
part = $(B)/lib/$(1).a
# What a library or program is linked with, beside the libraries of ours: its parts, and what it and they need of others.
parts = $(call each,part,$(filter $(PARTS),$($(1)_LINKS)))
libs = $(foreach name,$(1) $(filter $(PARTS),$($(1)_LINKS)),$($(name)_LIBS))
each = $(foreach name,$(2),$(call $(1),$(name)))
STATIC := $(call each,archive,$(LIBRARIES))
SHARED := $(call each,shared,$(LIBRARIES))
BINARIES := $(call each,program,$(PROGRAMS))
INSTALLED := $(call each,program,$(call built,weekwheel weekwheeld sessiond expirer))

HEADERS := $(patsubst %,include/weekwheel/%.h,$(sort $(foreach name,$(LIBRARIES),$($(name)_HEADERS))))
MAN1 := $(sort $(wildcard man/*.[17]))
# One page a header, but for the two that declare nothing.
MAN3 := $(patsubst include/weekwheel/%.h,$(B)/man/weekwheel_%.3,$(filter-out %/export.h %/weekwheel.h,\
	$(if $(PYTHON),$(HEADERS))))

WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
COMPILE = $(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(DEFINES) -I. -Iinclude $(HARDENING) $(PART) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -pthread
LINK = $(CC) $(CFLAGS) $(SANITIZE) $(HARDENED_LINK) $(LDFLAGS) -pthread
# Sanitizers leave their own symbols to the program. A plugin that ends may leave a driver, whose threads run on.
LINK_SHARED = $(LINK) -shared -Wl,-soname,$(patsubst %.$(VERSION),%.$(SONAME),$(@F)) -Wl,-z,nodelete $(if $(SANITIZE),,-Wl,-z,defs)

# Two pointers side by side are stored sooner as two than gathered into one vector first.
$(B)/obj/lib/% $(B)/obj/gen/%: PART += -fPIC -fvisibility=hidden -fno-semantic-interposition -fno-tree-slp-vectorize
# The wheel copies no bytes to its stack, and looking after it would cost a fiftieth of an advance.
$(B)/obj/lib/core/wheel/%: PART += -fno-stack-protector
# Examples compile as a POSIX program of a user would.
$(B)/obj/tools/examples/%: PART += -U_GNU_SOURCE -D_POSIX_C_SOURCE=200809L

# V=1 shows the commands. scripts/run-tests sets TESTED: nothing changes in the folder from which tests run. make -n changes nothing.
tested = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),,$(filter $(abspath $(B)),$(TESTED)))
quiet = $(if $(tested),$(error $(2) would be made anew while tests run from $(B)))$(if $(V),,@printf '  %-6s%s\n' $(1) $(2);)
# Who starts a program sees the former one or the whole new one.
define link
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK) -o $@.new $(filter %.o,$^) $(filter %.a,$^) -Wl,--as-needed $(filter %.so.$(VERSION),$^)\
		$(1) && mv -f $@.new $@
endef

# ---- Build ------------------------------------------------------------------------------------------------------

all: $(STATIC) $(SHARED) $(BINARIES) $(MAN3)

configure: $(B)/config.mk

define compile
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) -MMD -MP -c -o $@ $<
endef
$(B)/obj/%.o: %.c $(B)/config.mk Makefile
	$(compile)
$(B)/obj/gen/%.o: $(B)/gen/%.c $(B)/config.mk Makefile
	$(compile)

# $(call listed,TARGET,FILES): these files, and a list of them, which is written when they are others than before. The times of
# the files do not show that one has gone, or came back with an object that is older than the target.
# GNU make 4.3 leaves the newline at the end of some files that it reads.
same = $(and $(findstring <$(1)>,<$(2)>),$(findstring <$(2)>,<$(1)>))
list = $(B)/lists/$(subst /,-,$(1:$(B)/%=%)).list
listed = $(2) $(if $(and $(wildcard $(list)),$(call same,$(strip $(file <$(list))),$(strip $(2)))),,$(file >$(list),$(strip $(2))))$(list)
$(if $(COMPONENTS),$(shell mkdir -p $(B)/lists))

# Archives are made anew. Two members may have the same name.
%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) qcs $@ $(filter %.o,$^)

# What one component is built from, and how it is linked with those that it uses.
define component_rule
$(1)_SRC := $$(filter-out $$($(1)_LEFT_OUT),$$(call sources,$$($(1)_FOLDERS),*.c))
$(1)_OBJECTS += $$(call objects,$$($(1)_SRC))
$(1)_LINKS := $$(call using,$(1))
$$(addprefix $(B)/obj/,$$(addsuffix /%,$$($(1)_FOLDERS))): PART += $$($(1)_CFLAGS)
endef
define library_rule
$(call archive,$(1)): $$(call listed,$(call archive,$(1)),$$($(1)_OBJECTS) $$(foreach part,$$($(1)_CONTAINS),$$($$(part)_OBJECTS)))
$(call shared,$(1)): $$(call listed,$(call shared,$(1)),$$($(1)_OBJECTS)) lib/$(1)/$($(1)_LIBRARY).map $$(call parts,$(1)) \
		$$(call each,shared,$$(filter-out $(1),$$(filter $(LIBRARIES),$$($(1)_LINKS))))
	@mkdir -p $$(@D)
	$$(call quiet,LINK,$$@)$$(LINK_SHARED) -Wl,--version-script=$$(filter %.map,$$^) -o $$@.new $$(filter %.o %.a,$$^) \
		$$(filter-out $$@,$$(filter %.so.$(VERSION),$$^)) $$(call libs,$(1)) && mv -f $$@.new $$@
	@for name in .so.$(SONAME) .so; do ln -sf $$(@F) $$@.new && mv -f $$@.new $$(@D)/lib$($(1)_LIBRARY)$$$$name; done
endef
define program_rule
$(call program,$(1)): $$(call listed,$(call program,$(1)),$$($(1)_OBJECTS) $$(call objects,$$($(1)_ALSO))) $$(call parts,$(1)) \
		$$(call each,shared,$$(filter $(LIBRARIES),$$($(1)_LINKS)))
	$$(call link,$$(RPATH) $$(call libs,$(1)) $$(JEMALLOC_LIBS) -lm)
endef
RPATH = -Wl,-rpath,'$$ORIGIN/../lib'
$(foreach name,$(COMPONENTS),$(eval $(call component_rule,$(name))))
$(foreach name,$(LIBRARIES),$(eval $(call library_rule,$(name))))
$(foreach name,$(PROGRAMS),$(eval $(call program_rule,$(name))))
$(foreach name,$(PARTS),$(eval $(call part,$(name)): $(call listed,$(call part,$(name)),$($(name)_OBJECTS))))

# A page tells the version, names the other pages and shows a program.
$(B)/man/weekwheel_%.3: include/weekwheel/%.h $(HEADERS) scripts/header-to-man $(wildcard tools/examples/*.c)
	@mkdir -p $(@D)
	$(call quiet,MAN,$@)scripts/header-to-man $< >$@

demo: all
	$(B)/bin/weekwheel replay
	@B='$(B)' scripts/demo-jobs

demo-cluster: all
	@B='$(B)' scripts/demo-cluster

demo-postgres: all
	@B='$(abspath $(B))' scripts/demo-postgres $(JOBS)

demo-sessions: all
	@B='$(B)' scripts/demo-sessions $(JOBS)

# ---- Speed ------------------------------------------------------------------------------------------------------

# The powers of ten from 1e4 to N, and N. R repetitions on the last processor that this process may have.
N ?= 1000000
R ?= 3
CPU ?= $(shell awk '/^Cpus_allowed_list:/ { sub(/.*[-,\t ]/, ""); print }' /proc/self/status 2>/dev/null)
TIMERS = $(shell awk -v n='$(N)' 'BEGIN { for (i = 10000; i < n + 0; i *= 10) printf "%d,", i; print n }')

# Interrupted, it draws what was measured.
bench: all
	@trap : INT TERM; \
	$(B)/bin/weekwheel-bench --timers '$(TIMERS)' --repetitions $(R) $(CPU:%=--cpu '%') --save '$(B)/bench.json'; status=$$?; \
	[ $$status != 2 ] || exit 2; \
	scripts/bench-plots --html '$(B)/bench.html' '$(B)/bench.json' && printf '\nThe plots: %s\n' '$(B)/bench.html' && exit $$status

bench-cores bench-expirer bench-instructions bench-jobs bench-limits bench-postgres bench-redis bench-schedules bench-sessions: all
	@B='$(abspath $(B))' CC='$(CC)' JSON='$(JSON)' scripts/$(@:bench-instructions=count-instructions) $(JOBS)

# ---- Tests ------------------------------------------------------------------------------------------------------

ifneq ($(COMPONENTS),)
include tests/rules.mk
endif

# jemalloc would hide from valgrind what becomes of a block.
memcheck:
	+@$(MAKE) --no-print-directory check check-long B=$(B)/memcheck CONFIGURE_FLAGS='--without-jemalloc $(subst ','\'',$(CONFIGURE_FLAGS))' \
		WW_MODEL_OPS=$${WW_MODEL_OPS:-200000} WW_STORE_ROUNDS=200 WW_SHARE=10 SKIP=no-valgrind \
		WRAP='valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite'

# A tier, again and again, beside busy processes.
flakes:
	+@B='$(B)' MAKE='$(MAKE)' RUNS='$(RUNS)' LOAD='$(LOAD)' TIER='$(TIER)' scripts/find-flakes $(T)

FUZZ_SECONDS ?= 20
fuzz:
	+@$(MAKE) --no-print-directory run-fuzzers B=$(B)/fuzz \
		CONFIGURE_FLAGS='CC=clang --enable-fuzzers --enable-sanitizers=address,undefined'
run-fuzzers: $(FUZZERS)
	@B='$(abspath $(B))' FUZZ_SECONDS='$(FUZZ_SECONDS)' TEST_SECONDS=$$(($(FUZZ_SECONDS) + 600)) \
		T='$(patsubst %,fuzz_%,$(T:fuzz_%=%))' WRAP=scripts/fuzz scripts/run-tests $(FUZZERS)

lint: all
	@B='$(abspath $(B))' ABI='$(ABI)' CC='$(CC)' CXX='$(CXX)' T='$(T)' scripts/run-tests $(sort $(wildcard scripts/check-*))

format:
	find include lib tests tools -name '*.[ch]' -exec clang-format -i {} +

# ---- Power failures ---------------------------------------------------------------------------------------------

STATES ?= 300
SYNC ?= always

crash-test: all $(SMALL)
	@B='$(abspath $(B))' CC='$(CC)' WW_STATES='$(STATES)' WW_SYNC='$(SYNC)' PYTHONPATH='$(CURDIR)/tests/support' tests/tools/weekwheeld/test_crash.py

# ---- Weeks of the servers on a simulated system -------------------------------------------------------------------

WEEKS ?= 1000
SEED ?= 1
PROCESSES ?= $(shell nproc)

simulate: $(SIMULATE)
	@$(if $(SIMULATE),,echo 'It needs a server and Check: "make deps" installs what they need' >&2; exit 1)
	@for program in $(SIMULATE); do $$program --weeks '$(WEEKS)' --seed '$(SEED)' --processes '$(PROCESSES)' || exit; done

# ---- Everything at once -------------------------------------------------------------------------------------------

HOURS ?= 1

soak: all
	@B='$(abspath $(B))' CC='$(CC)' WW_HOURS='$(HOURS)' PYTHONPATH='$(CURDIR)/tests/support' tests/tools/weekwheeld/soak.py

# ---- Tests of the tests -------------------------------------------------------------------------------------------

P ?= 2

mutants: N = 30
mutants: all
	@B='$(B)' T='$(T)' N='$(N)' SEED='$(SEED)' P='$(P)' scripts/mutants '$(FOLDER)'

# ---- Failovers of Redis -------------------------------------------------------------------------------------------

ROUNDS ?= 10

failovers: all
	@B='$(abspath $(B))' CC='$(CC)' WW_ROUNDS='$(ROUNDS)' WW_PUTS=6000 PYTHONPATH='$(CURDIR)/tests/support' tests/tools/weekwheeld/test_failover.py
	@B='$(abspath $(B))' CC='$(CC)' WW_ROUNDS='$(ROUNDS)' WW_PUTS=7500 PYTHONPATH='$(CURDIR)/tests/support' \
		tests/tools/weekwheeld/test_postgres_replicas.py -k outlives

# ---- The documentation as a site --------------------------------------------------------------------------------

site: $(MAN3)
	@B='$(abspath $(B))' scripts/make-site

# ---- A release ----------------------------------------------------------------------------------------------------

dist: $(B)/configure
	@B='$(abspath $(B))' VERSION='$(VERSION)' scripts/make-dist

# The packages of Debian.
deb: $(B)/configure
	@B='$(abspath $(B))' VERSION='$(VERSION)' scripts/make-deb

# The interface that later versions are compared with.
abi: all
	@B='$(abspath $(B))' CC='$(CC)' scripts/check-abi --write

# ---- The library in two files ------------------------------------------------------------------------------------

# The wheel alone needs nothing; with drivers, keyed timers and sessions, xxHash's header.
WHEEL_FOLDERS := $(addprefix lib/core/,error version allocator wheel)
amalgamation:
	scripts/amalgamate '$(B)/amalgamation/wheel' $(call sources,$(WHEEL_FOLDERS),*.c) \
		include/weekwheel/version.h include/weekwheel/wheel.h
	scripts/amalgamate '$(B)/amalgamation/core' $(call sources,$(core_FOLDERS) $(base_FOLDERS),*.c) \
		$(patsubst %,include/weekwheel/%.h,$(filter-out weekwheel,$(core_HEADERS)))

# ---- Install ----------------------------------------------------------------------------------------------------

# Other projects call it so.
ifeq ($(origin PREFIX),command line)
prefix := $(PREFIX)
endif
FOLDERS = DESTDIR='$(DESTDIR)' VERSION='$(VERSION)' SONAME='$(SONAME)' prefix='$(prefix)' bindir='$(bindir)' libdir='$(libdir)' \
	includedir='$(includedir)' mandir='$(mandir)'

install: all
	@$(FOLDERS) scripts/install-files '$(INSTALLED)' '$(STATIC)' '$(SHARED)' '$(HEADERS)' '$(MAN1) $(MAN3)'

# Where this interpreter looks for packages, or in pythondir. pip writes beside what it installs, so that gets a copy.
install-python: $(B)/config.mk
	@$(or $(PYTHON),python3) -c 'import setuptools, pip, wheel' || \
		{ echo 'install-python needs pip, setuptools and wheel: Debian has them in python3-pip and python3-wheel' >&2; exit 1; }
	@rm -rf '$(B)/python' && mkdir -p '$(B)/python' && cp -r lib/bindings/python/[!_]* '$(B)/python'
	$(or $(PYTHON),python3) -m pip install --quiet --no-index --no-build-isolation --no-deps --root-user-action=ignore \
		--break-system-packages $(if $(pythondir),--target='$(DESTDIR)$(pythondir)',$(DESTDIR:%=--root='%')) '$(abspath $(B))/python'

uninstall: $(B)/config.mk
	@$(FOLDERS) scripts/install-files --remove

deps:
	scripts/install-packages ci

clean:
	rm -rf $(B)

distclean: clean
	rm -rf autom4te.cache $(if $(wildcard .git),configure configure~) config.log

help:
	@cat docs/make.txt

.PHONY: all abi amalgamation bench bench-cores bench-expirer bench-instructions bench-jobs bench-limits bench-postgres bench-redis bench-schedules \
	bench-sessions check check-long check-quick clean configure crash-test deb demo demo-cluster demo-postgres demo-sessions deps dist distclean failovers \
	flakes FORCE format fuzz help install install-python lint memcheck mutants need-check run-chosen run-fuzzers simulate \
	site soak uninstall

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
