/*
 * A cache of pages that are slow to make. It holds 64 KiB of them, makes a page anew before it expires, keeps a failure
 * for a second, and counts visits of a page in its value, next to other threads.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weekwheel/weekwheel.h>

struct page { /* never changed; its last holder frees it */
	_Atomic int holders;
	int visits;
	char text[32];
};

static struct page *new_page(const char *text, int visits)
{
	struct page *page = calloc(1, sizeof *page);

	if (page) {
		*page = (struct page){.holders = 1, .visits = visits};
		snprintf(page->text, sizeof page->text, "%s", text);
	}
	return page;
}

static void let_go(struct page *page)
{
	if (atomic_fetch_sub(&page->holders, 1) == 1)
		free(page);
}

static void gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	let_go(value); /* the map's own reference */
	(void)map, (void)key, (void)length, (void)why, (void)user;
}

/* Under the map's lock: the page cannot leave the map before the reference is taken. */
static void hold(void *value, void *context)
{
	struct page *page = value;

	page->holders++;
	*(struct page **)context = page;
}

/* The same, and what else the map has for the key. */
static int hold_found(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct page *page = found->value;

	page->holders++;
	*(struct ww_session_found *)context = *found;
	(void)key, (void)length;
	return 0;
}

static int make_page(const void *key, size_t length, void **value, struct ww_session_order *order, void *context)
{
	char text[32];

	printf("make %.*s\n", (int)length, (const char *)key);
	if (length == 5 && !memcmp(key, "/none", 5))
		return WW_ENOTFOUND;
	snprintf(text, sizeof text, "the page %.*s", (int)length, (const char *)key);
	*value = new_page(text, 0);
	order->weight = sizeof(struct page);
	(void)context;
	return *value ? WW_OK : WW_ENOMEM;
}

static void show(struct ww_session *map, const char *key)
{
	struct page *page = NULL;
	void *value;
	const struct ww_session_loading how = {
	    .load = make_page,
	    .look = hold,
	    .look_context = &page,
	    .ahead = 800,              /* who finds a page of 8 seconds makes it anew, and nobody waits */
	    .keep_failure = WW_SECOND, /* calls within a second get the same error */
	};
	int answer = ww_session_take_by(map, key, strlen(key), &how, &value);

	printf("%s: %s\n", key, answer < 0 ? "no such page" : page->text);
	if (answer >= 0)
		let_go(page);
}

/* Compare and set: two threads that count at one moment count two. */
static int count(struct ww_session *map, const char *key)
{
	struct ww_session_found found;
	struct page *page, *next;
	int error = WW_ESTALE;

	while (error == WW_ESTALE && ww_session_inspect(map, key, strlen(key), hold_found, &found) == 1) {
		/* What the order does not give begins anew: it keeps the TTL, the end, the weight and the pin. */
		const struct ww_session_order order = {
		    .ttl = found.ttl,
		    .version = found.version,
		    .flags = found.flags | WW_SESSION_KEEP_END,
		    .weight = found.weight,
		};
		page = found.value;
		next = new_page(page->text, page->visits + 1);
		let_go(page);
		error = next ? ww_session_put(map, key, strlen(key), next, &order, NULL, NULL) : WW_ENOMEM;
		if (next && error)
			let_go(next);
	}
	return error;
}

static int print(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	const struct page *page = found->value;

	printf("%.*s: %d visits, ends in %d s\n", (int)length, (const char *)key, page->visits,
	    (int)(found->end_left / WW_SECOND));
	(void)context;
	return 0;
}

int main(void)
{
	struct ww_driver_config config;
	struct ww_session_config pages;
	struct ww_driver *driver;
	struct ww_session *map;
	struct ww_clock *clock;

	ww_driver_config_default(&config);
	ww_session_config_default(&pages);
	pages.ttl = 10 * WW_SECOND;
	pages.lifetime = 60 * WW_SECOND;
	pages.weight_limit =
	    64 << 10; /* in bytes, since make_page gives bytes; a page weighs at most a shard's share */
	pages.shards = 1;
	pages.gone = gone;
	if (ww_clock_virtual_create(&clock, 0, NULL) || !(config.clock = clock) || ww_driver_create(&driver, &config) ||
	    ww_session_create(&map, driver, &pages))
		return 1;
	show(map, "/home");
	show(map, "/home");
	show(map, "/none");
	show(map, "/none");
	ww_clock_virtual_advance(clock, 9 * WW_SECOND);
	show(map, "/home"); /* made anew, ahead of its end */
	ww_clock_virtual_advance(clock, 5 * WW_SECOND);
	count(map, "/home");
	ww_session_walk(map, print, NULL, NULL);
	return ww_session_destroy(map) || ww_driver_destroy(driver) || ww_clock_virtual_destroy(clock);
}
