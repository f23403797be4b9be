/* The list of all structures that the benchmark compares. */
#include <string.h>

#include "tools/bench/structure.h"

#define STRUCTURE_ADDRESS(name) &structure_##name,
const struct structure *const structures[] = {STRUCTURE_LIST(STRUCTURE_ADDRESS) NULL};

const struct structure *structure_by_name(const char *name)
{
	const struct structure *const *structure = structures;

	while (*structure && strcmp((*structure)->name, name) != 0)
		structure++;
	return *structure;
}
