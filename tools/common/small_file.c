/* Reads whole files that options name: see small_file.h. */
#include "tools/common/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "tools/common/message.h"

/* A writer that is there has written by then. */
enum { QUIET_MS = 1000, STEP = 4096 };

static int refuse(char why[SMALL_FILE_WHY], const char *reason)
{
	snprintf(why, SMALL_FILE_WHY, "%s", reason);
	return -1;
}

static int look(int fd, int is_again, struct stat *about, char why[SMALL_FILE_WHY])
{
	if (fstat(fd, about))
		return refuse(why, strerror(errno));
	if (S_ISDIR(about->st_mode))
		return refuse(why, "it is a directory");
	if (is_again && !S_ISREG(about->st_mode))
		return refuse(why, "it is not a file, and could not be read again");
	if (S_ISREG(about->st_mode) && about->st_size > SMALL_FILE_MAX)
		return refuse(why, "it has more than 1 MiB");
	return 0;
}

/* Nothing waits for a writer, nor becomes the terminal of this process. */
static int open_file(const char *path, int is_again, struct stat *about, char why[SMALL_FILE_WHY])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return refuse(why, strerror(errno));
	if (look(fd, is_again, about, why) == 0)
		return fd;
	close(fd);
	return -1;
}

/* What comes late. */
struct small_file_wait {
	const char *path;
	int64_t began, ms;
	int is_reported;
};

/* Return 1 if something can be read, or the end is there. */
static int poll_until(int fd, int64_t deadline)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	int64_t left = deadline - time_ms();

	return poll(&one, 1, left > 0 ? (int)left : 0) > 0;
}

static int wait_for(struct small_file_wait *wait, int fd, char why[SMALL_FILE_WHY])
{
	int64_t end = wait->began + wait->ms;

	if (!wait->is_reported && wait->ms > QUIET_MS) {
		if (poll_until(fd, wait->began + QUIET_MS))
			return 0;
		message_info("waiting for the end of %s", wait->path);
		wait->is_reported = 1;
	}
	if (poll_until(fd, end))
		return 0;
	snprintf(why, SMALL_FILE_WHY, "it is not a file, and did not come to its end in time");
	return -1;
}

/* Cut the line's end off. Return 1 if it was there. */
static int cut_line(struct small_file *file, size_t from)
{
	char *end = memchr(file->text + from, '\n', file->size - from);

	if (end)
		file->size = (size_t)(end - file->text);
	return end != NULL;
}

/* Read a piece. Return 1 at the end, 0 if more may follow. */
static int read_piece(struct small_file *file, int fd, enum small_file_end end, char why[SMALL_FILE_WHY])
{
	char *text = realloc(file->text, file->size + STEP + 1);
	ssize_t got;

	if (!text)
		return refuse(why, "no memory");
	file->text = text;
	got = read(fd, text + file->size, STEP);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : refuse(why, strerror(errno));
	if (got == 0)
		return 1;
	file->size += (size_t)got;
	if (end == SMALL_FILE_LINE && cut_line(file, file->size - (size_t)got))
		return 1;
	return file->size > SMALL_FILE_MAX ? refuse(why, "it has more than 1 MiB") : 0;
}

static int finish(struct small_file *file, enum small_file_end end, char why[SMALL_FILE_WHY])
{
	if (memchr(file->text, 0, file->size))
		return refuse(why, "it has a byte 0, and is not text");
	if (end == SMALL_FILE_LINE && file->size > 0 && file->text[file->size - 1] == '\r')
		file->size--;
	file->text[file->size] = 0;
	return 0;
}

int small_file_read(
    struct small_file *file, const char *path, enum small_file_end end, int wait_ms, char why[SMALL_FILE_WHY])
{
	struct small_file_wait wait = {path, time_ms(), wait_ms, 0};
	struct stat about;
	int fd = open_file(path, wait_ms == 0, &about, why);
	int done = 0;

	*file = (struct small_file){.text = NULL};
	if (fd < 0)
		return -1;
	file->mode = S_ISREG(about.st_mode) ? about.st_mode & 0777 : 0;
	while (done == 0) {
		done = S_ISREG(about.st_mode) ? 0 : wait_for(&wait, fd, why);
		if (done == 0)
			done = read_piece(file, fd, end, why);
	}
	close(fd);
	if (done > 0 && finish(file, end, why) == 0)
		return 0;
	free(file->text);
	*file = (struct small_file){.text = NULL};
	return -1;
}

int small_file_check(const char *path, char why[SMALL_FILE_WHY])
{
	struct stat about;
	int fd = open_file(path, 1, &about, why);

	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}
