/* A call that fails, and the sentence that says why. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

int main(void)
{
	struct ww_wheel_config config;
	struct ww_wheel *wheel = NULL;

	ww_wheel_config_default(&config);
	config.levels = 9; /* WW_LEVELS_MAX is 6 */
	int error = ww_wheel_create(&wheel, &config);
	if (error < 0)
		printf("no wheel: %s\n", ww_strerror(error)); /* nothing has changed: wheel is still NULL */
	return ww_wheel_destroy(wheel) != WW_OK;
}
