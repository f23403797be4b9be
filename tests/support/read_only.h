#ifndef TESTS_SUPPORT_READ_ONLY_H
#define TESTS_SUPPORT_READ_ONLY_H

/* A read-only file system, for the process that asks and its children. */

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

/* Mount one at the folder. Returns 0, with a message, where the system lets nobody mount. */
static inline int read_only_at(const char *folder)
{
	if ((unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("none", folder, "tmpfs", MS_RDONLY, NULL) == 0)
		return 1;
	perror("no read-only file system can be mounted, so nothing is tested there");
	return 0;
}

#endif
