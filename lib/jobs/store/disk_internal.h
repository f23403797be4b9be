#ifndef LIB_JOBS_STORE_DISK_INTERNAL_H
#define LIB_JOBS_STORE_DISK_INTERNAL_H

/*
 * The store on disk: a journal, an index, and between them the pairs that the index does not have yet.
 *
 *     commit --> journal (stable)
 *            --> active: pairs in memory      read first
 *                  | large enough: frozen
 *                  v
 *                frozen                       read next
 *                  | a thread writes it into the index, in one transaction
 *                  v
 *                index                        read last; then the journal is cut
 *
 * A pair in memory has a byte before its value. The byte says whether the pair exists, or was removed and hides one
 * further down. Ids of jobs grow. A job that is put and ends while it is only in `active` leaves nothing behind and
 * never gets to the index.
 */
#include <pthread.h>

#include "lib/jobs/store/changes.h"
#include "lib/jobs/store/files.h"
#include "lib/jobs/store/room.h"
#include "lib/jobs/store/sqlite.h"
#include "lib/journal/journal.h"

enum { ACTIVE, FROZEN, INDEX, LAYERS };

/* The pair of each layer at which a walk is. */
struct walk {
	struct store_bytes key[LAYERS];
	struct store_bytes value[LAYERS];
	int is_there[LAYERS];
	struct store_bytes last; /* the key that was given; data NULL: none */
	int back;                /* the layers stand before it */
};

struct disk {
	const struct ww_allocator *allocator;
	struct ww_jobs_config config;
	char *path;
	struct store_files files;
	struct journal_fault fault;
	struct store_room room;
	struct journal journal;
	struct sqlite index;
	struct store active;
	struct store frozen; /* ops NULL: there is none */
	struct walk walk[STORE_TABLES];
	struct changes round; /* the record of the write under way */
	uint64_t highest;     /* id that was put */
	int has_ends;         /* jobs have gone since `active` was made */
	uint64_t fresh;       /* ids from here on are in `active` alone */

	pthread_t indexer;
	pthread_t syncer;
	int threads;           /* that run */
	pthread_mutex_t mutex; /* of the members below */
	pthread_cond_t wake;   /* the threads */
	pthread_cond_t taken;  /* the index has taken over `frozen`, or could not */
	int ended;
	int waits;    /* `frozen` waits for the indexer */
	int rests;    /* the indexer has nothing to do, or nothing that it can do */
	int failed;   /* its last error, or WW_OK */
	int unsynced; /* with WW_SYNC_INTERVAL: the journal has what is not stable, and the syncer knows */
	uint64_t cut;
	uint64_t record;
	uint64_t now[SLOTS_LINES];    /* the last time that was given */
	uint64_t tended[SLOTS_LINES]; /* when the index was tended last */
	int is_pressed;               /* a job was refused: the index is to make room */
	uint64_t was_cut;             /* the indexer's: the last file that it removed */
};

/* ---- Pairs in memory */

static inline int disk_is_there(struct store_bytes kept)
{
	return ((const unsigned char *)kept.data)[0] == CHANGES_THERE;
}

static inline struct store_bytes disk_value_of(struct store_bytes kept)
{
	return (struct store_bytes){(const unsigned char *)kept.data + 1, kept.size - 1};
}

/* ---- disk_read.c: as in store.h, through the layers */

int ww_store_disk_get(void *self, enum store_table table, struct store_bytes key, struct store_bytes *value);
int ww_store_disk_seek(
    void *self, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value);
int ww_store_disk_before(
    void *self, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value);
int ww_store_disk_next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value);
/* ---- disk_index.c: the index takes over */

int ww_store_disk_take_over(struct disk *disk, const struct store *layer, uint64_t cut, uint64_t record);
/* The thread that takes over, and tends the slots. */
void *ww_store_disk_run_indexer(void *argument);
/* Let go of what the index has. What was read before may be in it. */
void ww_store_disk_drop_frozen(struct disk *disk);
/* Nothing is being written. Failing is harmless: the next commit tries again. */
int ww_store_disk_freeze(struct disk *disk, int must);
/* Whether memory and journal have this many times the amount at which they freeze. */
int ww_store_disk_has_times(const struct disk *disk, unsigned times);
/* Use the reserve, or make it again unless the index needs it. */
int ww_store_disk_spend(struct disk *disk);
void ww_store_disk_keep(struct disk *disk);
/* After the index has taken over. */
void ww_store_disk_make_room(struct disk *disk);
/* A job was refused: let the index throw out what is gone. */
void ww_store_disk_press(struct disk *disk);
/* Memory and journal are bounded: wait for the index when it falls behind. */
int ww_store_disk_wait_for_room(struct disk *disk);
void ww_store_disk_set_time(void *self, uint64_t elapsed, uint64_t wall);

#endif
