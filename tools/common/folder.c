/* The folder of a server's data. */
#include "tools/common/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/system.h"
#include "tools/common/message.h"

/* A new folder has a stable name before anything in it is acknowledged. */
static void sync_parent(int folder)
{
	int parent = openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (parent < 0)
		return;
	(void)fsync(parent);
	(void)close(parent);
}

int folder_take(const char *path)
{
	int is_new = mkdir(path, 0700) == 0;
	int folder = is_new || errno == EEXIST ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (folder < 0 || is_read_only(path)) {
		int error = errno;
		if (folder >= 0)
			(void)close(folder);
		return message_error("--data %s: %s", path, words_of_errno(error));
	}
	if (flock(folder, LOCK_EX | LOCK_NB) != 0) {
		(void)close(folder);
		return message_error("--data %s: another server has this folder: end it, or give another folder", path);
	}
	if (is_new)
		sync_parent(folder);
	return folder;
}
