# What all libraries share privately: slab, table, hash, threads.
base_FOLDERS := lib/base
base_NEEDS := libxxhash=libxxhash-dev
base_TESTS := tests/lib/base
base_FUZZED := lib/base
# Of xxHash only the headers.
base_LIBS :=
