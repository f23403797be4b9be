#ifndef TOOLS_WEEKWHEELD_PROTOCOL_WORDS_H
#define TOOLS_WEEKWHEELD_PROTOCOL_WORDS_H

/*
 * Reads the words of a line: numbers, durations, names of tubes, percent-encoded bytes. Unless it says otherwise, a
 * function returns 0 and stores what the word says, or returns -1 and stores nothing. None allocates.
 */

#include <stddef.h>
#include <stdint.h>

/* The bytes from `at` up to, not including, `end`: a word, or the rest of a line. */
struct span {
	const char *at;
	const char *end;
};

/* A whole number up to `most`, of digits only. */
int words_number(struct span word, uint64_t most, uint64_t *number);

/* Decimal seconds such as 3 or 0.25, with up to nine digits of fraction and at most `most`; stored in ns. */
int words_seconds(struct span word, uint64_t most, uint64_t *ns);

/* The name of a tube; copied to tube, which has room for WW_TUBE_MAX + 1 bytes. */
int words_tube(struct span word, char *tube);

/* Percent-encoded bytes (RFC 3986), from 1 to `room` of them. */
int words_decode(struct span word, void *bytes, size_t room, size_t *length);

/* Return 1 if the word is this text. */
int words_is(struct span word, const char *text);

/* Return which of the names the word is, or -1. */
int words_find(struct span word, const char *const *names, int count);

/* Split a line with one space between two words. Returns how many words there are, or -1 if they exceed `room`. */
int words_split(struct span line, struct span *words, int room);

/* Take the first word off a line, after any number of spaces; it is empty if there is none. */
struct span words_next(struct span *line);

#endif
