/* What load makes of damaged, cut and forged bytes, and what errors of the caller's functions and of memory leave behind. */
/* tier: quick */

#include <stdio.h>

#include "lib/base/crc32c.h"
#include "tests/lib/core/session/stream.h"

enum { HEADER = 32, BLOCK = 12 };

static size_t key_of(uintptr_t i, char key[64])
{
	return (size_t)snprintf(key, 64, "key %" PRIuPTR, i);
}

static void set_many(struct rig *rig, uintptr_t from, uintptr_t to)
{
	for (uintptr_t i = from; i < to; i++) {
		char key[64];
		size_t length = key_of(i, key);
		OK(ww_session_set(rig->map, key, length, (void *)i, i % 7 ? 0 : 20 * SEC, NULL));
	}
}

/* Whatever is in the map was saved; returns how much it is. */
static size_t assert_sound(struct rig *rig, uintptr_t from, uintptr_t to)
{
	size_t there = 0;

	for (uintptr_t i = from; i < to; i++) {
		char key[64];
		struct ww_session_found found;
		if (ww_session_find(rig->map, key, key_of(i, key), &found) == 0)
			continue;
		there++;
		ck_assert_uint_eq((uintptr_t)found.value, i);
		ck_assert_uint_eq(found.left, i % 7 ? 10 * SEC : 20 * SEC);
	}
	ck_assert_uint_eq(stats(rig).entries, there);
	return there;
}

static void open_saved(struct rig *rig, struct stream *stream, uintptr_t from, uintptr_t to)
{
	stream_init(stream);
	rig_plan(rig);
	rig->of_map.flags = WW_SESSION_LIFETIMES;
	rig_open(rig);
	set_many(rig, from, to);
	OK(stream_save(stream, rig->map, NULL));
	OK(ww_session_clear(rig->map, NULL));
	gone_count = 0;
}

static void close_saved(struct rig *rig, struct stream *stream)
{
	rig_close(rig);
	stream_free(stream);
}

/* Load what is damaged: an error, and what came before the damage. Returns how many entries. */
static size_t load_damaged(struct rig *rig, struct stream *stream, uintptr_t from, uintptr_t to)
{
	struct ww_session_loaded loaded;

	ck_assert_int_eq(stream_load(stream, rig->map, &loaded), WW_ECORRUPT);
	size_t there = assert_sound(rig, from, to);
	ck_assert_uint_eq(there, loaded.entries);
	ck_assert_uint_le(loaded.bytes, stream->size);
	OK(ww_session_clear(rig->map, NULL));
	return there;
}

/* ---- Damage */

START_TEST(test_each_bit)
{
	struct stream stream;
	struct rig rig;

	open_saved(&rig, &stream, 0, 30);
	for (size_t i = 0; i < 8 * stream.size; i++) {
		stream.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
		size_t there = load_damaged(&rig, &stream, 0, 30);
		ck_assert_uint_eq(there, i / 8 < stream.size - BLOCK ? 0 : 30);
		stream.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
	}
	OK(stream_load(&stream, rig.map, NULL));
	ck_assert_uint_eq(assert_sound(&rig, 0, 30), 30);
	close_saved(&rig, &stream);
}
END_TEST

START_TEST(test_each_cut)
{
	struct stream stream;
	struct rig rig;

	open_saved(&rig, &stream, 0, 30);
	size_t whole = stream.size;
	for (stream.size = 0; stream.size < whole; stream.size++) {
		size_t there = load_damaged(&rig, &stream, 0, 30);
		ck_assert_uint_eq(there, stream.size < whole - BLOCK ? 0 : 30);
	}
	/* What follows the end is not read. */
	OK(stream_load(&stream, rig.map, NULL));
	ck_assert_uint_eq(stream.at, whole);
	close_saved(&rig, &stream);
}
END_TEST

/* The blocks of a file: where each begins, the empty one included. */
static size_t blocks_of(const struct stream *stream, size_t begin[64])
{
	size_t count = 0, at = HEADER;

	while (at < stream->size) {
		uint32_t size;
		memcpy(&size, stream->bytes + at, sizeof size);
		begin[count++] = at;
		at += BLOCK + size;
	}
	begin[count] = at;
	return count;
}

/* Damage of one block leaves the blocks before it. */
START_TEST(test_blocks)
{
	enum { FROM = 500, TO = 5500 };
	uint64_t state = seed_of_run("session/damage");
	struct stream stream;
	struct rig rig;
	size_t begin[64], before = 0;

	open_saved(&rig, &stream, FROM, TO);
	size_t count = blocks_of(&stream, begin);
	ck_assert_uint_ge(count, 10);
	for (size_t i = 0; i < count; i++) {
		size_t at = begin[i] + seed_below(&state, begin[i + 1] - begin[i]);
		struct ww_session_loaded loaded;
		stream.bytes[at] ^= 64;
		ck_assert_int_eq(stream_load(&stream, rig.map, &loaded), WW_ECORRUPT);
		ck_assert_uint_eq(loaded.bytes, begin[i]);
		ck_assert_uint_eq(assert_sound(&rig, FROM, TO), loaded.entries);
		ck_assert(i == 0 ? loaded.entries == 0 : loaded.entries > before);
		before = loaded.entries;
		OK(ww_session_clear(rig.map, NULL));
		stream.bytes[at] ^= 64;
	}
	ck_assert_uint_eq(before, TO - FROM);

	/* A block that is missing, twice there, or in another's place. */
	unsigned char *whole = malloc(stream.size);
	size_t size = stream.size, of_three = begin[3] - begin[2];
	ck_assert_ptr_nonnull(whole);
	memcpy(whole, stream.bytes, size);
	memmove(stream.bytes + begin[2], stream.bytes + begin[3], size - begin[3]);
	stream.size = size - of_three;
	ck_assert_uint_gt(load_damaged(&rig, &stream, FROM, TO), 0);
	memcpy(stream.bytes, whole, begin[3]);
	memcpy(stream.bytes + begin[3], whole + begin[2], size - begin[3]);
	stream.size = size;
	ck_assert_uint_gt(load_damaged(&rig, &stream, FROM, TO), 0);
	memcpy(stream.bytes + begin[1], whole + begin[count - 1], BLOCK);
	stream.size = begin[1] + BLOCK;
	ck_assert_uint_gt(load_damaged(&rig, &stream, FROM, TO), 0);
	free(whole);
	close_saved(&rig, &stream);
}
END_TEST

/* ---- Forged: with sums that are right. Nothing but an error may come of it */

static void put(struct stream *stream, size_t at, uint64_t number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, number >>= 8)
		stream->bytes[at + i] = (unsigned char)number;
}

static void forge_sums(struct stream *stream)
{
	uint32_t sum = ww_crc32c(0, stream->bytes, HEADER - 4);
	size_t begin[64];

	put(stream, HEADER - 4, sum, 4);
	size_t count = blocks_of(stream, begin);
	for (size_t i = 0; i < count; i++) {
		sum = ww_crc32c(sum, stream->bytes + begin[i], 8);
		sum = ww_crc32c(sum, stream->bytes + begin[i] + BLOCK, begin[i + 1] - begin[i] - BLOCK);
		put(stream, begin[i] + 8, sum, 4);
	}
}

static void assert_forged(size_t at, uint64_t number, size_t bytes, int error)
{
	struct stream stream;
	struct rig rig;

	open_saved(&rig, &stream, 1, 3);
	put(&stream, at, number, bytes);
	forge_sums(&stream);
	ck_assert_int_eq(stream_load(&stream, rig.map, NULL), error);
	close_saved(&rig, &stream);
}

START_TEST(test_forged)
{
	const size_t record = HEADER + BLOCK;

	assert_forged(8, 1, 4, WW_OK);
	assert_forged(8, 2, 4, WW_EVERSION);
	assert_forged(8, 0, 4, WW_EVERSION);
	assert_forged(0, 'w', 1, WW_ECORRUPT);
	/* The number of records. */
	assert_forged(HEADER + 4, 1, 4, WW_ECORRUPT);
	assert_forged(HEADER + 4, 3, 4, WW_ECORRUPT);
	assert_forged(HEADER + 4, UINT32_MAX, 4, WW_ECORRUPT);
	/* Lengths of value and key, flags, TTL, times. */
	assert_forged(record, UINT32_MAX, 4, WW_ECORRUPT);
	assert_forged(record, 1000, 4, WW_ECORRUPT);
	assert_forged(record + 4, 65535, 2, WW_ECORRUPT);
	assert_forged(record + 6, 8, 2, WW_ECORRUPT);
	assert_forged(record + 6, 65535, 2, WW_ECORRUPT);
	assert_forged(record + 16, 0, 8, WW_ECORRUPT);
	assert_forged(record + 16, UINT64_C(1) << 48, 8, WW_ECORRUPT);
	assert_forged(record + 16, UINT64_MAX, 8, WW_ECORRUPT);
	assert_forged(record + 8, UINT64_MAX, 8, WW_EOVERFLOW);
	assert_forged(record + 8, WW_DRIVER_TIME_MAX, 8, WW_EOVERFLOW);
	assert_forged(record + 8, WW_DRIVER_TIME_MAX - START, 8, WW_OK);
	/* The entry has no time left. */
	assert_forged(record + 8, 0, 8, WW_OK);
	/* A later wall clock than the present one. */
	assert_forged(16, UINT64_MAX, 8, WW_OK);
}
END_TEST

/* ---- Errors of the caller's functions */

START_TEST(test_write_errors)
{
	struct stream stream;
	struct rig rig;
	size_t count = 9;

	open_saved(&rig, &stream, 950, 1050);
	set_many(&rig, 950, 1050);
	size_t writes = stream.writes, encodes = stream.encodes;
	for (stream.fail_write = 1; stream.fail_write <= writes; stream.fail_write++)
		ck_assert_int_eq(stream_save(&stream, rig.map, &count), WRITE_ERROR);
	for (stream.fail_encode = 1; stream.fail_encode <= encodes; stream.fail_encode++)
		ck_assert_int_eq(stream_save(&stream, rig.map, &count), ENCODE_ERROR);
	ck_assert_uint_eq(count, 9);
	OK(stream_save(&stream, rig.map, &count));
	ck_assert_uint_eq(count, 100);
	ck_assert_uint_eq(assert_sound(&rig, 950, 1050), 100);
	close_saved(&rig, &stream);
}
END_TEST

/* An error of decode leaves what came before, and the map sound. */
START_TEST(test_read_errors)
{
	struct stream stream;
	struct rig rig;
	struct ww_session_loaded loaded;

	open_saved(&rig, &stream, 950, 1050);
	for (size_t i = 1; i <= 100; i++) {
		stream.fail_decode = i;
		ck_assert_int_eq(stream_load(&stream, rig.map, &loaded), DECODE_ERROR);
		ck_assert_uint_eq(loaded.entries, i - 1);
		ck_assert_uint_eq(assert_sound(&rig, 950, 1050), i - 1);
		OK(ww_session_clear(rig.map, NULL));
	}
	stream.fail_decode = 0;
	OK(stream_load(&stream, rig.map, NULL));
	size_t reads = stream.reads;
	OK(ww_session_clear(rig.map, NULL));
	for (stream.fail_read = 1; stream.fail_read <= reads; stream.fail_read++) {
		ck_assert_int_eq(stream_load(&stream, rig.map, &loaded), READ_ERROR);
		ck_assert_uint_eq(assert_sound(&rig, 950, 1050), loaded.entries);
		OK(ww_session_clear(rig.map, NULL));
	}
	close_saved(&rig, &stream);
}
END_TEST

static int write_positive(const void *bytes, size_t size, void *context)
{
	(void)bytes;
	(void)context;
	return (int)size;
}

static int read_too_much(void *bytes, size_t size, void *context)
{
	(void)bytes;
	(void)context;
	return (int)size + 1;
}

/* Says that it needs more than there may be, and writes nothing. */
static int encode_huge(void *value, void *bytes, size_t *size, void *context)
{
	(void)value;
	(void)bytes;
	(void)context;
	*size = (size_t)INT32_MAX + 1;
	return 0;
}

static int encode_long(void *value, void *bytes, size_t *size, void *context)
{
	size_t room = *size;

	(void)value;
	(void)context;
	*size = 300000;
	if (*size <= room)
		memset(bytes, 0, *size);
	return 0;
}

/* Says once, in the middle of a long value, that it has read more than it was asked for. */
static int read_one_more(void *bytes, size_t size, void *context)
{
	struct stream *stream = context;
	int is_far = stream->at >= 2 * 65536 && !stream->user;

	if (is_far)
		stream->user = stream;
	return stream_read(bytes, size, stream) + is_far;
}

START_TEST(test_read_more_of_a_long_value)
{
	struct stream stream;
	struct ww_session_writer writer = {.write = stream_write, .encode = encode_long, .context = &stream};
	struct ww_session_reader reader = {.read = read_one_more, .context = &stream};
	struct rig rig;

	rig_start(&rig);
	stream_init(&stream);
	OK(set(&rig, "a", 1, 0));
	OK(ww_session_save(rig.map, &writer, NULL));
	OK(ww_session_clear(rig.map, NULL));
	ck_assert_int_eq(ww_session_load(rig.map, &reader, NULL), WW_EINVAL);
	close_saved(&rig, &stream);
}
END_TEST

START_TEST(test_arguments)
{
	struct ww_session_writer writer = {.write = write_positive};
	struct ww_session_reader reader = {.read = read_too_much};
	struct ww_session_loaded loaded = {.bytes = 7};
	struct rig rig;
	size_t count = 9;

	rig_start(&rig);
	set_many(&rig, 1, 3);
	ck_assert_int_eq(ww_session_save(NULL, &writer, &count), WW_EINVAL);
	ck_assert_int_eq(ww_session_save(rig.map, NULL, &count), WW_EINVAL);
	ck_assert_int_eq(ww_session_save(rig.map, &(struct ww_session_writer){0}, &count), WW_EINVAL);
	ck_assert_int_eq(ww_session_save(rig.map, &writer, &count), WW_EIO);
	writer =
	    (struct ww_session_writer){.write = stream_write, .encode = encode_huge, .context = &(struct stream){0}};
	ck_assert_int_eq(ww_session_save(rig.map, &writer, &count), WW_EINVAL);
	free(((struct stream *)writer.context)->bytes);
	ck_assert_int_eq(ww_session_load(NULL, &reader, &loaded), WW_EINVAL);
	ck_assert_int_eq(ww_session_load(rig.map, NULL, &loaded), WW_EINVAL);
	ck_assert_int_eq(ww_session_load(rig.map, &(struct ww_session_reader){0}, &loaded), WW_EINVAL);
	ck_assert_uint_eq(count, 9);
	ck_assert_uint_eq(loaded.bytes, 7);
	ck_assert_int_eq(ww_session_load(rig.map, &reader, &loaded), WW_EINVAL);
	rig_close(&rig);
}
END_TEST

/* ---- No memory */

START_TEST(test_no_memory)
{
	struct stream stream;
	struct rig rig;
	size_t count = 9, calls;
	struct ww_session_loaded loaded;

	open_saved(&rig, &stream, 950, 1050);
	set_many(&rig, 950, 1050);
	calls = rig.memory.calls;
	OK(stream_save(&stream, rig.map, NULL));
	ck_assert_uint_eq(rig.memory.calls - calls, 2);
	for (size_t i = 1; i <= 2; i++) {
		rig.memory.fail_at = rig.memory.calls + i;
		ck_assert_int_eq(stream_save(&stream, rig.map, &count), WW_ENOMEM);
		ck_assert_uint_eq(count, 9);
	}
	rig.memory.fail_at = 0;
	OK(stream_save(&stream, rig.map, NULL));

	/* Into a new map each time: each value is in the map, or went to gone, or was never made. */
	int error = WW_ENOMEM;
	for (size_t i = 1; error == WW_ENOMEM; i++) {
		rig_close(&rig);
		rig_open(&rig);
		gone_count = 0;
		rig.memory.fail_at = rig.memory.calls + i;
		error = stream_load(&stream, rig.map, &loaded);
		rig.memory.fail_at = 0;
		ck_assert_uint_eq(assert_sound(&rig, 950, 1050), loaded.entries);
		ck_assert_uint_eq(stream.decodes, loaded.entries + gone_count);
		ck_assert(error == WW_OK || i < 100);
	}
	OK(error);
	ck_assert_uint_eq(loaded.entries, 100);
	close_saved(&rig, &stream);
}
END_TEST

TEST_MAIN("session/damage", test_each_bit, test_each_cut, test_blocks, test_forged, test_write_errors, test_read_errors,
    test_read_more_of_a_long_value, test_arguments, test_no_memory)
