/* Writes the store on disk, opens and closes it. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/jobs/store/copy.h"
#include "lib/jobs/store/disk_internal.h"
#include "lib/jobs/store/whole.h"
#include "lib/journal/format.h"

/* What ends of jobs may still write when new jobs are refused. */
#define KEPT ((uint64_t)256 << 10)
#define COMMON ((size_t)128 << 10)

/* How often a reader begins again while another process writes. */
enum { TRIES = 20 };

/* Whether the pair belongs to a job that no layer below has. */
static int is_fresh(const struct disk *disk, enum store_table table, struct store_bytes key)
{
	switch (table) {
	case STORE_JOBS:
	case STORE_DUE:
	case STORE_WALL:
	case STORE_BURIED:
	case STORE_KEYS:
		return key.size >= 8 && store_read64((const unsigned char *)key.data + key.size - 8) >= disk->fresh;
	default:
		return 0;
	}
}

/* ---- Writing */

static int begin(void *self)
{
	struct disk *disk = self;
	int error = ww_fault_describe(&disk->fault, NULL);

	if (error && error != WW_EFULL)
		return error;
	ww_store_disk_drop_frozen(disk);
	error = ww_store_disk_wait_for_room(disk);
	if (error == WW_EFULL)
		error = ww_store_room_ask(&disk->room, 0, 0, 0, error);
	disk->round.size = 0;
	return error ? error : disk->active.ops->begin(disk->active.self);
}

/* Let memory have a change. */
static int apply(struct disk *disk, enum store_table table, struct store_bytes key, struct store_bytes kept)
{
	const struct store *active = &disk->active;
	uint64_t id;

	disk->walk[table].last.data = NULL;
	if (table == STORE_JOBS && disk_is_there(kept) && key.size == 8) {
		id = store_read64(key.data);
		disk->highest = id > disk->highest ? id : disk->highest;
	}
	if (!disk_is_there(kept) && is_fresh(disk, table, key))
		return active->ops->remove(active->self, table, key);
	return active->ops->put(active->self, table, key, kept);
}

static int change(
    struct disk *disk, enum store_table table, struct store_bytes key, int there, struct store_bytes value)
{
	size_t before = disk->round.size;
	struct store_bytes kept;
	int error = ww_changes_add(&disk->round, disk->allocator, table, key, there, value, &kept);

	if (!error)
		error = apply(disk, table, key, kept);
	if (error)
		disk->round.size = before;
	return error;
}

static int room(void *self, size_t size)
{
	struct disk *disk = self;
	uint64_t memory = ww_store_memory_bytes(&disk->active);
	int error;

	/* All common sizes are refused or accepted alike. */
	size = size < COMMON ? COMMON : size;
	error = ww_journal_room(&disk->journal, disk->round.size + size + KEPT);
	/* What the index cannot take waits in memory, of which the rest is kept for ends. */
	pthread_mutex_lock(&disk->mutex);
	if (!error && disk->waits && disk->failed == WW_EFULL)
		error = WW_EFULL;
	pthread_mutex_unlock(&disk->mutex);
	if (!disk->room.has_reserve)
		ww_store_disk_keep(disk);
	if (disk->frozen.ops)
		memory += ww_store_memory_bytes(&disk->frozen);
	error = ww_store_room_ask(&disk->room, size, ww_journal_space(&disk->journal), memory, error);
	if (error == WW_EFULL)
		ww_store_disk_press(disk);
	return error;
}

static int put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	return change(self, table, key, CHANGES_THERE, value);
}

static int remove_pair(void *self, enum store_table table, struct store_bytes key)
{
	struct store_bytes value;
	int error = ww_store_disk_get(self, table, key, &value);

	((struct disk *)self)->has_ends |= table == STORE_JOBS;
	return error ? error : change(self, table, key, CHANGES_REMOVED, (struct store_bytes){"", 0});
}

static void abort_write(void *self)
{
	struct disk *disk = self;

	memset(disk->walk, 0, sizeof disk->walk);
	disk->round.size = 0;
	disk->active.ops->abort(disk->active.self);
}

static int sync_now(void *self)
{
	return ww_journal_sync(&((struct disk *)self)->journal);
}

/* The thread that syncs sleeps while there is nothing to sync. */
static void want_sync(struct disk *disk)
{
	pthread_mutex_lock(&disk->mutex);
	if (!disk->unsynced)
		pthread_cond_broadcast(&disk->wake);
	disk->unsynced = 1;
	pthread_mutex_unlock(&disk->mutex);
}

static int commit(void *self)
{
	struct disk *disk = self;
	int error = WW_OK;

	memset(disk->walk, 0, sizeof disk->walk);
	if (disk->round.size)
		error = ww_journal_append(&disk->journal, disk->round.bytes, disk->round.size);
	if (error == WW_EFULL && ww_store_disk_spend(disk))
		error = ww_journal_append(&disk->journal, disk->round.bytes, disk->round.size);
	if (!error && disk->config.sync == WW_SYNC_ALWAYS)
		error = sync_now(disk);
	if (error) {
		abort_write(disk);
		return error;
	}
	if (disk->config.sync == WW_SYNC_INTERVAL)
		want_sync(disk);
	disk->round.size = 0;
	(void)disk->active.ops->commit(disk->active.self);
	/* Of a full store, what has ended makes room only when the index knows. */
	int ends = disk->has_ends && disk->fault.error == WW_EFULL;
	if (!disk->frozen.ops && (ends || ww_store_disk_has_times(disk, 1)))
		(void)ww_store_disk_freeze(disk, !ends);
	return WW_OK;
}

static void rest(void *self)
{
	struct disk *disk = self;

	memset(disk->walk, 0, sizeof disk->walk);
	ww_sqlite_rest(&disk->index);
	ww_store_disk_drop_frozen(disk);
}

static void *sync_often(void *argument)
{
	struct disk *disk = argument;
	uint64_t until;

	pthread_mutex_lock(&disk->mutex);
	while (!disk->ended) {
		if (!disk->unsynced) {
			pthread_cond_wait(&disk->wake, &disk->mutex);
			continue;
		}
		until = time_add(time_now(CLOCK_MONOTONIC), disk->config.sync_ns);
		while (!disk->ended && time_wait(&disk->wake, &disk->mutex, until) != ETIMEDOUT)
			continue;
		disk->unsynced = 0;
		pthread_mutex_unlock(&disk->mutex);
		int error = sync_now(disk);
		pthread_mutex_lock(&disk->mutex);
		/* The indexer may wait, and a write for the indexer. */
		if (error)
			pthread_cond_broadcast(&disk->wake);
	}
	pthread_mutex_unlock(&disk->mutex);
	return NULL;
}

/* ---- Opening and closing */

static int apply_change(void *context, enum store_table table, struct store_bytes key, struct store_bytes kept)
{
	return apply(context, table, key, kept);
}

/* Read a record of the journal again. */
static int replay_record(void *context, const unsigned char *bytes, size_t size)
{
	struct disk *disk = context;
	int error = ww_changes_each(bytes, size, apply_change, disk);

	(void)disk->active.ops->commit(disk->active.self);
	return error;
}

static int start_thread(struct disk *disk, pthread_t *thread, void *(*run)(void *))
{
	int error = pthread_create(thread, NULL, run, disk) ? WW_ESYSTEM : WW_OK;

	disk->threads += !error;
	return error;
}

/* Let the index have all, so that a closed store is its index. */
static int take_over_all(struct disk *disk, int is_last)
{
	uint64_t record;
	uint64_t cut = ww_journal_end(&disk->journal, &record);
	int error = ww_journal_turn(&disk->journal, is_last);

	if (!error && disk->frozen.ops && disk->waits)
		error = ww_store_disk_take_over(disk, &disk->frozen, disk->cut, disk->record);
	if (!error)
		error = ww_store_disk_take_over(disk, &disk->active, cut, record);
	if (!error && !ww_fault_is_final(&disk->fault))
		error = ww_journal_cut(&disk->journal, cut);
	return error;
}

static void end_threads(struct disk *disk)
{
	pthread_mutex_lock(&disk->mutex);
	disk->ended = 1;
	pthread_cond_broadcast(&disk->wake);
	pthread_mutex_unlock(&disk->mutex);
	if (disk->threads > 0)
		pthread_join(disk->indexer, NULL);
	if (disk->threads > 1)
		pthread_join(disk->syncer, NULL);
}

static void free_disk(struct disk *disk)
{
	if (disk->active.ops)
		(void)disk->active.ops->close(disk->active.self);
	if (disk->frozen.ops)
		(void)disk->frozen.ops->close(disk->frozen.self);
	ww_journal_close(&disk->journal);
	ww_sqlite_close(&disk->index);
	memory_give(disk->allocator, disk->round.bytes, disk->round.room);
	ww_store_files_unlock(&disk->files);
	ww_fault_destroy(&disk->fault);
	pthread_cond_destroy(&disk->taken);
	pthread_cond_destroy(&disk->wake);
	pthread_mutex_destroy(&disk->mutex);
	free(disk->path);
	memory_give(disk->allocator, disk, sizeof *disk);
}

static int close_store(void *self)
{
	struct disk *disk = self;
	int error = WW_OK;

	if (!(disk->config.flags & WW_JOBS_READONLY)) {
		error = sync_now(disk);
		end_threads(disk);
		ww_sqlite_rest(&disk->index);
		/* If the index cannot take it over, the journal has it, and the next opening tries again. */
		if (!error && !ww_fault_final(&disk->fault)) {
			int taken = take_over_all(disk, 1);
			if (taken == WW_EFULL && ww_store_disk_spend(disk))
				taken = take_over_all(disk, 1);
			disk->index.is_ended = taken == WW_OK && !ww_fault_is_final(&disk->fault);
		}
	}
	free_disk(disk);
	return error;
}

static uint64_t disk_bytes(void *self)
{
	struct disk *disk = self;

	return ww_store_files_bytes(disk->path) + ww_journal_bytes(&disk->journal);
}

_Static_assert(FAULT_TEXT == WW_FAULT_MAX, "a fault's text is handed on whole");

static int fault(void *self, char text[WW_FAULT_MAX])
{
	struct disk *disk = self;

	/* There may be room by now. */
	if (text && disk->fault.error == WW_EFULL && !ww_store_disk_has_times(disk, 4))
		(void)room(disk, 0);
	return ww_fault_describe(&disk->fault, text);
}

static const struct store_ops disk_ops = {begin, commit, abort_write, rest, ww_store_disk_get, room, put, remove_pair,
    ww_store_disk_seek, ww_store_disk_before, ww_store_disk_next, sync_now, ww_store_disk_set_time, disk_bytes, fault,
    close_store, NULL, NULL, NULL, NULL, NULL};

/* Read the journal from where the index has taken over. */
static int read_journal(struct disk *disk, uint64_t cut, uint64_t record)
{
	struct replay replay = {.folder = disk->path,
	    .cut = cut,
	    .record = record,
	    .read = replay_record,
	    .context = disk,
	    .problem = disk->config.problem,
	    .problem_context = disk->config.context};
	int error = ww_replay(&replay);

	if (!error) {
		ww_journal_open(&disk->journal, disk->path, &disk->fault, replay.last, replay.record);
		/* The process that wrote what was read may have ended before it was synced. */
		disk->journal.synced = record;
		disk->journal.kind = JOURNAL_JOBS;
		disk->journal.fills = disk->config.sync == WW_SYNC_ALWAYS;
	}
	return error;
}

/* Begin with an empty layer, and with a journal that has nothing. */
static int begin_anew(struct disk *disk)
{
	int error = take_over_all(disk, 0);

	if (error)
		return error;
	(void)disk->active.ops->close(disk->active.self);
	disk->active = (struct store){0};
	return ww_store_memory_open(&disk->active, &disk->config);
}

/* The index, and the layer above it. */
static int open_layers(struct disk *disk)
{
	uint64_t cut, record;
	int error = ww_sqlite_open(&disk->index, &disk->config, &disk->fault, &cut, &record);

	if (!error)
		error = ww_store_memory_open(&disk->active, &disk->config);
	if (!error)
		error = ww_store_slots_highest(disk->index.reader, &disk->highest);
	disk->fresh = disk->highest + 1;
	return error ? error : read_journal(disk, cut, record);
}

static int open_to_write(struct disk *disk)
{
	int error = ww_store_files_lock(&disk->files, &disk->config);

	if (!error)
		error = ww_store_whole_before(&disk->files, &disk->config, &disk->fault);
	ww_store_room_init(&disk->room, disk->path, disk->config.max_disk, &disk->fault);
	if (!error)
		error = ww_store_whole_advise(&disk->config, open_layers(disk));
	if (!error)
		error = begin_anew(disk);
	if (!error)
		ww_store_disk_make_room(disk);
	disk->was_cut = disk->journal.last - 1;
	disk->fresh = disk->highest + 1;
	return error;
}

static int try_to_read(struct disk *disk)
{
	int error = ww_store_files_look(&disk->files, &disk->config);

	if (!error)
		error = ww_store_whole_before(&disk->files, &disk->config, &disk->fault);
	return error ? error : open_layers(disk);
}

static void close_layers(struct disk *disk)
{
	if (disk->active.ops)
		(void)disk->active.ops->close(disk->active.self);
	disk->active = (struct store){0};
	ww_sqlite_close(&disk->index);
}

/*
 * The index is read as it is at one moment, then the journal from there on. The writing process may have removed a
 * file of it meanwhile, or may be writing a record: try again.
 */
static int open_to_read(struct disk *disk)
{
	ww_jobs_problem_fn *problem = disk->config.problem;
	int error = WW_ECORRUPT;

	disk->config.problem = NULL;
	for (int tries = 0; tries < TRIES && error && ww_store_files_used(disk->path); tries++) {
		error = try_to_read(disk);
		if (error)
			close_layers(disk);
		else
			return ww_sqlite_detach(&disk->index);
		(void)poll(NULL, 0, 5);
	}
	disk->config.problem = problem;
	return ww_store_whole_advise(&disk->config, try_to_read(disk));
}

int ww_store_disk_open(struct store *store, const struct ww_jobs_config *config)
{
	struct disk *disk = memory_take_zeroed(config->allocator, sizeof *disk);
	int error = WW_OK;

	if (!disk)
		return WW_ENOMEM;
	disk->allocator = config->allocator;
	disk->config = *config;
	disk->files.lock = -1;
	ww_fault_init(&disk->fault);
	pthread_mutex_init(&disk->mutex, NULL);
	pthread_cond_init(&disk->taken, NULL);
	(void)time_cond_init(&disk->wake);
	disk->path = strdup(config->path);
	disk->config.path = disk->path;
	if (!disk->path)
		error = WW_ENOMEM;
	if (!error)
		error = (config->flags & WW_JOBS_READONLY ? open_to_read : open_to_write)(disk);
	if (!error && !(config->flags & WW_JOBS_READONLY)) {
		error = start_thread(disk, &disk->indexer, ww_store_disk_run_indexer);
		if (!error && config->sync == WW_SYNC_INTERVAL)
			error = start_thread(disk, &disk->syncer, sync_often);
		if (error)
			end_threads(disk);
	}
	if (error) {
		free_disk(disk);
		return error;
	}
	*store = (struct store){&disk_ops, disk};
	return WW_OK;
}
