/* The memory that some wheels take, and how far they reach. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

static void show(const char *what, uint32_t levels, const uint32_t *slots)
{
	struct ww_wheel_config config;
	uint64_t horizon = 1;
	size_t bytes;

	ww_wheel_config_default(&config);
	config.levels = levels;
	for (uint32_t i = 0; i < levels; i++)
		horizon *= config.slots[i] = slots[i];
	if (ww_wheel_size(&config, &bytes) == WW_OK)
		printf("%-28s %6zu bytes, %11llu ticks\n", what, bytes, (unsigned long long)horizon);
}

int main(void)
{
	show("60", 1, (const uint32_t[]){60});
	show("60, 60", 2, (const uint32_t[]){60, 60});
	show("60, 60, 24, 7: the default", 4, (const uint32_t[]){60, 60, 24, 7});
	show("64, 64, 64, 64", 4, (const uint32_t[]){64, 64, 64, 64});
	show("64, 64, 64, 64, 64, 64", 6, (const uint32_t[]){64, 64, 64, 64, 64, 64});
	return 0;
}
