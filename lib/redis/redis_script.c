/* The name of a script: its SHA-1 (FIPS 180-4), which is a name here and guards nothing. */
#include <string.h>

#include "redis_link.h"

struct sha {
	uint32_t state[5];
};

static uint32_t turn(uint32_t word, int by)
{
	return word << by | word >> (32 - by);
}

static void mix(struct sha *sha, const unsigned char block[64])
{
	uint32_t w[80];
	uint32_t a = sha->state[0], b = sha->state[1], c = sha->state[2], d = sha->state[3], e = sha->state[4];

	for (int i = 0; i < 16; i++, block += 4)
		w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
	for (int i = 16; i < 80; i++)
		w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
		             : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
		             : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
		                      : (b ^ c ^ d) + 0xca62c1d6;
		uint32_t next = turn(a, 5) + f + e + w[i];
		e = d;
		d = c;
		c = turn(b, 30);
		b = a;
		a = next;
	}
	sha->state[0] += a;
	sha->state[1] += b;
	sha->state[2] += c;
	sha->state[3] += d;
	sha->state[4] += e;
}

void ww_redis_script_name(struct redis_script *script)
{
	struct sha sha = {{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
	unsigned char last[128] = {0};
	size_t whole = script->length & ~(size_t)63;
	size_t rest = script->length - whole;
	size_t size = rest < 56 ? 64 : 128;
	static const char digits[] = "0123456789abcdef";

	for (size_t at = 0; at < whole; at += 64)
		mix(&sha, (const unsigned char *)script->text + at);
	memcpy(last, script->text + whole, rest);
	last[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[size - 1 - i] = (unsigned char)((uint64_t)script->length * 8 >> (8 * i));
	for (size_t at = 0; at < size; at += 64)
		mix(&sha, last + at);
	for (int i = 0; i < 40; i++)
		script->sha[i] = digits[sha.state[i / 8] >> (28 - 4 * (i % 8)) & 15];
	script->sha[40] = '\0';
}
