/*
 * Taking leases: as many as there is room for.
 *
 * As long as fewer jobs wait for their hosts than may, leases are taken from all tubes at once, in the store's order,
 * and who cannot start waits. When as many wait as may, those of a busy host would hide all that is ready behind them:
 * then each tube is asked for a few, what can start is started, and the rest is returned. That is ready again at once,
 * in its old place: a tube of which nothing could start rests therefore, or the same jobs would be taken in a circle.
 */
#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

/* As many in a turn, so that what is under way is not kept waiting; and when more cannot wait. */
enum { BATCH = 64, BATCH_BEYOND = 16 };

/* A tube rests for so many polls, and no longer than that. */
enum { REST_POLLS = 10 };
#define REST_MAX WW_SECOND

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many requests more may be under way. */
static size_t room_to_start(const struct ww_callback *callback)
{
	const size_t taken = callback->lists[CALLBACK_UNDER_WAY].count + callback->lists[CALLBACK_UNTOLD].count;

	return taken < callback->config.in_flight ? callback->config.in_flight - taken : 0;
}

static size_t room_to_wait(const struct ww_callback *callback)
{
	const size_t waiting = callback->lists[CALLBACK_WAITING].count;

	return waiting < callback->config.waiting ? callback->config.waiting - waiting : 0;
}

int ww_callback_may_start(const struct ww_callback *callback)
{
	return room_to_start(callback) > 0;
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

/* Take up to `most` leases, with a delivery for each. Returns how many there were; 0 also if the store fails. */
static size_t take(struct ww_callback *callback, const char *const *tubes, size_t tube_count, size_t most, uint64_t now)
{
	struct ww_lease leases[BATCH];
	size_t wanted = ww_callback_prepare(callback, most);
	int result =
	    wanted ? ww_jobs_reserve_many(callback->config.jobs, tubes, tube_count, leases, wanted) : WW_ENOMEM;

	/* Also what would come again, such as a record that cannot be read, is not asked for without a pause. */
	if (result < 0) {
		ww_callback_store_lost(callback, result, now);
		return 0;
	}
	(void)ww_callback_store_failed(callback, WW_OK, now);
	accept_all(callback, leases, result, now);
	return (size_t)result;
}

/* ---- When as many wait as may */

static uint64_t rest_of(const struct ww_callback_config *config)
{
	return config->poll < REST_MAX / REST_POLLS ? REST_POLLS * config->poll : REST_MAX;
}

/* Return all that have come to wait since `held` did. */
static size_t return_beyond(struct ww_callback *callback, size_t held)
{
	const struct list *waiting = &callback->lists[CALLBACK_WAITING];
	size_t returned = 0;

	for (; waiting->count > held; returned++)
		ww_callback_result(waiting->last, CALLBACK_GIVE_BACK, 0, NULL);
	return returned;
}

static void take_beyond(struct ww_callback *callback, size_t tube, uint64_t now)
{
	const char *name = callback->config.tubes[tube];
	const size_t held = callback->lists[CALLBACK_WAITING].count;
	const size_t wanted = smaller(BATCH_BEYOND, room_to_start(callback));
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
		if (!ww_callback_may_start(callback) || !ww_callback_store_may(callback, now))
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

	/* What was returned is still there. */
	if (places && callback->left) {
		woken = 1;
		callback->left = 0;
	}
	if (!ww_callback_may_start(callback) || !ww_callback_store_may(callback, now)) {
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
	wanted = smaller(BATCH, smaller(places, room_to_start(callback)));
	callback->more = take(callback, config->tubes, config->tube_count, wanted, now) == wanted;
}
