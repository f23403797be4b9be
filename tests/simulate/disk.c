/* The simulated disk. */
#include "tests/simulate/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "tests/simulate/world.h"

enum { SECTOR = 512, NAME = 64, NAMES = 64 };

/* What was written that is not stable yet: bytes, or (data NULL) another size. */
struct change {
	struct change *next;
	uint64_t time;
	uint64_t offset; /* or the size */
	size_t size;
	int is_claimed; /* a sync has said that it is stable */
	unsigned char data[];
};

struct content {
	unsigned char *data;
	uint64_t size;
	uint64_t room;
};

struct file {
	struct file *next;
	uint64_t number;
	int is_folder;
	int users;
	int lock; /* whose; -1: nobody's */
	char path[NAME];
	struct content live, stable;
	struct change *first, **last;
};

struct name {
	char path[NAME];
	struct file *file;
};

struct names {
	struct name name[NAMES];
	unsigned count;
};

/* A change of a name: file NULL removes it. A rename is two that stay together. */
struct naming {
	struct naming *next;
	char folder[NAME];
	char from[NAME]; /* of a rename */
	char path[NAME];
	struct file *file;
	int is_claimed;
	uint64_t time;
};

struct disk_faults disk_faults;
struct disk_counts disk_counts;
void (*disk_before)(int is_name);
void (*disk_sync_failed)(const char *path);

static struct file *files;
static uint64_t numbers;
static struct names live, stable;
static struct naming *namings, **last_naming = &namings;
static int lost_claimed; /* a change is lost that a sync had reported */
static int flushes;      /* the system will write back what is old */

/* ---- Contents */

static void fit(struct content *content, uint64_t size)
{
	if (size > content->room) {
		uint64_t room = size + size / 2 + 4096;
		content->data = realloc(content->data, room);
		content->room = room;
	}
	if (size > content->size)
		memset(content->data + content->size, 0, size - content->size);
	content->size = size;
}

static void copy(struct content *to, const struct content *from)
{
	fit(to, from->size);
	if (from->size)
		memcpy(to->data, from->data, from->size);
}

static void put_bytes(struct content *content, uint64_t offset, const void *bytes, size_t size)
{
	if (offset + size > content->size)
		fit(content, offset + size);
	memcpy(content->data + offset, bytes, size);
}

static void apply(struct content *content, const struct change *change)
{
	if (change->size)
		put_bytes(content, change->offset, change->data, change->size);
	else
		fit(content, change->offset);
}

static void note(struct file *file, uint64_t offset, const void *bytes, size_t size)
{
	struct change *change = malloc(sizeof *change + size);

	*change = (struct change){.time = world.now, .offset = offset, .size = size};
	if (size)
		memcpy(change->data, bytes, size);
	*file->last = change;
	file->last = &change->next;
	apply(&file->live, change);
}

static void forget_changes(struct file *file)
{
	struct change *next;

	for (struct change *change = file->first; change; change = next) {
		next = change->next;
		free(change);
	}
	file->first = NULL;
	file->last = &file->first;
}

/* ---- Names */

static struct file *find(const struct names *names, const char *path)
{
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(names->name[i].path, path) == 0)
			return names->name[i].file;
	return NULL;
}

static void set_name(struct names *names, const char *path, struct file *file)
{
	unsigned i = 0;

	while (i < names->count && strcmp(names->name[i].path, path) != 0)
		i++;
	if (!file && i < names->count) {
		memmove(&names->name[i], &names->name[i + 1], (names->count - i - 1) * sizeof names->name[0]);
		names->count--;
	} else if (file) {
		if (i == NAMES)
			abort();
		names->count += i == names->count;
		memcpy(names->name[i].path, path, strlen(path) + 1);
		names->name[i].file = file;
	}
}

static void folder_of(const char *path, char folder[NAME])
{
	const char *end = strrchr(path, '/');

	(void)snprintf(folder, NAME, "%.*s", (int)(end - path), path);
}

static void apply_naming(struct names *names, const struct naming *naming)
{
	if (*naming->from)
		set_name(names, naming->from, NULL);
	set_name(names, naming->path, naming->file);
}

static void name_file(const char *from, const char *path, struct file *file)
{
	struct naming *naming = calloc(1, sizeof *naming);

	folder_of(path, naming->folder);
	memcpy(naming->path, path, strlen(path) + 1);
	if (from)
		memcpy(naming->from, from, strlen(from) + 1);
	naming->file = file;
	naming->time = world.now;
	*last_naming = naming;
	last_naming = &naming->next;
	apply_naming(&live, naming);
	if (file)
		memcpy(file->path, path, strlen(path) + 1);
}

/* Make changes of names in that folder (NULL: in any) stable that are older than that. */
static void settle_names(const char *folder, uint64_t before)
{
	struct naming **at = &namings;

	while (*at) {
		struct naming *naming = *at;
		if ((folder && strcmp(naming->folder, folder) != 0) || naming->time > before) {
			at = &naming->next;
			continue;
		}
		apply_naming(&stable, naming);
		*at = naming->next;
		free(naming);
	}
	last_naming = at;
}

/* ---- Files that nobody knows any more */

static int is_known(const struct file *file)
{
	if (file->users)
		return 1;
	for (unsigned i = 0; i < live.count; i++)
		if (live.name[i].file == file)
			return 1;
	for (unsigned i = 0; i < stable.count; i++)
		if (stable.name[i].file == file)
			return 1;
	for (const struct naming *naming = namings; naming; naming = naming->next)
		if (naming->file == file)
			return 1;
	return 0;
}

static void drop_unknown(void)
{
	struct file **at = &files;

	while (*at) {
		struct file *file = *at;
		if (is_known(file)) {
			at = &file->next;
			continue;
		}
		*at = file->next;
		forget_changes(file);
		free(file->live.data);
		free(file->stable.data);
		free(file);
	}
}

static struct file *make_file(int is_folder)
{
	struct file *file = calloc(1, sizeof *file);

	file->next = files;
	files = file;
	file->number = ++numbers;
	file->is_folder = is_folder;
	file->lock = -1;
	file->last = &file->first;
	return file;
}

void disk_begin(void)
{
	disk_faults = (struct disk_faults){0};
	disk_counts = (struct disk_counts){0};
	numbers = 0;
	flushes = 0;
	lost_claimed = 0;
	name_file(NULL, "/sim", make_file(1));
	settle_names(NULL, SIM_NEVER);
}

void disk_release(void)
{
	for (struct file *file = files; file; file = file->next) {
		file->users = 0;
		file->lock = -1;
	}
	drop_unknown();
}

void disk_end(void)
{
	settle_names(NULL, SIM_NEVER);
	live.count = stable.count = 0;
	disk_release();
}

/* ---- Writing back: the system makes stable what is older than half a minute, as Linux does by default */

static void write_back(void *context, uint64_t number)
{
	uint64_t before = world.now > 30 * SIM_S ? world.now - 30 * SIM_S : 0;

	(void)context;
	(void)number;
	flushes = 0;
	for (struct file *file = files; file; file = file->next) {
		while (file->first && file->first->time <= before) {
			struct change *change = file->first;
			apply(&file->stable, change);
			file->first = change->next;
			free(change);
		}
		if (!file->first)
			file->last = &file->first;
		else
			flushes = 1;
	}
	settle_names(NULL, before);
	flushes |= namings != NULL;
	if (flushes)
		world_at(world.now + 5 * SIM_S, write_back, NULL, 0);
}

static void changed(const struct file *file, const char *what, uint64_t a, uint64_t b)
{
	world_trace(what, file ? file->number << 40 | a : a, b);
	disk_counts.writes++;
	if (!flushes && !world.is_ghost)
		world_at(world.now + world_between(30 * SIM_S, 35 * SIM_S), write_back, NULL, 0);
	flushes = 1;
}

/* ---- Calls. A dead server changes nothing. */

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Whether the change can begin; if not, errno says why. */
static int may_change(uint64_t grows, int is_name)
{
	world_sleep(world_between(1, 20) * SIM_US);
	if (disk_before && !world.is_ghost)
		disk_before(is_name);
	if (world.is_ghost)
		return fail(EIO);
	if (disk_faults.write_eio && world_chance(disk_faults.write_eio)) {
		disk_counts.failed_writes++;
		world_trace("write fails", 0, 0);
		return fail(EIO);
	}
	if (disk_faults.is_very_full || (disk_faults.is_full && grows)) {
		disk_counts.full++;
		world_trace("disk full", grows, 0);
		return fail(ENOSPC);
	}
	return 0;
}

struct file *disk_open(const char *path, int flags)
{
	struct file *file = find(&live, path);
	char folder[NAME];

	if (file && flags & O_CREAT && flags & O_EXCL) {
		errno = EEXIST;
		return NULL;
	}
	if (!file) {
		folder_of(path, folder);
		errno = ENOENT;
		if (!(flags & O_CREAT) || !find(&live, folder) || may_change(1, 1) < 0)
			return NULL;
		file = make_file(0);
		name_file(NULL, path, file);
		changed(file, "create", 0, 0);
	}
	if (flags & O_TRUNC && disk_resize(file, 0) < 0)
		return NULL;
	return file;
}

void disk_use(struct file *file, int users)
{
	file->users += users;
	if (file->users <= 0)
		drop_unknown();
}

ssize_t disk_read(struct file *file, void *bytes, size_t size, uint64_t offset)
{
	if (disk_faults.read_eio && world_chance(disk_faults.read_eio)) {
		world_trace("read fails", file->number, offset);
		return fail(EIO);
	}
	if (offset >= file->live.size)
		return 0;
	if (size > file->live.size - offset)
		size = file->live.size - offset;
	memcpy(bytes, file->live.data + offset, size);
	return (ssize_t)size;
}

ssize_t disk_write(struct file *file, const void *bytes, size_t size, uint64_t offset)
{
	uint64_t grows = offset + size > file->live.size;

	if (may_change(grows, 0) < 0) {
		/* A part of it had room. */
		if (errno != ENOSPC || disk_faults.is_very_full || size < 2 || world_chance(500))
			return -1;
		size = world_between(1, size - 1);
	}
	if (!size)
		return 0;
	note(file, offset, bytes, size);
	changed(file, "write", offset, (uint64_t)size << 32 | ww_crc32c(0, bytes, size));
	return (ssize_t)size;
}

int disk_resize(struct file *file, uint64_t size)
{
	if (size == file->live.size)
		return 0;
	if (may_change(size > file->live.size, 0) < 0)
		return -1;
	note(file, size, NULL, 0);
	changed(file, "resize", size, 0);
	return 0;
}

int disk_allocate(struct file *file, uint64_t end)
{
	return end <= file->live.size ? 0 : disk_resize(file, end);
}

static void make_stable(struct file *file)
{
	for (struct change *change = file->first; change; change = change->next)
		apply(&file->stable, change);
	forget_changes(file);
	if (file->is_folder)
		settle_names(file->path, SIM_NEVER);
}

static void claim(struct file *file)
{
	for (struct change *change = file->first; change; change = change->next)
		change->is_claimed = 1;
	for (struct naming *naming = namings; naming && file->is_folder; naming = naming->next)
		naming->is_claimed |= strcmp(naming->folder, file->path) == 0;
}

static void keep_some(struct file *file);

/* The system forgets what it could not write: a later sync does not write it either. */
static int sync_fails(struct file *file)
{
	world_trace("sync fails", file->number, 0);
	disk_counts.failed_syncs++;
	if (!file->is_folder) {
		disk_sync_failed(file->path);
		keep_some(file);
		if (world_chance(300))
			copy(&file->live, &file->stable);
	}
	return fail(EIO);
}

int disk_sync(struct file *file)
{
	int is_slow = disk_faults.slow && world_chance(disk_faults.slow);

	if (disk_before && !world.is_ghost)
		disk_before(0);
	if (world.is_ghost)
		return fail(EIO);
	/* What is written meanwhile may be stable afterwards, or not. */
	world_sleep(is_slow ? world_below(SIM_S) : world_between(50 * SIM_US, 2 * SIM_MS));
	if (world.is_ghost)
		return fail(EIO);
	disk_counts.syncs++;
	if (disk_faults.sync_eio && world_chance(disk_faults.sync_eio))
		return sync_fails(file);
	if (disk_faults.lies && world_chance(disk_faults.lies)) {
		world_trace("sync lies", file->number, 0);
		disk_counts.lies++;
		claim(file);
		return 0;
	}
	world_trace("sync", file->number, 0);
	make_stable(file);
	drop_unknown();
	return 0;
}

void disk_fstat(const struct file *file, struct stat *status)
{
	memset(status, 0, sizeof *status);
	status->st_dev = 77;
	status->st_ino = (ino_t)file->number;
	status->st_mode = file->is_folder ? S_IFDIR | 0700 : S_IFREG | 0600;
	status->st_nlink = find(&live, file->path) == file;
	status->st_size = (off_t)file->live.size;
	status->st_blocks = (blkcnt_t)((file->live.size + 4095) / 4096 * 8);
	status->st_blksize = 4096;
}

int disk_stat(const char *path, struct stat *status)
{
	const struct file *file = find(&live, path);

	if (!file)
		return fail(ENOENT);
	disk_fstat(file, status);
	return 0;
}

int disk_make_folder(const char *path)
{
	struct file *file;

	if (find(&live, path))
		return fail(EEXIST);
	if (may_change(1, 1) < 0)
		return -1;
	file = make_file(1);
	name_file(NULL, path, file);
	changed(file, "make folder", 0, 0);
	return 0;
}

int disk_unlink(const char *path)
{
	struct file *file = find(&live, path);

	if (!file)
		return fail(ENOENT);
	if (may_change(0, 1) < 0)
		return -1;
	changed(file, "unlink", 0, 0);
	name_file(NULL, path, NULL);
	drop_unknown();
	return 0;
}

int disk_rename(const char *from, const char *to)
{
	struct file *file = find(&live, from);

	if (!file)
		return fail(ENOENT);
	if (may_change(0, 1) < 0)
		return -1;
	changed(file, "rename", 0, 0);
	name_file(from, to, file);
	drop_unknown();
	return 0;
}

int disk_is_folder(const struct file *file)
{
	return file->is_folder;
}

const char *disk_path(const struct file *file)
{
	return file->path;
}

const char *disk_list(const char *folder, unsigned i)
{
	char of[NAME];

	for (unsigned at = 0; at < live.count; at++) {
		folder_of(live.name[at].path, of);
		if (strcmp(of, folder) == 0 && i-- == 0)
			return strrchr(live.name[at].path, '/') + 1;
	}
	return NULL;
}

int disk_lock(struct file *file, int user)
{
	if (file->lock >= 0 && file->lock != user)
		return fail(EWOULDBLOCK);
	file->lock = user;
	return 0;
}

void disk_unlock(struct file *file, int user)
{
	if (file->lock == user)
		file->lock = -1;
}

/* ---- Power failures */

enum choice { NONE, ALL, BEGINNING, ANY, ANY_SECTORS, ALL_BUT_ONE, END, CHOICES };

/* Apply some sectors of a change; size 0 is one sector. Returns whether all of them. */
static int apply_sectors(struct content *content, const struct change *change, unsigned share)
{
	int all = 1;

	if (!change->size) {
		all = world_chance(share);
		if (all)
			apply(content, change);
		return all;
	}
	for (size_t at = 0; at < change->size;) {
		size_t end = SECTOR - (change->offset + at) % SECTOR;
		end = at + end < change->size ? at + end : change->size;
		if (world_chance(share))
			put_bytes(content, change->offset + at, change->data + at, end - at);
		else
			all = 0;
		at = end;
	}
	disk_counts.torn += !all;
	return all;
}

static uint64_t count_changes(const struct file *file)
{
	uint64_t count = 0;

	for (const struct change *change = file->first; change; change = change->next)
		count++;
	return count;
}

static void keep_some(struct file *file)
{
	uint64_t count = count_changes(file);
	enum choice choice = (enum choice)world_below(CHOICES);
	uint64_t cut = world_below(count + 1);
	unsigned share = (unsigned)world_below(1001);
	uint64_t i = 0;

	if (!count)
		return;
	for (const struct change *change = file->first; change; change = change->next, i++) {
		int kept = choice == ALL || (choice == BEGINNING && i < cut) || (choice == ALL_BUT_ONE && i != cut) ||
		           (choice == END && i > cut) || (choice == ANY && world_chance(share));
		if (kept)
			apply(&file->stable, change);
		else if (choice == ANY_SECTORS || (choice == BEGINNING && i == cut))
			kept = apply_sectors(&file->stable, change, share);
		disk_counts.lost += !kept;
		lost_claimed |= !kept && change->is_claimed;
	}
	forget_changes(file);
	world_trace("keeps", file->number << 8 | (uint64_t)choice, count);
}

/* Of each folder's changes of names the first ones are kept. */
static void keep_names(void)
{
	struct naming *next;
	struct naming *naming;

	for (naming = namings; naming; naming = naming->next) {
		uint64_t count = 0, kept;
		char folder[NAME];
		if (!*naming->folder)
			continue;
		memcpy(folder, naming->folder, NAME);
		for (const struct naming *other = naming; other; other = other->next)
			count += strcmp(other->folder, folder) == 0;
		kept = world_below(count + 1);
		for (struct naming *other = naming; other; other = other->next) {
			if (strcmp(other->folder, folder) != 0)
				continue;
			if (kept)
				apply_naming(&stable, other);
			else
				lost_claimed |= other->is_claimed;
			kept -= kept > 0;
			*other->folder = 0;
		}
	}
	for (naming = namings; naming; naming = next) {
		next = naming->next;
		free(naming);
	}
	namings = NULL;
	last_naming = &namings;
	/* What lies in a folder that is gone is gone. */
	for (unsigned i = 0; i < stable.count;) {
		char folder[NAME];
		folder_of(stable.name[i].path, folder);
		if (*folder && !find(&stable, folder))
			set_name(&stable, stable.name[i].path, NULL), i = 0;
		else
			i++;
	}
	live = stable;
}

int disk_power_failure(void)
{
	int lost;

	disk_release();
	for (struct file *file = files; file; file = file->next) {
		keep_some(file);
		copy(&file->live, &file->stable);
	}
	keep_names();
	drop_unknown();
	lost = lost_claimed;
	lost_claimed = 0;
	return lost;
}
