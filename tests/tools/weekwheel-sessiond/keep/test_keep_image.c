/* What an image has, in which order, and what becomes of the journal: also when it cannot be written. */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/journal/names.h"
#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

#define END (60 * WW_SECOND)

static char folder[64];
static struct outbox *outbox;
static struct data *data;
static struct keep *keep;

static void begin(int reports)
{
	const struct data_config config = {
	    .databases = 3, .is_virtual = 1, .has_lifetimes = 1, .stays_ended = 30 * WW_SECOND};

	(void)snprintf(folder, sizeof folder, "/tmp/weekwheel-image-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	outbox = outbox_open(1 << 20);
	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	keep = keep_open(data, &(struct keep_config){.folder = folder,
	                           .sync = KEEP_SYSTEM,
	                           .interval = WW_SECOND,
	                           .grows = UINT64_C(1) << 30,
	                           .outbox = outbox,
	                           .reports = reports});
	ck_assert_ptr_nonnull(keep);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(data_select(data, i), WW_OK);
}

static void leave(void)
{
	ck_assert_int_eq(keep_close(keep), 0);
	data_leave(data);
	data_close(data);
	outbox_close(outbox);
}

static void end(void)
{
	char command[128];

	(void)snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c) */
}

static void set(unsigned database, const char *name, uint64_t ttl, uint64_t lifetime)
{
	const struct data_key key = {database, name, strlen(name)};
	const struct data_times times = {.ttl = ttl, .end = lifetime ? data_now(data) + lifetime : DATA_NEVER};

	ck_assert_int_eq(data_set(data, &key, name, strlen(name), &times), WW_OK);
}

static const char *path_of(const char *name)
{
	static char path[sizeof folder + 32];

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

/* The keep itself tries again, too, where one has failed. */
static int save(void)
{
	int error;

	do
		error = data_save(data, 1);
	while (error == WW_EBUSY);
	return error;
}

/* ---- Reading it again */

enum { BYTES = 8 << 20 };

static struct image {
	uint64_t flags;
	uint64_t cut;
	int blocks; /* with entries */
	size_t size;
	unsigned char entries[BYTES]; /* of all blocks, one after the other */
} image;

/* Each sum goes on from the one before, and nothing comes behind the empty block. */
static void read_image(void)
{
	static unsigned char bytes[BYTES];
	FILE *file = fopen(path_of("sessions"), "rb");
	size_t size;
	size_t at = KEEP_HEAD;
	size_t block;
	uint64_t sum;

	ck_assert_ptr_nonnull(file);
	size = fread(bytes, 1, sizeof bytes, file);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_uint_gt(size, KEEP_HEAD);
	ck_assert_mem_eq(bytes, KEEP_MAGIC, 8);
	ck_assert_uint_eq(keep_format_get(bytes + 8, 4), KEEP_VERSION);
	image.flags = keep_format_get(bytes + 12, 4);
	image.cut = keep_format_get(bytes + 16, 8);
	image.size = 0;
	image.blocks = 0;
	sum = keep_format_sum(0, bytes, KEEP_HEAD - 8);
	ck_assert_uint_eq(keep_format_get(bytes + KEEP_HEAD - 8, 8), sum);
	do {
		block = (size_t)keep_format_get(bytes + at, 8);
		ck_assert_uint_le(at + KEEP_BLOCK_HEAD + block, size);
		sum = keep_format_sum(sum, bytes + at + KEEP_BLOCK_HEAD, block);
		ck_assert_uint_eq(keep_format_get(bytes + at + 8, 8), sum);
		memcpy(image.entries + image.size, bytes + at + KEEP_BLOCK_HEAD, block);
		image.size += block;
		image.blocks += block > 0;
		at += KEEP_BLOCK_HEAD + block;
	} while (block > 0);
	ck_assert_uint_eq(at, size);
}

/* Its kinds in their order, each repetition once: "clock delivered set delivered ended". */
static void show_kinds(char text[200])
{
	static const char *const names[] = {[KEEP_SET] = "set",
	    [KEEP_LAST] = "last",
	    [KEEP_WAIT] = "wait",
	    [KEEP_DELIVERED] = "delivered",
	    [KEEP_CLOCK] = "clock",
	    [KEEP_ENDED] = "ended"};
	struct keep_entry entry;
	int kind = 0;

	*text = 0;
	for (size_t at = 0, size; at < image.size; at += size) {
		size = keep_format_read(image.entries + at, image.size - at, &entry);
		ck_assert_uint_ne(size, 0);
		if ((int)entry.kind != kind)
			(void)sprintf(text + strlen(text), "%s%s", *text ? " " : "", names[entry.kind]);
		kind = (int)entry.kind;
	}
}

/* Returns how many entries are about that key; *found gets the last one. */
static int find(const char *name, struct keep_entry *found)
{
	struct keep_entry entry;
	int count = 0;

	for (size_t at = 0, size; at < image.size; at += size) {
		size = keep_format_read(image.entries + at, image.size - at, &entry);
		ck_assert_uint_ne(size, 0);
		if (entry.length != strlen(name) || memcmp(entry.key, name, entry.length) != 0)
			continue;
		*found = entry;
		count++;
	}
	return count;
}

/* Read again what there is of a session: its database, value and times, in ns from `since` on. */
static void expect(
    const char *name, enum keep_kind kind, unsigned database, uint64_t ttl, uint64_t deadline, uint64_t over)
{
	struct keep_entry entry;
	uint64_t now = (uint64_t)data_steady_ms(data);

	ck_assert_msg(find(name, &entry) == 1, "%s is not there once", name);
	ck_assert_int_eq(entry.kind, kind);
	ck_assert_uint_eq(entry.database, database);
	ck_assert_uint_eq(entry.size, strlen(name));
	ck_assert_mem_eq(entry.value, name, entry.size);
	ck_assert_uint_eq(entry.ttl, ttl);
	ck_assert_uint_eq(entry.deadline, deadline == DATA_NEVER ? DATA_NEVER : now + deadline / WW_MILLISECOND);
	ck_assert_uint_eq(entry.end, over == DATA_NEVER ? DATA_NEVER : now + over / WW_MILLISECOND);
}

/* ---- What is in it */

START_TEST(it_has_each_session_with_its_times)
{
	struct keep_entry entry;

	begin(0);
	set(0, "ever", DATA_NEVER, 0);
	set(1, "idle", 20 * WW_SECOND, 0);
	set(2, "both", 20 * WW_SECOND, 50 * WW_SECOND);
	set(2, "gone", 20 * WW_SECOND, 0);
	ck_assert_int_eq(data_delete(data, &(struct data_key){2, "gone", 4}), 1);
	ck_assert_int_eq(save(), WW_OK);
	read_image();
	ck_assert_uint_eq(image.flags, 0);
	expect("ever", KEEP_SET, 0, DATA_NEVER, DATA_NEVER, DATA_NEVER);
	expect("idle", KEEP_SET, 1, 20 * WW_SECOND, 20 * WW_SECOND, DATA_NEVER);
	expect("both", KEEP_SET, 2, 20 * WW_SECOND, 20 * WW_SECOND, 50 * WW_SECOND);
	ck_assert_int_eq(find("gone", &entry), 0);
	leave();
	end();
}
END_TEST

/* It has the deadline on disk, and only the last one that in the map, too. */
START_TEST(a_touch_that_was_left_out_shows_in_the_last_one)
{
	const struct data_key key = {0, "idle", 4};
	struct data_entry entry;
	struct keep_entry found;
	uint64_t begun;

	begin(0);
	set(0, "idle", 100 * WW_SECOND, 0);
	begun = (uint64_t)data_steady_ms(data);
	ck_assert_int_eq(data_advance(data, WW_SECOND), WW_OK);
	ck_assert_int_eq(data_inspect(data, &key, &entry, NULL, NULL), 1);
	ck_assert_int_eq(data_touch(data, &key, &entry, 100 * WW_SECOND, 0), 1);
	ck_assert_int_eq(save(), WW_OK);
	read_image();
	ck_assert_int_eq(find("idle", &found), 1);
	ck_assert_int_eq(found.kind, KEEP_SET);
	ck_assert_uint_eq(found.deadline, begun + 100000);
	leave();
	read_image();
	ck_assert_uint_eq(image.flags, KEEP_EXACT);
	ck_assert_int_eq(find("idle", &found), 1);
	ck_assert_int_eq(found.kind, KEEP_LAST);
	ck_assert_uint_eq(found.deadline, begun + 100000);
	ck_assert_uint_eq(found.expiry, begun + 101000);
	end();
}
END_TEST

START_TEST(many_sessions_take_many_blocks)
{
	enum { MANY = 5000 };
	struct keep_entry entry;
	char name[40];

	begin(0);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "a session with the number %d", i);
		set((unsigned)i % 3, name, END, 0);
	}
	ck_assert_int_eq(save(), WW_OK);
	read_image();
	ck_assert_int_gt(image.blocks, 5);
	for (int i = 0; i < MANY; i += 100) {
		(void)snprintf(name, sizeof name, "a session with the number %d", i);
		ck_assert_int_eq(find(name, &entry), 1);
		ck_assert_uint_eq(entry.database, (unsigned)i % 3);
	}
	leave();
	end();
}
END_TEST

/* What has ended lately comes behind all sessions, some of which may have ended during the walk. */
START_TEST(what_is_recalled_comes_last)
{
	struct keep_entry entry;
	uint64_t now;
	char kinds[200];

	begin(0);
	set(0, "stays", DATA_NEVER, 0);
	set(1, "ended", DATA_NEVER, 5 * WW_SECOND);
	now = (uint64_t)data_steady_ms(data);
	ck_assert_int_eq(data_advance(data, 10 * WW_SECOND), WW_OK);
	ck_assert_int_eq(save(), WW_OK);
	read_image();
	show_kinds(kinds);
	ck_assert_str_eq(kinds, "clock delivered set delivered ended");
	ck_assert_int_eq(find("ended", &entry), 1);
	ck_assert_uint_eq(entry.database, 1);
	ck_assert_uint_eq(entry.end, now + 5000);
	ck_assert_uint_eq(entry.deadline, now + 35000);
	leave();
	end();
}
END_TEST

/* What waits to be delivered is ahead of the sessions: a load would else take it for the end of one that was set again. */
START_TEST(what_waits_to_be_delivered_comes_first)
{
	struct outbox_item item = {.why = WW_GONE_EXPIRED, .key = "waits", .length = 5, .value = "v", .size = 1};
	struct keep_entry entry;
	char kinds[200];

	begin(1);
	ck_assert_uint_ne(outbox_add(outbox, &item), 0);
	set(0, "stays", DATA_NEVER, 0);
	ck_assert_int_eq(save(), WW_OK);
	read_image();
	show_kinds(kinds);
	ck_assert_int_eq(strncmp(kinds, "clock delivered wait set", 24), 0);
	ck_assert_int_eq(find("waits", &entry), 1);
	ck_assert_int_eq(entry.kind, KEEP_WAIT);
	leave();
	end();
}
END_TEST

/* ---- The journal beside it */

/* The number of its last file, and how many there are. */
static int files(uint64_t *last)
{
	uint64_t numbers[16];
	int count = ww_journal_numbers(keep->folder, ".", numbers, 16);

	*last = count > 0 ? numbers[count - 1] : 0;
	return count;
}

START_TEST(the_journal_before_it_is_cut)
{
	uint64_t before;
	uint64_t after;

	begin(0);
	set(0, "a", END, 0);
	ck_assert_int_eq(data_settle(data), WW_OK);
	ck_assert_int_ge(files(&before), 1);
	ck_assert_int_eq(save(), WW_OK);
	ck_assert_int_eq(files(&after), 1);
	ck_assert_uint_eq(after, before + 1);
	read_image();
	ck_assert_uint_eq(image.cut, before);
	leave();
	end();
}
END_TEST

/* A folder has the name that it would have while it is written. */
START_TEST(one_that_cannot_be_written_changes_nothing)
{
	struct keep_entry entry;
	uint64_t first;
	uint64_t last;
	int count;

	begin(0);
	set(0, "a", END, 0);
	ck_assert_int_eq(save(), WW_OK);
	set(0, "b", END, 0);
	ck_assert_int_eq(mkdir(path_of("sessions.new"), 0700), 0);
	ck_assert_int_ne(save(), WW_OK);
	count = files(&first);
	ck_assert_int_eq(count, 2);
	/* The next attempt goes on in the file that was begun. */
	ck_assert_int_ne(save(), WW_OK);
	ck_assert_int_eq(files(&last), count);
	ck_assert_uint_eq(last, first);
	read_image();
	ck_assert_int_eq(find("a", &entry), 1);
	ck_assert_int_eq(find("b", &entry), 0);
	ck_assert_int_eq(rmdir(path_of("sessions.new")), 0);
	ck_assert_int_eq(save(), WW_OK);
	ck_assert_int_eq(access(path_of("sessions.new"), F_OK), -1);
	ck_assert_int_eq(files(&last), 1);
	read_image();
	ck_assert_int_eq(find("b", &entry), 1);
	leave();
	end();
}
END_TEST

/* It would take room that the journal needs. */
START_TEST(one_that_gets_no_name_is_removed)
{
	char kept[sizeof folder + 32];

	begin(0);
	set(0, "a", END, 0);
	(void)snprintf(kept, sizeof kept, "%s", path_of("kept"));
	ck_assert_int_eq(rename(path_of("sessions"), kept), 0);
	ck_assert_int_eq(mkdir(path_of("sessions"), 0700), 0);
	ck_assert_int_ne(save(), WW_OK);
	ck_assert_int_eq(access(path_of("sessions.new"), F_OK), -1);
	ck_assert_int_eq(rmdir(path_of("sessions")), 0);
	ck_assert_int_eq(rename(kept, path_of("sessions")), 0);
	ck_assert_int_eq(save(), WW_OK);
	leave();
	end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/keep_image", it_has_each_session_with_its_times,
    a_touch_that_was_left_out_shows_in_the_last_one, many_sessions_take_many_blocks, what_is_recalled_comes_last,
    what_waits_to_be_delivered_comes_first, the_journal_before_it_is_cut, one_that_cannot_be_written_changes_nothing,
    one_that_gets_no_name_is_removed)
