#ifndef LIB_JOBS_STORE_JOURNAL_H
#define LIB_JOBS_STORE_JOURNAL_H

/*
 * A journal: what was committed and is not in the index yet, in files that are only appended to.
 *
 *     journal.7   | head | record 41 | record 42 | record 43 |
 *     journal.8   | head | record 44 | record 45 | zeros ...
 *                   |       |
 *                   |       size, CRC-32C of the rest, number, bytes
 *                   number of the file, number of its first record, CRC-32C
 *
 * A record is what one commit has changed. Records are numbered without a gap through all files. Reading stops at the
 * first record that is not whole or has another number: what follows was never acknowledged as stable, since older
 * records are synced first. A file is made and named stably before a record is written into it.
 *
 * When the index has taken over all records of a file, the file is cut: removed.
 *
 * Threads: append, turn and end in one thread at a time; cut in another one; sync in any.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/store/fault.h"

/* Files that may exist at a time. */
enum { JOURNAL_FILES = 16 };

struct journal_file {
	uint64_t number;
	int fd;
	_Atomic int dirty; /* has bytes that are not synced */
};

struct journal {
	const char *folder; /* the caller's */
	pthread_mutex_t syncing;
	pthread_mutex_t lock; /* of the files' list */
	struct journal_file file[JOURNAL_FILES];
	uint32_t files;
	uint64_t last;             /* number of the last file */
	uint64_t record;           /* number of the next record */
	uint64_t offset;           /* in the last file */
	struct store_fault *fault; /* the caller's; a failed sync is noted there, and ends appending and syncing */
};

/* What a record has. Returns 0 or an error, which ends the reading. */
typedef int journal_read_fn(void *context, const unsigned char *bytes, size_t size);

/*
 * Read all records from number `record` on, in files above `cut`: those that the index has not taken over. Errors:
 * WW_EIO, WW_EDENIED, WW_ENOMEM, WW_ECORRUPT: too many files; or that of `read`.
 */
int ww_journal_open(struct journal *journal, const char *folder, struct store_fault *fault, uint64_t cut,
    uint64_t record, journal_read_fn *read, void *context);
/*
 * Begin a new file, and remove those that were read: the index has taken over all of them, up to the number and record
 * that ww_journal_end tells. Errors: WW_EFULL, WW_EIO, WW_EDENIED.
 */
int ww_journal_start(struct journal *journal);
/* The last file, and the number of the next record. */
uint64_t ww_journal_end(const struct journal *journal, uint64_t *record);
/* Remove all files: the index has taken over all that they have. */
int ww_journal_forget(struct journal *journal);
void ww_journal_close(struct journal *journal);

/* Append a record. On error the journal is as before. Errors: WW_EFULL, WW_EIO: also after a failed sync. */
int ww_journal_append(struct journal *journal, const void *bytes, size_t size);
/* Return when all that was appended before is stable. An error is final: WW_EIO. */
int ww_journal_sync(struct journal *journal);

/* Begin a new file. On error the former one goes on. */
int ww_journal_turn(struct journal *journal);
/* Remove the files up to that number, which is below the last. */
int ww_journal_cut(struct journal *journal, uint64_t number);
/* Bytes of all files. */
uint64_t ww_journal_bytes(struct journal *journal);

#endif
