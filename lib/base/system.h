#ifndef LIB_BASE_SYSTEM_H
#define LIB_BASE_SYSTEM_H

/* What the system says, in the words of error.h, and its files. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weekwheel/error.h"

/* The error for an errno of a call on files. */
static inline int error_of_errno(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case EPERM:
	case EROFS:
	case ELOOP:
		return WW_EDENIED;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return WW_EFULL;
	case ENOMEM:
		return WW_ENOMEM;
	default:
		return WW_EIO;
	}
}

/* Why a folder cannot hold data, with a remedy where that is not plain. */
static inline const char *words_of_errno(int error)
{
	return error == EROFS
	           ? "its file system is mounted read-only: mount it for writing (mount -o remount,rw; in a unit "
	             "of systemd: ReadWritePaths=), or name another directory"
	           : strerror(error);
}

/* Whether the folder's file system is mounted read-only. Then errno is EROFS. */
static inline int is_read_only(const char *folder)
{
	return access(folder, W_OK) != 0 && errno == EROFS;
}

/* Open a plain file, not what stands for it: a link may lead anywhere, and a FIFO waits for its other end. */
static inline int open_plain(int folder, const char *path, int flags)
{
	struct stat status;
	/* Without a mode a hardened C library calls another function, for which the tests have no stand-in. */
	int fd = openat(folder, path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return -1;
	error = fstat(fd, &status) ? errno : S_ISREG(status.st_mode) ? 0 : EPERM;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

#endif
