#ifndef LIB_JOBS_LOCAL_BATCH_H
#define LIB_JOBS_LOCAL_BATCH_H

/*
 * The end of a batch: everything that its calls have changed is written together, or taken back together.
 *
 *     calls:   change memory, note what it was (writing.h), put records into the store's write
 *     end:     counts of tubes and slots, runs, meta  -->  commit  -->  load more, listener, callers that wait
 *                                                            `-> on error: the notes in reverse
 */

struct jobs_local;

/* End the batch. On error nothing of it has changed. Errors also: that for which it was broken. */
int ww_jobs_commit_batch(struct jobs_local *jobs);

#endif
