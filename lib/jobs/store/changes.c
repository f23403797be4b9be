/* Reads the changes in a record of the journal. */

#include "lib/jobs/store/changes.h"

int ww_changes_each(const unsigned char *bytes, size_t size, changes_fn *fn, void *context)
{
	int error = WW_OK;

	while (size && !error) {
		struct changes_head change;
		size_t whole;
		if (size < sizeof change)
			return WW_ECORRUPT;
		memcpy(&change, bytes, sizeof change);
		whole = sizeof change + change.key_size + 1u + change.value_size;
		if (size < whole || change.table >= STORE_TABLES || change.key_size > STORE_KEY_MAX)
			return WW_ECORRUPT;
		error = fn(context, (enum store_table)change.table,
		    (struct store_bytes){bytes + sizeof change, change.key_size},
		    (struct store_bytes){bytes + sizeof change + change.key_size, 1u + change.value_size});
		bytes += whole;
		size -= whole;
	}
	return error;
}
