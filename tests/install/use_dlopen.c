/*
 * A program that opens an installed weekwheel as a plugin: use_dlopen LIBRARY ALLOCATOR [LATER]. The library must take
 * its memory from ALLOCATOR. LATER is a jemalloc that the program opens afterwards, with its symbols visible to all.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <weekwheel/weekwheel.h>

static int expired;

static void expire(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)wheel;
	(void)timer;
	(void)missed;
	expired++;
}

/* ISO C has no conversion from an object pointer to a function pointer. */
#define FIND(name)                                                                                                     \
	do {                                                                                                           \
		void *found = dlsym(library, #name);                                                                   \
		memcpy(&name##_, &found, sizeof found);                                                                \
		if (found == NULL)                                                                                     \
			return fail(#name " is missing");                                                              \
	} while (0)

#define EXPECT(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return fail(#condition);                                                                       \
	} while (0)

static int fail(const char *what)
{
	(void)fprintf(stderr, "use_dlopen: %s\n", what);
	return 1;
}

int main(int count, char **arguments)
{
	const char *(*ww_allocator_name_)(void);
	const struct ww_allocator *(*ww_arena_allocator_)(struct ww_arena *);
	int (*ww_arena_create_)(struct ww_arena **);
	void (*ww_arena_destroy_)(struct ww_arena *);
	int (*ww_driver_create_)(struct ww_driver **, const struct ww_driver_config *);
	int (*ww_driver_destroy_)(struct ww_driver *);
	int (*ww_wheel_create_)(struct ww_wheel **, const struct ww_wheel_config *);
	int (*ww_wheel_destroy_)(struct ww_wheel *);
	int (*ww_wheel_schedule_)(struct ww_wheel *, struct ww_timer *, uint64_t);
	int (*ww_wheel_advance_)(struct ww_wheel *, uint64_t, size_t, size_t *);
	struct ww_timer timer = WW_TIMER_INIT(expire);
	const struct ww_allocator *table;
	struct ww_driver *driver;
	struct ww_arena *arena;
	struct ww_wheel *wheel;
	void *library, *block;

	EXPECT(count == 3 || count == 4);
	library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	if (library == NULL || (count == 4 && dlopen(arguments[3], RTLD_NOW | RTLD_GLOBAL) == NULL))
		return fail(dlerror());
	FIND(ww_allocator_name);
	FIND(ww_arena_allocator);
	FIND(ww_arena_create);
	FIND(ww_arena_destroy);
	FIND(ww_driver_create);
	FIND(ww_driver_destroy);
	FIND(ww_wheel_create);
	FIND(ww_wheel_destroy);
	FIND(ww_wheel_schedule);
	FIND(ww_wheel_advance);

	EXPECT(strcmp(ww_allocator_name_(), arguments[2]) == 0);
	EXPECT(ww_wheel_create_(&wheel, NULL) == WW_OK);
	EXPECT(ww_wheel_schedule_(wheel, &timer, 1800) == WW_OK);
	EXPECT(ww_wheel_advance_(wheel, 1799, WW_UNLIMITED, NULL) == WW_OK && expired == 0);
	EXPECT(ww_wheel_advance_(wheel, 1800, WW_UNLIMITED, NULL) == WW_OK && expired == 1);
	EXPECT(ww_wheel_destroy_(wheel) == WW_OK);
	EXPECT(ww_arena_create_(&arena) == WW_OK);
	table = ww_arena_allocator_(arena);
	block = table->allocate(table->user, 100);
	EXPECT(block != NULL);
	table->free(table->user, block, 100);
	ww_arena_destroy_(arena);

	/* Threads of a driver that is left run on in the library. */
	EXPECT(ww_driver_create_(&driver, NULL) == WW_OK);
	if (dlclose(library) != 0)
		return fail(dlerror());
	EXPECT(ww_driver_destroy_(driver) == WW_OK);
	return 0;
}
