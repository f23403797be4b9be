/* Any bytes as a job's stored record, with a checksum that fits: the code behind the checksum is reached. */
#include <stdlib.h>
#include <string.h>

#include "lib/jobs/local/record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { CHECKSUM = 4, ID = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A record that was read is written as it was, except numbers that took more bytes than they need. */
static void write_again(const struct job_record *record)
{
	size_t room = ww_job_record_size(record);
	unsigned char *bytes = malloc(room);
	struct job_record again;

	if (!bytes)
		return;
	size_t size = ww_job_record_write(record, ID, bytes);
	if (size > room || ww_job_record_read(&again, ID, (struct store_bytes){bytes, size}) != WW_OK)
		abort();
	if (memcmp(&again, record, offsetof(struct job_record, key)) != 0 || again.key.size != record->key.size ||
	    again.error.size != record->error.size || again.body.size != record->body.size)
		abort();
	if (record->body.size && memcmp(again.body.data, record->body.data, record->body.size) != 0)
		abort();
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *bytes = malloc(size + CHECKSUM);
	struct job_record record;

	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, data, size);
	if (ww_job_record_read(&record, ID, (struct store_bytes){bytes, size}) == WW_OK)
		write_again(&record);
	store_write32(bytes + size, (uint32_t)XXH3_64bits_withSeed(bytes, size, ID));
	if (ww_job_record_read(&record, ID, (struct store_bytes){bytes, size + CHECKSUM}) == WW_OK)
		write_again(&record);
	free(bytes);
	return 0;
}
