/* Keyed timers: two retries, one of which is brought forward and one removed. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

static void retry(struct ww_keyed *timers, const struct ww_keyed_entry *entry, void *user)
{
	printf("%.*s: try again with %s\n", (int)entry->length, (const char *)entry->key, (char *)entry->value);
	(void)timers;
	(void)user;
}

int main(void)
{
	struct ww_driver *driver;
	struct ww_keyed *timers;
	struct ww_keyed_config config = {.fn = retry};
	uint64_t version;

	if (ww_driver_create(&driver, NULL) || ww_keyed_create(&timers, driver, &config))
		return 1;
	ww_keyed_set(timers, "mail.example", 12, "letter 7", 3600 * WW_SECOND, &version, NULL);
	ww_keyed_set(timers, "web.example", 11, "page 3", 3600 * WW_SECOND, NULL, NULL);
	ww_keyed_move(timers, "mail.example", 12, version, 20 * WW_MILLISECOND); /* it is back: soon, not in an hour */
	ww_keyed_remove(timers, "web.example", 11, WW_KEYED_ANY, NULL);          /* given up */
	ww_sleep(driver, 200 * WW_MILLISECOND);
	return ww_keyed_destroy(timers) || ww_driver_destroy(driver);
}
