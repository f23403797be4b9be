/* Room on the disk, and a reserve of it. */

#include "lib/jobs/store/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "weekwheel/error.h"

#define RESERVE ((uint64_t)4 << 20)
/* What is left on the disk when it counts as full, and after how many bytes to look. */
#define LEFT ((uint64_t)4 << 20)
#define ASK_EVERY ((uint64_t)1 << 20)

static void path_of(const struct store_room *room, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/reserve", room->folder);
}

void ww_store_room_init(struct store_room *room, const char *folder, uint64_t most, struct journal_fault *fault)
{
	*room = (struct store_room){.folder = folder, .most = most, .fault = fault, .has_reserve = 1};
	(void)ww_store_room_spend(room);
}

void ww_store_room_keep(struct store_room *room)
{
	char path[4096];
	int fd;

	if (room->has_reserve)
		return;
	path_of(room, path, sizeof path);
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (posix_fallocate(fd, 0, (off_t)RESERVE) == 0)
		room->has_reserve = 1;
	else
		(void)unlink(path);
	close(fd);
}

int ww_store_room_spend(struct store_room *room)
{
	char path[4096];

	if (!room->has_reserve)
		return 0;
	room->has_reserve = 0;
	path_of(room, path, sizeof path);
	return unlink(path) == 0;
}

/* The disk has too little left for what is in memory. */
static int is_short(struct store_room *room, uint64_t size, uint64_t memory)
{
	struct statvfs status;
	uint64_t left;

	room->asked += size;
	if (!room->is_short && room->asked < ASK_EVERY)
		return 0;
	room->asked = 0;
	if (statvfs(room->folder, &status))
		return 0;
	left = (uint64_t)status.f_bavail * status.f_frsize;
	/* The log of the index first, then its pages. */
	room->is_short = left < LEFT || left + room->unused < LEFT + 2 * memory;
	return room->is_short;
}

int ww_store_room_ask(struct store_room *room, uint64_t size, uint64_t journal, uint64_t memory, int error)
{
	char text[FAULT_TEXT];

	if (error && error != WW_EFULL)
		return error;
	if (error || !room->has_reserve || is_short(room, size, memory)) {
		(void)snprintf(text, sizeof text, "the disk of %.150s is full", room->folder);
	} else if (room->most && room->used + size + journal + memory + RESERVE > room->most) {
		(void)snprintf(text, sizeof text, "%.150s takes the %llu bytes that it may take", room->folder,
		    (unsigned long long)room->most);
	} else {
		ww_fault_full(room->fault, NULL);
		return WW_OK;
	}
	ww_fault_full(room->fault, text);
	return WW_EFULL;
}
