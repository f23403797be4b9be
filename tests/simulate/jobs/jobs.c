/* The server of jobs, weekwheeld, as the simulation plays it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "lib/jobs/store/store.h"
#include "tests/simulate/jobs/book.h"
#include "tests/simulate/jobs/client.h"
#include "tests/simulate/simulated.h"
#include "tests/simulate/world.h"
#include "tools/weekwheeld/run.h"

static struct settings settings;
static enum sync_mode sync_mode;
static const char *interval;

static void choose(enum sync_mode mode)
{
	static const struct store_sizes small = {.active = 30000, .journal = 200000, .view = 40, .few = 5};
	static const char *const intervals[] = {"0.05", "1", "10"};
	static struct store_sizes usual;

	if (!usual.active)
		usual = ww_store_sizes;
	(void)sqlite3_randomness(0, NULL);
	sync_mode = mode;
	load = (struct load){.clients = (unsigned)world_between(2, 4), .tubes = (unsigned)world_between(1, TUBES)};
	load.body_most = world_chance(300) ? 60000 : 1000;
	/* With small limits the index takes over often. */
	ww_store_sizes = world_chance(500) ? small : usual;
	load.cuts = world_chance(500) ? 20 : 0;
	interval = intervals[world_below(3)];
}

static void begin(int may_step, FILE *history)
{
	static const char *const modes[] = {"always", "interval", "system"};
	char *arguments[] = {"--unix", "/sim/socket", "--data", "/sim/data", "--sync",
	    (char *)(uintptr_t)modes[sync_mode], "--sync-interval", (char *)(uintptr_t)interval, NULL};

	if (sync_mode != SYNC_INTERVAL)
		arguments[6] = NULL;
	book_begin(sync_mode == SYNC_ALWAYS     ? 0
	           : sync_mode == SYNC_INTERVAL ? (uint64_t)(atof(interval) * 1e9) + 3 * SIM_S
	                                        : 36 * SIM_S,
	    may_step, history);
	settings = (struct settings){0};
	if (settings_read(&settings, arguments) != 0)
		exit(2);
	clients_begin();
}

static int serve(void)
{
	return server_run(&settings);
}

static void sync_failed(const char *path)
{
	(void)path;
	book_sync_failed();
}

static void died(int is_power, int is_lost, int is_clean)
{
	(void)is_clean;
	book_server_died(is_power, is_lost);
}

static void drain(void)
{
	load.is_draining = 1;
}

/* Each job is taken and deleted, up to the last one. */
static int is_done(uint64_t ahead)
{
	return book_is_done() || world.now > book.last_due + SIM_DAY + ahead;
}

static void end(void)
{
	book_final();
	/* A second of retrying, now and then, and a sync for each change at most: a server with nothing to do sleeps. */
	if (world.wakes > 2 * book.acknowledged + 20 * world.now / SIM_HOUR)
		world_bad("threads of the server have woken %" PRIu64 " times in %" PRIu64 " days", world.wakes,
		    world.now / SIM_DAY);
}

static void count(struct simulated_count counts[SIMULATED_COUNTS])
{
	const struct simulated_count all[] = {{"jobs", book_count()}, {"deliveries", book.deliveries},
	    {"changes acknowledged", book.acknowledged}, {"unanswered", book.unanswered}, {"refused", book.refused},
	    {"ends of what was put again", book.late_ends}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		counts[i] = all[i];
}

static void leave(void)
{
	clients_end();
	book_end();
}

const struct simulated simulated = {.program = "simulate",
    .server = "weekwheeld",
    .judge = "tests/support/history.py",
    .choose = choose,
    .begin = begin,
    .serve = serve,
    .opened = book_opened,
    .ill = book_ill,
    .well = book_well,
    .stepped = book_stepped,
    .sync_failed = sync_failed,
    .died = died,
    .forget_all = book_forget_all,
    .errors = clients_errors,
    .drain = drain,
    .is_done = is_done,
    .end = end,
    .count = count,
    .free = leave};
