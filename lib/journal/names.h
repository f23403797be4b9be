#ifndef LIB_JOURNAL_NAMES_H
#define LIB_JOURNAL_NAMES_H

/* The names of a journal's files: journal.1, journal.2, ... */

#include <stdint.h>

/* Whether it is the name of a file of the journal; its number. */
int ww_journal_number(const char *name, uint64_t *number);
/* The numbers of the journal's files in a folder, in order, `most` at most. Returns how many, or an error. */
int ww_journal_numbers(int at, const char *folder, uint64_t *numbers, int most);
/*
 * Whether a file of the journal in an open folder says that it is of another kind than this one (format.h): then another
 * program's. A file that cannot be read says nothing.
 */
int ww_journal_is_other(int folder, uint32_t kind);

#endif
