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
/* The latest time that clocks can show, in ms. */
#define TIME_MOST (UINT64_MAX / 8)
/* How many entries ahead are prefetched. */
enum { AHEAD = 16 };

/* Expiries that a load has reported without proof: see `suspect`. */
struct suspect {
	struct suspect *next;
	uint64_t id;
	uint64_t deadline; /* steady, in ms: disk_end, */
	uint64_t time;     /* and of the record */
	uint32_t length;
	unsigned database;
	char key[];
};

/* When a session expires, in ms of steady time. An exact image stores that as its deadline. */
static uint64_t expiry_of(const struct load *load, const struct keep_session *session)
{
	uint64_t grace = load->is_exact || session->ttl == DATA_NEVER ? 0 : session->ttl / GRACE_PART;
	uint64_t expiry = session->deadline;

	if (expiry != DATA_NEVER)
		expiry += (grace + WW_MILLISECOND - 1) / WW_MILLISECOND;
	return expiry < session->end ? expiry : session->end;
}

/* It has expired by `time`, and the journal does not know that it was to be reported. Returns the id. */
static uint64_t tell(const struct load *load, const struct keep_session *session, unsigned database, uint64_t time)
{
	uint64_t expiry = expiry_of(load, session);
	int64_t deadline = (int64_t)(expiry < time ? expiry : time);

	return outbox_add(load->keep->config.outbox, &(struct outbox_item){.why = WW_GONE_EXPIRED,
	                                                 .database = database,
	                                                 .deadline_ms = deadline,
	                                                 .since_ms = deadline,
	                                                 .key = session->key,
	                                                 .length = session->length,
	                                                 .value = session->value->bytes,
	                                                 .size = session->value->size});
}

/* Where the journal has its end. A deadline can be behind that of a lifetime which it was given later. */
static uint64_t disk_end(const struct keep_session *session)
{
	uint64_t disk = value_disk(session->value);

	return disk < session->end ? disk : session->end;
}

static void erase(struct keep_session *session)
{
	free(session->value);
	session->value = NULL;
	session->end = KEEP_GONE;
}

/* It had expired by then, in ms of steady time. The end of its lifetime stays, to be recalled; it may be DATA_NEVER. */
static void end(const struct load *load, struct keep_session *session, uint64_t expired)
{
	free(session->value);
	session->value = NULL;
	session->deadline = expired + data_stays_ended_ms(load->keep->data);
}

_Static_assert(KEEP_GONE == DATA_NEVER, "without a lifetime there is nothing to recall");

/* Recall a key whose lifetime was over by then, even if it was also deleted. */
static void take(const struct load *load, struct keep_session *session)
{
	if (session->end <= load->time)
		end(load, session, session->end);
	else
		erase(session);
}

/* ---- What changes a session */

static struct keep_session *find(const struct load *load, const struct keep_entry *entry)
{
	return keep_table_find(&load->table[entry->database], entry->key, entry->length);
}

/* All except the end of the lifetime. */
static void set_times(struct keep_session *session, const struct keep_entry *entry)
{
	value_set_disk(session->value, entry->deadline);
	session->ttl = entry->ttl;
	session->deadline = entry->deadline;
}

/* The time in ms of steady time before which this was set. */
static uint64_t set_before(const struct load *load, const struct keep_entry *set)
{
	uint64_t latest = load->time + 1;
	uint64_t ttl = set->ttl / WW_MILLISECOND;

	if (set->ttl == DATA_NEVER || set->deadline >= set->end || set->deadline < ttl)
		return latest;
	return set->deadline - ttl < latest ? set->deadline - ttl : latest;
}

/*
 * The key is set as a new one, though it has a session: either the image has already what was set, or a later one, and
 * that has a later deadline; or the session had expired by then, and what says so comes later, unless the server was
 * killed in that moment. So it is added to the outbox, unless that comes. Another load must find the same, so that it takes what this
 * one added for that: the deadline added is no later than the record.
 */
static int suspect(struct load *load, const struct keep_entry *entry, const struct keep_session *found)
{
	struct suspect *made;

	if (!entry->is_new || !load->was_reporting || !load->time || disk_end(found) >= set_before(load, entry))
		return WW_OK;
	made = malloc(sizeof *made + entry->length);
	if (!made)
		return WW_ENOMEM;
	*made = (struct suspect){load->suspects, tell(load, found, entry->database, load->time), disk_end(found),
	    load->time, (uint32_t)entry->length, entry->database};
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
	struct keep_session *session = keep_table_add(&load->table[entry->database], entry->key, entry->length);
	struct value *value = session ? data_value(entry->value, entry->size) : NULL;
	int error = value ? WW_OK : WW_ENOMEM;

	if (!error && session->value)
		error = suspect(load, entry, session);
	if (error) {
		free(value);
		return error;
	}
	free(session->value);
	session->value = value;
	session->end = entry->end;
	session->gap = load->gaps;
	set_times(session, entry);
	if (load->is_exact)
		session->deadline = entry->expiry;
	return WW_OK;
}

/* It had expired when the image was written, unless the image still or again has a session: then that says more. */
static int load_ended(struct load *load, const struct keep_entry *entry)
{
	struct keep_session *session = keep_table_add(&load->table[entry->database], entry->key, entry->length);

	if (!session)
		return WW_ENOMEM;
	if (session->value)
		return WW_OK;
	session->deadline = entry->deadline;
	session->end = entry->end;
	return WW_OK;
}

/*
 * What waits to be delivered is no session any more, unless the key was set again meanwhile: then its end on disk is
 * later. One that was evicted is deleted by an entry of its own.
 */
static int load_wait(struct load *load, const struct keep_entry *entry)
{
	struct keep_session *session = entry->database < DATA_DATABASES_MAX ? find(load, entry) : NULL;
	struct outbox_item item;

	if (keep_outbox_item(entry, &item) != 0)
		return WW_ECORRUPT;
	clear_suspect(load, &item);
	if (session && item.why == WW_GONE_EXPIRED && disk_end(session) <= (uint64_t)item.deadline_ms + 1)
		end(load, session, (uint64_t)item.deadline_ms);
	return outbox_restore(load->keep->config.outbox, &item);
}

/* ---- What was cleared */

struct clearing {
	const struct load *load;
	size_t recalled;
};

static int clear_session(struct keep_session *session, void *context)
{
	struct clearing *clearing = context;

	if (session->value)
		take(clearing->load, session);
	if (session->end != KEEP_GONE && session->deadline <= clearing->load->time)
		erase(session);
	clearing->recalled += session->end != KEEP_GONE;
	return WW_OK;
}

/* Ended keys stay ended. Free the memory of all others. */
static void clear(const struct load *load, struct keep_table *table)
{
	struct clearing clearing = {load, 0};

	(void)keep_table_walk(table, clear_session, &clearing);
	if (!clearing.recalled)
		keep_table_clear(table);
}

/* ---- What has expired */

static int forget(struct keep_session *session, void *context)
{
	struct load *load = context;
	uint64_t expiry;

	if (!session->value)
		return WW_OK;
	expiry = expiry_of(load, session);
	/* In files of 0.1.0 time is that of the wall clock, which may have been set back: what has a deadline before it is not over. */
	if (expiry <= load->time && expiry <= load->now) {
		end(load, session, expiry);
		load->expired++;
	}
	return WW_OK;
}

/* The last server did not report these expiries, so a start does not, either. */
static void load_told(struct load *load, uint64_t id)
{
	if (load->time && !load->was_reporting)
		for (unsigned i = 0; i < DATA_DATABASES_MAX; i++)
			(void)keep_table_walk(&load->table[i], forget, load);
	load->was_reporting = id != 0;
	outbox_restore_delivered(load->keep->config.outbox, id);
}

/*
 * The end of a lifetime. A session with a deadline, from a server that had no lifetime, has this server's from now on: an
 * image is to follow, or each start would begin it anew.
 */
static uint64_t end_of(struct load *load, const struct keep_session *session)
{
	uint64_t own = data_lifetime_end(load->keep->data);

	if (session->end != DATA_NEVER && !data_has_lifetimes(load->keep->data))
		load->loses_ends = 1;
	if (session->end != DATA_NEVER || session->deadline == DATA_NEVER || own == DATA_NEVER)
		return keep_deadline_of(load->keep, session->end);
	load->begins_lifetimes = 1;
	return own;
}

/* Move a session to the map. */
static int move(struct load *load, struct keep_session *session, uint64_t expiry)
{
	const struct keep *keep = load->keep;
	struct data_record record = {.database = load->database,
	    .key = session->key,
	    .length = session->length,
	    .ttl = session->ttl,
	    .deadline = keep_deadline_of(keep, expiry),
	    .end = end_of(load, session)};
	struct value *value = session->value;
	int error;

	value_set_disk(value, keep_disk_of(keep, value_disk(value)));
	session->value = NULL;
	error = data_restore(keep->data, &record, value);
	load->is_reported = error != WW_OK;
	if (error)
		message_error("%s: a session cannot be loaded: %s%s", keep->path, ww_strerror(error),
		    error == WW_ETOOBIG ? " (is --maxmemory less than it was?)" : "");
	return error;
}

/* Whether it is not to be loaded, as lost records may have deleted or changed it: see load.h. */
static int is_left_out(const struct load *load, const struct keep_session *session)
{
	return session->gap != load->gaps && !load->keep->config.takes_stale;
}

static int take_over(struct load *load, struct keep_session *session, uint64_t expiry)
{
	load->stale += session->gap != load->gaps;
	if (!is_left_out(load, session))
		return move(load, session, expiry);
	erase(session);
	return WW_OK;
}

/* Recall what has expired lately, as its own server did or would have done. */
static void remember(const struct load *load, const struct keep_session *session)
{
	const struct data_key key = {load->database, session->key, session->length};

	if (session->end != KEEP_GONE && data_has_lifetimes(load->keep->data))
		data_remember(load->keep->data, &key, keep_deadline_of(load->keep, session->end),
		    keep_deadline_of(load->keep, session->deadline));
}

static int judge(struct keep_session *session, void *context)
{
	struct load *load = context;
	uint64_t expiry;

	if (!session->value) {
		remember(load, session);
		return WW_OK;
	}
	expiry = expiry_of(load, session);
	if (expiry > load->now)
		return take_over(load, session, expiry);
	/* A user may have logged out of a stale one, or used it since. */
	if (load->keep->config.reports && (load->was_reporting || expiry > load->time) && !is_left_out(load, session))
		(void)tell(load, session, load->database, load->now);
	end(load, session, expiry);
	remember(load, session);
	load->expired++;
	return WW_OK;
}

/* A session was set or touched its TTL before its deadline. */
static int see_time(struct keep_session *session, void *latest)
{
	uint64_t disk = session->value ? value_disk(session->value) : DATA_NEVER;
	uint64_t ttl = session->ttl / WW_MILLISECOND + 1;

	if (disk < TIME_MOST && disk > ttl && disk - ttl > *(uint64_t *)latest)
		*(uint64_t *)latest = disk - ttl;
	return WW_OK;
}

/*
 * Files of 0.1.0 do not say what the clock was. It was no less than when the last session was used, so one that was years off is
 * noticed. Steady time cannot be less than the machine has been up: after a clock in 1970 all has expired.
 */
static void guess_clock(struct load *load)
{
	uint64_t latest = 0;

	for (unsigned i = 0; i < DATA_DATABASES_MAX; i++)
		(void)keep_table_walk(&load->table[i], see_time, &latest);
	if (latest > data_now(load->keep->data) / WW_MILLISECOND)
		keep_clock_go_on(
		    load->keep, &(struct keep_clock){.steady = (int64_t)latest, .wall = (int64_t)latest}, 0);
}

int keep_entries_judge(struct load *load)
{
	int error = WW_OK;

	if (load->has_clock)
		keep_clock_go_on(load->keep, &load->clock, load->time < TIME_MOST ? load->time : 0);
	else
		guess_clock(load);
	load->now = (uint64_t)data_steady_ms(load->keep->data);
	for (load->database = 0; load->database < DATA_DATABASES_MAX && !error; load->database++) {
		if (load->table[load->database].count > 0)
			error = data_select(load->keep->data, load->database);
		if (!error)
			error = keep_table_drain(&load->table[load->database], judge, load);
	}
	return error;
}

/* ---- All */

static int load_clock(struct load *load, const struct keep_entry *entry)
{
	if (entry->deadline > TIME_MOST || entry->end > TIME_MOST || entry->expiry > TIME_MOST)
		return WW_ECORRUPT;
	load->clock =
	    (struct keep_clock){entry->ttl, (int64_t)entry->deadline, (int64_t)entry->end, (int64_t)entry->expiry};
	load->has_clock = 1;
	load->now = DATA_NEVER;
	return WW_OK;
}

static int load_entry(struct load *load, const struct keep_entry *entry)
{
	struct keep_session *session;

	if (entry->kind == KEEP_WAIT)
		return load_wait(load, entry);
	if (entry->kind == KEEP_DELIVERED) {
		load_told(load, entry->ttl);
		return WW_OK;
	}
	if (entry->kind == KEEP_CLOCK)
		return load_clock(load, entry);
	if (entry->database >= data_databases(load->keep->data)) {
		message_error("%s has database %u: start the server with --databases %u or more", load->keep->path,
		    entry->database, entry->database + 1);
		load->is_reported = 1;
		return WW_ERANGE;
	}
	if (entry->kind == KEEP_SET || entry->kind == KEEP_LAST)
		return load_set(load, entry);
	if (entry->kind == KEEP_ENDED)
		return load_ended(load, entry);
	if (entry->kind == KEEP_CLEAR)
		clear(load, &load->table[entry->database]);
	/* If it is not there, a later entry deleted it, and the image knows. */
	session = find(load, entry);
	if (session && entry->kind == KEEP_TOUCH)
		set_times(session, entry);
	if (session && entry->kind == KEEP_ERASE)
		take(load, session);
	return WW_OK;
}

/* Searches in a large table wait for memory: prefetch for several entries at once. */
int keep_entries_load(struct load *load, const unsigned char *at, size_t size)
{
	struct keep_entry entry[AHEAD];
	size_t used = 1;
	int error = WW_OK;

	while (size > 0 && !error && used > 0) {
		int count = 0;
		for (; count < AHEAD && (used = keep_format_read(at, size, &entry[count])) > 0; count++) {
			keep_table_expect(&load->table[entry[count].database % DATA_DATABASES_MAX], entry[count].key,
			    entry[count].length);
			at += used;
			size -= used;
		}
		for (int i = 0; i < count && !error; i++)
			error = load_entry(load, &entry[i]);
	}
	return error || size == 0 ? error : WW_ECORRUPT;
}

void keep_entries_free(struct load *load)
{
	struct suspect *next;

	for (struct suspect *suspect = load->suspects; suspect; suspect = next) {
		next = suspect->next;
		free(suspect);
	}
	for (unsigned i = 0; i < DATA_DATABASES_MAX; i++)
		keep_table_clear(&load->table[i]);
}
