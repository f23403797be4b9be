/* The files of a journal in their folder. */

#include "lib/journal/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/system.h"

int ww_journal_number(const char *name, uint64_t *number)
{
	char again[64];

	if (sscanf(name, "journal.%" SCNu64, number) != 1)
		return 0;
	/* A copy that somebody keeps beside it has more in its name. */
	(void)snprintf(again, sizeof again, "journal.%" PRIu64, *number);
	return strcmp(name, again) == 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return (one > other) - (one < other);
}

int ww_journal_numbers(int at, const char *folder, uint64_t *numbers, int most)
{
	int fd = openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *opened = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int count = 0;

	if (!opened) {
		int error = error_of_errno(errno);
		if (fd >= 0)
			close(fd);
		return error;
	}
	while (count < most && (entry = readdir(opened)))
		count += ww_journal_number(entry->d_name, &numbers[count]);
	closedir(opened);
	qsort(numbers, (size_t)count, sizeof *numbers, by_number);
	return count;
}
