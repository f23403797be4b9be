#ifndef LIB_BASE_SPREAD_H
#define LIB_BASE_SPREAD_H

/*
 * A part of a span of time that a name in a tube fixes: any even spread will do that all versions and machines agree
 * about. It is FNV-1a of the tube, a NUL and the name, then a finish that mixes its low bits.
 */

#include <stddef.h>
#include <stdint.h>

/* Whole units, from none to fewer than those of the span. */
static inline uint64_t spread_part(uint64_t span, uint64_t unit, const char *tube, const void *name, size_t length)
{
	const unsigned char *bytes = name;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = tube; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	hash *= UINT64_C(0x100000001b3);
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	hash ^= hash >> 32;
	return span < unit ? 0 : hash % (span / unit) * unit;
}

#endif
