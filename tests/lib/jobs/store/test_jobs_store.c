/*
 * Random changes of a store on disk and of one in memory: both must always read alike. The layers of the one on disk are
 * small, its clock runs through weeks, and it is closed and opened again: jobs go through journal, slots and edges.
 *
 * WW_STORE_ROUNDS sets the number of batches, WW_SEED the seed, which is printed.
 */
/* tier: check, threads */

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/jobs/local/local.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

enum { JOBS = 30000, BATCH = 60, LIVING = 2500 };

#define HOUR (3600 * WW_SECOND)
#define START (UINT64_C(490000) * HOUR)

struct place {
	enum store_table table; /* 0: the job has ended */
	uint64_t due;
};

static uint64_t random_state;
static struct store disk, memory;
static struct ww_jobs_config config;
static struct place jobs[JOBS], saved[JOBS];
static uint64_t now;

static uint64_t below(uint64_t most)
{
	return seed_below(&random_state, most);
}

static struct store_bytes key_of(unsigned char key[20], struct place place, uint64_t id)
{
	memset(key, 0, 20);
	if (place.table == STORE_BURIED)
		store_write64(key + 4, place.due);
	else
		store_write64(key, place.due);
	store_write64(key + (place.table == STORE_BURIED ? 12 : 8), id);
	return (struct store_bytes){key, place.table == STORE_BURIED ? 20 : 16};
}

static void put_both(enum store_table table, struct store_bytes key, struct store_bytes value)
{
	ck_assert_int_eq(disk.ops->put(disk.self, table, key, value), WW_OK);
	ck_assert_int_eq(memory.ops->put(memory.self, table, key, value), WW_OK);
}

static void remove_both(enum store_table table, struct store_bytes key)
{
	ck_assert_int_eq(disk.ops->remove(disk.self, table, key), WW_OK);
	ck_assert_int_eq(memory.ops->remove(memory.self, table, key), WW_OK);
}

/* Soon, within the hours at hand, within the week, rarely later; on either clock, or buried. */
static struct place some_place(void)
{
	static const uint64_t spans[] = {60 * WW_SECOND, HOUR, 3 * HOUR, 168 * HOUR, 2000 * HOUR};
	struct place place = {.table = STORE_DUE, .due = now + below(spans[below(5)])};

	if (below(6) == 0)
		place.due = (now + below(5 * HOUR)) / HOUR * HOUR;
	/* Many in a few slots. */
	if (below(3) == 0)
		place.due = START + (now - START) / (100 * HOUR) * 100 * HOUR + 200 * HOUR + below(2 * HOUR);
	if (below(4) == 0)
		place.table = STORE_WALL;
	if (below(10) == 0)
		place.table = STORE_BURIED;
	return place;
}

static void write_job(uint64_t id, struct place place)
{
	unsigned char key[20], value[60], id_key[8], where[13];
	struct store_bytes to = key_of(key, place, id);

	memset(value, (int)below(256), sizeof value);
	put_both(place.table, to, (struct store_bytes){value, 1 + below(sizeof value)});
	where[0] = (unsigned char)place.table;
	memcpy(where + 1, key, to.size - 8);
	store_write64(id_key, id);
	put_both(STORE_JOBS, (struct store_bytes){id_key, 8}, (struct store_bytes){where, 1 + to.size - 8});
	jobs[id] = place;
}

static void change_job(uint64_t id)
{
	unsigned char key[20], id_key[8];
	struct place was = jobs[id];

	store_write64(id_key, id);
	if (below(4) == 0) {
		write_job(id, was);
		return;
	}
	remove_both(was.table, key_of(key, was, id));
	if (below(2)) {
		remove_both(STORE_JOBS, (struct store_bytes){id_key, 8});
		jobs[id].table = STORE_META;
		return;
	}
	write_job(id, some_place());
}

/* ---- Reading */

typedef int read_fn(
    void *store, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value);

static void expect_alike(int error, int other, const struct store_bytes pair[2], const struct store_bytes expected[2])
{
	ck_assert_int_eq(error, other);
	for (int i = 0; i < 2 && !error; i++)
		ck_assert_int_eq(store_compare(pair[i], expected[i]), 0);
}

static void walk_both(enum store_table table, struct store_bytes from, size_t most)
{
	struct store_bytes a[2], b[2];
	int error = disk.ops->seek(disk.self, table, from, &a[0], &a[1]);
	int other = memory.ops->seek(memory.self, table, from, &b[0], &b[1]);

	expect_alike(error, other, a, b);
	for (size_t i = 0; i < most && !error; i++) {
		error = disk.ops->next(disk.self, table, &a[0], &a[1]);
		other = memory.ops->next(memory.self, table, &b[0], &b[1]);
		expect_alike(error, other, a, b);
	}
}

static void read_both(uint64_t next_id)
{
	static const enum store_table tables[] = {STORE_JOBS, STORE_DUE, STORE_DUE, STORE_WALL, STORE_BURIED};
	enum store_table table = tables[below(5)];
	struct place place = some_place();
	struct store_bytes key, a[2], b[2];
	unsigned char bytes[20];
	uint64_t id = below(next_id + 2);

	place.table = table;
	if (table == STORE_JOBS) {
		store_write64(bytes, id);
		key = (struct store_bytes){bytes, 8};
	} else
		key = key_of(bytes, id < next_id && jobs[id].table == table && below(2) ? jobs[id] : place, id);
	a[0] = b[0] = key;
	int error = disk.ops->get(disk.self, table, key, &a[1]);
	int other = memory.ops->get(memory.self, table, key, &b[1]);
	expect_alike(error, other, a, b);
	if (table != STORE_JOBS && below(3) == 0)
		key.size = below(17);
	error = disk.ops->before(disk.self, table, key, &a[0], &a[1]);
	other = memory.ops->before(memory.self, table, key, &b[0], &b[1]);
	expect_alike(error, other, a, b);
	walk_both(table, key, below(8));
}

static void rest_both(void)
{
	disk.ops->rest(disk.self);
	memory.ops->rest(memory.self);
}

static void read_all(void)
{
	for (int table = 0; table < STORE_TABLES; table++)
		walk_both((enum store_table)table, (struct store_bytes){"", 0}, SIZE_MAX);
	rest_both();
}

/* ---- A run */

static void pass(void)
{
	static const uint64_t spans[] = {WW_SECOND, 60 * WW_SECOND, 600 * WW_SECOND, 2 * HOUR, 30 * HOUR};

	now += below(spans[below(below(16) ? 3 : 5)]);
	disk.ops->set_time(disk.self, now, now + HOUR / 3);
}

static uint64_t batch(uint64_t next_id)
{
	uint64_t before = next_id;

	ck_assert_int_eq(disk.ops->begin(disk.self), WW_OK);
	ck_assert_int_eq(memory.ops->begin(memory.self), WW_OK);
	memcpy(saved, jobs, sizeof jobs);
	for (uint64_t left = below(BATCH); left; left--) {
		uint64_t oldest = next_id > LIVING ? next_id - LIVING : 1;
		uint64_t id = oldest + below(next_id - oldest + 1);
		if (id < next_id && jobs[id].table)
			change_job(id);
		else if (next_id < JOBS)
			write_job(next_id++, some_place());
		if (below(8) == 0)
			read_both(next_id);
	}
	if (below(10)) {
		ck_assert_int_eq(disk.ops->commit(disk.self), WW_OK);
		ck_assert_int_eq(memory.ops->commit(memory.self), WW_OK);
		return next_id;
	}
	disk.ops->abort(disk.self);
	memory.ops->abort(memory.self);
	memcpy(jobs, saved, sizeof jobs);
	return before;
}

static void remove_folder(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		(void)unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	(void)rmdir(path);
}

START_TEST(a_store_on_disk_reads_like_one_in_memory)
{
	const char *rounds = getenv("WW_STORE_ROUNDS");
	char folder[] = "/tmp/weekwheel-store-XXXXXX";
	uint64_t next_id = 1;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	random_state = seed_of_run("test_jobs_store");
	now = START;
	ww_store_sizes = (struct store_sizes){20000, 100000, 40, 5};
	config = (struct ww_jobs_config){
	    .path = folder, .allocator = ww_allocator_default(), .sync = WW_SYNC_SYSTEM, .window = WW_SECOND};
	ck_assert_int_eq(ww_store_disk_open(&disk, &config), WW_OK);
	ck_assert_int_eq(ww_store_memory_open(&memory, &config), WW_OK);
	for (uint64_t left = rounds ? strtoull(rounds, NULL, 0) : 1500; left; left--) {
		pass();
		next_id = batch(next_id);
		for (uint64_t reads = below(20); reads; reads--)
			read_both(next_id);
		rest_both();
		if (below(100) == 0)
			read_all();
		if (below(200))
			continue;
		ck_assert_int_eq(disk.ops->close(disk.self), WW_OK);
		ck_assert_int_eq(ww_store_disk_open(&disk, &config), WW_OK);
		read_all();
	}
	read_all();
	ck_assert_int_eq(disk.ops->close(disk.self), WW_OK);
	ck_assert_int_eq(memory.ops->close(memory.self), WW_OK);
	remove_folder(folder);
}
END_TEST

TEST_MAIN("jobs/store", a_store_on_disk_reads_like_one_in_memory)
