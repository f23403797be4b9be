#ifndef TOOLS_COMMON_NUMBER_H
#define TOOLS_COMMON_NUMBER_H

/*
 * Decimal numbers, exactly, in text that need not end in 0. A sign, a blank and an exponent are no part of them. What
 * returns -1 has stored nothing unless it says so.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Take the digits at *at, as many as there are before end, and move *at behind them. Return 0, or -1 if the number is
 * larger than `most`, which is then stored.
 */
int number_digits(const char **at, const char *end, uint64_t most, uint64_t *number);

/*
 * Take digits behind a decimal point in the same way, as billionths. Return 0, or 1 if digits beyond the ninth, which
 * are left out, are not all 0.
 */
int number_fraction(const char **at, const char *end, uint32_t *billionths);

/* Read all of the text as a whole number. Return 0, or -1 if it is none from least to most. */
int number_whole(const char *text, size_t size, uint64_t least, uint64_t most, uint64_t *number);

/* Return the whole number that the text begins with; 0 without digits, and UINT64_MAX for all that are larger. */
uint64_t number_leading(const char *text, size_t size);

/*
 * Read all of the text as seconds such as 3 or 0.25, in ns; digits beyond those are left out. Return 0, or -1 if they
 * are none or more than `most`, which fit into 64 bits of ns.
 */
int number_seconds(const char *text, size_t size, uint64_t most, uint64_t *ns);

/* Return what a hexadecimal digit is worth, or -1. */
int number_hex(char digit);

#endif
