/* Groups of sources: how a layer has its timers driven, and how it leaves the driver again. */

#include "lib/core/driver/driver_internal.h"

static size_t group_size(uint32_t count)
{
	return sizeof(struct timer_group) + count * sizeof(struct timer_source);
}

/* The memory alone; locks may be held by threads that are not there. */
static void free_group(struct timer_group *group, uint32_t count)
{
	const struct ww_allocator *allocator = group->driver->allocator;

	for (uint32_t i = 0; i < group->count; i++)
		ww_source_free(&group->source[i]);
	allocator->free(allocator->user, group, group_size(count));
}

static void destroy_group(struct timer_group *group, uint32_t count)
{
	for (uint32_t i = 0; i < group->count; i++)
		pthread_mutex_destroy(&group->source[i].lock);
	free_group(group, count);
}

int ww_group_attach(struct timer_group **group, struct ww_driver *driver, const struct group_ops *ops, void *owner,
    void *shards, size_t stride, uint32_t count)
{
	const struct ww_allocator *allocator = driver->allocator;
	struct ww_wheel_config config;
	struct timer_group *made;
	int error = ww_driver_refuses(driver);

	if (error)
		return error;
	made = allocator->allocate(allocator->user, group_size(count));
	if (!made)
		return WW_ENOMEM;
	*made = (struct timer_group){.driver = driver, .ops = ops, .owner = owner};
	made->drops = ops->drop && driver->flags & WW_DRIVER_DROP;
	made->waits = ops->run && !made->drops;
	ww_driver_wheel_config(driver, &config);
	(void)ww_wheel_size(&config, &made->wheel_bytes);
	for (; !error && made->count < count; made->count += !error) {
		struct timer_source *source = &made->source[made->count];
		*source = (struct timer_source){.group = made, .shard = (char *)shards + made->count * stride};
		error = ww_source_create(source);
	}
	if (error) {
		destroy_group(made, count);
		return error;
	}
	pthread_mutex_lock(&driver->groups_lock);
	made->next = driver->groups;
	driver->groups = made;
	*group = made;
	pthread_mutex_unlock(&driver->groups_lock);
	return WW_OK;
}

static void forget_group(const struct timer_group *group)
{
	struct timer_group **link = &group->driver->groups;

	while (*link != group)
		link = &(*link)->next;
	*link = group->next;
}

void ww_group_detach(struct timer_group *group)
{
	struct ww_driver *driver = group->driver;

	if (ww_driver_forked(driver)) {
		forget_group(group);
		free_group(group, group->count);
		return;
	}
	pthread_mutex_lock(&driver->groups_lock);
	forget_group(group);
	pthread_mutex_unlock(&driver->groups_lock);
	(void)ww_queue_withdraw_all(&driver->queue, group);
	ww_queue_wait_group(&driver->queue, group);
	destroy_group(group, group->count);
}

struct timer_source *ww_group_source(struct timer_group *group, uint32_t i)
{
	return &group->source[i];
}

size_t ww_group_bytes(const struct timer_group *group)
{
	uint32_t wheels = group->source[0].spare ? 2 : 1;

	return group_size(group->count) + group->count * wheels * group->wheel_bytes;
}

int ww_group_inside(const struct timer_group *group)
{
	return ww_queue_inside(&group->driver->queue, group, NULL);
}

int ww_group_withdraw(struct timer_group *group, struct firing *firing)
{
	return ww_queue_withdraw(&group->driver->queue, firing);
}

struct firing *ww_group_withdraw_all(struct timer_group *group)
{
	return ww_queue_withdraw_all(&group->driver->queue, group);
}
