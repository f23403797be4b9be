/* An expiring map: two values that expire after a week without use, on a virtual clock. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

static void gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	printf("%.*s's %s: %s\n", (int)length, (const char *)key, (char *)value,
	    why == WW_GONE_EXPIRED ? "a week without a word" : "the map is closed");
	(void)map;
	(void)user;
}

int main(void)
{
	struct ww_driver_config config;
	struct ww_session_config sessions;
	struct ww_driver *driver;
	struct ww_session *map;
	struct ww_clock *clock; /* virtual: the week passes at once; config.clock = NULL is the real clock */

	ww_driver_config_default(&config);
	ww_session_config_default(&sessions); /* a TTL of a week */
	sessions.gone = gone;
	if (ww_clock_virtual_create(&clock, 0, NULL) || !(config.clock = clock) || ww_driver_create(&driver, &config) ||
	    ww_session_create(&map, driver, &sessions))
		return 1;
	ww_session_set(map, "ada", 3, "cart", 0, NULL);
	ww_session_set(map, "bob", 3, "list", 0, NULL);
	for (int day = 1; day <= 8; day++) {
		ww_clock_virtual_advance(clock, 24 * 3600 * WW_SECOND);
		ww_session_refresh(map, "ada", 3, 0, NULL); /* a heartbeat: a week from now */
		ww_driver_settle(driver);                   /* the clock jumped: wait until all that is due has run */
	}
	return ww_session_destroy(map) || ww_driver_destroy(driver) || ww_clock_virtual_destroy(clock);
}
