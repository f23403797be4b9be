# What the programs share: messages, options, progress, memory.
common_FOLDERS := tools/common
common_TESTS := tests/tools/common
common_FUZZED := tools/common
