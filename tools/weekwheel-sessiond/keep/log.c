/* Notes each change under the key's stripe, and writes it into the journal before it is answered. */

#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

/* Notes are written at this size at the latest; and the room that is taken in advance. */
enum { PENDING_MOST = 16 << 20, ROOM = 1 << 20 };
/*
 * The room that was taken in advance is for deletions when the disk has no more: users want room then. Of that, so much is left
 * for what expires meanwhile, and for the last of many deletions of a turn.
 */
enum { SPARE_LEAST = 64 << 10 };
/* A file of the journal is read as a whole. */
enum { FILE_MOST = 64 << 20 };
/*
 * Files spared for an image and an orderly end, each of which begins one: without them the journal would never become
 * short.
 */
enum { FILES_SPARE = 2 };
/* A touch is written when the deadline on disk is older than this part of the time that is left: see `touch`. */
enum { TOUCH_PART = 17 };
/* A load adds a part of the TTL that the map has for an entry, which is at most this. */
#define TTL_MOST (WW_SESSION_TTL_MAX - WW_MICROSECOND)

/* This thread's state: its last entry, the last entry answered, and those between begin and commit. */
static _Thread_local uint64_t mine;
static _Thread_local uint64_t settled;
static _Thread_local int is_together;
static _Thread_local struct buffer together;
static _Thread_local uint64_t together_count;
static _Thread_local uint64_t together_ends; /* the first end of them, steady in ms */

/* ---- Writing */

static struct keep_part *parts(const struct keep *keep)
{
	return (struct keep_part *)keep->parts.data;
}

static size_t part_count(const struct keep *keep)
{
	return keep->parts.size / sizeof(struct keep_part);
}

/* Divide what is pending if it would become too much for a record. `noting` is held. */
static int divide(struct keep *keep, size_t more)
{
	size_t count = part_count(keep);
	size_t divided = count > 0 ? parts(keep)[count - 1].size : 0;
	const struct keep_part part = {keep->pending.size, keep->noted};

	if (part.size == divided || part.size - divided + more <= keep->config.record)
		return 0;
	return buffer_append(&keep->parts, &part, sizeof part);
}

static void drop_part(struct keep *keep, const struct keep_part *part)
{
	size_t size = part->size;

	buffer_drop(&keep->pending, size);
	if (part_count(keep) > 0)
		buffer_drop(&keep->parts, sizeof *part);
	for (size_t i = 0; i < part_count(keep); i++)
		parts(keep)[i].size -= size;
}

/* Add what is pending, or a part of it, if the record does not become too large. `noting` is held. */
static int take_part(struct keep *keep)
{
	struct keep_part part = {keep->pending.size, keep->noted};

	if (part_count(keep) > 0)
		part = parts(keep)[0];
	/* The only bytes there are those that could not be written. */
	if (keep->batch.size > KEEP_TIME && keep->batch.size + part.size > keep->config.record)
		return 0;
	if (buffer_append(&keep->batch, keep->pending.data, part.size) != 0)
		return -1;
	drop_part(keep, &part);
	keep->batched = part.noted;
	return 0;
}

/* Write first what could not be written before. Returns 0 or a WW_E*. `writing` is held. */
static int take_pending(struct keep *keep)
{
	unsigned char time[KEEP_TIME];
	int error = 0;

	pthread_mutex_lock(&keep->noting);
	if (keep->batch.size == 0) {
		keep_format_number(time, (uint64_t)data_steady_ms(keep->data), KEEP_TIME);
		error = buffer_append(&keep->batch, time, sizeof time);
		if (!error)
			error = keep_clock_add_step(keep, &keep->batch);
	}
	if (!error)
		error = take_part(keep);
	pthread_mutex_unlock(&keep->noting);
	return error ? WW_ENOMEM : WW_OK;
}

static void work_is_there(struct keep *keep)
{
	pthread_mutex_lock(&keep->lock);
	if (!keep->has_work) {
		keep->has_work = 1;
		pthread_cond_broadcast(&keep->wake);
	}
	pthread_mutex_unlock(&keep->lock);
}

static void log_fault(struct keep *keep)
{
	char text[FAULT_TEXT];
	int was_full;

	pthread_mutex_lock(&keep->lock);
	was_full = keep->is_full != WW_OK;
	keep->is_full = WW_OK;
	pthread_mutex_unlock(&keep->lock);
	/* The state goes on, but not until there is room. */
	if (was_full)
		state_end("journal", "the journal in %s does not wait for room any more", keep->path);
	(void)ww_fault_describe(&keep->fault, text);
	state_begin("journal", STATE_STOPS_WRITING,
	    "%s: sessions are not changed any more, as nothing can be kept; end the server, look at the disk, and start it "
	    "again",
	    text);
}

/* A start on a full disk has no file to append to. `writing` is held. */
static int open_file(struct keep *keep)
{
	int error = keep->has_file ? WW_OK : ww_journal_turn(&keep->journal, 0);

	keep->has_file = !error;
	return error;
}

const char *keep_log_why(int error)
{
	return error == WW_EFULL ? "its disk is full" : ww_strerror(error);
}

/* Whether the journal takes changes now. `writing` is held. */
static void log_room(struct keep *keep, int error)
{
	if (!error)
		error = open_file(keep);
	if (!error)
		error = ww_journal_room(&keep->journal, ROOM);
	/* First what could not be written before. */
	keep->spare = keep->batch.size == 0 && keep->has_file ? ww_journal_left(&keep->journal) : 0;
	/* The journal syncs, too: it zeroes the rest after a failed write. */
	if (ww_fault_final(&keep->fault)) {
		log_fault(keep);
		return;
	}
	if (error == keep->is_full)
		return;
	pthread_mutex_lock(&keep->lock);
	keep->is_full = error;
	pthread_cond_broadcast(&keep->wake);
	pthread_mutex_unlock(&keep->lock);
	if (error)
		state_begin("journal", STATE_STOPS_WRITING,
		    "the journal in %s cannot grow: %s; sessions are not changed until there is room", keep->path,
		    keep_log_why(error));
	else
		state_end("journal", "there is room for the journal in %s again", keep->path);
}

/* `writing` is held. */
static int write_batch(struct keep *keep)
{
	int error = take_pending(keep);

	if (!error)
		error = open_file(keep);
	if (!error)
		error = ww_journal_append(&keep->journal, keep->batch.data, keep->batch.size);
	if (!error) {
		keep->grown += keep->batch.size;
		buffer_drop(&keep->batch, keep->batch.size);
		keep->written = keep->batched;
	}
	/* There may be room for a little, but not for this. */
	log_room(keep, error);
	return error;
}

int keep_log_write(struct keep *keep)
{
	uint64_t noted;
	int error = WW_OK;

	pthread_mutex_lock(&keep->writing);
	pthread_mutex_lock(&keep->noting);
	noted = keep->noted;
	pthread_mutex_unlock(&keep->noting);
	while (keep->written < noted && !error)
		error = write_batch(keep);
	pthread_mutex_unlock(&keep->writing);
	if (noted != keep->synced)
		work_is_there(keep);
	return error;
}

void keep_log_room(struct keep *keep)
{
	if (keep_log_write(keep) != WW_OK)
		return;
	pthread_mutex_lock(&keep->writing);
	log_room(keep, WW_OK);
	pthread_mutex_unlock(&keep->writing);
}

int keep_log_sync(struct keep *keep)
{
	uint64_t written = keep->written;
	int error = ww_journal_sync(&keep->journal);

	if (error)
		log_fault(keep);
	else if (written > keep->synced)
		keep->synced = written;
	return error;
}

void keep_log_clock(struct keep *keep, int must)
{
	int is_due;
	int error = WW_OK;

	pthread_mutex_lock(&keep->writing);
	pthread_mutex_lock(&keep->noting);
	if (must)
		keep->ahead = KEEP_UNKNOWN;
	is_due = keep_clock_is_stepped(keep);
	pthread_mutex_unlock(&keep->noting);
	if (is_due)
		error = write_batch(keep);
	pthread_mutex_unlock(&keep->writing);
	if (is_due && !error)
		(void)keep_log_sync(keep);
}

void keep_log_turn(struct keep *keep)
{
	uint32_t files;

	pthread_mutex_lock(&keep->writing);
	/* The painter may cut it. */
	pthread_mutex_lock(&keep->journal.lock);
	files = keep->journal.files;
	pthread_mutex_unlock(&keep->journal.lock);
	/* If that fails, go on with the former file. */
	if (keep->journal.offset > FILE_MOST && files < JOURNAL_FILES - FILES_SPARE)
		(void)ww_journal_turn(&keep->journal, 0);
	if (ww_fault_final(&keep->fault))
		log_fault(keep);
	pthread_mutex_unlock(&keep->writing);
}

/* ---- Noting */

static void append(struct keep *keep, const struct buffer *from, uint64_t count)
{
	int error;
	int is_much;

	pthread_mutex_lock(&keep->noting);
	error = divide(keep, from->size);
	if (!error)
		error = buffer_append(&keep->pending, from->data, from->size);
	keep->noted += count;
	mine = keep->noted;
	is_much = keep->pending.size > PENDING_MOST;
	pthread_mutex_unlock(&keep->noting);
	if (error)
		(void)ww_fault_damage(&keep->fault, "there was no memory to note a change of a session");
	else if (is_much)
		(void)keep_log_write(keep);
}

void keep_log_note(struct keep *keep, const struct buffer *entries, uint64_t count)
{
	uint64_t before = mine;

	append(keep, entries, count);
	/* No answer of this thread waits for this change. */
	mine = before;
}

/* When an entry ends that was set or touched; DATA_NEVER: it is neither. */
static uint64_t end_of(const struct keep_entry *entry)
{
	if (entry->kind == KEEP_TOUCH)
		return entry->deadline;
	return entry->kind != KEEP_SET ? DATA_NEVER : entry->deadline < entry->end ? entry->deadline : entry->end;
}

static void note(struct keep *keep, const struct keep_entry *entry)
{
	if (keep_format_add(&together, entry) != 0)
		(void)ww_fault_damage(&keep->fault, "there was no memory to note a change of a session");
	if (together_count == 0 || end_of(entry) < together_ends)
		together_ends = end_of(entry);
	together_count++;
}

/* What was noted since the last call belongs together. */
static void note_end(struct keep *keep)
{
	if (is_together || together_count == 0)
		return;
	append(keep, &together, together_count);
	buffer_drop(&together, together.size);
	together_count = 0;
}

static void note_record(struct keep *keep, enum keep_kind kind, const struct data_record *record)
{
	note(keep, &(struct keep_entry){kind, record->database, record->key, record->length, record->bytes,
	               kind == KEEP_SET ? record->size : 0, record->ttl, keep_ms_of(keep, record->deadline),
	               keep_ms_of(keep, record->end), 0, record->is_new});
}

static void note_key(struct keep *keep, enum keep_kind kind, unsigned database, const void *key, size_t length)
{
	note(keep, &(struct keep_entry){.kind = kind, .database = database, .key = key, .length = length});
}

/* ---- What data/ calls */

static void set(void *context, const struct data_record *record)
{
	note_record(context, KEEP_SET, record);
	note_end(context);
}

/*
 * With D on disk, written at T, and L from then to D, a touch at N is left out if its deadline is at most a 17th of what
 * is left at N later than D. As N is not before T, that is at most L/16: what a load adds. What loses its TTL is written:
 * to that a load would add nothing, though the end of a lifetime may be later than D.
 */
static int may_be_left_out(const struct keep *keep, const struct data_record *record, uint64_t disk)
{
	uint64_t left = record->deadline - data_now(keep->data);

	if (record->ttl == DATA_NEVER || disk == DATA_NEVER || record->deadline < disk)
		return 0;
	/* Divide first: the product overflows after some decades. */
	return record->deadline - disk <= (left < TTL_MOST ? left : TTL_MOST) / TOUCH_PART;
}

static int touch(void *context, const struct data_record *record, uint64_t disk)
{
	struct keep *keep = context;

	if (record->deadline == disk || may_be_left_out(keep, record, disk))
		return 0;
	note_record(keep, KEEP_TOUCH, record);
	note_end(keep);
	return 1;
}

static void note_freed(struct keep *keep)
{
	if (keep->is_full)
		keep->is_freed = 1;
}

static void erase(void *context, unsigned database, const void *key, size_t length)
{
	note_freed(context);
	note_key(context, KEEP_ERASE, database, key, length);
	note_end(context);
}

/* With its full content: the image may have been written before, after or between the two names. */
static void rename_key(void *context, const struct data_record *record, const void *from, size_t from_length)
{
	note_key(context, KEEP_ERASE, record->database, from, from_length);
	note_record(context, KEEP_SET, record);
	note_end(context);
}

static void clear(void *context, unsigned database)
{
	note_freed(context);
	note_key(context, KEEP_CLEAR, database, NULL, 0);
	note_end(context);
}

/* A single one always fits: it takes at most half of a record. */
static int takes(void *context, size_t count, size_t bytes)
{
	const struct keep *keep = context;

	return (together.size == 0 && count == 1) ||
	       together.size + count * KEEP_ENTRY_MOST + bytes <= keep->config.record;
}

static void begin(void *context)
{
	(void)context;
	is_together = 1;
}

/* Add an erasure for each that was set or touched and has expired. Returns how many. */
static uint64_t add_expired(struct keep *keep, struct buffer *to)
{
	uint64_t now = (uint64_t)data_steady_ms(keep->data);
	struct keep_entry entry;
	uint64_t count = 0;
	size_t size;

	for (size_t at = 0; at < together.size; at += size) {
		size = keep_format_read((unsigned char *)together.data + at, together.size - at, &entry);
		if (size == 0)
			break;
		if (end_of(&entry) > now ||
		    data_is_there(keep->data, &(struct data_key){entry.database, entry.key, entry.length}))
			continue;
		entry = (struct keep_entry){KEEP_ERASE, entry.database, entry.key, entry.length, .value = ""};
		if (keep_format_add(to, &entry) != 0)
			(void)ww_fault_damage(&keep->fault, "there was no memory to note a change of a session");
		count++;
	}
	return count;
}

/*
 * A key set in a transaction may have expired within it. The journal then has the report before the entry, and a load
 * would report the expiry again. So erase the entry, once the report is surely noted.
 */
static void commit(void *context)
{
	struct keep *keep = context;
	struct buffer expired = {0};
	uint64_t count = 0;

	is_together = 0;
	if (together_count > 0 && together_ends <= (uint64_t)data_steady_ms(keep->data)) {
		append(keep, &together, together_count);
		count = add_expired(keep, &expired);
		buffer_drop(&together, together.size);
		together_count = 0;
	}
	note_end(keep);
	if (count == 0)
		return;
	data_settle_expired(keep->data, data_now(keep->data));
	append(keep, &expired, count);
	buffer_free(&expired);
}

static const char *refuses(void *context, int deletes)
{
	const struct keep *keep = context;

	if (ww_fault_final(&keep->fault))
		return "MISCONF The journal cannot be written any more, so nothing is changed. The server's log says why.";
	if (keep->is_full == WW_EFULL && deletes)
		return keep->spare >= SPARE_LEAST
		           ? NULL
		           : "MISCONF The disk has no room for the journal, not even for what is deleted: make room there.";
	if (keep->is_full == WW_EFULL)
		return keep->spare >= SPARE_LEAST
		           ? "MISCONF The disk has no room for the journal: only DEL, UNLINK, GETDEL, FLUSHDB and "
		             "FLUSHALL are carried out until it has."
		           : "MISCONF The disk has no room for the journal, so nothing is changed until it has.";
	if (keep->is_full)
		return "MISCONF The journal cannot be written now, so nothing is changed until it can. The server's log says why.";
	return NULL;
}

static int settle(void *context)
{
	struct keep *keep = context;
	int error;

	if (mine == settled)
		return WW_OK;
	/* It may not have been noted, for lack of memory. */
	error = ww_fault_final(&keep->fault);
	if (!error && mine > keep->written)
		error = keep_log_write(keep);
	if (!error && keep->config.sync == KEEP_ALWAYS && mine > keep->synced)
		error = keep_log_sync(keep);
	settled = mine;
	return error;
}

static void leave(void *context)
{
	(void)context;
	buffer_free(&together);
}

int keep_log_settle(struct keep *keep)
{
	uint64_t noted;
	int error = ww_fault_final(&keep->fault);

	pthread_mutex_lock(&keep->noting);
	noted = keep->noted;
	pthread_mutex_unlock(&keep->noting);
	if (!error && noted > keep->written)
		error = keep_log_write(keep);
	if (!error && keep->config.sync == KEEP_ALWAYS && noted > keep->synced)
		error = keep_log_sync(keep);
	return error;
}

void keep_log_hooks(struct keep *keep)
{
	struct data_keep *hooks = &keep->hooks;

	hooks->context = keep;
	hooks->refuses = refuses;
	hooks->takes = takes;
	hooks->set = set;
	hooks->touch = touch;
	hooks->erase = erase;
	hooks->rename = rename_key;
	hooks->clear = clear;
	hooks->begin = begin;
	hooks->commit = commit;
	hooks->settle = settle;
	hooks->leave = leave;
}
