/* Moves the pairs that the store on disk has in memory into its index, and tends the slots of the index. */

#include <string.h>

#include "lib/base/time.h"
#include "lib/jobs/store/disk_internal.h"
#include "lib/jobs/store/files.h"

/* How often the slots of the index are tended, by the time of jobs. */
#define TEND_EVERY (60 * UINT64_C(1000000000))

/* Write a layer into the index. */
struct taking {
	struct sqlite *index;
	enum store_table table;
	int there; /* what is taken: pairs that were removed, or those that are there */
};

static int take_pair(void *context, struct store_bytes key, struct store_bytes kept)
{
	const struct taking *taking = context;

	if (disk_is_there(kept) != taking->there)
		return WW_OK;
	if (!taking->there)
		return ww_sqlite_remove(taking->index, taking->table, key);
	return ww_sqlite_put(taking->index, taking->table, key, disk_value_of(kept));
}

int ww_store_disk_take_over(struct disk *disk, const struct store *layer, uint64_t cut, uint64_t record)
{
	/*
	 * Not after a failed sync: another one would succeed without what the system has dropped. Nor after damage:
	 * pages are written because of what others say.
	 */
	int error = ww_fault_final(&disk->fault);

	if (error)
		return error;
	error = ww_sqlite_begin(&disk->index);
	for (int i = 0; i < 2 * STORE_TABLES && !error; i++) {
		struct taking taking = {&disk->index, (enum store_table)(i % STORE_TABLES), i >= STORE_TABLES};
		error = ww_store_memory_each(layer, taking.table, take_pair, &taking);
	}
	if (!error)
		return ww_sqlite_commit(&disk->index, cut, record);
	return ww_sqlite_abort(&disk->index, error);
}

static int is_time_to_tend(const struct disk *disk)
{
	int is_time = disk->is_pressed;

	for (int line = 0; line < SLOTS_LINES; line++)
		is_time |= disk->now[line] / TEND_EVERY != disk->tended[line] / TEND_EVERY;
	return is_time;
}

/* Let the index do one piece of what the time brings. Returns 1 if there may be more, 0, or an error. The mutex is held. */
static int tend(struct disk *disk)
{
	uint64_t now[SLOTS_LINES] = {disk->now[SLOTS_ELAPSED], disk->now[SLOTS_WALL]};
	int is_quiet = is_time_to_tend(disk);
	int did;

	disk->index.slots.is_pressed = disk->is_pressed || disk->fault.error == WW_EFULL;
	disk->is_pressed = 0;
	pthread_mutex_unlock(&disk->mutex);
	did = ww_store_slots_tend(&disk->index.slots, now);
	if (!did && is_quiet)
		ww_sqlite_settle(&disk->index);
	if (did == 1)
		ww_store_disk_make_room(disk);
	pthread_mutex_lock(&disk->mutex);
	memcpy(disk->tended, now, sizeof now);
	return did;
}

/* The mutex is held. */
static void wait_until_woken(struct disk *disk)
{
	disk->rests = 1;
	(void)pthread_cond_wait(&disk->wake, &disk->mutex);
	disk->rests = 0;
}

/* After an error, which may end. The mutex is held. */
static void wait_a_second(struct disk *disk)
{
	disk->rests = 1;
	(void)time_wait(&disk->wake, &disk->mutex, time_add(time_now(CLOCK_MONOTONIC), WW_SECOND));
	disk->rests = 0;
}

int ww_store_disk_spend(struct disk *disk)
{
	pthread_mutex_lock(&disk->mutex);
	int done = ww_store_room_spend(&disk->room);
	pthread_mutex_unlock(&disk->mutex);
	return done;
}

void ww_store_disk_keep(struct disk *disk)
{
	pthread_mutex_lock(&disk->mutex);
	if (!disk->failed)
		ww_store_room_keep(&disk->room);
	pthread_mutex_unlock(&disk->mutex);
}

void ww_store_disk_make_room(struct disk *disk)
{
	uint64_t unused = 0;

	ww_store_disk_keep(disk);
	disk->room.used = ww_sqlite_bytes(&disk->index, &unused);
	disk->room.unused = unused;
}

void ww_store_disk_press(struct disk *disk)
{
	pthread_mutex_lock(&disk->mutex);
	/* While the index cannot even take over, it tries again by itself. */
	if (!disk->waits) {
		disk->is_pressed = 1;
		pthread_cond_broadcast(&disk->wake);
	}
	pthread_mutex_unlock(&disk->mutex);
}

/* Cut the journal. Put it off while a process copies the store, as long as it is small. */
static void cut(struct disk *disk)
{
	if (disk->cut - disk->was_cut < JOURNAL_FILES / 2 && ww_journal_space(&disk->journal) < STORE_PATIENCE &&
	    ww_store_files_copied(disk->path, 0))
		return;
	ww_journal_cut(&disk->journal, disk->cut);
	disk->was_cut = disk->cut;
}

void *ww_store_disk_run_indexer(void *argument)
{
	struct disk *disk = argument;

	pthread_mutex_lock(&disk->mutex);
	while (!disk->ended) {
		if (ww_fault_final(&disk->fault)) {
			disk->failed = ww_fault_final(&disk->fault);
			pthread_cond_broadcast(&disk->taken);
			wait_until_woken(disk);
			continue;
		}
		if (!disk->waits) {
			int did = tend(disk);
			if (did < 0 && !disk->ended)
				wait_a_second(disk);
			else if (!did && !disk->waits && !disk->ended && !is_time_to_tend(disk))
				wait_until_woken(disk);
			continue;
		}
		pthread_mutex_unlock(&disk->mutex);
		int error = ww_store_disk_take_over(disk, &disk->frozen, disk->cut, disk->record);
		/* Determine this before the reserve goes, as it is not made again meanwhile. */
		pthread_mutex_lock(&disk->mutex);
		disk->failed = error;
		pthread_mutex_unlock(&disk->mutex);
		if (error == WW_EFULL && ww_store_disk_spend(disk))
			error = ww_store_disk_take_over(disk, &disk->frozen, disk->cut, disk->record);
		if (!error && !ww_fault_final(&disk->fault))
			cut(disk);
		if (!error)
			ww_store_disk_make_room(disk);
		pthread_mutex_lock(&disk->mutex);
		disk->failed = error;
		disk->waits = error != WW_OK;
		pthread_cond_broadcast(&disk->taken);
		if (error && !disk->ended)
			wait_a_second(disk);
	}
	pthread_mutex_unlock(&disk->mutex);
	return NULL;
}

void ww_store_disk_drop_frozen(struct disk *disk)
{
	int waits;

	if (!disk->frozen.ops)
		return;
	pthread_mutex_lock(&disk->mutex);
	waits = disk->waits;
	pthread_mutex_unlock(&disk->mutex);
	if (waits)
		return;
	memset(disk->walk, 0, sizeof disk->walk);
	ww_sqlite_rest(&disk->index);
	(void)disk->frozen.ops->close(disk->frozen.self);
	disk->frozen = (struct store){0};
}

/* Begin a new file of the journal, if need be in the space of the reserve. */
static int turn(struct disk *disk, int must)
{
	int error = ww_journal_turn(&disk->journal, 0);

	return error == WW_EFULL && must && ww_store_disk_spend(disk) ? ww_journal_turn(&disk->journal, 0) : error;
}

int ww_store_disk_freeze(struct disk *disk, int must)
{
	struct store fresh;
	uint64_t record;
	int error = ww_store_memory_open(&fresh, &disk->config);

	if (error)
		return error;
	uint64_t cut = ww_journal_end(&disk->journal, &record);
	error = turn(disk, must);
	if (error) {
		(void)fresh.ops->close(fresh.self);
		return error;
	}
	disk->frozen = disk->active;
	disk->active = fresh;
	disk->fresh = disk->highest + 1;
	disk->has_ends = 0;
	pthread_mutex_lock(&disk->mutex);
	disk->cut = cut;
	disk->record = record;
	disk->waits = 1;
	pthread_cond_broadcast(&disk->wake);
	pthread_mutex_unlock(&disk->mutex);
	return WW_OK;
}

int ww_store_disk_has_times(const struct disk *disk, unsigned times)
{
	return ww_store_memory_bytes(&disk->active) >= times * ww_store_sizes.active ||
	       disk->journal.offset >= times * ww_store_sizes.journal;
}

int ww_store_disk_wait_for_room(struct disk *disk)
{
	int error = WW_OK;

	if (!ww_store_disk_has_times(disk, 2))
		return WW_OK;
	pthread_mutex_lock(&disk->mutex);
	while (disk->waits && !disk->failed)
		pthread_cond_wait(&disk->taken, &disk->mutex);
	error = disk->failed;
	pthread_mutex_unlock(&disk->mutex);
	ww_store_disk_drop_frozen(disk);
	if (!disk->frozen.ops) {
		int frozen = ww_store_disk_freeze(disk, 1);
		error = error ? error : frozen;
	}
	/* While the disk is full, jobs may still end. */
	return error == WW_EFULL && !ww_store_disk_has_times(disk, 4) ? WW_OK : error;
}

void ww_store_disk_set_time(void *self, uint64_t elapsed, uint64_t wall)
{
	struct disk *disk = self;

	pthread_mutex_lock(&disk->mutex);
	disk->now[SLOTS_ELAPSED] = elapsed;
	disk->now[SLOTS_WALL] = wall;
	if (is_time_to_tend(disk))
		pthread_cond_broadcast(&disk->wake);
	pthread_mutex_unlock(&disk->mutex);
}
