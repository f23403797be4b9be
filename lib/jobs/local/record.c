/* Turns a job into bytes and back. */
#include "lib/jobs/local/record.h"

#include <string.h>

#include "weekwheel/driver.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { CHECKSUM = 4 };

#define AT(member) offsetof(struct job_record, member)

/* The fields, in order of their bits: those that most jobs have come first. */
static const size_t fields[] = {AT(run), AT(body.size), AT(delay), AT(created), AT(priority), AT(tube), AT(key.size),
    AT(base), AT(version), AT(period), AT(flags), AT(attempts), AT(backoff), AT(backoff_max), AT(missed), AT(skip),
    AT(tries), AT(reserves), AT(timeouts), AT(releases), AT(buries), AT(kicks), AT(buried), AT(due), AT(error.size),
    /* JOB_RECORD_EXTENDED */
    AT(first), AT(hold), AT(ended), AT(group.size), AT(keep), AT(fence),
    /* JOB_RECORD_EXPIRING */
    AT(expire), AT(expires), AT(expired),
    /* JOB_RECORD_HEADED */
    AT(headers.size),
    /* JOB_RECORD_CODED */
    AT(code),
    /* JOB_RECORD_FOLLOWED */
    AT(then.size)};

enum {
	FIELDS = sizeof fields / sizeof *fields,
	FIELDS_FOLLOWED = 1,
	FIELDS_CODED = FIELDS_FOLLOWED + 1,
	FIELDS_HEADED = FIELDS_CODED + 1,
	FIELDS_EXPIRING = FIELDS_HEADED + 3,
	FIELDS_EXTENDED = FIELDS_EXPIRING + 6
};

/* The format that a record with these fields has. */
static int format_of(uint64_t which)
{
	if (which >> (FIELDS - FIELDS_FOLLOWED))
		return JOB_RECORD_FOLLOWED;
	if (which >> (FIELDS - FIELDS_CODED))
		return JOB_RECORD_CODED;
	if (which >> (FIELDS - FIELDS_HEADED))
		return JOB_RECORD_HEADED;
	if (which >> (FIELDS - FIELDS_EXPIRING))
		return JOB_RECORD_EXPIRING;
	return which >> (FIELDS - FIELDS_EXTENDED) ? JOB_RECORD_EXTENDED : JOB_RECORD_FORMAT;
}

/* What a put says, and what is shown, as it is stored. */
struct kept_option {
	size_t at;
	size_t in, in_size;   /* of struct ww_job_spec */
	size_t out, out_size; /* of struct ww_job_info */
};

#define KEPT(member)                                                                                                   \
	{                                                                                                              \
		AT(member), offsetof(struct ww_job_spec, member), sizeof(((struct ww_job_spec *)0)->member),           \
		    offsetof(struct ww_job_info, member), sizeof(((struct ww_job_info *)0)->member)                    \
	}

static const struct kept_option kept[] = {KEPT(priority), KEPT(run), KEPT(period), KEPT(missed), KEPT(skip),
    KEPT(backoff), KEPT(backoff_max), KEPT(attempts), KEPT(keep), KEPT(expire), KEPT(expired), KEPT(code)};

enum { ALL_KEPT = sizeof kept / sizeof *kept };

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "lengths are read and written like numbers");

size_t ww_job_record_size(const struct job_record *record)
{
	return JOB_RECORD_OVERHEAD + record->key.size + record->error.size + record->body.size + record->group.size +
	       record->headers.size + record->then.size;
}

/* ---- Options */

void ww_job_record_take(struct job_record *record, const struct ww_job_spec *spec)
{
	for (int i = 0; i < ALL_KEPT; i++) {
		const char *from = (const char *)spec + kept[i].in;
		uint64_t number;
		uint32_t small;

		memcpy(kept[i].in_size == sizeof small ? (void *)&small : &number, from, kept[i].in_size);
		if (kept[i].in_size == sizeof small)
			number = small;
		memcpy((char *)record + kept[i].at, &number, sizeof number);
	}
}

void ww_job_record_show(const struct job_record *record, struct ww_job_info *info)
{
	for (int i = 0; i < ALL_KEPT; i++) {
		uint64_t number;
		uint32_t small;

		memcpy(&number, (const char *)record + kept[i].at, sizeof number);
		small = (uint32_t)number;
		memcpy((char *)info + kept[i].out, kept[i].out_size == sizeof small ? (const void *)&small : &number,
		    kept[i].out_size);
	}
}

/* ---- Smaller numbers */

/* Most spans are whole seconds. */
static uint64_t pack_span(uint64_t ns)
{
	if (ns % WW_SECOND == 0)
		return ns / WW_SECOND << 1;
	return (ns < INT64_MAX ? ns : INT64_MAX) << 1 | 1;
}

static uint64_t unpack_span(uint64_t packed)
{
	if (!(packed & 1) && packed >> 1 > UINT64_MAX / WW_SECOND)
		return INT64_MAX;
	return packed & 1 ? packed >> 1 : (packed >> 1) * WW_SECOND;
}

/* Two times that are near each other, in either order. */
static uint64_t pack_difference(uint64_t time, uint64_t other)
{
	uint64_t difference = time - other;

	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unpack_difference(uint64_t packed, uint64_t other)
{
	return other + (packed >> 1 ^ (packed & 1 ? UINT64_MAX : 0));
}

static void pack(struct job_record *record)
{
	/* Of most jobs it is what base and span say, and one byte. */
	if (record->expires)
		record->expires = pack_difference(record->expires, record->base + record->expire) + 1;
	record->expire = pack_span(record->expire);
	record->created = pack_difference(record->created, record->due - record->delay);
	record->base = pack_difference(record->base, record->due);
	record->run = pack_span(record->run);
	record->delay = pack_span(record->delay);
	record->period = pack_span(record->period);
	record->version--;
	record->hold = pack_span(record->hold);
	record->keep = pack_span(record->keep);
	if (job_record_waits(record))
		record->due = 0;
}

static void unpack(struct job_record *record)
{
	record->version++;
	record->hold = unpack_span(record->hold);
	record->keep = unpack_span(record->keep);
	record->period = unpack_span(record->period);
	record->delay = unpack_span(record->delay);
	record->run = unpack_span(record->run);
	record->base = unpack_difference(record->base, record->due);
	record->created = unpack_difference(record->created, record->due - record->delay);
	record->expire = unpack_span(record->expire);
	if (record->expires)
		record->expires = unpack_difference(record->expires - 1, record->base + record->expire);
}

/* ---- Bytes */

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

/* Of a job that waits, the due time. */
static uint32_t checksum_of(uint64_t id, uint64_t due, const void *data, size_t size)
{
	return (uint32_t)XXH3_64bits_withSeed(data, size, id ^ due * UINT64_C(0x9e3779b97f4a7c15));
}

size_t ww_job_record_write(const struct job_record *record, uint64_t id, unsigned char *to)
{
	struct job_record packed = *record;
	unsigned char *at = to;
	uint64_t number[FIELDS];
	uint64_t which = 0;

	pack(&packed);
	for (size_t i = 0; i < FIELDS; i++) {
		memcpy(&number[i], (const char *)&packed + fields[i], sizeof *number);
		which |= (uint64_t)(number[i] != 0) << i;
	}
	*at++ = (unsigned char)format_of(which);
	at = write_number(at, which);
	for (size_t i = 0; i < FIELDS; i++)
		if (number[i])
			at = write_number(at, number[i]);
	at = write_bytes(at, record->key);
	at = write_bytes(at, record->error);
	at = write_bytes(at, record->body);
	at = write_bytes(at, record->group);
	at = write_bytes(at, record->headers);
	at = write_bytes(at, record->then);
	store_write32(at, checksum_of(id, job_record_waits(record) ? record->due : 0, to, (size_t)(at - to)));
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

/* Whether the parts of these sizes are what is left. */
static int are_sizes_right(const struct job_record *record, uint64_t left)
{
	const uint64_t sizes[] = {record->key.size, record->error.size, record->body.size, record->group.size,
	    record->headers.size, record->then.size};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		if (sizes[i] > left)
			return 0;
		left -= sizes[i];
	}
	return left == 0;
}

int ww_job_record_read(struct job_record *record, uint64_t id, const uint64_t *due, struct store_bytes from)
{
	const unsigned char *at = from.data;
	const unsigned char *end;
	uint64_t number, which;
	int format;

	if (from.size < 1 + CHECKSUM)
		return WW_ECORRUPT;
	end = at + from.size - CHECKSUM;
	if (store_read32(end) != checksum_of(id, due ? *due : 0, at, from.size - CHECKSUM))
		return WW_ECORRUPT;
	format = *at++;
	if (format < JOB_RECORD_FORMAT || format > JOB_RECORD_FOLLOWED)
		return WW_EVERSION;
	at = read_number(at, end, &which);
	memset(record, 0, sizeof *record);
	for (size_t i = 0; i < FIELDS && at; i++) {
		if (!(which >> i & 1))
			continue;
		at = read_number(at, end, &number);
		memcpy((char *)record + fields[i], &number, sizeof number);
	}
	if (!at || which >> FIELDS || format_of(which) != format || job_record_waits(record) != (due != NULL))
		return WW_ECORRUPT;
	if (!are_sizes_right(record, (uint64_t)(end - at)))
		return WW_ECORRUPT;
	if (due)
		record->due = *due;
	unpack(record);
	at = read_bytes(at, record->key.size, &record->key);
	at = read_bytes(at, record->error.size, &record->error);
	at = read_bytes(at, record->body.size, &record->body);
	at = read_bytes(at, record->group.size, &record->group);
	at = read_bytes(at, record->headers.size, &record->headers);
	(void)read_bytes(at, record->then.size, &record->then);
	return WW_OK;
}
