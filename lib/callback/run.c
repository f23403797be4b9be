/* The pusher's thread: its turns, and its end. */
#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

enum { SLEEP_MAX_MS = 1000 };

/* Let libcurl go on, and take what has ended. */
static void transfer(struct ww_callback *callback)
{
	struct CURLMsg *message;
	struct delivery *delivery;
	int running;
	int left;

	(void)curl_multi_perform(callback->multi, &running);
	while ((message = curl_multi_info_read(callback->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		delivery = NULL;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&delivery);
		ww_callback_answer(delivery, message->data.result);
	}
}

/* Start what waits for a host that has room, the longest waiting first. */
static void start(struct ww_callback *callback, uint64_t now)
{
	struct delivery *next;

	for (struct delivery *delivery = callback->lists[CALLBACK_WAITING].first; delivery; delivery = next) {
		next = delivery->next;
		if (!ww_callback_may_start(callback) || !ww_callback_store_may(callback, now))
			break;
		if (delivery->host->under_way < callback->config.per_host)
			ww_callback_send(delivery, now);
	}
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void sleep_until_something_happens(struct ww_callback *callback, int closing)
{
	const struct list *lists = callback->lists;
	uint64_t now = ww_callback_time();
	uint64_t until = now + SLEEP_MAX_MS * WW_MILLISECOND;

	if (closing)
		until = sooner(until, callback->grace_ends);
	else if (ww_callback_may_start(callback))
		until = sooner(until, callback->more ? now : callback->look);
	if (lists[CALLBACK_WAITING].count)
		until = sooner(until, callback->tend);
	if (lists[CALLBACK_UNTOLD].count)
		until = now;
	/* Nothing but what is under way goes on while the store is to be left alone. */
	if (callback->ask_again > now)
		until = closing ? sooner(callback->grace_ends, callback->ask_again) : callback->ask_again;
	until = until > now ? until - now : 0;
	until = sooner((until + WW_MILLISECOND - 1) / WW_MILLISECOND, SLEEP_MAX_MS);
	(void)curl_multi_poll(callback->multi, NULL, 0, (int)until, NULL);
}

/* ---- The end */

static void give_back_waiting(struct ww_callback *callback)
{
	struct delivery *delivery;

	while ((delivery = callback->lists[CALLBACK_WAITING].first)) {
		if (delivery->redirects)
			ww_callback_result(
			    delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "the pusher ended between redirections");
		else
			ww_callback_result(delivery, CALLBACK_GIVE_BACK, 0, NULL);
	}
}

static void break_off(struct ww_callback *callback)
{
	struct delivery *delivery;

	while ((delivery = callback->lists[CALLBACK_UNDER_WAY].first)) {
		ww_callback_stop(delivery);
		ww_callback_clean(delivery);
		ww_callback_result(delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "the pusher ended before the answer came");
	}
}

/* Returns 1 when all is told, or the grace is over. */
static int end(struct ww_callback *callback, uint64_t now)
{
	int over = now >= callback->grace_ends;

	give_back_waiting(callback);
	if (over)
		break_off(callback);
	if (over || ww_callback_store_may(callback, now))
		ww_callback_tell(callback, now);
	return over || (!callback->lists[CALLBACK_UNDER_WAY].first && !callback->lists[CALLBACK_UNTOLD].first);
}

static void lose_untold(struct ww_callback *callback)
{
	while (callback->lists[CALLBACK_UNTOLD].first) {
		callback->untold_at_end++;
		callback->counters.lost++;
		ww_callback_forget(callback->lists[CALLBACK_UNTOLD].first);
	}
	if (callback->untold_at_end)
		ww_callback_say(callback,
		    "The pusher ended with %zu results that the store did not take: these jobs come again.",
		    callback->untold_at_end);
}

void *ww_callback_run(void *argument)
{
	struct ww_callback *callback = argument;

	for (;;) {
		int closing = callback->closing;
		transfer(callback);
		uint64_t now = ww_callback_time();
		if (closing && end(callback, now))
			break;
		if (!closing) {
			if (ww_callback_store_may(callback, now))
				ww_callback_tell(callback, now);
			ww_callback_tend(callback, now);
			start(callback, now);
			ww_callback_take(callback, now);
		}
		sleep_until_something_happens(callback, closing);
	}
	lose_untold(callback);
	return NULL;
}
