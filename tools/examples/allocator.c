/* A wheel whose memory comes from an arena, which counts it. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

int main(void)
{
	struct ww_arena *arena;
	struct ww_wheel_config config;
	struct ww_wheel *wheel;
	size_t bytes;

	if (ww_arena_create(&arena) || ww_wheel_config_default(&config))
		return 1;
	config.allocator = ww_arena_allocator(arena);
	if (ww_wheel_create(&wheel, &config) || ww_arena_used(arena, &bytes))
		return 1;
	printf("%zu bytes of %s\n", bytes, ww_allocator_name());
	ww_wheel_destroy(wheel);
	ww_arena_destroy(arena);
	return 0;
}
