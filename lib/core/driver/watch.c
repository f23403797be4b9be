/*
 * Watches: objects that must be notified of a driver's stop, because they wait for something that will no longer come.
 */

#include "lib/core/driver/driver_internal.h"

void ww_driver_watch(struct ww_driver *driver, struct stop_watch *watch)
{
	pthread_mutex_lock(&driver->watch_lock);
	watch->next = driver->watches;
	watch->link = &driver->watches;
	if (watch->next)
		watch->next->link = &watch->next;
	driver->watches = watch;
	pthread_mutex_unlock(&driver->watch_lock);
}

void ww_driver_unwatch(struct ww_driver *driver, const struct stop_watch *watch)
{
	pthread_mutex_lock(&driver->watch_lock);
	*watch->link = watch->next;
	if (watch->next)
		watch->next->link = watch->link;
	pthread_mutex_unlock(&driver->watch_lock);
}

void ww_driver_notify_stop(struct ww_driver *driver)
{
	pthread_mutex_lock(&driver->watch_lock);
	for (struct stop_watch *watch = driver->watches; watch; watch = watch->next)
		watch->stopped(watch);
	pthread_mutex_unlock(&driver->watch_lock);
}

int ww_driver_is_held(struct ww_driver *driver)
{
	const struct stop_watch *watch;

	pthread_mutex_lock(&driver->watch_lock);
	watch = driver->watches;
	while (watch && !watch->holds)
		watch = watch->next;
	pthread_mutex_unlock(&driver->watch_lock);
	return watch != NULL;
}
