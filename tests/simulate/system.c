/*
 * The calls of the C library that the server, the libraries and SQLite make: files below /sim lie on the simulated disk,
 * clocks tell the simulated time. Other files are the system's. It is a policy of tests/support/system/system.h; what no
 * other policy plays is defined here.
 */
#include "tests/simulate/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "tests/simulate/disk.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"
#include "tests/support/system/system.h"
#include "tools/service/http/recv.h"

enum { FIRST = 1 << 20, DESCRIPTORS = 256, PATHS = 256 };

enum kind { CLOSED, FILES, TIMER, CHANCE, LISTENER, WIRE, EVENT };

struct descriptor {
	enum kind kind;
	struct file *file;
	struct wire *wire;
	uint64_t at; /* where read and write go on */
	clockid_t clock;
	uint64_t when;  /* TIMER: 0: not set */
	uint64_t count; /* EVENT */
	int may_cancel;
	int is_cancelled;
};

struct system_clock system_clock;

static struct descriptor descriptors[DESCRIPTORS]; /* also what threads wait at that poll */

static int is_ours(const char *path)
{
	return strncmp(path, "/sim", 4) == 0 && (path[4] == '/' || !path[4]);
}

static struct descriptor *descriptor_of(int fd)
{
	if (fd < FIRST || fd >= FIRST + DESCRIPTORS || descriptors[fd - FIRST].kind == CLOSED)
		return NULL;
	return &descriptors[fd - FIRST];
}

static struct file *file_of(int fd)
{
	const struct descriptor *descriptor = descriptor_of(fd);

	return descriptor ? descriptor->file : NULL;
}

static int make_descriptor(enum kind kind, struct file *file)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		if (descriptors[i].kind == CLOSED) {
			descriptors[i] = (struct descriptor){.kind = kind, .file = file};
			return FIRST + i;
		}
	errno = EMFILE;
	return -1;
}

void system_begin(void)
{
	memset(descriptors, 0, sizeof descriptors);
	system_clock = (struct system_clock){.wall = UINT64_C(1700000000) * SIM_S + world_below(SIM_DAY), .boots = 1};
}

void system_release(void)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		if (descriptors[i].kind != CLOSED)
			world_say("a descriptor was left open: %s",
			    descriptors[i].file ? disk_path(descriptors[i].file) : "no file");
	memset(descriptors, 0, sizeof descriptors);
}

/* ---- Clocks */

static uint64_t read_clock(clockid_t id)
{
	return id == CLOCK_REALTIME ? system_wall() : world.now - system_clock.booted + SIM_S;
}

uint64_t system_wall(void)
{
	return system_clock.wall + (uint64_t)((int64_t)world.now + system_clock.stepped);
}

void system_step(int64_t ns)
{
	system_clock.stepped += ns;
	for (int i = 0; i < DESCRIPTORS; i++)
		if (descriptors[i].kind == TIMER && descriptors[i].may_cancel)
			descriptors[i].is_cancelled = 1;
	system_wake();
}

void system_boot(void)
{
	system_clock.booted = world.now;
	system_clock.boots++;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
	uint64_t now = read_clock(id);

	time->tv_sec = (time_t)(now / SIM_S);
	time->tv_nsec = (long)(now % SIM_S);
	return 0;
}

int gettimeofday(struct timeval *time, void *zone)
{
	uint64_t now = system_wall();

	(void)zone;
	time->tv_sec = (time_t)(now / SIM_S);
	time->tv_usec = (suseconds_t)(now % SIM_S / 1000);
	return 0;
}

time_t time(time_t *at)
{
	time_t now = (time_t)(system_wall() / SIM_S);

	if (at)
		*at = now;
	return now;
}

int usleep(useconds_t us)
{
	world_sleep(us * SIM_US);
	return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	world_sleep((uint64_t)time->tv_sec * SIM_S + (uint64_t)time->tv_nsec);
	return 0;
}

unsigned sleep(unsigned seconds)
{
	world_sleep(seconds * SIM_S);
	return 0;
}

pid_t getpid(void)
{
	return 4242;
}

long sysconf(int name)
{
	return name == _SC_NPROCESSORS_ONLN ? 2 : SYSTEM_REAL(sysconf)(name);
}

/* The secret of hash tables. */
unsigned long getauxval(unsigned long type)
{
	static const char bytes[16] = "by no chance";

	return type == AT_RANDOM ? (unsigned long)(uintptr_t)bytes : SYSTEM_REAL(getauxval)(type);
}

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	(void)flags;
	memset(bytes, 0x5a, size);
	return (ssize_t)size;
}

/* ---- Alarms */

int timerfd_create(clockid_t clock, int flags)
{
	int fd = make_descriptor(TIMER, NULL);

	(void)flags;
	if (fd >= 0)
		descriptors[fd - FIRST].clock = clock;
	return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *before)
{
	struct descriptor *timer = descriptor_of(fd);

	(void)before;
	timer->when = (uint64_t)to->it_value.tv_sec * SIM_S + (uint64_t)to->it_value.tv_nsec;
	timer->may_cancel = (flags & TFD_TIMER_CANCEL_ON_SET) != 0;
	system_wake();
	if (!timer->is_cancelled)
		return 0;
	timer->is_cancelled = 0;
	errno = ECANCELED;
	return -1;
}

uint64_t system_readable_at(int fd)
{
	const struct descriptor *timer = descriptor_of(fd);
	uint64_t now;

	if (!timer || timer->kind != TIMER)
		return SIM_NEVER;
	if (timer->is_cancelled)
		return world.now;
	now = read_clock(timer->clock);
	return !timer->when ? SIM_NEVER : timer->when <= now ? world.now : world.now + (timer->when - now);
}

int system_events(int fd)
{
	const struct descriptor *descriptor = descriptor_of(fd);

	if (descriptor && descriptor->kind == LISTENER)
		return loop_has_arrived() ? UV_READABLE : 0;
	if (descriptor && descriptor->kind == WIRE)
		return (wire_is_readable(descriptor->wire) ? UV_READABLE : 0) |
		       (wire_is_writable(descriptor->wire) ? UV_WRITABLE : 0);
	if (descriptor && descriptor->kind == EVENT)
		return descriptor->count ? UV_READABLE : 0;
	return system_readable_at(fd) <= world.now ? UV_READABLE : 0;
}

static ssize_t read_timer(struct descriptor *timer, void *bytes)
{
	uint64_t one = 1;
	int is_due = timer->when && timer->when <= read_clock(timer->clock);

	if (timer->is_cancelled || !is_due) {
		errno = timer->is_cancelled ? ECANCELED : EAGAIN;
		timer->is_cancelled = 0;
		return -1;
	}
	timer->when = 0;
	memcpy(bytes, &one, sizeof one);
	return sizeof one;
}

/* ---- What threads wait for that have no loop */

void system_wake(void)
{
	world_wake(descriptors);
}

int eventfd(unsigned count, int flags)
{
	int fd = make_descriptor(EVENT, NULL);

	(void)flags;
	if (fd >= 0)
		descriptors[fd - FIRST].count = count;
	return fd;
}

static ssize_t read_event(struct descriptor *event, void *bytes)
{
	if (!event->count) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(bytes, &event->count, sizeof event->count);
	event->count = 0;
	return sizeof event->count;
}

static ssize_t write_event(struct descriptor *event, const void *bytes)
{
	uint64_t more;

	memcpy(&more, bytes, sizeof more);
	event->count += more;
	system_wake();
	return sizeof more;
}

/* Sets what each is ready for. Returns how many are. */
static int look_at(struct pollfd *polls, nfds_t count, uint64_t *until)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		int events = polls[i].fd < 0 ? 0 : system_events(polls[i].fd);
		uint64_t at = polls[i].fd < 0 ? SIM_NEVER : system_readable_at(polls[i].fd);
		polls[i].revents = (short)((events & UV_READABLE ? polls[i].events & POLLIN : 0) |
		                           (events & UV_WRITABLE ? polls[i].events & POLLOUT : 0));
		ready += polls[i].revents != 0;
		*until = at < *until ? at : *until;
	}
	return ready;
}

int poll(struct pollfd *polls, nfds_t count, int timeout)
{
	uint64_t end = timeout < 0 ? SIM_NEVER : world.now + (uint64_t)timeout * SIM_MS;
	int ready;

	for (nfds_t i = 0; i < count; i++)
		if (polls[i].fd >= 0 && !descriptor_of(polls[i].fd))
			return SYSTEM_REAL(poll)(polls, count, timeout);
	for (;;) {
		uint64_t until = end;
		ready = look_at(polls, count, &until);
		if (ready || world.now >= end)
			return ready;
		(void)world_wait(descriptors, until);
	}
}

/* ---- Sockets. The server listens on a Unix socket, whose name is no file here. */

/* glibc declares unions there. */
#ifndef __GLIBC__
#define __CONST_SOCKADDR_ARG const struct sockaddr *
#define __SOCKADDR_ARG struct sockaddr *
#endif

int socket(int family, int type, int protocol)
{
	(void)family;
	(void)type;
	(void)protocol;
	return make_descriptor(LISTENER, NULL);
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
	(void)fd;
	(void)address;
	(void)size;
	return 0;
}

int listen(int fd, int backlog)
{
	(void)fd;
	(void)backlog;
	loop_listen();
	return 0;
}

int accept4(int fd, __SOCKADDR_ARG address, socklen_t *size, int flags)
{
	struct wire *wire = wire_accept();
	int accepted = wire ? make_descriptor(WIRE, NULL) : -1;

	(void)fd;
	(void)address;
	(void)flags;
	*size = 0;
	if (accepted >= 0)
		descriptors[accepted - FIRST].wire = wire;
	return accepted;
}

int system_dialled(struct wire *wire)
{
	int fd = make_descriptor(WIRE, NULL);

	if (fd >= 0)
		descriptors[fd - FIRST].wire = wire;
	return fd;
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	const struct descriptor *descriptor = descriptor_of(fd);

	return descriptor ? wire_write(descriptor->wire, bytes, size) : SYSTEM_REAL(send)(fd, bytes, size, flags);
}

/* Nothing comes by HTTP. */
void recv_look_at(struct visitors *visitors)
{
	(void)visitors;
}

ssize_t recv(int fd, void *bytes, size_t room, int flags)
{
	const struct descriptor *descriptor = descriptor_of(fd);

	return descriptor ? wire_read(descriptor->wire, bytes, room) : SYSTEM_REAL(recv)(fd, bytes, room, flags);
}

/* ---- Paths */

static int ends_in(const char *path, const char *end)
{
	size_t length = strlen(path), size = strlen(end);

	return length >= size && strcmp(path + length - size, end) == 0;
}

/* The path from the top, without "." and ".." at its end. */
static const char *full_path(int folder, const char *path, char full[PATHS])
{
	if (*path == '/')
		(void)snprintf(full, PATHS, "%s", path);
	else if (file_of(folder))
		(void)snprintf(full, PATHS, "%s/%s", disk_path(file_of(folder)), path);
	else
		return path;
	if (!is_ours(full))
		return path;
	if (ends_in(full, "/."))
		full[strlen(full) - 2] = 0;
	if (ends_in(full, "/..")) {
		full[strlen(full) - 3] = 0;
		*strrchr(full, '/') = 0;
	}
	return full;
}

static int play_open(int folder, const char *path, int flags, mode_t mode)
{
	char full[PATHS];
	struct file *file;
	int fd;

	if (strcmp(path, "/dev/urandom") == 0)
		return make_descriptor(CHANCE, NULL);
	path = full_path(folder, path, full);
	if (!is_ours(path))
		return system_real.open(folder, path, flags, mode);
	file = disk_open(path, flags);
	if (!file)
		return -1;
	if (flags & O_DIRECTORY && !disk_is_folder(file)) {
		errno = ENOTDIR;
		return -1;
	}
	fd = make_descriptor(FILES, file);
	if (fd >= 0)
		disk_use(file, 1);
	return fd;
}

static int play_close(int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);

	if (!descriptor)
		return system_real.close(fd);
	if (descriptor->file) {
		disk_unlock(descriptor->file, fd);
		disk_use(descriptor->file, -1);
	}
	if (descriptor->kind == LISTENER)
		loop_listen_no_more();
	if (descriptor->kind == WIRE)
		wire_close(descriptor->wire);
	descriptor->kind = CLOSED;
	descriptor->file = NULL;
	return 0;
}

static int stat_path(int folder, const char *path, struct stat *status, int flags)
{
	char full[PATHS];

	if (flags & AT_EMPTY_PATH && !*path && file_of(folder)) {
		disk_fstat(file_of(folder), status);
		return 0;
	}
	path = full_path(folder, path, full);
	if (!is_ours(path))
		return SYSTEM_REAL(fstatat)(folder, path, status, flags);
	return disk_stat(path, status);
}

int stat(const char *path, struct stat *status)
{
	return stat_path(AT_FDCWD, path, status, 0);
}

int lstat(const char *path, struct stat *status)
{
	return stat_path(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int fstatat(int folder, const char *path, struct stat *status, int flags)
{
	return stat_path(folder, path, status, flags);
}

int fstat(int fd, struct stat *status)
{
	const struct file *file = file_of(fd);

	if (!file)
		return SYSTEM_REAL(fstat)(fd, status);
	disk_fstat(file, status);
	return 0;
}

int stat64(const char *path, struct stat64 *status)
{
	return stat(path, (struct stat *)status);
}

int lstat64(const char *path, struct stat64 *status)
{
	return lstat(path, (struct stat *)status);
}

int fstatat64(int folder, const char *path, struct stat64 *status, int flags)
{
	return stat_path(folder, path, (struct stat *)status, flags);
}

int fstat64(int fd, struct stat64 *status)
{
	return fstat(fd, (struct stat *)status);
}

int faccessat(int folder, const char *path, int mode, int flags)
{
	char full[PATHS];
	struct stat status;

	path = full_path(folder, path, full);
	return is_ours(path) ? disk_stat(path, &status) : SYSTEM_REAL(faccessat)(folder, path, mode, flags);
}

int access(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, 0);
}

ssize_t readlink(const char *path, char *to, size_t size)
{
	if (!is_ours(path))
		return SYSTEM_REAL(readlink)(path, to, size);
	errno = EINVAL;
	return -1;
}

static int play_make_folder(const char *path, mode_t mode)
{
	return is_ours(path) ? disk_make_folder(path) : system_real.make_folder(path, mode);
}

static int play_unlink(int folder, const char *path, int flags)
{
	char full[PATHS];

	path = full_path(folder, path, full);
	return is_ours(path) ? disk_unlink(path) : system_real.unlink(folder, path, flags);
}

static int play_rename(int from_folder, const char *from, int to_folder, const char *to)
{
	char full[PATHS], other[PATHS];

	from = full_path(from_folder, from, full);
	to = full_path(to_folder, to, other);
	return is_ours(from) ? disk_rename(from, to) : system_real.rename(from_folder, from, to_folder, to);
}

/* ---- Folders. What opendir gives is a number and a name. */

struct listing {
	int fd;
	unsigned at;
	struct dirent entry;
};

DIR *fdopendir(int fd)
{
	struct listing *listing = file_of(fd) ? calloc(1, sizeof *listing) : NULL;

	if (listing)
		listing->fd = fd;
	return (DIR *)listing;
}

/* Only of the simulated disk. */
static DIR *play_open_folder(const char *path)
{
	int fd = is_ours(path) ? play_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0) : -1;

	return fd < 0 ? NULL : fdopendir(fd);
}

int dirfd(DIR *folder)
{
	return ((struct listing *)folder)->fd;
}

struct dirent *readdir(DIR *folder)
{
	struct listing *listing = (struct listing *)folder;
	const char *name = disk_list(disk_path(file_of(listing->fd)), listing->at++);

	if (!name)
		return NULL;
	(void)snprintf(listing->entry.d_name, sizeof listing->entry.d_name, "%s", name);
	return &listing->entry;
}

struct dirent64 *readdir64(DIR *folder)
{
	return (struct dirent64 *)readdir(folder);
}

int closedir(DIR *folder)
{
	(void)close(dirfd(folder));
	free(folder);
	return 0;
}

/* ---- Reading and writing */

static ssize_t play_read(int fd, void *bytes, size_t size, off_t offset)
{
	struct descriptor *descriptor = descriptor_of(fd);
	ssize_t got;

	if (!descriptor)
		return system_real.read(fd, bytes, size, offset);
	if (descriptor->kind == TIMER)
		return read_timer(descriptor, bytes);
	if (descriptor->kind == CHANCE) {
		memset(bytes, 0x77, size);
		return (ssize_t)size;
	}
	if (descriptor->kind == WIRE)
		return wire_read(descriptor->wire, bytes, size);
	if (descriptor->kind == EVENT)
		return read_event(descriptor, bytes);
	if (offset != SYSTEM_HERE)
		return disk_read(descriptor->file, bytes, size, (uint64_t)offset);
	got = disk_read(descriptor->file, bytes, size, descriptor->at);
	descriptor->at += got > 0 ? (uint64_t)got : 0;
	return got;
}

/* One write of all parts. */
static ssize_t play_write(int fd, const struct iovec *parts, int count, off_t offset)
{
	struct descriptor *descriptor = descriptor_of(fd);
	size_t size = 0;
	ssize_t written;
	char *bytes, *to;

	if (descriptor && descriptor->kind == WIRE)
		return wire_write(descriptor->wire, parts[0].iov_base, parts[0].iov_len);
	if (descriptor && descriptor->kind == EVENT)
		return write_event(descriptor, parts[0].iov_base);
	if (!descriptor || !descriptor->file)
		return system_real.write(fd, parts, count, offset);
	for (int i = 0; i < count; i++)
		size += parts[i].iov_len;
	to = bytes = malloc(size + 1);
	for (int i = 0; i < count; i++)
		to = (char *)mempcpy(to, parts[i].iov_base, parts[i].iov_len);
	written = disk_write(descriptor->file, bytes, size, offset == SYSTEM_HERE ? descriptor->at : (uint64_t)offset);
	if (offset == SYSTEM_HERE && written > 0)
		descriptor->at += (uint64_t)written;
	free(bytes);
	return written;
}

off_t lseek(int fd, off_t offset, int whence)
{
	struct descriptor *descriptor = descriptor_of(fd);
	struct stat status;

	if (!descriptor || !descriptor->file)
		return SYSTEM_REAL(lseek)(fd, offset, whence);
	disk_fstat(descriptor->file, &status);
	descriptor->at = (uint64_t)(offset + (whence == SEEK_END      ? status.st_size
	                                         : whence == SEEK_CUR ? (off_t)descriptor->at
	                                                              : 0));
	return (off_t)descriptor->at;
}

static int play_resize(int fd, off_t size)
{
	struct file *file = file_of(fd);

	return file ? disk_resize(file, (uint64_t)size) : system_real.resize(fd, size);
}

static int play_allocate(int fd, int mode, off_t offset, off_t size)
{
	struct file *file = file_of(fd);

	return file ? disk_allocate(file, (uint64_t)(offset + size)) : system_real.allocate(fd, mode, offset, size);
}

static int play_sync(int fd)
{
	struct file *file = file_of(fd);

	return file ? disk_sync(file) : system_real.sync(fd);
}

/* ---- Locks and mappings */

int flock(int fd, int operation)
{
	struct file *file = file_of(fd);

	if (!file)
		return SYSTEM_REAL(flock)(fd, operation);
	if (!(operation & LOCK_UN))
		return disk_lock(file, fd);
	disk_unlock(file, fd);
	return 0;
}

/* SQLite sees to its own connections in a process. There is no other process. */
static int control(int fd, int command, void *argument)
{
	if (command == F_GETLK || command == F_OFD_GETLK)
		((struct flock *)argument)->l_type = F_UNLCK;
	(void)fd;
	/* The server asks for a great number, to make room in its loop. */
	if (command != F_DUPFD_CLOEXEC)
		return 0;
	errno = EMFILE;
	return -1;
}

int fcntl(int fd, int command, ...)
{
	va_list more;

	va_start(more, command);
	void *argument = va_arg(more, void *);
	va_end(more);
	return descriptor_of(fd) ? control(fd, command, argument) : SYSTEM_REAL(fcntl)(fd, command, argument);
}

SYSTEM_ALSO(fcntl, fcntl64);

/* The server sets the mode of its socket, which is no file here. */
int chmod(const char *path, mode_t mode)
{
	return is_ours(path) ? 0 : SYSTEM_REAL(chmod)(path, mode);
}

int fchmod(int fd, mode_t mode)
{
	return descriptor_of(fd) ? 0 : SYSTEM_REAL(fchmod)(fd, mode);
}

int fchown(int fd, uid_t user, gid_t group)
{
	return descriptor_of(fd) ? 0 : SYSTEM_REAL(fchown)(fd, user, group);
}

/* SQLite's shared memory, which one process has alone: each region is memory. */
static void *play_map(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (descriptor_of(fd))
		return system_real.map(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return system_real.map(at, size, protection, flags, fd, offset);
}

FILE *fopen(const char *path, const char *mode)
{
	static char id[64];
	char kind[2] = {*mode, 0};
	int fd;

	if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
		(void)snprintf(id, sizeof id, "%08x-0000-4000-8000-000000000000\n", (unsigned)system_clock.boots);
		return fmemopen(id, strlen(id), "r");
	}
	fd = play_open(AT_FDCWD, path,
	    *kind == 'r'   ? O_RDONLY
	    : *kind == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
	                   : O_WRONLY | O_CREAT | O_APPEND,
	    0666);
	return fd < 0 || fd >= FIRST ? NULL : fdopen(fd, kind);
}

static ssize_t read_stream(void *fd, char *bytes, size_t size)
{
	return read((int)(intptr_t)fd, bytes, size);
}

static int close_stream(void *fd)
{
	return close((int)(intptr_t)fd);
}

/* To be read: the C library's own would read past these calls. */
FILE *fdopen(int fd, const char *mode)
{
	const cookie_io_functions_t calls = {.read = read_stream, .close = close_stream};

	return descriptor_of(fd) ? fopencookie((void *)(intptr_t)fd, mode, calls) : SYSTEM_REAL(fdopen)(fd, mode);
}

const struct system_policy system_policy = {
    .plays = {play_open, play_close, play_read, play_write, play_sync, play_resize, play_allocate, play_unlink,
        play_rename, play_make_folder, play_open_folder, play_map}};
