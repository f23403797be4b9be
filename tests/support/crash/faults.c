/*
 * Preloaded (LD_PRELOAD), it makes calls that write to files fail, or allocations of memory. tests/support/faults.py
 * shares the plan with it, in a file that FAULTS names. Until the plan is armed, all succeed. Sockets and pipes are left
 * alone.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum what { WRITE = 1, SYNC = 2, TRUNCATE = 4, MEMORY = 8 };

static struct plan {
	uint32_t calls;  /* so far */
	uint32_t first;  /* the first call that fails; 0: none */
	uint32_t times;  /* how many calls fail */
	uint32_t error;  /* their errno; 0: half is written, without an error */
	uint32_t what;   /* which calls are counted */
	uint32_t failed; /* so far */
	uint32_t done;   /* how many of the calls that fail do their work all the same */
} * plan;

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("FAULTS");
	int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *page;

	if (fd < 0)
		return;
	page = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		plan = page;
}

static int is_file(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

enum how { WORKS, FAILS, FAILS_DONE };

/* Count this call, and say whether it works or fails. */
static enum how fails(enum what what)
{
	uint32_t first = plan ? __atomic_load_n(&plan->first, __ATOMIC_SEQ_CST) : 0;
	uint32_t call;

	if (first == 0 || !(plan->what & what))
		return WORKS;
	call = __atomic_add_fetch(&plan->calls, 1, __ATOMIC_SEQ_CST);
	if (call < first || call - first >= plan->times)
		return WORKS;
	__atomic_add_fetch(&plan->failed, 1, __ATOMIC_SEQ_CST);
	errno = (int)plan->error;
	return call - first < plan->done ? FAILS_DONE : FAILS;
}

/*
 * The function that this one replaces, of the C library or of jemalloc. ISO C has no conversion between the two kinds of
 * pointers.
 */
#define REAL(name)                                                                                                     \
	((union {                                                                                                      \
		void *found;                                                                                           \
		__typeof__(&name) function;                                                                            \
	}){dlsym(RTLD_NEXT, #name)}                                                                                    \
	        .function)

/* The result of a call that writes. */
static ssize_t told(enum how how, ssize_t size)
{
	if (how == FAILS_DONE)
		errno = (int)plan->error;
	return how == FAILS_DONE ? -1 : size;
}

ssize_t write(int fd, const void *data, size_t size)
{
	enum how how = is_file(fd) ? fails(WRITE) : WORKS;

	if (how == FAILS)
		return plan->error ? -1 : REAL(write)(fd, data, size / 2);
	return told(how, REAL(write)(fd, data, size));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	enum how how = is_file(fd) ? fails(WRITE) : WORKS;

	if (how == FAILS)
		return plan->error ? -1 : REAL(pwrite)(fd, data, size / 2, offset);
	return told(how, REAL(pwrite)(fd, data, size, offset));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
	enum how how = is_file(fd) ? fails(WRITE) : WORKS;

	if (how == FAILS)
		return plan->error ? -1 : REAL(pwrite64)(fd, data, size / 2, offset);
	return told(how, REAL(pwrite64)(fd, data, size, offset));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	enum how how = is_file(fd) ? fails(WRITE) : WORKS;

	if (how == FAILS)
		return plan->error ? -1 : REAL(write)(fd, parts[0].iov_base, parts[0].iov_len / 2);
	return told(how, REAL(writev)(fd, parts, count));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	enum how how = is_file(fd) ? fails(WRITE) : WORKS;

	if (how == FAILS)
		return plan->error ? -1 : REAL(pwrite)(fd, parts[0].iov_base, parts[0].iov_len / 2, offset);
	return told(how, REAL(pwritev)(fd, parts, count, offset));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
	enum how how = is_file(fd) ? fails(WRITE) : WORKS;

	if (how == FAILS)
		return plan->error ? -1 : REAL(pwrite64)(fd, parts[0].iov_base, parts[0].iov_len / 2, offset);
	return told(how, REAL(pwritev64)(fd, parts, count, offset));
}

/* Of folders, too: their syncs make names stable. */
int fsync(int fd)
{
	return fails(SYNC) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
	return fails(SYNC) ? -1 : REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t size)
{
	return is_file(fd) && fails(TRUNCATE) ? -1 : REAL(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
	return is_file(fd) && fails(TRUNCATE) ? -1 : REAL(ftruncate64)(fd, size);
}

/* Returns its error instead of setting errno. */
static int allocate(int fd, off64_t offset, off64_t size)
{
	if (is_file(fd) && fails(TRUNCATE))
		return plan->error ? (int)plan->error : ENOSPC;
	return REAL(posix_fallocate64)(fd, offset, size);
}

int posix_fallocate(int fd, off_t offset, off_t size)
{
	return allocate(fd, offset, size);
}

int posix_fallocate64(int fd, off64_t offset, off64_t size)
{
	return allocate(fd, offset, size);
}

/* ---- Memory */

void *malloc(size_t size)
{
	static __typeof__(&malloc) real;

	if (!real)
		real = REAL(malloc);
	return fails(MEMORY) ? NULL : real(size);
}

void *calloc(size_t count, size_t size)
{
	static __typeof__(&calloc) real;

	if (!real)
		real = REAL(calloc);
	return fails(MEMORY) ? NULL : real(count, size);
}

void *realloc(void *memory, size_t size)
{
	static __typeof__(&realloc) real;

	if (!real)
		real = REAL(realloc);
	return size && fails(MEMORY) ? NULL : real(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(MEMORY) ? NULL : REAL(aligned_alloc)(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	return fails(MEMORY) ? ENOMEM : REAL(posix_memalign)(memory, alignment, size);
}

/* jemalloc's, of an arena. */
void *mallocx(size_t size, int flags);

void *mallocx(size_t size, int flags)
{
	return fails(MEMORY) ? NULL : REAL(mallocx)(size, flags);
}
