/* CRC-32C: known sums, by the processor's instruction and by tables, at every length, alignment and cut. */
/* tier: quick */

#include "lib/base/crc32c.h"

#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"

/* RFC 3720, appendix B.4, and the check value of the catalogue of CRCs. */
START_TEST(test_known)
{
	unsigned char bytes[48];

	ck_assert_uint_eq(ww_crc32c(0, NULL, 0), 0);
	ck_assert_uint_eq(ww_crc32c(0, "123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof bytes);
	ck_assert_uint_eq(ww_crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 255, sizeof bytes);
	ck_assert_uint_eq(ww_crc32c(0, bytes, 32), 0x62a8ab43);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	ck_assert_uint_eq(ww_crc32c(0, bytes, 32), 0x46dd794e);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (unsigned char)(31 - i);
	ck_assert_uint_eq(ww_crc32c(0, bytes, 32), 0x113fdb5c);
	/* An iSCSI read command. */
	static const unsigned char command[48] = {
	    1, 0xc0, [16] = 0x14, [22] = 4, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 2};
	ck_assert_uint_eq(ww_crc32c(0, command, sizeof command), 0xd9963a56);
	ck_assert_uint_eq(ww_crc32c_by_table(0, "123456789", 9), 0xe3069283);
	ck_assert_uint_eq(ww_crc32c_by_table(0, command, sizeof command), 0xd9963a56);
}
END_TEST

/* A bit at a time, as the definition has it. */
static uint32_t by_bits(uint32_t sum, const unsigned char *bytes, size_t size)
{
	sum = ~sum;
	for (size_t i = 0; i < size; i++) {
		sum ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
	}
	return ~sum;
}

START_TEST(test_random)
{
	uint64_t state = seed_of_run("base/crc32c");
	unsigned char bytes[300];

	for (int round = 0; round < 3000; round++) {
		size_t from = seed_below(&state, 16), size = seed_below(&state, sizeof bytes - from + 1);
		size_t cut = seed_below(&state, size + 1);
		uint32_t begin = (uint32_t)seed_next(&state);
		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = (unsigned char)seed_next(&state);
		uint32_t sum = by_bits(begin, bytes + from, size);
		ck_assert_uint_eq(ww_crc32c(begin, bytes + from, size), sum);
		ck_assert_uint_eq(ww_crc32c_by_table(begin, bytes + from, size), sum);
		ck_assert_uint_eq(ww_crc32c(ww_crc32c(begin, bytes + from, cut), bytes + from + cut, size - cut), sum);
		if (!size)
			continue;
		bytes[from + seed_below(&state, size)] ^= (unsigned char)(1u << seed_below(&state, 8));
		ck_assert_uint_ne(ww_crc32c(begin, bytes + from, size), sum);
	}
}
END_TEST

TEST_MAIN("base/crc32c", test_known, test_random)
