/* S: a map is saved into memory, and loaded from there into a new map. All memory was touched before. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/bench/layers.h"
#include "tools/common/memory.h"
#include "weekwheel/weekwheel.h"

enum { VALUE = 64, ALIGNMENT = 64 };

/* Memory that is handed out from its beginning to its end, and given back as a whole. */
struct region {
	unsigned char *bytes;
	size_t size, used;
};

/* The saved bytes and the values that were loaded. */
struct snapshot {
	struct region saved;
	size_t at;
	unsigned char (*values)[VALUE];
	size_t loaded;
};

static struct region region_make(size_t size)
{
	struct region region = {aligned_alloc(4096, (size + 4095) & ~(size_t)4095), size, 0};

	layer_check(region.bytes ? 0 : WW_ENOMEM, "memory");
	memset(region.bytes, 1, size);
	return region;
}

static void *region_take(void *user, size_t size)
{
	struct region *region = user;
	void *taken = region->bytes + region->used;

	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (size > region->size - region->used)
		return NULL;
	region->used += size;
	return taken;
}

static void region_give(void *user, void *block, size_t size)
{
	(void)user;
	(void)block;
	(void)size;
}

static int write_bytes(const void *bytes, size_t size, void *context)
{
	struct region *saved = &((struct snapshot *)context)->saved;

	if (size > saved->size - saved->used)
		return WW_EFULL;
	memcpy(saved->bytes + saved->used, bytes, size);
	saved->used += size;
	return 0;
}

static int read_bytes(void *bytes, size_t size, void *context)
{
	struct snapshot *snapshot = context;
	size_t left = snapshot->saved.used - snapshot->at;

	if (size > left)
		size = left;
	memcpy(bytes, snapshot->saved.bytes + snapshot->at, size);
	snapshot->at += size;
	return (int)size;
}

static int encode(void *value, void *bytes, size_t *size, void *context)
{
	(void)context;
	if (*size >= VALUE)
		memcpy(bytes, value, VALUE);
	*size = VALUE;
	return 0;
}

static int decode(const void *bytes, size_t size, void **value, void *context)
{
	struct snapshot *snapshot = context;

	*value = memcpy(snapshot->values[snapshot->loaded++], bytes, size);
	return 0;
}

/* A map in a region, on a driver of its own. */
static void open_map(
    struct region *region, const struct ww_allocator *allocator, struct ww_driver **driver, struct ww_session **session)
{
	struct ww_driver_config config;

	region->used = 0;
	layer_check(ww_driver_config_default(&config), "the driver");
	config.flags = WW_DRIVER_THREADLESS;
	config.allocator = allocator;
	layer_check(ww_driver_create(driver, &config), "the driver");
	layer_check(ww_session_create(session, *driver, NULL), "the session map");
}

static void close_map(struct ww_driver *driver, struct ww_session *session)
{
	layer_check(ww_session_destroy(session), "the session map");
	layer_check(ww_driver_destroy(driver), "the driver");
}

static void fill(struct ww_session *session, uint64_t n, uint64_t seed, unsigned char (*values)[VALUE])
{
	unsigned char key[16];

	for (uint64_t i = 0; i < n; i++) {
		layer_key(i, seed, key);
		/* Values lie in an order unrelated to that of the entries. */
		void *value = values[i * UINT64_C(2654435761) % n];
		layer_check(ww_session_set(session, key, sizeof key, value, 0, NULL), "a session");
	}
}

struct layer_sample layer_restart(uint64_t n, uint64_t seed)
{
	struct region memory = region_make((size_t)n * 200 + ((size_t)64 << 20));
	const struct ww_allocator allocator = {region_take, region_give, &memory};
	struct region values = region_make((size_t)n * 2 * VALUE);
	struct snapshot snapshot = {.saved = region_make((size_t)n * (25 + 16 + VALUE) + 4096)};
	const struct ww_session_writer writer = {.write = write_bytes, .encode = encode, .context = &snapshot};
	const struct ww_session_reader reader = {.read = read_bytes, .decode = decode, .context = &snapshot};
	struct ww_driver *driver;
	struct ww_session *session;
	struct ww_session_loaded loaded;
	struct layer_sample sample;
	uint64_t begin;

	snapshot.values = (void *)(values.bytes + (size_t)n * VALUE);
	open_map(&memory, &allocator, &driver, &session);
	fill(session, n, seed, (void *)values.bytes);
	begin = time_now(CLOCK_MONOTONIC);
	layer_check(ww_session_save(session, &writer, NULL), "saving");
	sample.first = (double)(time_now(CLOCK_MONOTONIC) - begin) / (double)n;
	close_map(driver, session);
	open_map(&memory, &allocator, &driver, &session);
	begin = time_now(CLOCK_MONOTONIC);
	layer_check(ww_session_load(session, &reader, &loaded), "loading");
	sample.second = (double)(time_now(CLOCK_MONOTONIC) - begin) / (double)n;
	layer_check(loaded.entries == n ? 0 : WW_ESTALE, "a session was lost");
	close_map(driver, session);
	free(memory.bytes);
	free(values.bytes);
	free(snapshot.saved.bytes);
	return sample;
}
