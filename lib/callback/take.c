/*
 * Taking leases: as many as there is room for.
 *
 * While fewer jobs wait for their hosts than may (config.waiting), leases are taken from all tubes at once in the
 * store's order, and a job that cannot start waits. Once that many wait, the jobs of one busy host would hide all ready
 * jobs behind them. Then:
 *   1. Each tube in turn is asked for a few jobs, beginning with another tube each time.
 *   2. Those that can start do. The rest are returned to the store, and are ready again at once in their old place.
 *   3. A tube of which nothing could start rests for 10 polls, 1 s at most. Otherwise the same jobs would go in a
 *      circle.
 */
#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

/* Leases of a turn: more would keep the transfers waiting. And of a tube, when no more may wait. */
enum { BATCH = 64, BATCH_BEYOND = 16 };

/* How long a tube rests. */
enum { REST_POLLS = 10 };
#define REST_MAX WW_SECOND

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t ww_callback_room_to_start(const struct ww_callback *callback)
{
	const size_t taken = callback->lists[CALLBACK_UNDER_WAY].count + callback->lists[CALLBACK_UNTOLD].count;

	return taken < callback->config.in_flight ? callback->config.in_flight - taken : 0;
}

static size_t room_to_wait(const struct ww_callback *callback)
{
	const size_t waiting = callback->lists[CALLBACK_WAITING].count;

	return waiting < callback->config.waiting ? callback->config.waiting - waiting : 0;
}

static void accept_all(struct ww_callback *callback, const struct ww_lease *leases, int count, uint64_t real_now)
{
	uint64_t now = 0;

	(void)ww_jobs_now(callback->config.jobs, 0, &now);
	for (int i = 0; i < count; i++) {
		struct delivery *delivery = ww_callback_fresh(callback);
		delivery->lease = leases[i];
		delivery->touched = now;
		delivery->run = leases[i].ends > now ? leases[i].ends - now : 0;
		callback->counters.reserved++;
		ww_callback_accept(delivery, real_now);
	}
}

/* Take up to `most` leases, with a delivery for each. Returns how many; 0 also if the store fails. */
static size_t take(struct ww_callback *callback, const char *const *tubes, size_t tube_count, size_t most, uint64_t now)
{
	struct ww_lease leases[BATCH];
	size_t wanted = ww_callback_prepare(callback, most);
	int result =
	    wanted ? ww_jobs_reserve_many(callback->config.jobs, tubes, tube_count, leases, wanted) : WW_ENOMEM;

	/* Any error makes a pause, also one about a job, such as a record that cannot be read: it would come again. */
	if (result < 0) {
		ww_callback_store_lost(callback, result, now);
		return 0;
	}
	(void)ww_callback_store_failed(callback, WW_OK, now);
	accept_all(callback, leases, result, now);
	return (size_t)result;
}

/* ---- When no more may wait */

static uint64_t rest_of(const struct ww_callback_config *config)
{
	return config->poll < REST_MAX / REST_POLLS ? REST_POLLS * config->poll : REST_MAX;
}

/* Return the jobs that wait behind the first `held`. */
static size_t return_beyond(struct ww_callback *callback, size_t held)
{
	const struct delivery_list *waiting = &callback->lists[CALLBACK_WAITING];
	size_t returned = 0;

	for (; waiting->count > held; returned++)
		ww_callback_result(waiting->last, CALLBACK_GIVE_BACK, 0, NULL);
	return returned;
}

static void take_beyond(struct ww_callback *callback, size_t tube, uint64_t now)
{
	const char *name = callback->config.tubes[tube];
	const size_t held = callback->lists[CALLBACK_WAITING].count;
	const size_t wanted = smaller(BATCH_BEYOND, ww_callback_room_to_start(callback));
	const size_t taken = take(callback, &name, 1, wanted, now);
	const size_t returned = return_beyond(callback, held);

	callback->left |= returned > 0;
	callback->more |= taken == wanted && returned < taken;
	if (returned && returned == taken)
		callback->rests[tube] = now + rest_of(&callback->config);
}

static void take_all_beyond(struct ww_callback *callback, uint64_t now)
{
	const size_t count = callback->config.tube_count;
	const size_t first = callback->turn++;

	callback->look = now + rest_of(&callback->config);
	if (now + callback->config.poll < callback->look)
		callback->look = now + callback->config.poll;
	for (size_t i = 0; i < count; i++) {
		const size_t tube = (first + i) % count;
		if (!ww_callback_room_to_start(callback) || !ww_callback_store_may(callback, now))
			break;
		if (now >= callback->rests[tube])
			take_beyond(callback, tube, now);
	}
}

/* ---- A turn */

void ww_callback_take(struct ww_callback *callback, uint64_t now)
{
	const struct ww_callback_config *config = &callback->config;
	const size_t places = room_to_wait(callback);
	int woken = atomic_exchange(&callback->woken, 0);
	size_t wanted;

	/* There is room to wait again for the jobs that were returned. */
	if (places && callback->left) {
		woken = 1;
		callback->left = 0;
	}
	if (!ww_callback_room_to_start(callback) || !ww_callback_store_may(callback, now)) {
		callback->more |= woken;
		return;
	}
	if (!woken && !callback->more && now < callback->look)
		return;
	callback->more = 0;
	if (!places) {
		take_all_beyond(callback, now);
		return;
	}
	callback->look = now + config->poll;
	wanted = smaller(BATCH, smaller(places, ww_callback_room_to_start(callback)));
	callback->more = take(callback, config->tubes, config->tube_count, wanted, now) == wanted;
}
