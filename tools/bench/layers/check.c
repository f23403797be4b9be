/* What measuring a layer needs in each file: an end with a message, and keys. */
#include "tools/bench/layers.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/random.h"
#include "tools/common/command.h"
#include "tools/common/message.h"
#include "weekwheel/error.h"

void layer_check(int error, const char *what)
{
	if (error >= 0)
		return;
	message_error("%s: %s", what, ww_strerror(error));
	exit(STATUS_FAILED);
}

void layer_key(uint64_t i, uint64_t seed, unsigned char key[16])
{
	uint64_t state = i * UINT64_C(0x9e3779b97f4a7c15) + seed;
	uint64_t half = random_next(&state);

	memcpy(key, &half, sizeof half);
	half = random_next(&state);
	memcpy(key + sizeof half, &half, sizeof half);
}
