#ifndef LIB_BASE_CRC32C_H
#define LIB_BASE_CRC32C_H

/*
 * CRC-32C (Castagnoli; RFC 3720, appendix B.4): finds damage by accident in what was written. It finds every change of
 * up to 32 bits in a row, wherever they are. It is no signature: a writer of the data can compute it.
 *
 * ww_crc32c(0, a, n) begins a sum. ww_crc32c(sum, b, m) goes on: it is the sum of a and b in a row.
 * O(size): 8 bytes in three cycles where the processor has an instruction for it (x86-64: SSE 4.2, ARM: CRC32), else 8
 * lookups in tables.
 */

#include <stddef.h>
#include <stdint.h>

/* The bytes may be NULL if size is 0. */
uint32_t ww_crc32c(uint32_t sum, const void *bytes, size_t size);

/* The same without the instruction. */
uint32_t ww_crc32c_by_table(uint32_t sum, const void *bytes, size_t size);

#endif
