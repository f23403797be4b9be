/*
 * Any bytes as saved sessions. The first byte says into what map they are loaded, and whether their sums are put right
 * before, so that what is behind the sums is reached, too. What was loaded is saved and loaded into another map, which
 * then has the same.
 */
/* tier: quick */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "weekwheel/weekwheel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                                             \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

enum { FORGED = 1, LIFETIMES = 2, LIMITED = 4, PIECES = 8, JITTER = 16 };
enum { HEADER = 32, HEADER_SUMMED = 28, BLOCK = 12, BLOCK_SUMMED = 8 };

struct stream {
	uint8_t *bytes;
	size_t size, at, piece;
};

/* A value that left the map without being handed to anybody would leak. */
static size_t values;

static void gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)map;
	(void)key;
	(void)length;
	(void)why;
	(void)user;
	free(value);
	values--;
}

static int read_bytes(void *bytes, size_t size, void *context)
{
	struct stream *stream = context;

	if (stream->piece && size > stream->piece)
		size = stream->piece;
	if (size > stream->size - stream->at)
		size = stream->size - stream->at;
	if (size)
		memcpy(bytes, stream->bytes + stream->at, size);
	stream->at += size;
	return (int)size;
}

static int write_bytes(const void *bytes, size_t size, void *context)
{
	struct stream *stream = context;

	stream->bytes = realloc(stream->bytes, stream->size + size);
	REQUIRE(stream->bytes);
	memcpy(stream->bytes + stream->size, bytes, size);
	stream->size += size;
	return 0;
}

/* A value is its size and its bytes. */
static int decode(const void *bytes, size_t size, void **value, void *context)
{
	char *copy = malloc(sizeof size + size);

	(void)context;
	REQUIRE(copy);
	memcpy(copy, &size, sizeof size);
	memcpy(copy + sizeof size, bytes, size);
	*value = copy;
	values++;
	return 0;
}

static int encode(void *value, void *bytes, size_t *size, void *context)
{
	size_t room = *size;

	(void)context;
	memcpy(size, value, sizeof *size);
	if (*size <= room)
		memcpy(bytes, (char *)value + sizeof *size, *size);
	return 0;
}

static void lapsed(const void *key, size_t length, const void *bytes, size_t size, void *context)
{
	(void)context;
	/* A sanitizer sees whether they are there. */
	REQUIRE((ww_crc32c(ww_crc32c(0, key, length), bytes, size) | 1) != 0);
}

/* Put the sums right, as far as there are blocks. */
static void forge(uint8_t *bytes, size_t size)
{
	uint32_t sum;
	uint32_t records;

	if (size < HEADER)
		return;
	sum = ww_crc32c(0, bytes, HEADER_SUMMED);
	memcpy(bytes + HEADER_SUMMED, &sum, sizeof sum);
	for (size_t at = HEADER; size - at >= BLOCK; at += BLOCK + records) {
		memcpy(&records, bytes + at, sizeof records);
		if (records > size - at - BLOCK)
			return;
		sum = ww_crc32c(sum, bytes + at, BLOCK_SUMMED);
		sum = ww_crc32c(sum, bytes + at + BLOCK, records);
		memcpy(bytes + at + BLOCK_SUMMED, &sum, sizeof sum);
	}
}

static struct ww_session *make_map(struct ww_driver *driver, unsigned options)
{
	struct ww_session_config config;
	struct ww_session *map;

	REQUIRE(ww_session_config_default(&config) == WW_OK);
	config.gone = gone;
	config.shards = 1;
	config.limit = options & LIMITED ? 3 : 0;
	config.jitter = options & JITTER ? 100 : 0;
	config.flags = options & LIFETIMES ? WW_SESSION_LIFETIMES : 0;
	REQUIRE(ww_session_create(&map, driver, &config) == WW_OK);
	return map;
}

static int same(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct ww_session_found other;
	size_t size;

	/* A walk holds a lock: the other map is drained instead. */
	REQUIRE(ww_session_find(context, key, length, &other) == 1);
	memcpy(&size, found->value, sizeof size);
	REQUIRE(memcmp(found->value, other.value, sizeof size + size) == 0);
	REQUIRE(found->ttl == other.ttl && found->left == other.left && found->end_left == other.end_left);
	free(found->value);
	values--;
	return 0;
}

static void load(struct ww_driver *driver, struct ww_clock *wall, struct stream *stream, unsigned options)
{
	const struct ww_session_reader reader = {read_bytes, decode, lapsed, stream, wall};
	struct stream copy = {0};
	const struct ww_session_writer writer = {write_bytes, encode, &copy, wall};
	const struct ww_session_reader again = {read_bytes, decode, lapsed, &copy, wall};
	struct ww_session *map = make_map(driver, options);
	struct ww_session *other = make_map(driver, options & ~(unsigned)LIMITED);
	struct ww_session_loaded loaded;
	struct ww_session_stats stats;
	size_t count;
	int error = ww_session_load(map, &reader, &loaded);

	REQUIRE(error == WW_OK || error == WW_ECORRUPT || error == WW_EVERSION || error == WW_EOVERFLOW);
	REQUIRE(loaded.bytes <= stream->size);
	REQUIRE(ww_session_stats(map, &stats) == WW_OK);
	REQUIRE(stats.entries <= loaded.entries);
	REQUIRE(ww_session_save(map, &writer, &count) == WW_OK);
	REQUIRE(count == stats.entries);
	REQUIRE(ww_session_load(other, &again, &loaded) == WW_OK);
	REQUIRE(loaded.entries == count && loaded.bytes == copy.size);
	REQUIRE(ww_session_drain(map, same, other, &count) == WW_OK);
	REQUIRE(count == loaded.entries);
	REQUIRE(ww_session_destroy(map) == WW_OK && ww_session_destroy(other) == WW_OK);
	REQUIRE(values == 0);
	free(copy.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_driver_config config;
	struct ww_clock *clock, *wall;
	struct ww_driver *driver;
	struct stream stream = {0};
	unsigned options = size ? data[0] : 0;

	if (size > 1)
		write_bytes(data + 1, size - 1, &stream);
	if (options & FORGED)
		forge(stream.bytes, stream.size);
	stream.piece = options & PIECES ? 5 : 0;
	REQUIRE(ww_driver_config_default(&config) == WW_OK);
	config.flags = WW_DRIVER_THREADLESS;
	REQUIRE(ww_clock_virtual_create(&clock, 123456789, NULL) == WW_OK);
	REQUIRE(ww_clock_virtual_create(&wall, 1000 * WW_SECOND, NULL) == WW_OK);
	config.clock = clock;
	REQUIRE(ww_driver_create(&driver, &config) == WW_OK);
	load(driver, wall, &stream, options);
	REQUIRE(ww_driver_destroy(driver) == WW_OK);
	REQUIRE(ww_clock_virtual_destroy(clock) == WW_OK && ww_clock_virtual_destroy(wall) == WW_OK);
	free(stream.bytes);
	return 0;
}
