/*
 * The breaker of a host, and jobs that are put off.
 *
 *     closed --- config.rest_after requests in a row without an answer ---> resting
 *       ^                                                                      |  the pause is over: one request
 *       +--- an answer --- probing <-------------------------------------------+
 *                             +--- none: the pause doubles ------------------> resting
 *
 * Jobs of a resting host, and those of a silent one for which there is no place to wait, are *put off*: returned to the
 * store with a delay, and without an attempt. Each gets a turn behind the one before, so that they come back one by one,
 * at a pace that costs little, however many they are.
 */
#include <inttypes.h>

#include "lib/base/random.h"
#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

/* Between two jobs that are put off: of all resting hosts together, of a host that is silent, and of all that are
 * new together. */
#define STEP_RESTING (5 * WW_MILLISECOND)
#define STEP_SILENT (20 * WW_MILLISECOND)
#define STEP_NEW WW_MILLISECOND
/* After an answer, and at first, a host is not silent for this long. */
#define SILENCE WW_SECOND
#define PUT_OFF_MIN (100 * WW_MILLISECOND)
#define PUT_OFF_MAX (600 * WW_SECOND)

static int may_probe(const struct ww_callback *callback, const struct host *host, uint64_t now)
{
	const size_t most = callback->config.in_flight / 8;

	return !host->is_probed && now >= host->probe_at && callback->probes < (most ? most : 1);
}

int ww_callback_breaker_rests(const struct delivery *delivery, uint64_t now)
{
	return delivery->host->is_resting && !may_probe(delivery->callback, delivery->host, now);
}

static void rest(struct ww_callback *callback, struct host *host, const char *why, uint64_t now)
{
	const struct ww_callback_config *config = &callback->config;
	const int begins = !host->is_resting;

	host->pause = begins ? config->rest : host->pause > config->rest_max / 2 ? config->rest_max : host->pause * 2;
	if (host->pause > config->rest_max)
		host->pause = config->rest_max;
	host->probe_at = now + host->pause - random_below(&callback->random, host->pause / 4 + 1);
	if (!begins)
		return;
	host->is_resting = 1;
	host->rests_from = now;
	host->put_off = 0;
	callback->resting++;
	callback->counters.rests++;
	ww_callback_log(callback,
	    "The host %.*s, port %u, rests after %u requests in a row without an answer, and is tried now and then: %s",
	    (int)host->size, host->name, host->port, host->failures, why);
}

void ww_callback_breaker_failed(struct delivery *delivery, const char *why, int was_probe, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	struct host *host = delivery->host;

	host->failures++;
	if (host->is_resting ? was_probe : callback->config.rest_after && host->failures >= callback->config.rest_after)
		rest(callback, host, why, now);
}

void ww_callback_breaker_answered(struct delivery *delivery, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	struct host *host = delivery->host;

	/* Turns were given at the pace of a silent host. */
	host->turn = 0;
	callback->unanswered -= !host->has_answered;
	host->has_answered = 1;
	host->answered = now;
	host->failures = 0;
	if (!host->is_resting)
		return;
	host->is_resting = 0;
	callback->resting--;
	ww_callback_log(callback,
	    "The host %.*s, port %u, answers again after %.1f s; jobs were put off %" PRIu64 " times", (int)host->size,
	    host->name, host->port, (double)(now - host->rests_from) / WW_SECOND, host->put_off);
}

void ww_callback_breaker_start(struct delivery *delivery)
{
	struct host *host = delivery->host;

	delivery->is_probe = host->is_resting;
	host->is_probed |= delivery->is_probe;
	delivery->callback->probes += (size_t)delivery->is_probe;
}

void ww_callback_breaker_stop(struct delivery *delivery)
{
	if (delivery->is_probe) {
		delivery->host->is_probed = 0;
		delivery->callback->probes--;
	}
	delivery->is_probe = 0;
}

/* ---- Putting off */

int ww_callback_breaker_is_silent(const struct delivery *delivery, uint64_t now)
{
	const struct host *host = delivery->host;

	return !host->has_answered || host->failures || now - host->answered > SILENCE;
}

static uint64_t step_of(const struct ww_callback *callback, const struct host *host, uint64_t now)
{
	if (host->is_resting)
		return STEP_RESTING * callback->resting;
	if (host->failures || now - host->answered > SILENCE || callback->unanswered > STEP_SILENT / STEP_NEW)
		return STEP_SILENT;
	return STEP_NEW * (callback->unanswered ? callback->unanswered : 1);
}

uint64_t ww_callback_breaker_turn(struct delivery *delivery, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	struct host *host = delivery->host;
	uint64_t turn = now + PUT_OFF_MIN;

	if (host->is_resting) {
		uint64_t probe = host->is_probed ? now + host->pause : host->probe_at;
		turn = turn > probe ? turn : probe;
		host->put_off++;
		callback->counters.rested++;
	} else {
		callback->counters.crowded++;
	}
	turn = turn > host->turn ? turn : host->turn;
	if (turn - now > PUT_OFF_MAX)
		return PUT_OFF_MAX - random_below(&callback->random, PUT_OFF_MAX / 4);
	host->turn = turn + step_of(callback, host, now);
	return turn - now;
}
