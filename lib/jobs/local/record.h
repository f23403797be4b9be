#ifndef LIB_JOBS_LOCAL_RECORD_H
#define LIB_JOBS_LOCAL_RECORD_H

/*
 * A job as it is stored.
 *
 *     | format | which fields | fields | key | error | body | group | headers | then | checksum |
 *
 * Which fields: a number with a bit for each field of record.c, set where it is not 0. Numbers have seven bits in each
 * byte, the lowest first. The high bit is set in all bytes but the last. Most fields of a job are 0. The checksum is
 * the low half of XXH3 of all bytes before it, seeded with id and due time. The due time of a waiting job is in the key
 * of its table.
 *
 * The last fields are those that few jobs have. A record with one of them has a format of its own, which a version that
 * does not know them refuses: 0.1 knows those up to the group. A record without these fields takes no space for them.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/store/store.h"
#include "weekwheel/jobs.h"

#define JOB_RECORD_FORMAT 2
#define JOB_RECORD_EXTENDED 3 /* with one of the fields from `first` on */
#define JOB_RECORD_EXPIRING 4 /* with one of the fields from `expire` on */
#define JOB_RECORD_HEADED 5   /* with headers */
#define JOB_RECORD_CODED 6    /* with a code */
#define JOB_RECORD_FOLLOWED 7 /* with a follow-up */

/* The most bytes stored besides key, error, body, group, headers and follow-up. */
#define JOB_RECORD_OVERHEAD (1 + 38 * 10 + 4)

struct job_record {
	uint64_t version;
	uint64_t tube;  /* its number */
	uint64_t flags; /* WW_JOB_WALL */
	uint64_t priority;
	uint64_t due;
	uint64_t base; /* the due time by the schedule of a periodic job; after a failed attempt `due` is later */
	uint64_t created;
	uint64_t delay;
	uint64_t run;
	uint64_t period;
	uint64_t missed; /* enum ww_missed */
	uint64_t skip;
	uint64_t backoff;
	uint64_t backoff_max;
	uint64_t attempts; /* the limit */
	uint64_t tries;    /* failed deliveries since it was put, kicked or, if periodic, last finished */
	uint64_t reserves;
	uint64_t timeouts;
	uint64_t releases;
	uint64_t buries;
	uint64_t kicks;
	uint64_t buried;  /* its number in the order of burying; 0: not buried */
	uint64_t first;   /* when the first of its debounced puts was, of the job's clock; 0: none */
	uint64_t hold;    /* how long its key stays taken after its end */
	uint64_t keep;    /* how long its runs are kept after their ends */
	uint64_t fence;   /* where others may finish it: no token up to this one does any more */
	uint64_t expire;  /* how long after `base` it expires; 0: never */
	uint64_t expires; /* when it does, of the job's clock; 0: never, since it was kicked */
	uint64_t expired; /* enum ww_expired */
	uint64_t code;    /* the least code of a worker that may take it; 0: any */
	uint64_t ended;   /* it has ended, and is kept until then, in elapsed time; 0: it lives */
	struct store_bytes key;
	struct store_bytes error;
	struct store_bytes body;
	struct store_bytes group; /* at most WW_JOB_GROUP_MAX bytes */
	struct store_bytes headers;
	struct store_bytes then; /* its follow-up; it lies behind the headers when it is read */
};

/* Neither buried nor ended. */
static inline int job_record_waits(const struct job_record *record)
{
	return !record->buried && !record->ended;
}

/* The options of a job, which are stored and shown as a put says them. */
void ww_job_record_take(struct job_record *record, const struct ww_job_spec *spec);
void ww_job_record_show(const struct job_record *record, struct ww_job_info *info);

/* The room that ww_job_record_write needs at most. */
size_t ww_job_record_size(const struct job_record *record);
/* Returns how many bytes were written. */
size_t ww_job_record_write(const struct job_record *record, uint64_t id, unsigned char *to);
/*
 * Key, error, body, group, headers and follow-up stay where they are in `from`. `due` is the due time in the table's key; NULL:
 * the job is buried or has ended. WW_ECORRUPT: it was not written like this under this id and due time.
 */
int ww_job_record_read(struct job_record *record, uint64_t id, const uint64_t *due, struct store_bytes from);

#endif
