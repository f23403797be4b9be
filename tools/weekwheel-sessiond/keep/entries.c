/*
 * The meaning of the entries of image and journal: which sessions exist, which have expired, and which expiries wait to
 * be reported.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/keep/load.h"

/* After a crash an entry gets this part of its TTL in addition, because touches within it may have been left out. */
enum { GRACE_PART = 16 };
/* What expires earlier than this waits for the end of the load: the journal may have a later deadline for it. */
#define SOON (300 * WW_SECOND)
/* The least number of late entries that wait before they are examined. */
enum { LATE_LEAST = 65536 };

struct late {
	uint32_t length;
	unsigned database;
	char key[];
};

/* The expiries that a load has reported on suspicion: see `suspect`. */
struct suspect {
	struct suspect *next;
	uint64_t id;
	uint64_t deadline; /* wall, in ms: of the entry on disk, */
	uint64_t time;     /* and of the record */
	uint32_t length;
	unsigned database;
	char key[];
};

/* When an entry expires that has these on disk. */
static uint64_t expiry_of(const struct keep *keep, uint64_t disk, uint64_t ttl, uint64_t end)
{
	uint64_t deadline = disk;

	if (disk != DATA_NEVER && disk & KEEP_BEFORE) {
		uint64_t grace = ttl == DATA_NEVER ? 0 : ttl / GRACE_PART;
		deadline =
		    keep_deadline_of(keep, (disk & ~KEEP_BEFORE) + (grace + WW_MILLISECOND - 1) / WW_MILLISECOND);
		return deadline < end ? deadline : end;
	}
	if (disk != DATA_NEVER && ttl != DATA_NEVER)
		deadline += ttl / GRACE_PART;
	if (disk != DATA_NEVER && deadline > DATA_LAST)
		deadline = DATA_LAST;
	return deadline < end ? deadline : end;
}

static int wait_for_end(struct load *load, const struct data_key *key)
{
	struct late *late;

	if (load->late_count == load->late_room) {
		size_t room = load->late_room ? 2 * load->late_room : 1024;
		struct late **more = realloc(load->late, room * sizeof(struct late *));
		if (!more)
			return WW_ENOMEM;
		load->late = more;
		load->late_room = room;
	}
	late = malloc(sizeof *late + key->length);
	if (!late)
		return WW_ENOMEM;
	late->length = (uint32_t)key->length;
	late->database = key->database;
	memcpy(late->key, key->bytes, key->length);
	load->late[load->late_count++] = late;
	return WW_OK;
}

/* What the map is to have meanwhile. */
static uint64_t later(struct load *load, const struct data_key *key, uint64_t deadline, int *error)
{
	*error = WW_OK;
	if (deadline > load->now + SOON)
		return deadline;
	*error = wait_for_end(load, key);
	return load->now + 86400 * WW_SECOND;
}

/*
 * The map would take out an entry whose lifetime is over, and tell it, though the journal may have deleted or set it since. So
 * while it waits its end is later by so much that no other one is as late.
 */
static uint64_t put_off_by(const struct load *load)
{
	return DATA_LAST - (load->now + SOON);
}

static uint64_t put_off(const struct load *load, uint64_t end)
{
	if (end <= load->now + SOON)
		return end + put_off_by(load);
	return end == DATA_NEVER || end < put_off_by(load) ? end : put_off_by(load) - 1;
}

/*
 * The end of an entry's lifetime. One with a deadline, from a server that had no lifetime, has this server's from now on: an
 * image is to follow, or each start would begin it anew.
 */
static uint64_t end_of(struct load *load, uint64_t disk, uint64_t end)
{
	if (end != DATA_NEVER && end > load->now && !data_has_lifetimes(load->keep->data))
		load->loses_ends = 1;
	if (end != DATA_NEVER || disk == DATA_NEVER || data_lifetime_end(load->keep->data) == DATA_NEVER)
		return end;
	load->begins_lifetimes = 1;
	return data_lifetime_end(load->keep->data);
}

struct on_disk {
	uint64_t deadline;
};

static void get_disk(void *value, void *context)
{
	((struct on_disk *)context)->deadline = value_disk(value);
}

static void put_disk(void *value, void *context)
{
	value_set_disk(value, ((struct on_disk *)context)->deadline);
}

/* As data_inspect, with the end that the entry really has. */
static int inspect(
    const struct load *load, const struct data_key *key, struct data_entry *entry, ww_look_fn *fn, struct on_disk *disk)
{
	int found = data_inspect(load->keep->data, key, entry, fn, disk);

	if (found == 1 && entry->end != DATA_NEVER && entry->end >= put_off_by(load))
		entry->end -= put_off_by(load);
	return found;
}

struct tell_late {
	const struct load *load;
	struct outbox_item item;
};

static void tell_value(void *found, void *context)
{
	const struct value *value = found;
	struct tell_late *telling = context;

	telling->item.value = value->bytes;
	telling->item.size = value->size;
	telling->item.id = outbox_add(telling->load->keep->config.outbox, &telling->item);
}

/*
 * The same by the wall clock, in ms: before the driver's time, too, but for the end of a lifetime, of which the map knows only
 * that it is over.
 */
static uint64_t expiry_wall(const struct keep *keep, uint64_t disk, const struct data_entry *entry)
{
	uint64_t grace = entry->ttl == DATA_NEVER ? 0 : entry->ttl / GRACE_PART;
	uint64_t end = keep_wall_of(keep, entry->end);
	uint64_t ms = keep_wall_of(keep, disk);

	if (ms != DATA_NEVER)
		ms += (grace + WW_MILLISECOND - 1) / WW_MILLISECOND;
	return ms < end ? ms : end;
}

/* It has expired by `time`, and the journal does not know that it was to be told. Returns the id. */
static uint64_t tell(
    const struct load *load, const struct data_key *key, uint64_t disk, const struct data_entry *entry, uint64_t time)
{
	const struct keep *keep = load->keep;
	struct tell_late telling = {
	    load, {.why = WW_GONE_EXPIRED, .database = key->database, .key = key->bytes, .length = key->length}};
	uint64_t expiry = expiry_wall(keep, disk, entry);
	struct data_entry again;

	telling.item.deadline_ms = telling.item.since_ms = (int64_t)(expiry < time ? expiry : time);
	(void)data_inspect(keep->data, key, &again, tell_value, &telling);
	return telling.item.id;
}

/*
 * Judge one that waits: it goes if it had expired by `time`, in ms of the wall clock. Returns 1 if it still waits. If the journal's server told what
 * expired, it may still say that of this one.
 */
static int judge(struct load *load, const struct late *late, uint64_t time, enum judging how)
{
	struct data_key key = {late->database, late->key, late->length};
	struct data_entry entry;
	struct on_disk disk;
	uint64_t expiry;

	if (inspect(load, &key, &entry, get_disk, &disk) != 1)
		return 0;
	expiry = expiry_of(load->keep, disk.deadline, entry.ttl, entry.end);
	if (expiry_wall(load->keep, disk.deadline, &entry) <= time && (how != JUDGE_SOME || !load->was_telling)) {
		if (how == JUDGE_LAST && load->keep->config.tells)
			(void)tell(load, &key, disk.deadline, &entry, time);
		(void)data_delete(load->keep->data, &key);
		load->expired++;
		return 0;
	}
	if (how != JUDGE_LAST && expiry <= load->now + SOON)
		return 1;
	(void)data_touch(load->keep->data, &key, &entry, entry.ttl, expiry);
	return 0;
}

void keep_entries_judge(struct load *load, uint64_t time, enum judging how)
{
	size_t left = 0;

	for (size_t i = 0; i < load->late_count; i++) {
		if (judge(load, load->late[i], time, how))
			load->late[left++] = load->late[i];
		else
			free(load->late[i]);
	}
	load->late_count = left;
	load->late_most = 2 * left + LATE_LEAST;
}

/* What is not there was deleted later, and the image knows. */
static int load_touch(struct load *load, const struct keep_entry *touched)
{
	struct data *data = load->keep->data;
	struct data_key key = {touched->database, touched->key, touched->length};
	struct on_disk disk = {keep_disk_of(load->keep, touched->deadline)};
	struct data_entry entry;
	uint64_t deadline;
	int error;

	if (inspect(load, &key, &entry, put_disk, &disk) != 1)
		return WW_OK;
	entry.end = end_of(load, disk.deadline, entry.end);
	deadline = later(load, &key, expiry_of(load->keep, disk.deadline, touched->ttl, entry.end), &error);
	entry.end = put_off(load, entry.end);
	if (!error)
		error = data_touch(data, &key, &entry, touched->ttl, deadline);
	return error < 0 ? error : WW_OK;
}

/* The moment, in ms of the wall clock, before which this was set. */
static uint64_t set_before(const struct load *load, const struct keep_entry *set)
{
	uint64_t latest = load->time + 1;
	uint64_t ttl = set->ttl / WW_MILLISECOND;

	if (set->ttl == DATA_NEVER || set->deadline >= set->end || set->deadline < ttl)
		return latest;
	return set->deadline - ttl < latest ? set->deadline - ttl : latest;
}

/*
 * The key is set as a new one, though it has an entry: either the image has already what was set, or a later one, and that has
 * a later deadline; or the entry had expired by then, and what says so comes later, unless the server was killed in that
 * moment. So it is told, unless that comes. Another load must find the same, so that it takes what this one told for that: the
 * deadline told is no later than the record.
 */
static int suspect(struct load *load, const struct keep_entry *entry)
{
	struct data_key key = {entry->database, entry->key, entry->length};
	struct data_entry found;
	struct on_disk disk;
	struct suspect *made;

	if (!entry->is_new || !load->was_telling || !load->time || inspect(load, &key, &found, get_disk, &disk) != 1 ||
	    keep_wall_of(load->keep, disk.deadline) >= set_before(load, entry))
		return WW_OK;
	made = malloc(sizeof *made + entry->length);
	if (!made)
		return WW_ENOMEM;
	*made = (struct suspect){load->suspects, tell(load, &key, disk.deadline, &found, load->time),
	    keep_wall_of(load->keep, disk.deadline), load->time, (uint32_t)entry->length, entry->database};
	memcpy(made->key, entry->key, entry->length);
	load->suspects = made;
	return WW_OK;
}

static void clear_suspect(struct load *load, const struct outbox_item *item)
{
	for (struct suspect **link = &load->suspects; *link; link = &(*link)->next) {
		struct suspect *suspect = *link;
		if (suspect->database != item->database || suspect->length != item->length ||
		    memcmp(suspect->key, item->key, item->length) != 0 ||
		    suspect->deadline > (uint64_t)item->deadline_ms + 1 || suspect->time < (uint64_t)item->deadline_ms)
			continue;
		outbox_cancel(load->keep->config.outbox, suspect->id);
		*link = suspect->next;
		free(suspect);
		return;
	}
}

static int load_set(struct load *load, const struct keep_entry *entry)
{
	const struct keep *keep = load->keep;
	struct value disk;
	struct data_key key = {entry->database, entry->key, entry->length};
	struct data_record record = {.database = entry->database,
	    .key = entry->key,
	    .length = entry->length,
	    .value = &disk,
	    .ttl = entry->ttl,
	    .end = keep_deadline_of(keep, entry->end)};
	int error;

	value_set_disk(&disk, keep_disk_of(keep, entry->deadline));
	record.end = end_of(load, value_disk(&disk), record.end);
	if (load->is_exact && entry->kind == KEEP_LAST) {
		record.deadline = keep_deadline_of(keep, entry->expiry);
		error = WW_OK;
		if (record.deadline <= load->now && !keep->config.tells) {
			load->expired++;
			return WW_OK;
		}
		/* The end judges it by what is on disk, and without a TTL adds nothing. */
		if (record.deadline <= load->now) {
			record.ttl = DATA_NEVER;
			value_set_disk(&disk, keep_disk_of(keep, entry->expiry));
			record.deadline = later(load, &key, record.deadline, &error);
			record.end = put_off(load, record.end);
		}
	} else {
		record.deadline = later(load, &key, expiry_of(keep, value_disk(&disk), record.ttl, record.end), &error);
		record.end = put_off(load, record.end);
	}
	if (!error)
		error = suspect(load, entry);
	if (!error)
		error = data_restore(keep->data, &record, entry->value, entry->size);
	load->is_told = error != WW_OK;
	if (error)
		message_error("%s: a session cannot be loaded: %s%s", keep->path, ww_strerror(error),
		    error == WW_ETOOBIG ? " (is --maxmemory less than it was?)" : "");
	return error;
}

/* At a start, what a server had let expire without telling is told no more. */
static void load_told(struct load *load, uint64_t id)
{
	if (load->time && !(load->was_telling && id))
		keep_entries_judge(load, load->time, JUDGE_OLD);
	load->was_telling = id != 0;
	outbox_restore_told(load->keep->config.outbox, id);
}

/*
 * What waits to be told is no session any more, unless the key was set again meanwhile: then the deadline on disk is later.
 * One that was evicted is deleted by an entry of its own.
 */
static int load_wait(struct load *load, const struct keep_entry *entry)
{
	struct data *data = load->keep->data;
	struct data_key key = {entry->database, entry->key, entry->length};
	struct outbox_item item;
	struct data_entry found;
	struct on_disk disk;

	keep_outbox_item(entry, &item);
	clear_suspect(load, &item);
	if (item.why == WW_GONE_EXPIRED && key.database < data_databases(data) &&
	    data_inspect(data, &key, &found, get_disk, &disk) == 1 &&
	    keep_wall_of(load->keep, disk.deadline) <= (uint64_t)item.deadline_ms + 1)
		(void)data_delete(data, &key);
	return outbox_restore(load->keep->config.outbox, &item);
}

static int load_entry(struct load *load, const struct keep_entry *entry)
{
	struct data *data = load->keep->data;
	struct data_key key = {entry->database, entry->key, entry->length};

	if (entry->kind == KEEP_WAIT)
		return load_wait(load, entry);
	if (entry->kind == KEEP_TOLD) {
		load_told(load, entry->ttl);
		return WW_OK;
	}
	if (entry->database >= data_databases(data)) {
		message_error("%s has database %u: start the server with --databases %u or more", load->keep->path,
		    entry->database, entry->database + 1);
		load->is_told = 1;
		return WW_ERANGE;
	}
	switch (entry->kind) {
	case KEEP_SET:
	case KEEP_LAST:
		return load_set(load, entry);
	case KEEP_TOUCH:
		return load_touch(load, entry);
	case KEEP_ERASE:
		(void)data_delete(data, &key);
		return WW_OK;
	case KEEP_CLEAR:
		return data_clear(data, entry->database, entry->database);
	case KEEP_WAIT:
	case KEEP_TOLD:
		break;
	}
	return WW_ECORRUPT;
}

int keep_entries_load(struct load *load, const unsigned char *at, size_t size)
{
	struct keep_entry entry;
	int error = WW_OK;

	while (size > 0 && !error) {
		size_t used = keep_format_read(at, size, &entry);
		if (used == 0)
			return WW_ECORRUPT;
		error = load_entry(load, &entry);
		at += used;
		size -= used;
	}
	return error;
}

void keep_entries_free(struct load *load)
{
	struct suspect *next;

	for (struct suspect *suspect = load->suspects; suspect; suspect = next) {
		next = suspect->next;
		free(suspect);
	}
	free(load->late);
}
