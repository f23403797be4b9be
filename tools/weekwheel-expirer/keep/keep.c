/* The state that survives a restart: see keep.h. */
#include "tools/weekwheel-expirer/keep/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/journal/format.h"
#include "lib/journal/journal.h"
#include "lib/journal/names.h"
#include "lib/journal/replay.h"
#include "tools/common/folder.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-expirer/keep/notes.h"
#include "tools/weekwheel-expirer/keys/ends.h"

/* A round begins when the journal has grown by this much, and by the size of the last round. */
#define GROWS (UINT64_C(64) << 20)
/*
 * The size of a file, or its part of all, if that is more: a start reads one file at a time, and there must not be
 * many.
 */
#define FILE_BYTES (UINT64_C(16) << 20)
enum { FILE_PARTS = 16 };
/* A turn notes this many bytes of a round; a failed journal is tried again after this time. */
enum { PIECE = 65536, FILES_MOST = 4096 };
/* A keeper has noted all. */
#define NOTED_ALL UINT32_MAX
#define RETRY TIME_SECOND

struct keep {
	const char *path;
	int folder;
	unsigned database;
	struct outbox *outbox;
	struct outbox_journal hooks;
	struct deadlines *deadlines; /* at the start */

	pthread_mutex_t lock; /* protects the notes, and appending to the journal */
	struct buffer notes;
	struct journal journal;
	struct journal_fault fault;
	int is_open;
	int is_broken;    /* notes are dropped */
	uint64_t written; /* since all was noted */

	/* A round, which notes everything once more: in the keepers' threads. */
	int is_walking;
	unsigned round;
	unsigned keepers;
	unsigned behind;    /* keepers, and begin_walk, that still work on the round */
	int is_settled;     /* the keepers have taken over what was read */
	uint64_t all;       /* the bytes of the last round */
	uint64_t last_file; /* files that can be removed after the round */
	uint64_t retry_at;

	pthread_t thread;
	pthread_cond_t wake;
	int is_ending;
	uint64_t cut; /* remove the files up to this one; 0: none */
};

/* ---- Writing. The lock is held. */

static void break_off(struct keep *keep, int error)
{
	keep->is_broken = 1;
	keep->is_walking = 0;
	keep->retry_at = time_now(CLOCK_MONOTONIC) + RETRY;
	state_begin("data", 0,
	    "--data %s cannot be written: %s. Ends are reported from memory; ends during a downtime may be lost.",
	    keep->path, ww_strerror(error));
}

/* If no new file can be made, the journal continues in this one. */
static void begin_file(struct keep *keep)
{
	uint64_t part = keep->all / FILE_PARTS;

	if (keep->journal.offset > (part > FILE_BYTES ? part : FILE_BYTES))
		(void)ww_journal_turn(&keep->journal, 0);
}

static int write_notes(struct keep *keep)
{
	int error = WW_OK;

	if (keep->notes.size > 0 && !keep->is_broken) {
		begin_file(keep);
		error = ww_journal_append(&keep->journal, keep->notes.data, keep->notes.size);
		keep->written += keep->notes.size;
		if (error)
			break_off(keep, error);
	}
	buffer_drop(&keep->notes, keep->notes.size);
	return error;
}

static void check_added(struct keep *keep, int bad)
{
	if (bad && !keep->is_broken)
		break_off(keep, WW_ENOMEM);
}

static void add(struct keep *keep, enum note_kind kind, const char *key, size_t length, uint64_t time)
{
	const struct note note = {.kind = kind, .key = key, .length = length, .time = time};

	pthread_mutex_lock(&keep->lock);
	check_added(keep, notes_add(&keep->notes, &note));
	pthread_mutex_unlock(&keep->lock);
}

void keep_kept(struct keep *keep, const char *key, size_t length, int64_t deadline)
{
	add(keep, NOTE_KEPT, key, length, (uint64_t)deadline);
}

void keep_dropped(struct keep *keep, const char *key, size_t length)
{
	add(keep, NOTE_DROPPED, key, length, 0);
}

/* ---- What the outbox calls */

static void waiting(void *context, const struct outbox_item *item)
{
	struct keep *keep = context;

	pthread_mutex_lock(&keep->lock);
	check_added(keep, notes_add_item(&keep->notes, item));
	pthread_mutex_unlock(&keep->lock);
}

static void delivered(void *context, uint64_t id)
{
	add(context, NOTE_DELIVERED, NULL, 0, id);
}

/* Without a journal the key's deadline is still in it: after a kill the end is delivered again, by the same name. */
static int settle(void *context)
{
	struct keep *keep = context;

	pthread_mutex_lock(&keep->lock);
	(void)write_notes(keep);
	pthread_mutex_unlock(&keep->lock);
	return WW_OK;
}

/* ---- Noting all once more */

static void note_again(const struct outbox_item *item, void *context)
{
	waiting(context, item);
}

static int is_walk_due(const struct keep *keep)
{
	if (keep->is_broken)
		return !ww_fault_final(&keep->fault) && time_now(CLOCK_MONOTONIC) >= keep->retry_at;
	return !keep->is_walking && keep->written > GROWS && keep->written > 2 * keep->all;
}

/* Begin a file, and with it a round. Returns 0, or -1. */
static int begin_round(struct keep *keep)
{
	uint64_t record;
	int error;

	keep->last_file = ww_journal_end(&keep->journal, &record);
	error = ww_journal_turn(&keep->journal, 0);
	if (error) {
		break_off(keep, error);
		return -1;
	}
	keep->is_broken = 0;
	keep->is_walking = 1;
	keep->round++;
	keep->behind = keep->keepers + 1;
	keep->written = 0;
	return 0;
}

/* If it is time, or at the start, note all waiting items once more, and let the keepers note their keys. */
static void begin_walk(struct keep *keep)
{
	uint64_t after = 0;
	unsigned round;
	int begins;

	pthread_mutex_lock(&keep->lock);
	begins = (keep->round == 0 || is_walk_due(keep)) && begin_round(keep) == 0;
	round = keep->round;
	pthread_mutex_unlock(&keep->lock);
	if (!begins)
		return;
	add(keep, NOTE_FIRST, NULL, 0, NOTES_VERSION << 32 | keep->database);
	delivered(keep, outbox_delivered(keep->outbox));
	while (outbox_walk(keep->outbox, &after, note_again, keep) > 0)
		(void)settle(keep);
	pthread_mutex_lock(&keep->lock);
	keep->behind -= keep->round == round;
	pthread_mutex_unlock(&keep->lock);
}

static void end_walk(struct keep *keep)
{
	keep->is_walking = 0;
	keep->all = keep->written;
	keep->cut = keep->last_file;
	pthread_cond_signal(&keep->wake);
	state_end("data", "--data %s is written again.", keep->path);
}

/* Whether the keeper has to note more of the round in this turn. */
static int goes_on(struct keep *keep, struct keeper *keeper)
{
	int goes;

	pthread_mutex_lock(&keep->lock);
	if (keep->is_walking && keeper->round != keep->round) {
		keeper->round = keep->round;
		keeper->noted = 0;
	}
	goes = keep->is_walking && keeper->noted != NOTED_ALL && keep->notes.size < PIECE;
	pthread_mutex_unlock(&keep->lock);
	return goes;
}

/* Whether a keeper still works on the round. */
static int is_behind(const struct keep *keep, const struct keeper *keeper)
{
	return keep->is_walking && (keeper->round != keep->round || keeper->noted != NOTED_ALL);
}

void keep_turn(struct keep *keep, struct keeper *keeper)
{
	int more = 1;

	begin_walk(keep);
	while (more && goes_on(keep, keeper))
		more = ends_report_again(keeper, &keeper->noted);
	pthread_mutex_lock(&keep->lock);
	(void)write_notes(keep);
	if (!more && keeper->round == keep->round) {
		keep->behind -= (unsigned)is_behind(keep, keeper);
		keeper->noted = NOTED_ALL;
	}
	if (keep->is_walking && keep->behind == 0 && keep->is_settled)
		end_walk(keep);
	pthread_mutex_unlock(&keep->lock);
}

void keep_join(struct keep *keep, struct keeper *keeper)
{
	pthread_mutex_lock(&keep->lock);
	keep->keepers++;
	keep->behind += (unsigned)is_behind(keep, keeper);
	pthread_mutex_unlock(&keep->lock);
}

void keep_leave(struct keep *keep, const struct keeper *keeper)
{
	pthread_mutex_lock(&keep->lock);
	keep->keepers--;
	keep->behind -= (unsigned)is_behind(keep, keeper);
	pthread_mutex_unlock(&keep->lock);
}

void keep_settle(struct keep *keep)
{
	pthread_mutex_lock(&keep->lock);
	keep->is_settled = 1;
	pthread_mutex_unlock(&keep->lock);
}

/* ---- The thread that syncs, and removes files. The lock is held. */

static void sync_and_cut(struct keep *keep)
{
	uint64_t cut = keep->cut;
	int error;

	pthread_mutex_unlock(&keep->lock);
	error = ww_journal_sync(&keep->journal);
	if (!error && cut)
		error = ww_journal_cut(&keep->journal, cut);
	pthread_mutex_lock(&keep->lock);
	if (error && !keep->is_broken)
		break_off(keep, error);
	if (keep->cut == cut)
		keep->cut = 0;
}

static void *run(void *context)
{
	struct keep *keep = context;

	pthread_mutex_lock(&keep->lock);
	while (!keep->is_ending) {
		if (!keep->cut)
			(void)time_wait(&keep->wake, &keep->lock, time_now(CLOCK_MONOTONIC) + TIME_SECOND);
		sync_and_cut(keep);
	}
	pthread_mutex_unlock(&keep->lock);
	return NULL;
}

/* ---- Reading */

static int use(struct keep *keep, const struct note *note)
{
	struct outbox_item item;
	struct known_key known;

	switch (note->kind) {
	case NOTE_FIRST:
		if (note->time != (NOTES_VERSION << 32 | keep->database))
			return WW_EVERSION;
		break;
	case NOTE_KEPT:
		return deadlines_set(keep->deadlines, note->key, note->length, note->time + 1) ? WW_ENOMEM : WW_OK;
	case NOTE_DROPPED:
		if (deadlines_find(keep->deadlines, note->key, note->length, &known))
			deadlines_drop(keep->deadlines, known.index);
		break;
	case NOTE_WAITING:
		item = note->item;
		item.database = keep->database;
		return outbox_restore(keep->outbox, &item);
	case NOTE_DELIVERED:
		outbox_restore_delivered(keep->outbox, note->time);
		break;
	}
	return WW_OK;
}

static int read_record(void *context, const unsigned char *bytes, size_t size)
{
	struct keep *keep = context;
	size_t taken;
	int error = WW_OK;

	for (size_t at = 0; at < size && !error; at += taken) {
		struct note note;

		taken = notes_read(bytes + at, size - at, &note);
		error = taken ? use(keep, &note) : WW_ECORRUPT;
	}
	return error;
}

static void problem(const char *what, void *context)
{
	(void)context;
	message_error("%s", what);
}

static int load(struct keep *keep)
{
	struct replay replay = {
	    .folder = keep->path, .read = read_record, .context = keep, .problem = problem, .problem_context = keep};
	uint64_t numbers[FILES_MOST];
	int error;

	/* Changes before the first file are contained in it. A folder lists its files in any order. */
	if (ww_journal_numbers(keep->folder, ".", numbers, FILES_MOST) > 0)
		replay.cut = numbers[0] - 1;
	error = ww_replay(&replay);
	if (!error)
		error = ww_replay_settle(&replay);
	if (error == WW_EVERSION)
		return message_error("--data %s is of another database, or of another version of this program: give "
		                     "each database a directory of its own",
		    keep->path);
	if (error)
		return message_error(
		    "--data %s cannot be read: %s. Move it away: the keys are then learned from Redis, and "
		    "what has ended meanwhile is not reported.",
		    keep->path, ww_strerror(error));
	ww_journal_open(&keep->journal, keep->path, &keep->fault, replay.last, replay.record);
	keep->journal.offset = replay.end;
	keep->journal.salt = replay.salt;
	keep->journal.kind = JOURNAL_KEYS;
	keep->is_open = 1;
	return 0;
}

/* ---- Beginning and end */

/* Their journals have the same names. One of 0.1 does not say whose it is, but what is beside it does. */
static int refuse_others(const struct keep *keep)
{
	static const char *const names[] = {"index.db", "index.db-wal", "sessions"};
	int is_other = ww_journal_is_other(keep->folder, JOURNAL_KEYS);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		is_other |= faccessat(keep->folder, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	return is_other
	           ? message_error("--data %s: weekwheeld or weekwheel-sessiond keeps its data there, and nothing was "
	                           "changed: give another folder",
	                 keep->path)
	           : 0;
}

static void free_keep(struct keep *keep)
{
	if (keep->is_open)
		ww_journal_close(&keep->journal);
	if (keep->folder >= 0)
		(void)close(keep->folder);
	buffer_free(&keep->notes);
	ww_fault_destroy(&keep->fault);
	pthread_cond_destroy(&keep->wake);
	pthread_mutex_destroy(&keep->lock);
	free(keep);
}

static int begin(struct keep *keep)
{
	keep->folder = folder_take(keep->path);
	if (keep->folder < 0 || refuse_others(keep) != 0 || load(keep) != 0)
		return -1;
	keep->hooks =
	    (struct outbox_journal){.context = keep, .waiting = waiting, .delivered = delivered, .settle = settle};
	outbox_set_journal(keep->outbox, &keep->hooks);
	begin_walk(keep);
	return pthread_create(&keep->thread, NULL, run, keep) == 0
	           ? 0
	           : message_error("cannot start the thread that syncs --data");
}

struct keep *keep_open(const char *folder, unsigned database, struct deadlines *deadlines, struct outbox *outbox)
{
	struct keep *keep = calloc(1, sizeof *keep);

	if (!keep) {
		message_error("no memory");
		return NULL;
	}
	*keep =
	    (struct keep){.path = folder, .folder = -1, .database = database, .deadlines = deadlines, .outbox = outbox};
	pthread_mutex_init(&keep->lock, NULL);
	(void)time_cond_init(&keep->wake);
	ww_fault_init(&keep->fault);
	if (begin(keep) == 0)
		return keep;
	outbox_set_journal(outbox, NULL);
	free_keep(keep);
	return NULL;
}

void keep_close(struct keep *keep)
{
	if (!keep)
		return;
	pthread_mutex_lock(&keep->lock);
	keep->is_ending = 1;
	pthread_cond_signal(&keep->wake);
	pthread_mutex_unlock(&keep->lock);
	pthread_join(keep->thread, NULL);
	outbox_set_journal(keep->outbox, NULL);
	pthread_mutex_lock(&keep->lock);
	(void)write_notes(keep);
	pthread_mutex_unlock(&keep->lock);
	(void)ww_journal_sync(&keep->journal);
	free_keep(keep);
}

uint64_t keep_bytes(struct keep *keep)
{
	return ww_journal_bytes(&keep->journal);
}
