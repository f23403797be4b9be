/* Groups of sources: how a layer has its timers driven, and how it leaves the driver again. */

#include "lib/core/driver/driver_internal.h"

/* The group, its sources and their wheels are one block of memory. */
int ww_group_attach(struct timer_group **group, struct ww_driver *driver, const struct group_ops *ops, void *owner,
    void *shards, size_t stride, uint32_t count)
{
	const struct ww_allocator *allocator = driver->allocator;
	uint32_t wheels = driver->clock == ww_clock_elapsed() ? 1 : 2;
	struct ww_wheel_config config;
	struct timer_group *made;
	size_t wheel_bytes, bytes;
	char *memory;
	int error = ww_driver_refuses(driver);

	if (error)
		return error;
	ww_driver_wheel_config(driver, &config);
	(void)ww_wheel_size(&config, &wheel_bytes);
	wheel_bytes = (wheel_bytes + 63) / 64 * 64;
	bytes = sizeof *made + count * (sizeof made->source[0] + wheels * wheel_bytes);
	made = allocator->allocate(allocator->user, bytes);
	if (!made)
		return WW_ENOMEM;
	*made = (struct timer_group){.driver = driver, .ops = ops, .owner = owner, .bytes = bytes, .count = count};
	made->wheel_bytes = wheel_bytes;
	made->drops = ops->drop && driver->flags & WW_DRIVER_DROP;
	made->waits = ops->run && !made->drops;
	memory = (char *)&made->source[count];
	for (uint32_t i = 0; i < count; i++, memory += wheels * wheel_bytes) {
		made->source[i] = (struct timer_source){.group = made, .shard = (char *)shards + i * stride};
		ww_source_init(&made->source[i], memory, wheels == 2 ? memory + wheel_bytes : NULL);
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

	if (ww_driver_forked(driver))
		/* No lock is taken: a thread that is not there may hold any. */
		forget_group(group);
	else {
		pthread_mutex_lock(&driver->groups_lock);
		forget_group(group);
		pthread_mutex_unlock(&driver->groups_lock);
		(void)ww_queue_withdraw_all(&driver->queue, group);
		ww_queue_wait_group(&driver->queue, group);
		for (uint32_t i = 0; i < group->count; i++)
			pthread_mutex_destroy(&group->source[i].lock);
	}
	driver->allocator->free(driver->allocator->user, group, group->bytes);
}

struct timer_source *ww_group_source(struct timer_group *group, uint32_t i)
{
	return &group->source[i];
}

size_t ww_group_bytes(const struct timer_group *group)
{
	return group->bytes;
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
