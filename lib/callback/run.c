/*
 * The pusher's thread: its turns, and its end.
 *
 * A turn:
 *   1. libcurl goes on with its transfers; each that has ended gives its delivery a result, or a redirection.
 *   2. Results are reported to the store, which frees their room.
 *   3. Leases of waiting deliveries are renewed.
 *   4. Waiting deliveries start whose host and tube have room; those of a host that rests are put off.
 *   5. Leases are reserved, as many as there is room for; those start, wait, or are put off.
 *   6. The thread sleeps in libcurl until a transfer, a wake, or the time when a step has to run again.
 *
 * When the pusher closes, nothing new starts, and waiting jobs are returned to the store at once; between redirections
 * they are reported as failed attempts. Requests under way may end until the grace is over. Then they are broken off and
 * reported as failed attempts, too. Results that the store still does not take are lost: their leases run out, and these
 * jobs come again.
 */
#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

enum { SLEEP_MAX_MS = 1000 };

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

/* The longest waiting first. */
static void start(struct ww_callback *callback, uint64_t now)
{
	struct delivery *next;

	for (struct delivery *delivery = callback->lists[CALLBACK_WAITING].first; delivery; delivery = next) {
		next = delivery->next;
		if (!ww_callback_room_to_start(callback) || !ww_callback_store_may(callback, now))
			break;
		ww_callback_try(delivery, now);
	}
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void sleep_until_something_happens(struct ww_callback *callback, int closing)
{
	const struct delivery_list *lists = callback->lists;
	uint64_t now = time_now(CLOCK_BOOTTIME);
	uint64_t until = now + SLEEP_MAX_MS * WW_MILLISECOND;

	if (closing)
		until = sooner(until, callback->grace_ends);
	else if (ww_callback_room_to_start(callback))
		until = sooner(until, callback->more ? now : callback->look);
	if (lists[CALLBACK_WAITING].count)
		until = sooner(until, callback->tend);
	if (lists[CALLBACK_UNREPORTED].count)
		until = now;
	/* While the store is left alone, only the transfers go on. */
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

/* A turn of the end. Returns 1 when all is reported, or the grace is over. */
static int end(struct ww_callback *callback, uint64_t now)
{
	int over = now >= callback->grace_ends;

	give_back_waiting(callback);
	if (over)
		break_off(callback);
	if (over || ww_callback_store_may(callback, now))
		ww_callback_report(callback, now);
	return over || (!callback->lists[CALLBACK_UNDER_WAY].first && !callback->lists[CALLBACK_UNREPORTED].first);
}

static void lose_unreported(struct ww_callback *callback)
{
	while (callback->lists[CALLBACK_UNREPORTED].first) {
		callback->unreported_at_end++;
		callback->counters.lost++;
		ww_callback_forget(callback->lists[CALLBACK_UNREPORTED].first);
	}
	if (callback->unreported_at_end)
		ww_callback_log(callback,
		    "The pusher ended with %zu results that the store did not take: these jobs come again.",
		    callback->unreported_at_end);
}

void *ww_callback_run(void *argument)
{
	struct ww_callback *callback = argument;

	for (;;) {
		int closing = callback->closing;
		transfer(callback);
		uint64_t now = time_now(CLOCK_BOOTTIME);
		if (closing && end(callback, now))
			break;
		if (!closing) {
			if (ww_callback_store_may(callback, now))
				ww_callback_report(callback, now);
			ww_callback_tend(callback, now);
			start(callback, now);
			ww_callback_take(callback, now);
		}
		sleep_until_something_happens(callback, closing);
	}
	lose_unreported(callback);
	return NULL;
}
