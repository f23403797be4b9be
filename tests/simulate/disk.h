#ifndef TESTS_SIMULATE_DISK_H
#define TESTS_SIMULATE_DISK_H

/*
 * The simulated disk: files below /sim, in memory. Each file is as its writers see it, and as it is stable; between the
 * two are the changes that were not synced. A power failure keeps any of them: whole ones, sectors of 512 bytes, or
 * none. Names are stable when their folder was synced; of later changes of names it keeps the first ones.
 */

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct disk_faults {
	unsigned write_eio; /* of 1,000 writes so many fail */
	unsigned sync_eio;  /* of 1,000 syncs */
	unsigned read_eio;  /* of 1,000 reads */
	unsigned lies;      /* of 1,000 syncs so many are reported and not done */
	unsigned slow;      /* of 1,000 syncs so many take up to a second */
	int is_full;        /* nothing may grow */
	int is_very_full;   /* nothing may be written */
};

struct disk_counts {
	uint64_t writes, syncs, failed_writes, failed_syncs, full, lies, lost, torn;
};

extern struct disk_faults disk_faults;
extern struct disk_counts disk_counts;
/* Called before each change, of a name or not, and before each sync. */
extern void (*disk_before)(int is_name);
/* Called when the sync of a file, not of a folder, fails. */
extern void (*disk_sync_failed)(const char *path);

struct file;

void disk_begin(void);
void disk_end(void);
/* The processes are gone, and their locks with them. */
void disk_release(void);
/* The power fails. Returns whether something that a sync had reported as stable is lost. */
int disk_power_failure(void);

/* These set errno like the system's. */
struct file *disk_open(const char *path, int flags);
void disk_use(struct file *file, int users);
ssize_t disk_read(struct file *file, void *bytes, size_t size, uint64_t offset);
ssize_t disk_write(struct file *file, const void *bytes, size_t size, uint64_t offset);
int disk_resize(struct file *file, uint64_t size);
int disk_allocate(struct file *file, uint64_t end);
int disk_sync(struct file *file);
int disk_stat(const char *path, struct stat *status);
void disk_fstat(const struct file *file, struct stat *status);
int disk_make_folder(const char *path);
int disk_unlink(const char *path);
int disk_rename(const char *from, const char *to);
int disk_is_folder(const struct file *file);
const char *disk_path(const struct file *file);
/* The i-th name in a folder, or NULL. */
const char *disk_list(const char *folder, unsigned i);
/* Lock it for that user, or return -1. */
int disk_lock(struct file *file, int user);
void disk_unlock(struct file *file, int user);

#endif
