#ifndef LIB_BASE_HASH_H
#define LIB_BASE_HASH_H

/*
 * Hashes of keys that an attacker may have chosen: XXH3 of xxHash with a secret of random bytes, one for each table.
 *
 * What it resists: an attacker who does not see hashes cannot prepare keys that crowd one part of a table. No pair of
 * keys is known that has equal hashes under every secret. Among keys of up to 8 bytes and one length there is none:
 * hashing them is a bijection.
 *
 * What it does not resist: it is no cryptographic function, and nothing is proven. Pairs of keys of 32 to 240 bytes are
 * known that have equal hashes under one secret in 2^27 instead of 2^64 (xxHash's issue 1127; XXH3's 128 bits have
 * them, too). Longer keys are mixed by products of 32 bits, without any promise. That gives some equal pairs, as a
 * table of millions, which uses 32 bits of a hash, has anyway, but not thousands in one part. An attacker who measures
 * the time of each lookup, and goes on from the pairs found, may learn enough of the secret for that; one who reads the
 * secret has it at once. The cost is time: equal hashes are walked along, and no key is lost.
 */

#include <stddef.h>
#include <stdint.h>

struct hash_secret {
	unsigned char bytes[192];
};

/*
 * Fill the secret from the system's random numbers: getrandom, or /dev/urandom where there is no getrandom.
 * May wait while a system that has just started has none. Errors: WW_ESYSTEM: neither answers.
 */
int ww_hash_secret_make(struct hash_secret *secret);

/* Hash this many bytes. The key may be NULL if they are 0. */
uint64_t ww_hash_bytes(const struct hash_secret *secret, const void *key, size_t length);

#endif
