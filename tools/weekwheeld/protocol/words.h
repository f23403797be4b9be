#ifndef TOOLS_WEEKWHEELD_PROTOCOL_WORDS_H
#define TOOLS_WEEKWHEELD_PROTOCOL_WORDS_H

/*
 * The words of a command line: numbers, durations, tubes' names, percent-encoded bytes. All of them take a word by its
 * beginning and its end, return 0 and store what it says, or return -1 and store nothing. None allocates.
 */

#include <stddef.h>
#include <stdint.h>

/* Bytes from `at` to before `end`; what is left of a line, or a word of it. */
struct span {
	const char *at;
	const char *end;
};

/* A whole number of digits alone, up to `most`. */
int words_number(struct span word, uint64_t most, uint64_t *number);

/* Decimal seconds such as 3 or 0.25, with up to nine digits of fraction and up to `most` whole ones; stored in ns. */
int words_seconds(struct span word, uint64_t most, uint64_t *ns);

/* A tube's name of the bytes that a name may have; copied to tube, which has room for WW_TUBE_MAX + 1 bytes. */
int words_tube(struct span word, char *tube);

/* Percent-encoded bytes (RFC 3986), of which there may be `room`; 0 of them are refused. */
int words_decode(struct span word, void *bytes, size_t room, size_t *length);

/* Return 1 if the word is this text. */
int words_is(struct span word, const char *text);

/* Split a line at its spaces, one between two words. Returns how many words there are, up to `room`, or -1. */
int words_split(struct span line, struct span *words, int room);

/* Take a word off the line's beginning, after any number of spaces; empty if there is none. */
struct span words_next(struct span *line);

#endif
