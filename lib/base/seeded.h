#ifndef LIB_BASE_SEEDED_H
#define LIB_BASE_SEEDED_H

/*
 * uthash for keys that come from outside. Its own hash has no secret, so that anyone can make up names that all lie in
 * one chain. This one is seeded with random bytes that the kernel gives each process. Without memory uthash would end
 * the process: this one reports it instead.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "lib/base/xxh3.h"

static inline uint64_t seeded_seed(void)
{
	static _Atomic uint64_t seed;
	uint64_t found = atomic_load_explicit(&seed, memory_order_relaxed);
	const void *bytes = found ? NULL : (const void *)getauxval(AT_RANDOM);

	if (!bytes)
		return found;
	memcpy(&found, bytes, sizeof found);
	/* The C library makes its guards of the same bytes. */
	found = XXH3_64bits(&found, sizeof found) | 1;
	atomic_store_explicit(&seed, found, memory_order_relaxed);
	return found;
}

static inline unsigned seeded_hash(const void *key, size_t size)
{
	return (unsigned)XXH3_64bits_withSeed(key, size, seeded_seed());
}

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, size, value) ((value) = seeded_hash((key), (size)))
#include <uthash.h>

#endif
