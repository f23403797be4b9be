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
#include "lib/journal/format.h"

enum { FILES_MOST = 4096 };

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

static uint32_t kind_of(int folder, uint64_t number)
{
	struct journal_head head;
	char name[64];
	int is_whole;
	int fd;

	(void)snprintf(name, sizeof name, "journal.%" PRIu64, number);
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	is_whole = pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && head.magic << 8 == JOURNAL_MAGIC << 8 &&
	           head.sum == journal_head_sum(&head);
	close(fd);
	return is_whole ? head.flags & JOURNAL_KINDS : 0;
}

int ww_journal_is_other(int folder, uint32_t kind)
{
	uint64_t numbers[FILES_MOST];
	int count = ww_journal_numbers(folder, ".", numbers, FILES_MOST);

	for (int i = 0; i < count; i++) {
		uint32_t its = kind_of(folder, numbers[i]);
		if (its && !(its & kind))
			return 1;
	}
	return 0;
}
