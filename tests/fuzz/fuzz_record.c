/* Any bytes as a job's stored record, with a checksum that fits: the code behind the checksum is reached. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "lib/jobs/local/record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { CHECKSUM = 4, ID = 7 };

/* Of a job that waits. */
static const uint64_t due_time = UINT64_C(1700000000) * 1000000000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A record that was read is written as it was, except numbers that took more bytes than they need. */
static void write_again(const struct job_record *record, const uint64_t *due)
{
	size_t room = ww_job_record_size(record);
	unsigned char *bytes = malloc(room);
	struct job_record again;

	if (!bytes)
		return;
	size_t size = ww_job_record_write(record, ID, bytes);
	if (size > room || ww_job_record_read(&again, ID, due, (struct store_bytes){bytes, size}) != WW_OK)
		abort();
	if (memcmp(&again, record, offsetof(struct job_record, key)) != 0 || again.key.size != record->key.size ||
	    again.error.size != record->error.size || again.body.size != record->body.size ||
	    again.group.size != record->group.size || again.headers.size != record->headers.size ||
	    again.then.size != record->then.size)
		abort();
	if (record->body.size && memcmp(again.body.data, record->body.data, record->body.size) != 0)
		abort();
	if (record->group.size && memcmp(again.group.data, record->group.data, record->group.size) != 0)
		abort();
	free(bytes);
}

static void read_as(const uint64_t *due, unsigned char *bytes, size_t size)
{
	uint64_t seed = ID ^ (due ? *due : 0) * UINT64_C(0x9e3779b97f4a7c15);
	struct job_record record;

	if (ww_job_record_read(&record, ID, due, (struct store_bytes){bytes, size}) == WW_OK)
		write_again(&record, due);
	store_write32(bytes + size, (uint32_t)XXH3_64bits_withSeed(bytes, size, seed));
	if (ww_job_record_read(&record, ID, due, (struct store_bytes){bytes, size + CHECKSUM}) == WW_OK)
		write_again(&record, due);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *bytes = malloc(size + CHECKSUM);

	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, data, size);
	read_as(&due_time, bytes, size);
	read_as(NULL, bytes, size);
	free(bytes);
	return 0;
}
