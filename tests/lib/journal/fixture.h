#ifndef TESTS_LIB_JOURNAL_FIXTURE_H
#define TESTS_LIB_JOURNAL_FIXTURE_H

/* A journal in a folder of its own, and a reader that keeps what it has read and heard. */

#include <stddef.h>
#include <stdint.h>

#include "lib/journal/format.h"
#include "lib/journal/journal.h"
#include "lib/journal/replay.h"
#include "tests/support/suite.h"

/* ---- The journal */

struct book {
	char folder[64];
	struct journal_fault fault;
	struct journal journal;
	int descriptors; /* how many were open before: at the end none is left over */
};

/* A journal with its first file, and without a record. */
void book_make(struct book *book);
/* One of three files, with the records one, two and three. */
void book_make_files(struct book *book);
void book_end(struct book *book);
void book_append(struct book *book, const char *text);
/* Append one and let it become stable. */
void book_append_synced(struct book *book, const char *text);
/* A record of this many bytes, none of which is 0. */
void book_append_size(struct book *book, size_t size);
void book_turn(struct book *book);

/* ---- Its files */

/* The path of a file, until the next call. */
const char *book_path(const struct book *book, uint64_t number);
int book_has(const struct book *book, const char *name);
uint64_t book_size(const struct book *book, uint64_t number);
void book_read_at(const struct book *book, uint64_t number, uint64_t at, void *bytes, size_t size);
void book_write_at(const struct book *book, uint64_t number, uint64_t at, const void *bytes, size_t size);
/* Turn bits of a byte over. */
void book_flip(const struct book *book, uint64_t number, uint64_t at, unsigned char bits);
void book_zero(const struct book *book, uint64_t number, uint64_t from, uint64_t to);
void book_cut_short(const struct book *book, uint64_t number, uint64_t size);
/* Make a file of these bytes and no more. */
void book_make_file(const struct book *book, uint64_t number, const void *bytes, size_t size);
void book_remove(const struct book *book, uint64_t number);
/* Change a head, whose sum then is right again. */
struct journal_head book_head(const struct book *book, uint64_t number);
void book_set_head(const struct book *book, uint64_t number, struct journal_head head);

/* ---- Reading it */

enum { READING_RECORDS = 64, READING_TEXT = 32, READING_PROBLEMS = 8 };

struct reading {
	struct replay replay; /* what it was asked, and what it has said */
	int answer;
	int records;
	char text[READING_RECORDS][READING_TEXT]; /* their beginnings */
	size_t size[READING_RECORDS];
	uint64_t number[READING_RECORDS];
	int problems;
	char problem[READING_PROBLEMS][512];
	int refused; /* the record, counted from 1, that `read` answers with `refusal`; 0: none */
	int refusal;
};

/* Read all files from record 1 on. */
void book_read(const struct book *book, struct reading *reading);
void book_salvage(const struct book *book, struct reading *reading);
/* Read what `reading->replay` asks for. */
void book_read_as(const struct book *book, struct reading *reading);
/* The records that were read, with a space between them. Until the next call. */
const char *reading_words(const struct reading *reading);
/* What was read, and that nothing is wrong. */
#define ASSERT_READS(book, words)                                                                                      \
	do {                                                                                                           \
		struct reading reading_;                                                                               \
		book_read(book, &reading_);                                                                            \
		ck_assert_msg(reading_.answer == WW_OK && reading_.problems == 0, "%d: %s", reading_.answer,           \
		    reading_.problem[0]);                                                                              \
		ck_assert_str_eq(reading_words(&reading_), words);                                                     \
	} while (0)
/* What was read, and what is said to be damaged or missing. The sentence ends so. */
#define ASSERT_DAMAGED(book, words, sentence)                                                                          \
	do {                                                                                                           \
		struct reading reading_;                                                                               \
		book_read(book, &reading_);                                                                            \
		ck_assert_int_eq(reading_.answer, WW_ECORRUPT);                                                        \
		ck_assert_int_eq(reading_.problems, 1);                                                                \
		ck_assert_str_eq(reading_problem(book, &reading_), sentence);                                          \
		ck_assert_str_eq(reading_words(&reading_), words);                                                     \
	} while (0)
/* The first problem without the folder's name. */
const char *reading_problem(const struct book *book, const struct reading *reading);

#endif
