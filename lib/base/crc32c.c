/* CRC-32C by the processor's instruction, or by tables of eight bytes at a time. */

#include "lib/base/crc32c.h"

#include <pthread.h>
#include <string.h>
#if defined __linux__ && defined __aarch64__
#include <sys/auxv.h>
#endif

/* ---- Tables: slicing by 8 (M. Kounavis, F. Berry, 2005) ---------------------------------------------------------- */

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, the lowest bit first */

/* table[k][b]: what the byte b does to the sum when k more bytes follow it. Made at the first use. */
static uint32_t table[8][256];
static pthread_once_t table_is_made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t sum = byte;
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
		table[0][byte] = sum;
	}
	for (int k = 1; k < 8; k++)
		for (uint32_t byte = 0; byte < 256; byte++)
			table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
}

uint32_t ww_crc32c_by_table(uint32_t sum, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	(void)pthread_once(&table_is_made, make_table);
	sum = ~sum;
	for (; size >= 8; size -= 8, at += 8)
		sum = table[7][at[0] ^ (sum & 255)] ^ table[6][at[1] ^ (sum >> 8 & 255)] ^
		      table[5][at[2] ^ (sum >> 16 & 255)] ^ table[4][at[3] ^ sum >> 24] ^ table[3][at[4]] ^
		      table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
	for (; size; size--, at++)
		sum = sum >> 8 ^ table[0][(sum ^ *at) & 255];
	return ~sum;
}

/* ---- The instruction: the compiler may use it here only, since the processor may lack it -------------------------- */

#if defined __x86_64__

#define HAVE_STEPS
#define STEPS __attribute__((target("sse4.2")))

static int has_steps(void)
{
	return __builtin_cpu_supports("sse4.2");
}

STEPS static inline uint32_t step_eight(uint32_t sum, uint64_t eight)
{
	return (uint32_t)__builtin_ia32_crc32di(sum, eight);
}

STEPS static inline uint32_t step_one(uint32_t sum, unsigned char one)
{
	return __builtin_ia32_crc32qi(sum, one);
}

#elif defined __linux__ && defined __aarch64__ && defined __AARCH64EL__

#define HAVE_STEPS
#define STEPS

static int has_steps(void)
{
	return (getauxval(AT_HWCAP) & 1u << 7) != 0; /* HWCAP_CRC32 */
}

static inline uint32_t step_eight(uint32_t sum, uint64_t eight)
{
	__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(sum) : "r"(eight));
	return sum;
}

static inline uint32_t step_one(uint32_t sum, unsigned char one)
{
	__asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(sum) : "r"((uint32_t)one));
	return sum;
}

#endif

#ifdef HAVE_STEPS

STEPS static uint32_t by_steps(uint32_t sum, const unsigned char *at, size_t size)
{
	sum = ~sum;
	for (; size >= 8; size -= 8, at += 8) {
		uint64_t eight;
		memcpy(&eight, at, sizeof eight);
		sum = step_eight(sum, eight);
	}
	for (; size; size--, at++)
		sum = step_one(sum, *at);
	return ~sum;
}

uint32_t ww_crc32c(uint32_t sum, const void *bytes, size_t size)
{
	return has_steps() ? by_steps(sum, bytes, size) : ww_crc32c_by_table(sum, bytes, size);
}

#else

uint32_t ww_crc32c(uint32_t sum, const void *bytes, size_t size)
{
	return ww_crc32c_by_table(sum, bytes, size);
}

#endif
