# The library weekwheel: the wheel, clocks, the driver, keyed timers and sessions.
core_LIBRARY := weekwheel
core_FOLDERS := $(addprefix lib/core/,error version allocator clock wheel driver after keyed session)
core_HEADERS := export error allocator version wheel clock driver after keyed session weekwheel
core_USES := base
core_CONTAINS := base
core_TESTS := $(addprefix tests/lib/core/,error allocator clock wheel driver after keyed session)
core_HELPERS := tests/support/model
core_FUZZERS := wheel session
core_FUZZED := $(core_FOLDERS) tests/support/model
