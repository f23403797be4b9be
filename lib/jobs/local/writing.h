#ifndef LIB_JOBS_LOCAL_WRITING_H
#define LIB_JOBS_LOCAL_WRITING_H

/* What a batch may change, and how each change is taken back. */

#include "lib/jobs/local/local_internal.h"

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

/* Make the store ready for changes. */
int ww_jobs_writing(struct jobs_local *jobs);
/*
 * The same for changes that leave a job, with a body and a key of so many bytes, as far as that is known. WW_EFULL: there
 * is room only for ends.
 */
int ww_jobs_writing_more(struct jobs_local *jobs, size_t size);
/* Returns the error. If it is one, the batch fails. */
int ww_jobs_broken(struct jobs_local *jobs, int error);
int ww_jobs_note(struct jobs_local *jobs, const struct undo *undo);

#endif
