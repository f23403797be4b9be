#ifndef TOOLS_COMMON_NUMBER_H
#define TOOLS_COMMON_NUMBER_H

/*
 * Reads decimal numbers, exactly, from text that need not end in 0. A sign, a blank or an exponent is no part of them. A
 * function that returns -1 stores nothing unless it says otherwise.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Take all digits from *at, which is not beyond end, and move *at past them. Return 0, or -1 if the number is larger than
 * `most`, which is then stored.
 */
int number_digits(const char **at, const char *end, uint64_t most, uint64_t *number);

/*
 * Take the digits behind a decimal point in the same way, as billionths. Digits beyond the ninth are left out. Return 0,
 * or 1 if one of those is not 0.
 */
int number_fraction(const char **at, const char *end, uint32_t *billionths);

/* Read all of the text as a whole number. Return 0, or -1 if it is no number from least to most. */
int number_whole(const char *text, size_t size, uint64_t least, uint64_t most, uint64_t *number);

/* Return the whole number at the beginning of the text: 0 without digits, at most UINT64_MAX. */
uint64_t number_leading(const char *text, size_t size);

/*
 * Read all of the text as seconds, such as 3 or 0.25, and store ns. Digits beyond ns are left out. Return 0, or -1 if the
 * text is no number or has more whole seconds than `most`, of which 64 bits can hold the ns.
 */
int number_seconds(const char *text, size_t size, uint64_t most, uint64_t *ns);

enum { NUMBER_PLAIN = 64 };

/*
 * Write a number as JSON may have it, such as 1e+05 or 1024.0, without an exponent, and without zeros at the end of its
 * fraction. Return its length, or 0 if it is none, is negative, or would be longer than out.
 */
size_t number_plain(char out[NUMBER_PLAIN], const char *text, size_t size);

/* Return the value of a hexadecimal digit, or -1. */
int number_hex(char digit);

#endif
