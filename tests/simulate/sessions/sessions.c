/* The server of sessions, weekwheel-sessiond, as the simulation plays it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/failures.h"
#include "tests/simulate/sessions/book.h"
#include "tests/simulate/sessions/client.h"
#include "tests/simulate/sessions/peer.h"
#include "tests/simulate/simulated.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"
#include "tools/weekwheel-sessiond/serve.h"

static struct sessiond_settings settings;
static struct book_settings kept;
static char *arguments[24];
static uint64_t drained; /* when the weeks were over, or 0 */

static void add(const char *name, const char *value)
{
	size_t i = 0;

	while (arguments[i])
		i++;
	arguments[i] = (char *)(uintptr_t)name;
	arguments[i + 1] = (char *)(uintptr_t)value;
	arguments[value ? i + 2 : i + 1] = NULL;
}

static void choose_sync(enum sync_mode mode)
{
	static const char *const modes[] = {"always", "interval", "system"};
	static const char *const intervals[] = {"0.05", "1", "10"};
	const char *interval = intervals[world_below(3)];

	add("--sync", modes[mode]);
	if (mode == SYNC_INTERVAL)
		add("--sync-interval", interval);
	kept.window = mode == SYNC_ALWAYS     ? 0
	              : mode == SYNC_INTERVAL ? (uint64_t)(atof(interval) * 1e9) + 3 * SIM_S
	                                      : 36 * SIM_S;
}

static void choose_lifetimes(void)
{
	unsigned chosen = (unsigned)world_below(4);

	if (chosen == 1) {
		kept.lifetime = 12 * SIM_HOUR;
		add("--lifetime", "12h");
	} else if (chosen == 2) {
		kept.lifetime = 10 * SIM_MINUTE;
		add("--lifetime", "10m");
	} else if (chosen == 3) {
		add("--lifetimes", NULL);
	}
	load.has_lifetimes = chosen != 0;
	kept.keeps_lifetimes = chosen != 0 && world_chance(500);
	if (kept.keeps_lifetimes)
		add("--keep-lifetimes", NULL);
}

static void choose(enum sync_mode mode)
{
	static const char *const threads[] = {"1", "2", "3"};

	kept = (struct book_settings){0};
	drained = 0;
	load = (struct load){.clients = (unsigned)world_between(2, 4),
	    .keys = (unsigned)world_between(5, KEYS),
	    .body_most = world_chance(300) ? 60000 : 1000,
	    .cuts = world_chance(500) ? 20 : 0,
	    .deaths = world_chance(500) ? 5 : 0};
	arguments[0] = NULL;
	add("--unix", "/sim/socket");
	add("--data", "/sim/data");
	add("--threads", threads[world_below(3)]);
	choose_sync(mode);
	choose_lifetimes();
	kept.tells = world_chance(600);
	if (kept.tells)
		add("--expired-to", "beanstalk://peer:11300/ends");
}

static void begin(int may_step, FILE *history)
{
	(void)may_step;
	book_begin(&kept, history);
	if (sessiond_settings_read(&settings, arguments) != 0)
		exit(2);
	peer_begin();
	clients_begin();
}

static int serve(void)
{
	return sessiond_run(&settings);
}

/* Many a server dies again before the system has written back what the one before it had not synced. */
static void opened(void)
{
	book_opened();
	if (world_chance(300))
		failures_soon(25 * SIM_S);
}

static void nothing(void)
{
}

/* An image is only given up. */
static void sync_failed(const char *path)
{
	if (strstr(path, "/journal."))
		book_sync_failed();
}

static void drain(void)
{
	load.is_draining = 1;
	drained = world.now;
	peer_drain();
}

/* All deadlines are over, but of what was perhaps touched just then; what has ended is told. */
static int is_done(uint64_t ahead)
{
	(void)ahead;
	return world.now > drained + 2 * SIM_HOUR;
}

static void end(void)
{
	book_final(kept.tells);
}

static void count(struct simulated_count counts[SIMULATED_COUNTS])
{
	const struct simulated_count all[] = {{"commands", book.commands}, {"answered", book.acknowledged},
	    {"unanswered", book.unanswered}, {"refused", book.refused}, {"ends told", book.told}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		counts[i] = all[i];
}

static void leave(void)
{
	clients_end();
	peer_end();
}

const struct simulated simulated = {.program = "simulate_sessions",
    .server = "weekwheel-sessiond",
    .judge = "tests/support/session_history.py",
    .choose = choose,
    .begin = begin,
    .serve = serve,
    .opened = opened,
    .ill = nothing,
    .well = nothing,
    .stepped = book_stepped,
    .sync_failed = sync_failed,
    .died = book_server_died,
    .forget_all = book_forget_all,
    .errors = clients_errors,
    .drain = drain,
    .is_done = is_done,
    .end = end,
    .count = count,
    .free = leave};
