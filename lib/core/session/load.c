/* ww_session_load: entries from the bytes that ww_session_save wrote. saved.h has the format. */

#include "lib/base/crc32c.h"
#include "lib/core/session/saved.h"
#include "lib/core/session/session_internal.h"

struct loading {
	struct ww_session *session;
	const struct ww_session_reader *reader;
	struct ww_session_loaded loaded;
	uint64_t began; /* the driver's clock when the header had been read */
	int has_ends;
	unsigned char *block; /* records */
	size_t room;          /* for them */
	uint32_t sum;
};

/* A record of a block. */
struct saved_entry {
	const unsigned char *key;
	size_t length;
	const unsigned char *value;
	size_t size;
	uint64_t ttl_us;
	uint64_t left;     /* until it expires, counted from `began`; 0: it has expired */
	uint64_t end_left; /* until its lifetime ends, or END_NONE */
	uint64_t weight;   /* or 0 */
	uint32_t pinned;
};

/* ---- Reading */

/* Read this many bytes. An end before is damage. */
static int read_bytes(const struct loading *loading, unsigned char *to, size_t size)
{
	const struct ww_session_reader *reader = loading->reader;

	while (size) {
		size_t most = size < SAVED_ROOM ? size : SAVED_ROOM;
		int got = reader->read(to, most, reader->context);
		if (got <= 0)
			return got ? got : WW_ECORRUPT;
		if ((size_t)got > most)
			return WW_EINVAL;
		to += got;
		size -= (size_t)got;
	}
	return WW_OK;
}

static int read_header(struct loading *loading)
{
	struct ww_clock *wall = loading->reader->wall ? loading->reader->wall : ww_clock_wall();
	unsigned char header[SAVED_HEADER];
	uint64_t saved, now;
	int error = read_bytes(loading, header, sizeof header);

	if (error)
		return error;
	loading->sum = ww_crc32c(0, header, SAVED_HEADER_SUMMED);
	if (memcmp(header, SAVED_MAGIC, SAVED_MAGIC_SIZE) != 0 ||
	    saved_get(header + SAVED_HEADER_SUMMED, 4) != loading->sum)
		return WW_ECORRUPT;
	if (saved_get(header + 8, 4) != SAVED_VERSION)
		return WW_EVERSION;
	loading->has_ends = (saved_get(header + 12, 4) & SAVED_HAS_ENDS) != 0;
	/* In this order: what passes between the two prolongs times and never shortens them. */
	error = ww_clock_now(wall, &now);
	loading->began = ww_driver_time(loading->session->driver);
	if (!error && loading->began > WW_DRIVER_TIME_MAX)
		error = WW_EOVERFLOW;
	saved = saved_get(header + 16, 8);
	/* A wall clock that was stepped back says nothing about how long it was: then nobody expires. */
	loading->loaded.downtime = now > saved ? now - saved : 0;
	loading->loaded.bytes = sizeof header;
	return error;
}

/* Make the buffer larger and keep what is in it. */
static int grow(struct loading *loading, size_t used, size_t room)
{
	const struct ww_allocator *allocator = loading->session->allocator;
	unsigned char *block = allocator->allocate(allocator->user, room);

	if (!block)
		return WW_ENOMEM;
	if (loading->block) {
		memcpy(block, loading->block, used);
		allocator->free(allocator->user, loading->block, loading->room);
	}
	loading->block = block;
	loading->room = room;
	return WW_OK;
}

/* The size may be damaged: memory is taken as bytes come, at most twice as much as there are. */
static int read_records(struct loading *loading, size_t size)
{
	int error = WW_OK;

	for (size_t used = 0; !error && used < size;) {
		size_t more = size - used;
		if (used == loading->room || !loading->room)
			error = grow(loading, used, loading->room ? 2 * loading->room : SAVED_ROOM);
		if (more > loading->room - used)
			more = loading->room - used;
		if (!error)
			error = read_bytes(loading, loading->block + used, more);
		used += more;
	}
	return error;
}

/* Read a block and check its sum. */
static int read_block(struct loading *loading, size_t *size, uint32_t *count)
{
	unsigned char head[SAVED_BLOCK];
	int error = read_bytes(loading, head, sizeof head);

	if (error)
		return error;
	*size = (size_t)saved_get(head, 4);
	*count = (uint32_t)saved_get(head + 4, 4);
	error = read_records(loading, *size);
	if (error)
		return error;
	loading->sum = ww_crc32c(loading->sum, head, SAVED_SUMMED);
	loading->sum = ww_crc32c(loading->sum, loading->block, *size);
	return loading->sum == saved_get(head + SAVED_SUMMED, 4) ? WW_OK : WW_ECORRUPT;
}

/* ---- Records */

static uint64_t without(uint64_t left, uint64_t downtime)
{
	return left > downtime ? left - downtime : 0;
}

/* Take a record from the block. Returns its size, or 0 if it is none: whoever wrote it can compute sums. */
static size_t parse(const struct loading *loading, const unsigned char *at, size_t room, struct saved_entry *record)
{
	size_t size = SAVED_RECORD;
	unsigned flags;

	if (room < SAVED_RECORD)
		return 0;
	flags = (unsigned)saved_get(at + 6, 2);
	*record = (struct saved_entry){
	    .size = (size_t)saved_get(at, 4),
	    .length = (size_t)saved_get(at + 4, 2),
	    .left = without(saved_get(at + 8, 8), loading->loaded.downtime),
	    .ttl_us = saved_get(at + 16, 8),
	    .end_left = END_NONE,
	    .pinned = flags & SAVED_PINNED,
	};
	if (flags & ~SAVED_FLAGS || room - size < (flags & SAVED_END ? 8u : 0) + (flags & SAVED_WEIGHT ? 8u : 0) +
	                                              record->length + record->size)
		return 0;
	if (!record->ttl_us || record->ttl_us > WW_SESSION_TTL_MAX / WW_MICROSECOND)
		return 0;
	if (flags & SAVED_END) {
		record->end_left = without(saved_get(at + size, 8), loading->loaded.downtime);
		size += 8;
	}
	if (flags & SAVED_WEIGHT) {
		record->weight = saved_get(at + size, 8);
		size += 8;
	}
	record->key = at + size;
	record->value = record->key + record->length;
	return size + record->length + record->size;
}

/* In a map of a smaller limit it takes what a shard has. */
static uint64_t weight_in(const struct ww_session *session, uint64_t weight)
{
	return weight < session->shard_weight_limit ? weight : session->shard_weight_limit;
}

static uint64_t end_of(
    const struct loading *loading, const struct session_sought *sought, const struct saved_entry *record)
{
	if (!loading->has_ends)
		return ww_session_end(loading->session, sought->now, 0);
	if (record->end_left > WW_DRIVER_TIME_MAX - loading->began)
		return END_NONE;
	return loading->began + record->end_left;
}

/* Hand the value to gone. */
static struct taken_out hand_back(const struct session_content *content, enum ww_gone why)
{
	uint64_t end = content->end < content->deadline ? content->end : content->deadline;

	return (struct taken_out){.value = content->value, .why = why, .deadline = end, .is = 1};
}

/*
 * The lock is held: make the entry. What is in the map is newer than what was saved, and stays. But if that was loaded,
 * too, its key was removed and set while the map was saved, and was saved again: the last is the newest.
 */
static int store(struct loading *loading, const struct session_sought *sought, const struct saved_entry *record,
    void *value, struct taken_out *out)
{
	struct session_entry *entry = ww_session_entry_find(sought);
	struct session_content content = {
	    .value = value,
	    .ttl = record->ttl_us * WW_MICROSECOND,
	    .end = end_of(loading, sought, record),
	    .deadline = loading->began + record->left,
	    .weight = weight_in(loading->session, record->weight),
	    .pinned = record->pinned,
	};

	if (entry && !(entry_version(entry) & VERSION_LOADED) && entry_deadline(sought->shard, entry) > sought->now) {
		loading->loaded.present++;
		*out = hand_back(&content, WW_GONE_REPLACED);
		return WW_OK;
	}
	if (content.deadline <= sought->now || content.end <= sought->now) {
		loading->loaded.expired++;
		*out = hand_back(&content, WW_GONE_EXPIRED);
		return WW_OK;
	}
	/* No reason to lose all others. */
	if (sought->shard->session->at_use && ww_session_limit_refuses(sought->shard, entry, &content)) {
		loading->loaded.left_out++;
		*out = hand_back(&content, WW_GONE_EVICTED);
		return WW_OK;
	}
	entry = ww_session_overfill(sought, entry, &content, NULL, out);
	if (!entry) {
		*out = hand_back(&content, WW_GONE_REPLACED);
		return WW_ENOMEM;
	}
	entry->as.timer.ww_period |= VERSION_LOADED;
	loading->loaded.entries++;
	/* Last: it may put out the entry itself. */
	if (sought->shard->session->at_use)
		ww_session_evict(sought, out);
	return WW_OK;
}

static int load_record(struct loading *loading, const struct saved_entry *record)
{
	const struct ww_session_reader *reader = loading->reader;
	struct session_sought sought;
	struct taken_out out = {0};
	void *value = NULL;
	int answer = 0;

	if (!record->left || !record->end_left) {
		loading->loaded.expired++;
		if (reader->lapsed)
			reader->lapsed(record->key, record->length, record->value, record->size, reader->context);
		return WW_OK;
	}
	if (record->left > WW_DRIVER_TIME_MAX - loading->began)
		return WW_EOVERFLOW;
	if (reader->decode)
		answer = reader->decode(record->value, record->size, &value, reader->context);
	if (answer) {
		loading->loaded.left_out += answer > 0;
		return answer < 0 ? answer : WW_OK;
	}
	answer = ww_session_enter(loading->session, record->key, record->length, &sought);
	if (answer) {
		ww_session_report(loading->session, record->key, record->length, value, WW_GONE_REPLACED, 0);
		return answer;
	}
	answer = store(loading, &sought, record, value, &out);
	ww_source_unlock(sought.shard->source);
	ww_session_report_taken(&sought, &out);
	return answer;
}

static int load_block(struct loading *loading, size_t size, uint32_t count)
{
	const unsigned char *at = loading->block;
	int error = WW_OK;

	while (!error && count--) {
		struct saved_entry record;
		size_t taken = parse(loading, at, size, &record);
		if (!taken)
			return WW_ECORRUPT;
		at += taken;
		size -= taken;
		error = load_record(loading, &record);
	}
	return error || !size ? error : WW_ECORRUPT;
}

static int load_all(struct loading *loading)
{
	size_t size = 1;
	uint32_t count = 0;
	int error = read_header(loading);

	while (!error && size) {
		error = read_block(loading, &size, &count);
		if (!error)
			error = load_block(loading, size, count);
		if (!error)
			loading->loaded.bytes += SAVED_BLOCK + size;
	}
	return error;
}

int ww_session_load(
    struct ww_session *session, const struct ww_session_reader *reader, struct ww_session_loaded *loaded)
{
	struct loading loading = {.session = session, .reader = reader};
	struct inside here;
	int cancel;
	int error = reader && reader->read ? ww_session_refuses(session) : WW_EINVAL;

	if (!error && session->closing)
		error = WW_ECLOSED;
	if (error)
		return error;
	ww_inside_enter(&here, session);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	error = load_all(&loading);
	(void)pthread_setcancelstate(cancel, &cancel);
	ww_inside_leave(&here);
	if (loading.block)
		session->allocator->free(session->allocator->user, loading.block, loading.room);
	if (loaded)
		*loaded = loading.loaded;
	return error;
}
