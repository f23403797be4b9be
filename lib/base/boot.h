#ifndef LIB_BASE_BOOT_H
#define LIB_BASE_BOOT_H

/* The id of the machine's present boot: while it is the same, elapsed time goes on. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* All zeros: it cannot be read. */
static inline void boot_id(unsigned char id[16])
{
	char text[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	memset(id, 0, 16);
	if (!file)
		return;
	if (fgets(text, sizeof text, file))
		for (size_t i = 0, k = 0; text[i] && k < 32; i++) {
			const char *digits = "0123456789abcdef";
			const char *digit = strchr(digits, text[i]);
			if (digit)
				id[k / 2] = (unsigned char)(id[k / 2] << 4 | (digit - digits)), k++;
		}
	fclose(file);
}

/* A number of 64 bits that no other boot has, by its random id; 0: it cannot be read. */
static inline uint64_t boot_number(void)
{
	unsigned char id[16];
	uint64_t half[2];

	boot_id(id);
	memcpy(half, id, sizeof half);
	return half[0] ^ half[1];
}

#endif
