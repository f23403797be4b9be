/*
 * Generates a week of synthetic sessions. The mixture of their timeouts is real: that of the TTLs of 53 production
 * caches. The beginnings of sessions, their requests and their ends are made up.
 *
 * Source of the mixture: Juncheng Yang, Yao Yue, K. V. Rashmi, "A large scale analysis of hundreds of in-memory cache
 * clusters at Twitter", OSDI 2020; its data, github.com/twitter/cache-trace (stat/2020Mar.md), are under CC-BY 4.0.
 * The shares are those of its column "common TTL". Each cluster is scaled to a sum of 1, all weigh the same, and TTLs
 * that nearly agree are added up.
 *
 * All arithmetic is on integers, because the last bit of a floating-point result differs between machines.
 */
#include "tools/weekwheel/replay/synthetic.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/random.h"
#include "tools/common/progress.h"

static const uint64_t WEEK_NS = 7u * 24 * 60 * 60 * UINT64_C(1000000000);
static const uint64_t NS_PER_SECOND = 1000000000;

/* A timeout and its share in 1/10,000. */
static const struct {
	uint32_t seconds;
	uint32_t share;
} mixture[] = {
    {10, 49}, {20, 177}, {30, 189}, {60, 1184}, {120, 193}, {240, 193}, {300, 482}, {540, 189}, {600, 197}, {900, 164},
    {1200, 51}, {1380, 189}, {1800, 6}, {2700, 9}, {3600, 481}, {4680, 19}, {6480, 182}, {7200, 431}, {7920, 118},
    {10800, 107}, {12780, 175}, {14400, 65}, {21600, 15}, {25200, 189}, {28800, 547}, {38880, 462}, {43200, 421},
    {86400, 928},                /* 1 day */
    {103680, 82}, {172800, 455}, /* 2 days */
    {345600, 111}, {432000, 560},
    {604800, 189},  /* 7 days, the horizon of the default wheel; what follows waits outside it */
    {1209600, 190}, /* 14 days */
    {1296000, 189}, {1814400, 64}, {2592000, 696}, /* 30 days */
    {8000640, 53},                                 /* 92.6 days */
};

enum {
	MIXTURE = sizeof mixture / sizeof *mixture,
	REFRESH_PERCENT = 80, /* after each request, the chance of another: 4 refreshes a session on average */
	CANCEL_PERCENT = 15   /* of sessions that are closed before they expire */
};

static uint64_t random_timeout_ns(uint64_t *state)
{
	uint64_t total = 0;
	uint64_t pick;
	int i;

	for (i = 0; i < MIXTURE; i++)
		total += mixture[i].share;
	pick = random_below(state, total);
	for (i = 0; pick >= mixture[i].share; i++)
		pick -= mixture[i].share;
	return mixture[i].seconds * NS_PER_SECOND;
}

/* Return the time to a session's next request. It is mostly short, and in one case of eleven longer than the timeout. */
static uint64_t random_gap_ns(uint64_t *state, uint64_t timeout_ns)
{
	uint64_t thousandth = random_below(state, 1001);

	return timeout_ns / 1000000 * (thousandth * thousandth * 12 / 10);
}

/* Round to whole milliseconds, which read well in a file. */
static struct moment moment_of_ns(uint64_t ns)
{
	return (struct moment){ns / NS_PER_SECOND, (uint32_t)(ns % NS_PER_SECOND / 1000000 * 1000000)};
}

static void add_request(struct events *events, enum event_kind kind, uint32_t id, uint64_t ns, uint64_t timeout_ns)
{
	struct moment time = moment_of_ns(ns);
	struct moment due;

	/* Times of a few months cannot overflow. */
	(void)moment_add(time, moment_of_ns(timeout_ns), &due);
	events_add(events, kind, id, time, due);
}

static void add_session(struct events *events, uint64_t *state, uint32_t id)
{
	uint64_t timeout_ns = random_timeout_ns(state);
	uint64_t ns = random_below(state, WEEK_NS);

	add_request(events, EVENT_SET, id, ns, timeout_ns);
	while (random_below(state, 100) < REFRESH_PERCENT) {
		ns += random_gap_ns(state, timeout_ns);
		if (ns >= WEEK_NS)
			return;
		add_request(events, EVENT_REFRESH, id, ns, timeout_ns);
	}
	ns += random_gap_ns(state, timeout_ns) / 2;
	if (random_below(state, 100) < CANCEL_PERCENT && ns < WEEK_NS)
		events_add_cancel(events, id, moment_of_ns(ns));
}

void synthetic_generate(struct events *events, uint64_t seed, uint32_t sessions)
{
	uint64_t state = seed;
	char name[32];
	uint32_t i;

	progress_begin("generating");
	for (i = 0; i < sessions; i++) {
		int size = snprintf(name, sizeof name, "session-%" PRIu32, i);

		add_session(events, &state, keys_append(events->keys, name, (size_t)size));
		if (i % 4096 == 0)
			progress_show(i, sessions);
	}
	progress_clear();
}
