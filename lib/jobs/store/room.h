#ifndef LIB_JOBS_STORE_ROOM_H
#define LIB_JOBS_STORE_ROOM_H

/*
 * Room on the disk, and a reserve of it for jobs that end.
 *
 * The file `reserve` takes space that nothing uses. When the journal or the index gets no more space, the file is
 * removed: ends of jobs can still be written, and the index can take over changes that make it smaller. From then on
 * new jobs are refused, until the reserve can be made again. New jobs are also refused when the disk has little space
 * left, or when the files take as much as they may.
 */

#include <stdint.h>

#include "lib/journal/fault.h"

struct store_room {
	const char *folder;          /* the caller's */
	struct journal_fault *fault; /* the caller's */
	uint64_t most;               /* bytes that the files may take; 0: any */
	_Atomic int has_reserve;
	_Atomic uint64_t used;   /* bytes that the index takes, without its free pages */
	_Atomic uint64_t unused; /* bytes of those, which the index uses before it grows */
	uint64_t asked;          /* bytes, since the system was asked for the room on the disk */
	int is_short;            /* what it said */
};

/* A reserve of before may be used for opening. */
void ww_store_room_init(struct store_room *room, const char *folder, uint64_t most, struct journal_fault *fault);
/* Make the reserve if it is missing. */
void ww_store_room_keep(struct store_room *room);
/* Remove the reserve. Returns whether there was one. */
int ww_store_room_spend(struct store_room *room);
/*
 * Whether a new job of this many bytes may be taken, with what journal and memory then take. `error` is what the
 * journal said when it was asked for room. What is in memory must find room in the index, too. If not, note why.
 * Returns WW_OK or an error.
 */
int ww_store_room_ask(struct store_room *room, uint64_t size, uint64_t journal, uint64_t memory, int error);

#endif
