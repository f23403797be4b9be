/*
 * The store on disk: a journal, an index, and between them what the index does not have yet.
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
 * A pair in memory has a byte before its value: whether it is there, or was removed and hides one further down. Ids of
 * jobs grow. A job that is put and ends while it is in `active` alone leaves nothing behind: it never gets to the index.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/jobs/store/changes.h"
#include "lib/jobs/store/copy.h"
#include "lib/jobs/store/files.h"
#include "lib/jobs/store/journal.h"
#include "lib/jobs/store/sqlite.h"
#include "lib/jobs/store/whole.h"

/* How often the slots of the index are tended, by the time of jobs. */
#define TEND_EVERY (60 * UINT64_C(1000000000))

struct store_limits ww_store_disk_limits = {
    .active = (size_t)1024 << 10, .journal = (uint64_t)8 << 20, .view = 8192, .few = 5000};

/* How often a reader begins again beside a process that writes. */
enum { TRIES = 20 };

enum { ACTIVE, FROZEN, INDEX, LAYERS };

/* The pair of each layer at which a walk is. */
struct walk {
	struct store_bytes key[LAYERS];
	struct store_bytes value[LAYERS];
	int is_there[LAYERS];
	struct store_bytes last; /* the key that was told; data NULL: none */
	int back;                /* the layers stand before it */
};

struct disk {
	const struct ww_allocator *allocator;
	struct ww_jobs_config config;
	char *path;
	struct store_files files;
	struct store_fault fault;
	struct journal journal;
	struct sqlite index;
	struct store active;
	struct store frozen; /* ops NULL: there is none */
	struct walk walk[STORE_TABLES];
	unsigned char *round; /* the record of the write under way */
	size_t round_size;
	size_t round_room;
	uint64_t highest; /* id that was put */
	uint64_t fresh;   /* ids from here on are in `active` alone */

	pthread_t indexer;
	pthread_t syncer;
	int threads;           /* that run */
	pthread_mutex_t mutex; /* of the members below */
	pthread_cond_t wake;   /* the threads */
	pthread_cond_t taken;  /* the index has taken over `frozen`, or could not */
	int ended;
	int waits;    /* `frozen` waits for the indexer */
	int failed;   /* its last error, or WW_OK */
	int unsynced; /* with WW_SYNC_INTERVAL: the journal has what is not stable, and the syncer knows */
	uint64_t cut;
	uint64_t record;
	uint64_t now[SLOTS_LINES];    /* the last time that was told */
	uint64_t tended[SLOTS_LINES]; /* when the index was tended last */
	uint64_t was_cut;             /* the indexer's: the last file that it removed */
};

/* ---- Pairs */

static int is_there(struct store_bytes kept)
{
	return ((const unsigned char *)kept.data)[0] == CHANGES_THERE;
}

static struct store_bytes value_of(struct store_bytes kept)
{
	return (struct store_bytes){(const unsigned char *)kept.data + 1, kept.size - 1};
}

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

/* ---- Reading */

/* Nobody knows what a page had that cannot be read: write nothing any more. A value alone is told to who asked for it. */
static int judge(struct disk *disk, int error, sqlite3 *connection)
{
	if (error == WW_ECORRUPT && connection && (sqlite3_errcode(connection) & 0xff) == SQLITE_CORRUPT)
		return ww_store_fault_damage(&disk->fault, disk->path);
	return error;
}

static int get(void *self, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	struct disk *disk = self;
	const struct store layers[] = {disk->active, disk->frozen};
	struct store_bytes kept;

	for (int i = 0; i < INDEX; i++) {
		if (!layers[i].ops || layers[i].ops->get(layers[i].self, table, key, &kept))
			continue;
		*value = value_of(kept);
		return is_there(kept) ? WW_OK : WW_ENOTFOUND;
	}
	return judge(disk, ww_sqlite_get(&disk->index, table, key, value), disk->index.reader);
}

static int seek_layer(struct disk *disk, int layer, enum store_table table, struct store_bytes from, int back)
{
	const struct store *store = layer == ACTIVE ? &disk->active : &disk->frozen;
	struct walk *walk = &disk->walk[table];
	int error = WW_ENOTFOUND;

	if (layer == INDEX)
		error = (back ? ww_sqlite_before : ww_sqlite_seek)(
		    &disk->index, table, from, &walk->key[layer], &walk->value[layer]);
	else if (store->ops)
		error = (back ? store->ops->before : store->ops->seek)(
		    store->self, table, from, &walk->key[layer], &walk->value[layer]);
	walk->is_there[layer] = !error;
	return error == WW_ENOTFOUND ? WW_OK : layer == INDEX ? judge(disk, error, disk->index.reader) : error;
}

static int next_in_layer(struct disk *disk, int layer, enum store_table table)
{
	const struct store *store = layer == ACTIVE ? &disk->active : &disk->frozen;
	struct walk *walk = &disk->walk[table];
	int error;

	if (layer == INDEX)
		error = ww_sqlite_next(&disk->index, table, &walk->key[layer], &walk->value[layer]);
	else
		error = store->ops->next(store->self, table, &walk->key[layer], &walk->value[layer]);
	walk->is_there[layer] = !error;
	return error == WW_ENOTFOUND ? WW_OK : layer == INDEX ? judge(disk, error, disk->index.reader) : error;
}

/* The layer whose pair comes next; of equal keys the upper one, which hides the others. LAYERS: none is left. */
static int first_layer(const struct walk *walk, int back)
{
	int first = LAYERS;

	for (int i = 0; i < LAYERS; i++) {
		if (!walk->is_there[i])
			continue;
		int order = first == LAYERS ? -1 : store_compare(walk->key[i], walk->key[first]);
		if (first == LAYERS || (back ? order > 0 : order < 0))
			first = i;
	}
	return first;
}

/* Leave this key behind in all layers that are at it. */
static int pass(struct disk *disk, enum store_table table, struct store_bytes key, int back)
{
	const struct walk *walk = &disk->walk[table];
	int error = WW_OK;

	for (int i = 0; i < LAYERS && !error; i++) {
		if (!walk->is_there[i] || store_compare(walk->key[i], key) != 0)
			continue;
		error = back ? seek_layer(disk, i, table, key, 1) : next_in_layer(disk, i, table);
	}
	return error;
}

/* Tell the pair at which the layers are, or the next one that is there. */
static int tell(struct disk *disk, enum store_table table, int back, struct store_bytes *key, struct store_bytes *value)
{
	struct walk *walk = &disk->walk[table];
	int error = WW_OK;

	while (!error) {
		int layer = first_layer(walk, back);
		if (layer == LAYERS)
			return WW_ENOTFOUND;
		*key = walk->key[layer];
		*value = layer == INDEX ? walk->value[layer] : value_of(walk->value[layer]);
		if (layer == INDEX || is_there(walk->value[layer]))
			return WW_OK;
		error = pass(disk, table, *key, back);
	}
	return error;
}

static int go(struct disk *disk, enum store_table table, struct store_bytes from, int back, struct store_bytes *key,
    struct store_bytes *value)
{
	int error = WW_OK;

	for (int i = 0; i < LAYERS && !error; i++)
		error = seek_layer(disk, i, table, from, back);
	if (!error)
		error = tell(disk, table, back, key, value);
	disk->walk[table].last = error ? (struct store_bytes){NULL, 0} : *key;
	disk->walk[table].back = back;
	return error;
}

static int seek(
    void *self, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value)
{
	return go(self, table, from, 0, key, value);
}

static int before(
    void *self, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value)
{
	return go(self, table, to, 1, key, value);
}

static int next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	struct disk *disk = self;
	struct walk *walk = &disk->walk[table];
	int error = WW_OK;

	if (!walk->last.data)
		return WW_ENOTFOUND;
	for (int i = 0; walk->back && i < LAYERS && !error; i++)
		error = seek_layer(disk, i, table, walk->last, 0);
	walk->back = 0;
	if (!error)
		error = pass(disk, table, walk->last, 0);
	if (!error)
		error = tell(disk, table, 0, key, value);
	walk->last = error ? (struct store_bytes){NULL, 0} : *key;
	return error;
}

/* ---- The index takes over */

/* Write a layer into the index. */
struct taking {
	struct sqlite *index;
	enum store_table table;
	int there; /* what is taken: pairs that were removed, or those that are there */
};

static int take_pair(void *context, struct store_bytes key, struct store_bytes kept)
{
	const struct taking *taking = context;

	if (is_there(kept) != taking->there)
		return WW_OK;
	if (!taking->there)
		return ww_sqlite_remove(taking->index, taking->table, key);
	return ww_sqlite_put(taking->index, taking->table, key, value_of(kept));
}

static int take_over(struct disk *disk, const struct store *layer, uint64_t cut, uint64_t record)
{
	/* Not after a failed sync: another one would succeed without what the system has dropped. */
	int error = ww_store_fault_is_final(&disk->fault) ? WW_EIO : ww_sqlite_begin(&disk->index);

	for (int i = 0; i < 2 * STORE_TABLES && !error; i++) {
		struct taking taking = {&disk->index, (enum store_table)(i % STORE_TABLES), i >= STORE_TABLES};
		error = ww_store_memory_each(layer, taking.table, take_pair, &taking);
	}
	if (!error)
		return judge(disk, ww_sqlite_commit(&disk->index, cut, record), disk->index.writer);
	error = judge(disk, error, disk->index.writer);
	ww_sqlite_abort(&disk->index);
	return error;
}

static int is_time_to_tend(const struct disk *disk)
{
	int is_time = 0;

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

	pthread_mutex_unlock(&disk->mutex);
	did = ww_store_slots_tend(&disk->index.slots, now);
	if (!did && is_quiet)
		ww_sqlite_settle(&disk->index);
	pthread_mutex_lock(&disk->mutex);
	memcpy(disk->tended, now, sizeof now);
	return did;
}

/* After an error, which may end. The mutex is held. */
static void wait_a_second(struct disk *disk)
{
	(void)time_wait(&disk->wake, &disk->mutex, time_add(time_now(CLOCK_MONOTONIC), WW_SECOND));
}

/* Cut the journal. Put it off while a process copies the store, for some files. */
static void cut(struct disk *disk)
{
	if (disk->cut - disk->was_cut < JOURNAL_FILES / 2 && ww_store_copy_waits(disk->path, 0))
		return;
	ww_journal_cut(&disk->journal, disk->cut);
	disk->was_cut = disk->cut;
}

static void *take_over_often(void *argument)
{
	struct disk *disk = argument;

	pthread_mutex_lock(&disk->mutex);
	while (!disk->ended) {
		if (ww_store_fault_is_final(&disk->fault)) {
			pthread_cond_wait(&disk->wake, &disk->mutex);
			continue;
		}
		if (!disk->waits) {
			int did = tend(disk);
			if (did < 0 && !disk->ended)
				wait_a_second(disk);
			else if (!did && !disk->waits && !disk->ended && !is_time_to_tend(disk))
				pthread_cond_wait(&disk->wake, &disk->mutex);
			continue;
		}
		pthread_mutex_unlock(&disk->mutex);
		int error = take_over(disk, &disk->frozen, disk->cut, disk->record);
		if (!error && !ww_store_fault_is_final(&disk->fault))
			cut(disk);
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

/* Let go of what the index has. What was read before may be in it. */
static void drop_frozen(struct disk *disk)
{
	int waits;

	if (!disk->frozen.ops)
		return;
	pthread_mutex_lock(&disk->mutex);
	waits = disk->waits;
	pthread_mutex_unlock(&disk->mutex);
	if (waits)
		return;
	ww_sqlite_rest(&disk->index);
	(void)disk->frozen.ops->close(disk->frozen.self);
	disk->frozen = (struct store){0};
}

/* Nothing is being written. Failing is harmless: the next commit tries again. */
static void freeze(struct disk *disk)
{
	struct store fresh;

	if (ww_store_memory_open(&fresh, &disk->config))
		return;
	uint64_t cut = ww_journal_end(&disk->journal, &disk->record);
	if (ww_journal_turn(&disk->journal, 0)) {
		(void)fresh.ops->close(fresh.self);
		return;
	}
	disk->frozen = disk->active;
	disk->active = fresh;
	disk->fresh = disk->highest + 1;
	pthread_mutex_lock(&disk->mutex);
	disk->cut = cut;
	disk->waits = 1;
	pthread_cond_broadcast(&disk->wake);
	pthread_mutex_unlock(&disk->mutex);
}

/* Memory and journal are bounded: wait for the index when it falls behind. */
static int wait_for_room(struct disk *disk)
{
	int error = WW_OK;

	if (ww_store_memory_bytes(&disk->active) < 2 * ww_store_disk_limits.active &&
	    disk->journal.offset < 2 * ww_store_disk_limits.journal)
		return WW_OK;
	pthread_mutex_lock(&disk->mutex);
	while (disk->waits && !disk->failed)
		pthread_cond_wait(&disk->taken, &disk->mutex);
	error = disk->failed;
	pthread_mutex_unlock(&disk->mutex);
	drop_frozen(disk);
	if (!disk->frozen.ops)
		freeze(disk);
	return error ? error : disk->frozen.ops ? WW_OK : WW_EFULL;
}

/* ---- Writing */

static int begin(void *self)
{
	struct disk *disk = self;
	int error = ww_store_fault_tell(&disk->fault, NULL);

	if (error == WW_EIO || error == WW_ECORRUPT)
		return error;
	drop_frozen(disk);
	error = wait_for_room(disk);
	disk->round_size = 0;
	return error ? error : disk->active.ops->begin(disk->active.self);
}

/* Add a change to the record. Returns the byte and the value behind it, as pairs in memory have them. */
static int add_change(struct disk *disk, enum store_table table, struct store_bytes key, int there,
    struct store_bytes value, struct store_bytes *kept)
{
	struct changes_head change = {(uint32_t)value.size, (uint16_t)key.size, (uint16_t)table};
	size_t size = disk->round_size + sizeof change + key.size + 1 + value.size;
	unsigned char *to;

	if (size > disk->round_room) {
		size_t room = size > 2 * disk->round_room ? size : 2 * disk->round_room;
		to = memory_take(disk->allocator, room);
		if (!to)
			return WW_ENOMEM;
		if (disk->round_size)
			memcpy(to, disk->round, disk->round_size);
		memory_give(disk->allocator, disk->round, disk->round_room);
		disk->round = to;
		disk->round_room = room;
	}
	to = disk->round + disk->round_size;
	memcpy(to, &change, sizeof change);
	to += sizeof change;
	if (key.size)
		memcpy(to, key.data, key.size);
	to += key.size;
	*to = (unsigned char)there;
	if (value.size)
		memcpy(to + 1, value.data, value.size);
	*kept = (struct store_bytes){to, 1 + value.size};
	disk->round_size = size;
	return WW_OK;
}

/* Let memory have a change. */
static int apply(struct disk *disk, enum store_table table, struct store_bytes key, struct store_bytes kept)
{
	const struct store *active = &disk->active;
	uint64_t id;

	disk->walk[table].last.data = NULL;
	if (table == STORE_JOBS && is_there(kept) && key.size == 8) {
		id = store_read64(key.data);
		disk->highest = id > disk->highest ? id : disk->highest;
	}
	if (!is_there(kept) && is_fresh(disk, table, key))
		return active->ops->remove(active->self, table, key);
	return active->ops->put(active->self, table, key, kept);
}

static int change(
    struct disk *disk, enum store_table table, struct store_bytes key, int there, struct store_bytes value)
{
	size_t before = disk->round_size;
	struct store_bytes kept;
	int error = add_change(disk, table, key, there, value, &kept);

	if (!error)
		error = apply(disk, table, key, kept);
	if (error)
		disk->round_size = before;
	return error;
}

static int put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	return change(self, table, key, CHANGES_THERE, value);
}

static int remove_pair(void *self, enum store_table table, struct store_bytes key)
{
	struct store_bytes value;
	int error = get(self, table, key, &value);

	return error ? error : change(self, table, key, CHANGES_REMOVED, (struct store_bytes){"", 0});
}

static void abort_write(void *self)
{
	struct disk *disk = self;

	memset(disk->walk, 0, sizeof disk->walk);
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
	if (disk->round_size)
		error = ww_journal_append(&disk->journal, disk->round, disk->round_size);
	if (!error && disk->config.sync == WW_SYNC_ALWAYS)
		error = sync_now(disk);
	if (error) {
		abort_write(disk);
		return error;
	}
	if (disk->config.sync == WW_SYNC_INTERVAL)
		want_sync(disk);
	(void)disk->active.ops->commit(disk->active.self);
	if (!disk->frozen.ops && (ww_store_memory_bytes(&disk->active) >= ww_store_disk_limits.active ||
	                             disk->journal.offset >= ww_store_disk_limits.journal))
		freeze(disk);
	return WW_OK;
}

static void rest(void *self)
{
	struct disk *disk = self;

	memset(disk->walk, 0, sizeof disk->walk);
	ww_sqlite_rest(&disk->index);
	drop_frozen(disk);
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
		(void)sync_now(disk);
		pthread_mutex_lock(&disk->mutex);
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
		error = take_over(disk, &disk->frozen, disk->cut, disk->record);
	if (!error)
		error = take_over(disk, &disk->active, cut, record);
	if (!error && !ww_store_fault_is_final(&disk->fault))
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
	memory_give(disk->allocator, disk->round, disk->round_room);
	ww_store_files_unlock(&disk->files);
	ww_store_fault_destroy(&disk->fault);
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
		if (!error)
			disk->index.is_ended =
			    take_over_all(disk, 1) == WW_OK && !ww_store_fault_is_final(&disk->fault);
	}
	free_disk(disk);
	return error;
}

static void tell_time(void *self, uint64_t elapsed, uint64_t wall)
{
	struct disk *disk = self;

	pthread_mutex_lock(&disk->mutex);
	disk->now[SLOTS_ELAPSED] = elapsed;
	disk->now[SLOTS_WALL] = wall;
	if (is_time_to_tend(disk))
		pthread_cond_broadcast(&disk->wake);
	pthread_mutex_unlock(&disk->mutex);
}

static uint64_t disk_bytes(void *self)
{
	struct disk *disk = self;

	return ww_store_files_bytes(disk->path) + ww_journal_bytes(&disk->journal);
}

static int fault(void *self, char text[WW_FAULT_MAX])
{
	return ww_store_fault_tell(&((struct disk *)self)->fault, text);
}

static const struct store_ops disk_ops = {begin, commit, abort_write, rest, get, put, remove_pair, seek, before, next,
    sync_now, tell_time, disk_bytes, fault, close_store};

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

	if (!error)
		error = ww_store_whole_after(&disk->files, &disk->config, &replay);
	if (!error) {
		ww_journal_open(&disk->journal, disk->path, &disk->fault, replay.last, replay.record);
		/* The process that wrote what was read may have ended before it was synced. */
		disk->journal.synced = record;
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
	if (!error)
		error = ww_store_whole_advise(&disk->config, open_layers(disk));
	if (!error)
		error = begin_anew(disk);
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
 * The index is read as it is at one moment, and then the journal that goes on from there. The process that writes may
 * have removed a file of it meanwhile, or may be writing a record: try again.
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
	ww_store_fault_init(&disk->fault);
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
		error = start_thread(disk, &disk->indexer, take_over_often);
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
