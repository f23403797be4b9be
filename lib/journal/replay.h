#ifndef LIB_JOURNAL_REPLAY_H
#define LIB_JOURNAL_REPLAY_H

/*
 * Reading a journal again, and distinguishing a record that a power failure has torn from a damaged one.
 *
 * Records are numbered without a gap. The first one that is not whole ends the journal, because its sync cannot have
 * ended. It is damage instead
 * - if no part of it within a sector is zeros: all of it was written,
 * - or if a later record was written when that one was stable.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/error.h"

/* What a record has. Returns 0 or an error, which ends the reading. */
typedef int replay_read_fn(void *context, const unsigned char *bytes, size_t size);
/* What is damaged or missing, in a sentence. */
typedef void replay_problem_fn(const char *problem, void *context);

struct replay {
	const char *folder;
	uint64_t cut; /* read the files above this number; UINT64_MAX: all there are */
	uint64_t
	    record; /* number of the first record expected there, 0: any; then of the one that is read, and of the next one */
	uint64_t last;   /* number of the last file, or `cut` */
	uint64_t stable; /* the records below this number were stable when the last ones were written */
	uint64_t end;  /* where the last record ends, in the last file, which does not say that another follows; or 0 */
	uint32_t salt; /* of that file */
	int is_empty;  /* nothing was ever written: a store that was being made */
	int is_closed; /* the last file says so */
	int salvage;   /* read whatever is whole, in each file there is */
	replay_read_fn *read;
	void *context;
	replay_problem_fn *problem; /* gets what is damaged or missing; may be NULL */
	void *problem_context;
};

/*
 * Fill `last`, `record`, `stable`, `end`, `salt`, `is_empty` and `is_closed`. Errors: WW_ECORRUPT: something is damaged or missing,
 * which was reported; WW_EVERSION: written by a later version; WW_EIO, WW_EDENIED, WW_ENOMEM, or that of `read`.
 */
int ww_replay(struct replay *replay);

/*
 * Let all that was replayed become stable. The process that wrote it may have been killed before it synced that, or its
 * sync may have failed: then memory has pages that the disk lacks, though they are clean, and a sync alone writes
 * none of them. So the files that may have such pages are written once more. Nobody writes meanwhile. Errors:
 * WW_EFULL, WW_EIO, WW_EDENIED, WW_ENOMEM.
 */
int ww_replay_settle(const struct replay *replay);

/*
 * A disk is full: give back the room behind the last records of the files above `cut`, up to `last`, which was taken
 * in advance. A server that is killed leaves a mebibyte. They read as before, and nobody may write to them any more.
 * If it fails nothing has changed.
 */
void ww_replay_give_back(const struct replay *replay);

#endif
