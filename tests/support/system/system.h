#ifndef TESTS_SUPPORT_SYSTEM_SYSTEM_H
#define TESTS_SUPPORT_SYSTEM_SYSTEM_H

/*
 * Plays the calls that a program makes on files. calls.c stands in front of the C library, before the program is loaded
 * or linked with it. It defines each function once, and folds those that do the same into one call of a table. The
 * policy that is built with it decides what becomes of the call.
 *
 *     the program, its libraries, SQLite
 *          |   write  pwrite64  writev  open  openat64  rename  ...
 *          v
 *       calls.c
 *          |   write(fd, parts, count, offset)   open(at, path, flags, mode)   ...
 *          v
 *     system_policy    fail.c: some fail, by a plan     memory.c: of memory, too
 *          |           record.c: what is written and synced is recorded
 *          |           tests/simulate/system.c: files lie on a simulated disk
 *          v
 *      system_real     the C library
 */

#include <dirent.h>
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Kinds of calls. Python reads their names here. */
enum call {
	CALL_OPEN = 1, /* that may make a file; also mkdir */
	CALL_WRITE = 2,
	CALL_SYNC = 4,
	CALL_SIZE = 8, /* fallocate, ftruncate */
	CALL_UNLINK = 16,
	CALL_RENAME = 32,
	CALL_READ = 64,
	CALL_LOOK = 128, /* open of what is there, opendir, statvfs, mmap */
	CALL_MEMORY = 256,
	CALL_KINDS = 9
};

/* Where read and write go on. */
enum { SYSTEM_HERE = -1 };

/* Like the C library's functions, they return -1, NULL or MAP_FAILED and set errno. A path may be relative to at. */
struct system_calls {
	int (*open)(int at, const char *path, int flags, mode_t mode);
	int (*close)(int fd);
	ssize_t (*read)(int fd, void *data, size_t size, off_t offset);
	ssize_t (*write)(int fd, const struct iovec *parts, int count, off_t offset);
	int (*sync)(int fd);
	int (*resize)(int fd, off_t size);
	int (*allocate)(int fd, int mode, off_t offset, off_t size);
	int (*unlink)(int at, const char *path, int flags);
	int (*rename)(int from_at, const char *from, int to_at, const char *to);
	int (*make_folder)(const char *path, mode_t mode);
	DIR *(*open_folder)(const char *path);
	void *(*map)(void *at, size_t size, int protection, int flags, int fd, off_t offset);
};

struct system_policy {
	struct system_calls plays; /* the calls that it makes itself; NULL: the C library does */
	/* Asked about other calls; NULL: none fails. at is the file, if path is NULL. If the call fails, it sets errno. */
	int (*fails)(enum call call, int at, const char *path);
};

extern const struct system_policy system_policy;
extern const struct system_calls system_real;

/* The C library's function that one of the program's or of a library loaded before it replaces. */
#define SYSTEM_REAL(name) (*(__typeof__(&name) *)&(void *){dlsym(RTLD_NEXT, #name)})

/* Give a function another name. */
#define SYSTEM_ALSO(name, other) extern __typeof__(name) other __attribute__((alias(#name)))

/* The path of what a call is about, from the top if the system can tell; empty if it has none. */
void system_path(int at, const char *path, char *full, size_t size);

#endif
