/* The layer below SQLite that adds checksums to pages. */

#include "lib/jobs/store/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/crc32c.h"

struct summed {
	sqlite3_file file; /* first: SQLite sees this */
	sqlite3_file *real;
	int is_log;                     /* without sums of ours */
	int sync_error;                 /* errno of a sync that failed */
	unsigned char page[PAGES_SIZE]; /* to write */
};

static sqlite3_vfs *real_vfs;

static sqlite3_file *real(sqlite3_file *file)
{
	return ((struct summed *)file)->real;
}

/* ---- Sums */

static uint32_t sum_of(const unsigned char *page, uint32_t number)
{
	return ww_crc32c(ww_crc32c(0, &number, sizeof number), page, PAGES_SIZE - PAGES_SUM);
}

uint32_t ww_pages_change(const unsigned char *page, uint32_t number)
{
	uint32_t sum;

	memcpy(&sum, page + PAGES_SIZE - PAGES_SUM, sizeof sum);
	return sum ^ sum_of(page, number);
}

int ww_pages_is_sound(const unsigned char *page, uint32_t number)
{
	if (ww_pages_change(page, number) == 0)
		return 1;
	return page[0] == 0 && memcmp(page, page + 1, PAGES_SIZE - 1) == 0;
}

static int is_page(sqlite3_file *file, int size, sqlite3_int64 offset)
{
	return !((struct summed *)file)->is_log && size == PAGES_SIZE && offset % PAGES_SIZE == 0;
}

static uint32_t number_of(sqlite3_int64 offset)
{
	return (uint32_t)(offset / PAGES_SIZE) + 1;
}

static int read_file(sqlite3_file *file, void *to, int size, sqlite3_int64 offset)
{
	int code = real(file)->pMethods->xRead(real(file), to, size, offset);

	if (code == SQLITE_OK && is_page(file, size, offset) && !ww_pages_is_sound(to, number_of(offset)))
		return SQLITE_CORRUPT;
	return code;
}

static int write_file(sqlite3_file *file, const void *from, int size, sqlite3_int64 offset)
{
	struct summed *summed = (struct summed *)file;

	if (is_page(file, size, offset)) {
		uint32_t sum = sum_of(from, number_of(offset));
		memcpy(summed->page, from, PAGES_SIZE - PAGES_SUM);
		memcpy(summed->page + PAGES_SIZE - PAGES_SUM, &sum, sizeof sum);
		from = summed->page;
	}
	return real(file)->pMethods->xWrite(real(file), from, size, offset);
}

/* ---- Syncs */

static int sync_file(sqlite3_file *file, int flags)
{
	int code = real(file)->pMethods->xSync(real(file), flags);

	if (code)
		((struct summed *)file)->sync_error = errno ? errno : EIO;
	return code;
}

static int sync_error(sqlite3 *connection, int which)
{
	sqlite3_file *file = NULL;
	int code = sqlite3_file_control(connection, "main", which, &file);

	return !code && file && file->pMethods ? ((struct summed *)file)->sync_error : 0;
}

int ww_pages_failed_sync(sqlite3 *connection, const char **name)
{
	int error = sync_error(connection, SQLITE_FCNTL_JOURNAL_POINTER);

	*name = error ? "-wal" : "";
	return error ? error : sync_error(connection, SQLITE_FCNTL_FILE_POINTER);
}

/* ---- Everything else of a file is passed on */

static int close_file(sqlite3_file *file)
{
	return real(file)->pMethods->xClose(real(file));
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
	return real(file)->pMethods->xTruncate(real(file), size);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real(file)->pMethods->xFileSize(real(file), size);
}

static int lock_file(sqlite3_file *file, int level)
{
	return real(file)->pMethods->xLock(real(file), level);
}

static int unlock_file(sqlite3_file *file, int level)
{
	return real(file)->pMethods->xUnlock(real(file), level);
}

static int check_reserved(sqlite3_file *file, int *is_reserved)
{
	return real(file)->pMethods->xCheckReservedLock(real(file), is_reserved);
}

static int control_file(sqlite3_file *file, int operation, void *argument)
{
	return real(file)->pMethods->xFileControl(real(file), operation, argument);
}

static int sector_size(sqlite3_file *file)
{
	return real(file)->pMethods->xSectorSize(real(file));
}

static int characteristics(sqlite3_file *file)
{
	return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int map_shared(sqlite3_file *file, int region, int size, int extend, void volatile **memory)
{
	return real(file)->pMethods->xShmMap(real(file), region, size, extend, memory);
}

static int lock_shared(sqlite3_file *file, int offset, int count, int flags)
{
	return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}

static void shared_barrier(sqlite3_file *file)
{
	real(file)->pMethods->xShmBarrier(real(file));
}

static int unmap_shared(sqlite3_file *file, int is_deleted)
{
	return real(file)->pMethods->xShmUnmap(real(file), is_deleted);
}

/* Version 2: without mapped pages, which would be read past the sums. */
static const sqlite3_io_methods methods = {2, close_file, read_file, write_file, truncate_file, sync_file, file_size,
    lock_file, unlock_file, check_reserved, control_file, sector_size, characteristics, map_shared, lock_shared,
    shared_barrier, unmap_shared, NULL, NULL};

/* ---- The VFS */

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out)
{
	struct summed *summed = (struct summed *)file;
	int code;

	(void)vfs;
	if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
		return real_vfs->xOpen(real_vfs, name, file, flags, flags_out);
	memset(summed, 0, sizeof *summed);
	summed->is_log = (flags & SQLITE_OPEN_WAL) != 0;
	summed->real = (sqlite3_file *)(summed + 1);
	code = real_vfs->xOpen(real_vfs, name, summed->real, flags, flags_out);
	/* SQLite closes a file that has methods, also after an error. */
	summed->file.pMethods = summed->real->pMethods ? &methods : NULL;
	return code;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	return real_vfs->xDelete(real_vfs, name, sync);
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result)
{
	(void)vfs;
	return real_vfs->xAccess(real_vfs, name, flags, result);
}

/* SQLITE_OPEN_NOFOLLOW would refuse links in all of the name. Its folder may be reached by them, the file may be none. */
static int full_name(sqlite3_vfs *vfs, const char *name, int size, char *full)
{
	const char *last = strrchr(name, '/');
	char folder[4096];
	int code;

	(void)vfs;
	if (!last || last == name)
		return real_vfs->xFullPathname(real_vfs, name, size, full);
	if ((size_t)snprintf(folder, sizeof folder, "%.*s", (int)(last - name), name) >= sizeof folder)
		return SQLITE_CANTOPEN;
	code = real_vfs->xFullPathname(real_vfs, folder, size, full);
	if (code && code != SQLITE_OK_SYMLINK)
		return code;
	if (strlen(full) + strlen(last) >= (size_t)size)
		return SQLITE_CANTOPEN;
	strcat(full, last);
	return SQLITE_OK;
}

static int randomness(sqlite3_vfs *vfs, int size, char *bytes)
{
	(void)vfs;
	return real_vfs->xRandomness(real_vfs, size, bytes);
}

static int wait_for(sqlite3_vfs *vfs, int microseconds)
{
	(void)vfs;
	return real_vfs->xSleep(real_vfs, microseconds);
}

static int now(sqlite3_vfs *vfs, double *days)
{
	(void)vfs;
	return real_vfs->xCurrentTime(real_vfs, days);
}

static int last_error(sqlite3_vfs *vfs, int size, char *text)
{
	(void)vfs;
	return real_vfs->xGetLastError(real_vfs, size, text);
}

static sqlite3_vfs pages_vfs = {
    .iVersion = 1,
    .zName = "weekwheel",
    .xOpen = open_file,
    .xDelete = delete_file,
    .xAccess = access_file,
    .xFullPathname = full_name,
    .xRandomness = randomness,
    .xSleep = wait_for,
    .xCurrentTime = now,
    .xGetLastError = last_error,
};
static pthread_once_t is_registered = PTHREAD_ONCE_INIT;

static void register_vfs(void)
{
	sqlite3_vfs *found = sqlite3_initialize() ? NULL : sqlite3_vfs_find(NULL);

	if (!found)
		return;
	real_vfs = found;
	pages_vfs.szOsFile = (int)sizeof(struct summed) + found->szOsFile;
	pages_vfs.mxPathname = found->mxPathname;
	if (sqlite3_vfs_register(&pages_vfs, 0))
		real_vfs = NULL;
}

const char *ww_pages_vfs(void)
{
	(void)pthread_once(&is_registered, register_vfs);
	return real_vfs ? pages_vfs.zName : NULL;
}

/* The library may be unloaded before SQLite is. */
__attribute__((destructor)) static void unregister_vfs(void)
{
	if (real_vfs)
		(void)sqlite3_vfs_unregister(&pages_vfs);
}
