#ifndef LIB_JOBS_LOCAL_WRITING_H
#define LIB_JOBS_LOCAL_WRITING_H

/*
 * What a batch may change, and how each change is taken back (J3).
 *
 * A call that changes something begins the store's write, once a batch, and changes memory at once. It notes what it
 * changes: if the write fails, batch.c applies the notes in reverse. What failed halfway breaks the batch: it then ends
 * with that error, whatever its other calls did.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/rule.h"

struct jobs_local;
struct tube;

/* A note: how to undo a change. Its counts are those that were added. */
struct undo {
	enum { UNDO_ENTRY, UNDO_COUNTS, UNDO_RULE } kind;
	uint64_t id;
	union {
		struct image was;
		struct {
			struct rule *rule;
			struct rule rule_was;
		};
	};
	struct tube *tube;
	int64_t waiting;
	int64_t buried;
	int64_t puts;
	int64_t finished;
	int64_t kept;
};

/* Make the store ready for changes. WW_EDENIED: it is read only. Or the error for which the batch is broken. */
int ww_jobs_writing(struct jobs_local *jobs);
/*
 * The same for changes that leave a job behind, with a body and a key of this many bytes, as far as known. WW_EFULL:
 * there is room only for ends.
 */
int ww_jobs_writing_more(struct jobs_local *jobs, size_t size);
/* Returns the error. If it is one, the batch is broken. */
int ww_jobs_broken(struct jobs_local *jobs, int error);
/* Note a change before it is made. WW_ENOMEM: it cannot be made. */
int ww_jobs_note(struct jobs_local *jobs, const struct undo *undo);

#endif
