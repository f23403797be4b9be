/* ww_session_save: all entries as bytes, a block of them at a time. saved.h has the format. */

#include "lib/base/crc32c.h"
#include "lib/core/session/saved.h"
#include "lib/core/session/session_internal.h"

struct saving {
	const struct ww_session_writer *writer;
	uint64_t from;        /* the driver's clock at the moment that the header names */
	unsigned char *block; /* SAVED_BLOCK bytes for its head, then the records */
	size_t room;          /* for records */
	size_t used;          /* by them */
	size_t wanted;        /* by one that did not fit */
	uint32_t count;
	uint32_t sum;
	size_t saved;
};

/* ---- A record; the shard's lock is held */

/* What a visit answers when the block must be written first: it has no room for a record of so many bytes. */
static int block_is_full(struct saving *saving, size_t wanted)
{
	saving->wanted = wanted;
	return 1;
}

/* Write all but the size of the value, key and value; returns how many bytes that is, at most SAVED_HEAD_MOST. */
static size_t put_head(
    unsigned char *to, const struct saving *saving, const struct session_sought *here, struct session_entry *entry)
{
	const struct ww_session *session = here->shard->session;
	uint64_t deadline = entry_deadline(here->shard, entry);
	uint64_t end = session->at_end ? *entry_end(session, entry) : END_NONE;
	size_t size = SAVED_RECORD;
	unsigned flags = 0;

	if (end != END_NONE) {
		flags |= SAVED_END;
		saved_put(to + size, end > saving->from ? end - saving->from : 0, 8);
		size += 8;
	}
	if (session->at_weight) {
		flags |= SAVED_WEIGHT;
		saved_put(to + size, *entry_weight(session, entry), 8);
		size += 8;
	}
	if (session->at_use && entry_use(session, entry)->list == LIST_PINNED)
		flags |= SAVED_PINNED;
	saved_put(to + 4, entry->length, 2);
	saved_put(to + 6, flags, 2);
	/* It lives. Its deadline is before only if the driver's clock was stepped back since. */
	saved_put(to + 8, deadline > saving->from ? deadline - saving->from : 1, 8);
	saved_put(to + 16, entry->ttl_us, 8);
	return size;
}

/* Encode the value into *size bytes. Answers as the caller's function does. */
static int encode(const struct saving *saving, const struct session_entry *entry, unsigned char *to, size_t *size)
{
	const struct ww_session_writer *writer = saving->writer;
	int answer = 0;

	if (!writer->encode) {
		*size = 0;
		return answer;
	}
	ww_session_set_looking(1);
	answer = writer->encode(entry_value(entry), to, size, writer->context);
	ww_session_set_looking(0);
	if (!answer && *size > SAVED_VALUE_MAX)
		answer = WW_EINVAL;
	return answer;
}

static int add_record(const struct session_sought *here, struct session_entry *entry, void *context)
{
	struct saving *saving = context;
	unsigned char *record = saving->block + SAVED_BLOCK + saving->used;
	size_t room = saving->room - saving->used;
	size_t before, size;
	int answer;

	if (room < SAVED_HEAD_MOST + (size_t)entry->length)
		return block_is_full(saving, SAVED_HEAD_MOST + (size_t)entry->length);
	before = put_head(record, saving, here, entry);
	memcpy(record + before, entry_key(entry), entry->length);
	before += entry->length;
	size = room - before;
	answer = encode(saving, entry, record + before, &size);
	if (answer)
		return answer < 0 ? answer : 0;
	if (size > room - before)
		return block_is_full(saving, before + size);
	saved_put(record, size, 4);
	saving->used += before + size;
	saving->count++;
	return 0;
}

/* ---- Blocks */

static int write_bytes(const struct saving *saving, const void *bytes, size_t size)
{
	int answer = saving->writer->write(bytes, size, saving->writer->context);

	return answer > 0 ? WW_EIO : answer;
}

/* Write what has been gathered; nothing is the end. */
static int write_block(struct saving *saving)
{
	unsigned char *block = saving->block;
	int error;

	saved_put(block, saving->used, 4);
	saved_put(block + 4, saving->count, 4);
	saving->sum = ww_crc32c(saving->sum, block, SAVED_SUMMED);
	saving->sum = ww_crc32c(saving->sum, block + SAVED_BLOCK, saving->used);
	saved_put(block + SAVED_SUMMED, saving->sum, 4);
	error = write_bytes(saving, block, SAVED_BLOCK + saving->used);
	saving->saved += saving->count;
	saving->used = 0;
	saving->count = 0;
	return error;
}

/* Replace the block by an empty one with room for this many bytes of records. */
static int make_block(struct ww_session *session, struct saving *saving, size_t room)
{
	const struct ww_allocator *allocator = session->allocator;
	unsigned char *block = allocator->allocate(allocator->user, SAVED_BLOCK + room);

	if (!block)
		return WW_ENOMEM;
	if (saving->block)
		allocator->free(allocator->user, saving->block, SAVED_BLOCK + saving->room);
	saving->block = block;
	saving->room = room;
	return WW_OK;
}

static int write_header(struct ww_session *session, struct saving *saving)
{
	unsigned char header[SAVED_HEADER] = {0};
	struct ww_clock *wall = saving->writer->wall ? saving->writer->wall : ww_clock_wall();
	uint64_t now;
	int error;

	/* In this order: what passes between the two prolongs times and never shortens them. */
	saving->from = ww_driver_time(session->driver);
	error = ww_clock_now(wall, &now);
	if (error)
		return error;
	memcpy(header, SAVED_MAGIC, SAVED_MAGIC_SIZE);
	saved_put(header + 8, SAVED_VERSION, 4);
	saved_put(header + 12, session->at_end ? SAVED_HAS_ENDS : 0, 4);
	saved_put(header + 16, now, 8);
	saving->sum = ww_crc32c(0, header, SAVED_HEADER_SUMMED);
	saved_put(header + SAVED_HEADER_SUMMED, saving->sum, 4);
	return write_bytes(saving, header, sizeof header);
}

static int write_all(struct ww_session *session, struct saving *saving)
{
	struct session_walk walk = {0};
	int answer = write_header(session, saving);

	while (!answer && (answer = ww_session_visit(session, &walk, add_record, saving)) > 0) {
		answer = saving->count ? write_block(saving) : WW_OK;
		if (!answer && saving->wanted > saving->room)
			answer = make_block(session, saving, saving->wanted);
	}
	if (!answer && saving->count)
		answer = write_block(saving);
	return answer ? answer : write_block(saving);
}

int ww_session_save(struct ww_session *session, const struct ww_session_writer *writer, size_t *count)
{
	struct saving saving = {.writer = writer};
	struct inside here;
	int cancel;
	int error = writer && writer->write ? ww_session_walk_refuses(session) : WW_EINVAL;

	if (!error)
		error = make_block(session, &saving, SAVED_ROOM);
	if (error)
		return error;
	ww_inside_enter(&here, session);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	error = write_all(session, &saving);
	(void)pthread_setcancelstate(cancel, &cancel);
	ww_inside_leave(&here);
	session->allocator->free(session->allocator->user, saving.block, SAVED_BLOCK + saving.room);
	if (!error && count)
		*count = saving.saved;
	return error;
}
