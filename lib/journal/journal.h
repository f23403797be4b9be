#ifndef LIB_JOURNAL_JOURNAL_H
#define LIB_JOURNAL_JOURNAL_H

/*
 * A journal: the changes that were committed and are not in the index yet, in files that are only appended to. format.h
 * has their bytes, and replay.h reads them again. The *index* has everything else: it is SQLite's for a store of jobs,
 * and a snapshot for sessions.
 *
 * A record has the changes of one commit; the journal does not look into it. Records are numbered without a gap through
 * all files. Older records are synced first. A file is made, and its name is on stable storage, before a record is
 * written into it. Files are numbered without a gap, so a missing one is noticed. There is always a file beyond those
 * that the index has taken over. When the index has taken over all records of a file, the file is cut: removed.
 *
 * Threads: append, turn and end in one thread at a time; cut in another one; sync in any.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/journal/fault.h"

/* Files that may exist at a time. */
enum { JOURNAL_FILES = 128 };

struct journal_file {
	uint64_t number;
	int fd;
	uint64_t prepared; /* bytes that have space */
	_Atomic int dirty; /* has bytes that are not synced */
};

struct journal {
	const char *folder; /* the caller's */
	pthread_mutex_t syncing;
	pthread_mutex_t lock; /* of the files' list */
	struct journal_file file[JOURNAL_FILES];
	uint32_t files;
	uint64_t last;               /* number of the last file */
	uint64_t record;             /* number of the next record */
	uint64_t offset;             /* in the last file; before the first `turn`, where the file before ends, or 0 */
	uint64_t first;              /* number of the first record of that file */
	uint64_t stained;            /* bytes from there on may not be zeros, as a write failed; 0: all are */
	uint64_t filled;             /* up to there it has bytes */
	uint32_t salt;               /* of that file, or of the one before */
	int fills;                   /* its files get zeros in advance, as each commit is synced */
	uint32_t kind;               /* JOURNAL_JOBS or one of the others, which its files say; 0: they do not */
	_Atomic uint64_t synced;     /* all records below this number are stable */
	struct journal_fault *fault; /* the caller's; a failed sync is noted there, and ends appending and syncing */
};

/*
 * Go on after file `last` and before the record of that number. No file is open until `turn`. If `offset` and `salt` are set
 * then, file `last` has no end, as its process was killed: it gets one there, so that the next one is missed if it is gone.
 */
void ww_journal_open(
    struct journal *journal, const char *folder, struct journal_fault *fault, uint64_t last, uint64_t record);
/* The last file, and the number of the next record. */
uint64_t ww_journal_end(const struct journal *journal, uint64_t *record);
void ww_journal_close(struct journal *journal);

/* Let the last file have space for this many bytes more. Errors: WW_EFULL, WW_EIO. */
int ww_journal_room(struct journal *journal, uint64_t size);
/*
 * Append a record. On error the journal is as before. What a failed write has left is zeroed before anything else is
 * written, which may fail too. Errors: WW_EFULL, WW_EIO: also after a failed sync.
 */
int ww_journal_append(struct journal *journal, const void *bytes, size_t size);
/* Return when all that was appended before is stable. An error is final: WW_EIO. */
int ww_journal_sync(struct journal *journal);

/* Begin a new file. `is_last`: the store is being closed. On error the former one goes on. */
int ww_journal_turn(struct journal *journal, int is_last);
/* Remove the files up to that number, which is below the last: the index has taken over all that they have. */
int ww_journal_cut(struct journal *journal, uint64_t number);
/* Bytes that can be appended without room on the disk. Under the lock of `append`. */
uint64_t ww_journal_left(const struct journal *journal);
/* Bytes that its files have space for. */
uint64_t ww_journal_space(struct journal *journal);
/* Bytes of all files. */
uint64_t ww_journal_bytes(struct journal *journal);

#endif
