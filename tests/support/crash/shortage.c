/*
 * Preloaded (LD_PRELOAD), it makes allocations of memory fail. The plan is in a file that the test shares; SHORTAGE names
 * it. Until the plan is armed, all succeed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct plan {
	uint32_t calls;  /* so far */
	uint32_t first;  /* the first that fails; 0: none */
	uint32_t times;  /* how many fail */
	uint32_t failed; /* so far */
} * plan;

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

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("SHORTAGE");
	int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *page;

	if (fd < 0)
		return;
	page = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		plan = page;
}

static int fails(void)
{
	uint32_t first = plan ? __atomic_load_n(&plan->first, __ATOMIC_SEQ_CST) : 0;
	uint32_t call;

	if (first == 0)
		return 0;
	call = __atomic_add_fetch(&plan->calls, 1, __ATOMIC_SEQ_CST);
	if (call < first || call - first >= plan->times)
		return 0;
	__atomic_add_fetch(&plan->failed, 1, __ATOMIC_SEQ_CST);
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	static __typeof__(&malloc) real;

	if (!real)
		real = REAL(malloc);
	return fails() ? NULL : real(size);
}

void *calloc(size_t count, size_t size)
{
	static __typeof__(&calloc) real;

	if (!real)
		real = REAL(calloc);
	return fails() ? NULL : real(count, size);
}

void *realloc(void *memory, size_t size)
{
	static __typeof__(&realloc) real;

	if (!real)
		real = REAL(realloc);
	return size && fails() ? NULL : real(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : REAL(aligned_alloc)(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	return fails() ? ENOMEM : REAL(posix_memalign)(memory, alignment, size);
}

/* jemalloc's, of an arena. */
void *mallocx(size_t size, int flags);

void *mallocx(size_t size, int flags)
{
	return fails() ? NULL : REAL(mallocx)(size, flags);
}
