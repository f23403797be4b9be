/* Any bytes as requests in an access log. */
/* tier: quick */
#include "tests/fuzz/fuzz_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_lines(&format_log, data, size);
	return 0;
}
