/* Any bytes as events in CSV. */
/* tier: quick */
#include "tests/fuzz/fuzz_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_lines(&format_csv, data, size);
	return 0;
}
