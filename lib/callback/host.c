/* The hosts that have deliveries: a hash table. */
#include <string.h>
#include <strings.h>

#include "lib/callback/callback_internal.h"

static struct host **bucket_of(const struct ww_callback *callback, const struct callback_url *url)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ url->port;

	for (size_t i = 0; i < url->host.size; i++)
		hash = (hash ^ (unsigned char)(url->host.data[i] | 0x20)) * UINT64_C(0x100000001b3);
	return &callback->hosts[(hash ^ hash >> 32) & (callback->host_buckets - 1)];
}

int ww_callback_host_take(struct ww_callback *callback, const struct callback_url *url, struct host **host)
{
	struct host **bucket = bucket_of(callback, url);
	struct host *found = *bucket;

	while (found && (found->port != url->port || found->size != url->host.size ||
	                    strncasecmp(found->name, url->host.data, found->size) != 0))
		found = found->next;
	if (!found) {
		found = memory_take(callback->allocator, sizeof *found + url->host.size);
		if (!found)
			return WW_ENOMEM;
		*found = (struct host){.next = *bucket, .port = url->port, .size = url->host.size};
		memcpy(found->name, url->host.data, found->size);
		*bucket = found;
	}
	found->deliveries++;
	*host = found;
	return WW_OK;
}

void ww_callback_host_leave(struct ww_callback *callback, struct host *host)
{
	const struct callback_url url = {.host = {host->name, host->size}, .port = host->port};
	struct host **at = bucket_of(callback, &url);

	if (--host->deliveries)
		return;
	while (*at != host)
		at = &(*at)->next;
	*at = host->next;
	memory_give(callback->allocator, host, sizeof *host + host->size);
}
