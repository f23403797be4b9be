/* Turns a job into bytes and back. */
#include "lib/jobs/local/record.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { NUMBERS = 22, LENGTHS = 3, CHECKSUM = 4 };

_Static_assert(offsetof(struct job_record, key) == NUMBERS * sizeof(uint64_t), "only numbers come before the key");

size_t ww_job_record_size(const struct job_record *record)
{
	return JOB_RECORD_OVERHEAD + record->key.size + record->error.size + record->body.size;
}

static unsigned char *write_number(unsigned char *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*to++ = (unsigned char)(number | 0x80);
	*to++ = (unsigned char)number;
	return to;
}

static unsigned char *write_bytes(unsigned char *to, struct store_bytes bytes)
{
	if (bytes.size)
		memcpy(to, bytes.data, bytes.size);
	return to + bytes.size;
}

static uint32_t checksum_of(uint64_t id, const void *data, size_t size)
{
	return (uint32_t)XXH3_64bits_withSeed(data, size, id);
}

size_t ww_job_record_write(const struct job_record *record, uint64_t id, unsigned char *to)
{
	unsigned char *at = to;
	uint64_t number;

	*at++ = JOB_RECORD_FORMAT;
	for (size_t i = 0; i < NUMBERS; i++) {
		memcpy(&number, (const char *)record + i * sizeof number, sizeof number);
		at = write_number(at, number);
	}
	at = write_number(at, record->key.size);
	at = write_number(at, record->error.size);
	at = write_number(at, record->body.size);
	at = write_bytes(at, record->key);
	at = write_bytes(at, record->error);
	at = write_bytes(at, record->body);
	store_write32(at, checksum_of(id, to, (size_t)(at - to)));
	return (size_t)(at - to) + CHECKSUM;
}

/* Returns NULL if the number does not end before `end` or has more than 64 bits. */
static const unsigned char *read_number(const unsigned char *from, const unsigned char *end, uint64_t *number)
{
	*number = 0;
	for (unsigned shift = 0; from && from < end && shift < 64; shift += 7) {
		*number |= (uint64_t)(*from & 0x7f) << shift;
		if (!(*from++ & 0x80))
			return from;
	}
	return NULL;
}

static const unsigned char *read_bytes(const unsigned char *from, uint64_t size, struct store_bytes *bytes)
{
	*bytes = (struct store_bytes){from, (size_t)size};
	return from + size;
}

int ww_job_record_read(struct job_record *record, uint64_t id, struct store_bytes from)
{
	const unsigned char *at = from.data;
	const unsigned char *end;
	uint64_t number;
	uint64_t length[LENGTHS];

	if (from.size < 1 + CHECKSUM)
		return WW_ECORRUPT;
	end = at + from.size - CHECKSUM;
	if (store_read32(end) != checksum_of(id, at, from.size - CHECKSUM))
		return WW_ECORRUPT;
	if (*at++ != JOB_RECORD_FORMAT)
		return WW_EVERSION;
	for (size_t i = 0; i < NUMBERS; i++) {
		at = read_number(at, end, &number);
		memcpy((char *)record + i * sizeof number, &number, sizeof number);
	}
	for (size_t i = 0; i < LENGTHS; i++)
		at = read_number(at, end, &length[i]);
	if (!at)
		return WW_ECORRUPT;
	uint64_t left = (uint64_t)(end - at);
	if (length[0] > left || length[1] > left - length[0] || length[2] != left - length[0] - length[1])
		return WW_ECORRUPT;
	at = read_bytes(at, length[0], &record->key);
	at = read_bytes(at, length[1], &record->error);
	(void)read_bytes(at, length[2], &record->body);
	return WW_OK;
}
