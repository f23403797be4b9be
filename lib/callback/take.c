/*
 * Taking leases: as many as there is room for (room.c).
 *
 *   1. While there is much room, leases are taken from all tubes at once, in the store's order.
 *   2. Otherwise each tube in turn is asked for as many jobs as it may start, beginning with another tube each time.
 *   3. A tube that may only start urgent jobs is asked for a few. The others of these are returned, and are ready again at
 *      once in their old place. When there were others, the tube rests for a poll.
 *
 * A job that cannot start waits (delivery.c). When as many wait as may, jobs of silent hosts are put off, and those behind
 * them go on. Those of a host that answers, but slower than they come, are returned to their old place: it needs them
 * soon. A tube of which nothing else came rests for 10 polls, 1 s at most, or until there is a place to wait again.
 * Otherwise the same jobs would go in a circle.
 */
#include <string.h>

#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

/* Leases of a turn: more would keep the transfers waiting. And of a tube of which few can start. */
enum { BATCH = 64, BATCH_FEW = 16, ROUNDS = 8 };

/* How long a tube rests. */
enum { REST_POLLS = 10 };
#define REST_MAX WW_SECOND

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static struct pushed *tube_of(const struct ww_callback *callback, const char *name)
{
	size_t i = 0;

	while (i + 1 < callback->config.tube_count && strcmp(callback->config.tubes[i], name) != 0)
		i++;
	return &callback->tubes[i];
}

static void accept_all(struct ww_callback *callback, const struct ww_lease *leases, int count, uint64_t real_now)
{
	uint64_t now = 0;

	(void)ww_jobs_now(callback->config.jobs, 0, &now);
	for (int i = 0; i < count; i++) {
		struct delivery *delivery = ww_callback_fresh(callback);
		delivery->lease = leases[i];
		delivery->tube = tube_of(callback, leases[i].tube);
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

/* Give back the deliveries that wait behind the first `held`. Returns how many. */
static size_t return_beyond(struct ww_callback *callback, size_t held)
{
	const struct delivery_list *waiting = &callback->lists[CALLBACK_WAITING];
	size_t returned = 0;

	for (; waiting->count > held; returned++)
		ww_callback_result(waiting->last, CALLBACK_GIVE_BACK, 0, NULL);
	return returned;
}

static void take_urgent(struct ww_callback *callback, size_t tube, uint64_t now)
{
	const char *name = callback->config.tubes[tube];
	const size_t held = callback->lists[CALLBACK_WAITING].count;
	const size_t wanted = smaller(BATCH_FEW, ww_callback_room_of(callback, &callback->tubes[tube], 1));
	const size_t taken = take(callback, &name, 1, wanted, now);
	const size_t returned = return_beyond(callback, held);

	callback->more |= taken == wanted && !returned;
	if (returned)
		callback->tubes[tube].rests = now + callback->config.poll;
}

/* ---- A turn */

/* How many leases are taken at once. If none more may wait, all that cannot start is given back. */
static size_t batch_of(const struct ww_callback *callback, const struct pushed *tube)
{
	const size_t waiting = callback->lists[CALLBACK_WAITING].count;

	if (waiting < callback->config.waiting)
		return smaller(BATCH, callback->config.waiting - waiting);
	return tube->has_returned ? BATCH_FEW : BATCH;
}

static uint64_t rest_of(const struct ww_callback_config *config)
{
	return config->poll < REST_MAX / REST_POLLS ? REST_POLLS * config->poll : REST_MAX;
}

/* What a tube that rests has ready is reported once, and perhaps was reported meanwhile. */
static void look_by(struct ww_callback *callback, uint64_t time)
{
	if (time < callback->look)
		callback->look = time;
}

static void take_from(struct ww_callback *callback, size_t tube, uint64_t now)
{
	struct pushed *pushed = &callback->tubes[tube];
	const size_t wanted = smaller(batch_of(callback, pushed), ww_callback_room_of(callback, pushed, 0));
	const size_t returned = callback->returned;
	size_t taken;

	callback->is_short |= !wanted;
	if (now < pushed->rests && (!wanted || callback->lists[CALLBACK_WAITING].count >= callback->config.waiting)) {
		look_by(callback, pushed->rests);
		return;
	}
	if (wanted) {
		taken = take(callback, &callback->config.tubes[tube], 1, wanted, now);
		callback->more |= taken == wanted;
		pushed->has_returned = callback->returned != returned;
		if (taken && callback->returned - returned == taken) {
			pushed->rests = now + rest_of(&callback->config);
			look_by(callback, pushed->rests);
		}
	} else if (ww_callback_room_of(callback, pushed, 1)) {
		take_urgent(callback, tube, now);
	}
}

/* Whether each tube may start as many as are taken at once. */
static int has_much_room(const struct ww_callback *callback)
{
	if (callback->lists[CALLBACK_WAITING].count + BATCH > callback->config.waiting)
		return 0;
	for (size_t i = 0; i < callback->config.tube_count; i++)
		if (ww_callback_room_of(callback, &callback->tubes[i], 0) < BATCH)
			return 0;
	return 1;
}

static void take_round(struct ww_callback *callback, uint64_t now)
{
	const struct ww_callback_config *config = &callback->config;

	if (has_much_room(callback)) {
		callback->more = take(callback, config->tubes, config->tube_count, BATCH, now) == BATCH;
		return;
	}
	const size_t first = callback->turn++;
	for (size_t i = 0; i < config->tube_count && ww_callback_store_may(callback, now); i++)
		take_from(callback, (first + i) % config->tube_count, now);
}

void ww_callback_take(struct ww_callback *callback, uint64_t now)
{
	const struct ww_callback_config *config = &callback->config;
	int woken = atomic_exchange(&callback->woken, 0);

	if (callback->left && callback->lists[CALLBACK_WAITING].count < config->waiting) {
		woken = 1;
		callback->left = 0;
	}
	if (!ww_callback_room_to_start(callback) || !ww_callback_store_may(callback, now)) {
		callback->more |= woken;
		return;
	}
	if (!woken && !callback->more && now < callback->look)
		return;
	callback->look = now + config->poll;
	/* Jobs that are given back only keep others from their turn. */
	for (size_t round = 0; round < ROUNDS; round++) {
		const uint64_t reserved = callback->counters.reserved;
		const size_t given_back = callback->given_back;
		callback->more = 0;
		take_round(callback, now);
		if (!callback->more || callback->given_back - given_back < callback->counters.reserved - reserved)
			break;
	}
}
