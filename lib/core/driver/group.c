/* Groups of sources: how a layer has its timers driven, and how it leaves the driver again. */

#include "lib/core/driver/driver_internal.h"

/* The group and its sources are one block of memory. */
int ww_group_attach(struct timer_group **group, struct ww_driver *driver, const struct group_ops *ops, void *owner,
    void *shards, size_t stride, uint32_t count)
{
	const struct ww_allocator *allocator = driver->allocator;
	size_t bytes = sizeof(struct timer_group) + count * sizeof(struct timer_source);
	struct timer_group *made;
	int error = ww_driver_refuses(driver);

	if (error)
		return error;
	made = allocator->allocate(allocator->user, bytes);
	if (!made)
		return WW_ENOMEM;
	*made = (struct timer_group){.driver = driver, .ops = ops, .owner = owner, .bytes = bytes, .count = count};
	made->drops = ops->drop && driver->flags & WW_DRIVER_DROP;
	made->waits = ops->run && !made->drops;
	for (uint32_t i = 0; i < count; i++) {
		struct timer_source *source = &made->source[i];
		*source = (struct timer_source){.group = made, .next = WW_NEVER, .at = WW_NEVER};
		source->shard = (char *)shards + i * stride;
		pthread_mutex_init(&source->lock, NULL);
	}
	if (ops->run)
		ww_queue_join(&driver->queue, &made->lane);
	driver->groups++;
	*group = made;
	return WW_OK;
}

/*
 * A pass does not look at the group's sources any more. Its firings that still run may schedule in them, but the agenda
 * leaves alone what is held.
 */
static void hold_sources(struct timer_group *group)
{
	struct agenda *agenda = &group->driver->agenda;

	pthread_mutex_lock(&agenda->lock);
	for (uint32_t i = 0; i < group->count; i++)
		ww_agenda_take(agenda, &group->source[i]);
	pthread_mutex_unlock(&agenda->lock);
}

/* Nobody uses the sources any more. Here is the last look at what they have changed. */
static void forget_sources(struct timer_group *group)
{
	struct agenda *agenda = &group->driver->agenda;

	pthread_mutex_lock(&agenda->lock);
	(void)ww_agenda_first(agenda);
	pthread_mutex_unlock(&agenda->lock);
	for (uint32_t i = 0; i < group->count; i++)
		pthread_mutex_destroy(&group->source[i].lock);
}

void ww_group_leave(struct timer_group *group)
{
	hold_sources(group);
	if (group->ops->run)
		(void)ww_queue_withdraw_all(&group->driver->queue, group);
	group->left = 1;
	group->driver->groups--;
}

void ww_group_afterwards(const struct timer_group *group, void (*afterwards)(void *argument), void *argument)
{
	ww_queue_afterwards(group, afterwards, argument);
}

void ww_group_detach(struct timer_group *group)
{
	struct ww_driver *driver = group->driver;

	/* In a child of the process no lock is taken: a thread that is not there may hold any. */
	if (ww_driver_forked(driver))
		driver->groups -= (size_t)!group->left;
	else {
		if (!group->left)
			ww_group_leave(group);
		if (group->ops->run)
			ww_queue_leave(&driver->queue, &group->lane);
		forget_sources(group);
	}
	for (uint32_t i = 0; i < group->count; i++)
		ww_source_free_wheel(&group->source[i]);
	driver->allocator->free(driver->allocator->user, group, group->bytes);
}

void ww_group_share(struct timer_group *group, uint32_t share)
{
	struct queue *queue = &group->driver->queue;

	pthread_mutex_lock(&queue->lock);
	group->lane.share = share ? share : 1;
	pthread_mutex_unlock(&queue->lock);
}

struct timer_source *ww_group_source(struct timer_group *group, uint32_t i)
{
	return &group->source[i];
}

size_t ww_group_bytes(const struct timer_group *group)
{
	return group->bytes + group->wheels * group->driver->wheel_bytes;
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
