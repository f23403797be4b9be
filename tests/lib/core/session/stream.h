#ifndef TESTS_LIB_CORE_SESSION_STREAM_H
#define TESTS_LIB_CORE_SESSION_STREAM_H

/* Saved sessions in memory: what writer and reader of the tests write and read, and how they fail. */

#include <errno.h>

#include "tests/lib/core/session/fixture.h"

enum { WRITE_ERROR = -701, READ_ERROR = -702, ENCODE_ERROR = -703, DECODE_ERROR = -704 };

struct stream {
	unsigned char *bytes;
	size_t size, room;
	size_t at;    /* of reading */
	size_t piece; /* the most that one read gets; 0: all */
	size_t writes, encodes, decodes, reads;
	size_t fail_write, fail_encode, fail_decode, fail_read; /* the call that fails, from 1; 0: none */
	uintptr_t leave_out;                                    /* a value that is not encoded or decoded; 0: none */
	void (*in_write)(struct stream *stream);                /* unless NULL */
	void (*in_encode)(struct stream *stream);
	void (*in_decode)(struct stream *stream);
	void *user;
	size_t expired;
	char expired_key[64]; /* of the last */
	uintptr_t expired_value;
	struct ww_clock *wall;
};

static inline int stream_write(const void *bytes, size_t size, void *context)
{
	struct stream *stream = context;

	if (++stream->writes == stream->fail_write)
		return WRITE_ERROR;
	if (stream->in_write)
		stream->in_write(stream);
	if (stream->size + size > stream->room) {
		stream->room = 2 * (stream->size + size);
		stream->bytes = realloc(stream->bytes, stream->room);
		ck_assert_ptr_nonnull(stream->bytes);
	}
	memcpy(stream->bytes + stream->size, bytes, size);
	stream->size += size;
	return 0;
}

static inline int stream_read(void *bytes, size_t size, void *context)
{
	struct stream *stream = context;
	size_t left = stream->size - stream->at;

	if (++stream->reads == stream->fail_read)
		return READ_ERROR;
	if (stream->piece && size > stream->piece)
		size = stream->piece;
	if (size > left)
		size = left;
	if (size)
		memcpy(bytes, stream->bytes + stream->at, size);
	stream->at += size;
	return (int)size;
}

/* A value is a number, encoded as 8 bytes and as many more as this says; each thousandth is longer than a block. */
static inline size_t stream_length(uintptr_t value)
{
	return 8 + value % 50 + (value % 1000 == 999 ? 100000 : 0);
}

static inline int stream_encode(void *value, void *bytes, size_t *size, void *context)
{
	struct stream *stream = context;
	uint64_t number = (uintptr_t)value;
	size_t room = *size;

	if (++stream->encodes == stream->fail_encode)
		return ENCODE_ERROR;
	if (stream->in_encode)
		stream->in_encode(stream);
	if (stream->leave_out && number == stream->leave_out)
		return 1;
	*size = stream_length(number);
	if (*size > room)
		return 0;
	memset(bytes, (int)(number & 255), *size);
	memcpy(bytes, &number, sizeof number);
	return 0;
}

static inline uintptr_t stream_value(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	uint64_t number;

	ck_assert_uint_ge(size, sizeof number);
	memcpy(&number, bytes, sizeof number);
	ck_assert_uint_eq(size, stream_length(number));
	for (size_t i = sizeof number; i < size; i++)
		ck_assert_uint_eq(at[i], number & 255);
	return number;
}

static inline int stream_decode(const void *bytes, size_t size, void **value, void *context)
{
	struct stream *stream = context;
	uintptr_t number = stream_value(bytes, size);

	if (++stream->decodes == stream->fail_decode)
		return DECODE_ERROR;
	if (stream->in_decode)
		stream->in_decode(stream);
	if (stream->leave_out && number == stream->leave_out)
		return 1;
	*value = (void *)number;
	return 0;
}

static inline void stream_expired(const void *key, size_t length, const void *bytes, size_t size, void *context)
{
	struct stream *stream = context;

	stream->expired++;
	stream->expired_value = stream_value(bytes, size);
	memset(stream->expired_key, 0, sizeof stream->expired_key);
	memcpy(stream->expired_key, key, length < sizeof stream->expired_key ? length : sizeof stream->expired_key - 1);
}

/* With a wall clock of its own, which is no multiple of anything. */
static inline void stream_init(struct stream *stream)
{
	*stream = (struct stream){0};
	OK(ww_clock_virtual_create(&stream->wall, UINT64_C(1700000000123456789), NULL));
}

static inline void stream_free(struct stream *stream)
{
	free(stream->bytes);
	OK(ww_clock_virtual_destroy(stream->wall));
}

static inline int stream_save(struct stream *stream, struct ww_session *map, size_t *count)
{
	const struct ww_session_writer writer = {stream_write, stream_encode, stream, stream->wall};

	stream->size = 0;
	stream->writes = stream->encodes = 0;
	return ww_session_save(map, &writer, count);
}

static inline int stream_load(struct stream *stream, struct ww_session *map, struct ww_session_loaded *loaded)
{
	const struct ww_session_reader reader = {stream_read, stream_decode, stream_expired, stream, stream->wall};

	stream->at = 0;
	stream->reads = stream->decodes = stream->expired = 0;
	return ww_session_load(map, &reader, loaded);
}

#endif
