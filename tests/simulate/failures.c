/* What happens to the server: see failures.h. Its messages end here, in place of those of tools/common. */
#include "tests/simulate/failures.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulate/disk.h"
#include "tests/simulate/simulated.h"
#include "tests/simulate/system.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"
#include "tools/common/message.h"

enum death { NOT_DEAD, KILLED, POWER };

struct failures failures;

static struct {
	enum death death;
	unsigned countdown; /* changes and syncs of the disk until it dies */
	enum death then;
	unsigned names; /* changes of names until its death is near */
	int is_over;    /* the weeks are; no failure any more */
	int is_alive;   /* there is a process that can die */
	int may_lie, may_fail, may_fill, may_step;
	unsigned refused, wiped;
	uint64_t ahead; /* the clock was set forward by that in all */
	char said[300]; /* the last message of the server */
} run;

/* ---- Messages of the server */

const char *message_program;
enum message_level message_level = MESSAGE_INFO;
enum message_form message_form = MESSAGE_TEXT;

enum message_form message_form_found(void)
{
	return MESSAGE_TEXT;
}

static void take_message(const char *format, va_list arguments)
{
	(void)vsnprintf(run.said, sizeof run.said, format, arguments);
	if (!world.is_ghost && strncmp(run.said, "listening", 9) == 0)
		simulated.opened();
	world_say("%s%s%s", world.is_ghost ? "(dead) " : message_program, world.is_ghost ? "" : ": ", run.said);
}

void message_log(enum message_level level, const struct message_field *fields, const char *format, ...)
{
	va_list arguments;

	(void)level;
	(void)fields;
	va_start(arguments, format);
	take_message(format, arguments);
	va_end(arguments);
}

int message_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	take_message(format, arguments);
	va_end(arguments);
	return -1;
}

void message_line(const char *format, ...)
{
	(void)format;
}

const char *message_excerpt(char *out, size_t room, const char *text, size_t size)
{
	(void)snprintf(out, room, "%.*s", (int)size, text);
	return out;
}

/* ---- Failures */

static void die(enum death death)
{
	if (!run.is_alive || run.death)
		return;
	world_say("--- %s", death == POWER ? "the power fails" : "killed");
	run.death = death;
	run.countdown = 0;
	world_ghost_begin();
	loop_hang_up(death == POWER);
	loop_signal_server(SIGTERM);
}

static void die_now(void *context, uint64_t is_power)
{
	(void)context;
	if (!run.is_over)
		die(is_power ? POWER : KILLED);
}

void failures_soon(uint64_t within)
{
	world_at(world.now + world_below(within), die_now, NULL, world_below(2));
}

static void before_change(int is_name)
{
	if (is_name && run.names && --run.names == 0) {
		run.countdown = (unsigned)world_between(1, 12);
		run.then = POWER;
	}
	if (run.countdown && --run.countdown == 0)
		die(run.then);
}

static void heal(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	world_say("--- the disk is well");
	disk_faults = (struct disk_faults){0};
	simulated.well();
}

static void fall_ill(void)
{
	unsigned often = (unsigned)world_between(1, 300);

	switch (world_below(7)) {
	case 0:
		disk_faults.sync_eio = run.may_fail ? often : 0;
		break;
	case 1:
		disk_faults.write_eio = run.may_fail ? often : 0;
		break;
	case 2:
		disk_faults.is_full = run.may_fill;
		break;
	case 3:
		disk_faults.is_very_full = run.may_fill;
		break;
	case 4:
		disk_faults.slow = often;
		break;
	case 5:
		disk_faults.read_eio = run.may_fail ? often : 0;
		break;
	default:
		disk_faults.lies = run.may_lie ? often : 0;
	}
	world_say("--- the disk is ill: EIO %u %u %u, full %d %d, slow %u, lies %u", disk_faults.sync_eio,
	    disk_faults.write_eio, disk_faults.read_eio, disk_faults.is_full, disk_faults.is_very_full,
	    disk_faults.slow, disk_faults.lies);
	simulated.ill();
	world_at(world.now + world_between(SIM_S, SIM_HOUR), heal, NULL, 0);
}

static void step_clock(void)
{
	int64_t step = (int64_t)world_below(2 * SIM_HOUR) - (int64_t)SIM_HOUR;

	if (!run.may_step)
		return;
	world_say("--- the clock is set by %.3f s", (double)step / 1e9);
	system_step(step);
	simulated.stepped(step);
	run.ahead += step > 0 ? (uint64_t)step : 0;
}

static void something_happens(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	if (run.is_over)
		return;
	switch (world_below(10)) {
	case 8:
	case 9:
		/* Names change where the journal is cut and the index has taken over. */
		run.names = (unsigned)world_between(1, 6);
		break;
	case 0:
		die(KILLED);
		break;
	case 1:
		die(POWER);
		break;
	case 2:
	case 3:
		run.countdown = (unsigned)world_between(1, world_chance(500) ? 20 : 300);
		run.then = world_chance(500) ? POWER : KILLED;
		break;
	case 4:
		world_say("--- ended in order");
		loop_signal_server(SIGTERM);
		break;
	case 5:
	case 6:
		fall_ill();
		break;
	default:
		step_clock();
	}
	world_at(world.now + world_below(2 * SIM_DAY), something_happens, NULL, 0);
}

/* Who runs the server starts it again when it answers with errors. */
static void look_after(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	if (simulated.errors() && world_chance(700)) {
		world_say("--- restarted because of errors");
		loop_signal_server(SIGTERM);
	}
	world_at(world.now + SIM_MINUTE * (run.is_over ? 1 : world_between(1, 120)), look_after, NULL, 0);
}

/* When the weeks are over all is healthy, and goes on until all that is to be seen was seen. */
static void end_weeks(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	if (!run.is_over) {
		world_say("--- the weeks are over");
		run.is_over = 1;
		run.countdown = run.names = 0;
		simulated.drain();
		heal(NULL, 0);
	}
	if (simulated.is_done(run.ahead)) {
		run.is_over = 2;
		loop_signal_server(SIGTERM);
		return;
	}
	world_at(world.now + SIM_HOUR, end_weeks, NULL, 0);
}

/* ---- Lives of the server */

static void down(uint64_t time)
{
	simulated.ill();
	world_sleep(time / 2);
	/* A clock is often set while the machine boots. */
	if (world_chance(200))
		step_clock();
	world_sleep(time - time / 2);
}

static void begun(void)
{
	simulated.well();
}

static void after_death(int is_clean)
{
	int is_power = run.death == POWER, lost = 0;

	if (run.death)
		world_ghost_end();
	loop_end_of_server();
	system_release();
	if (is_power) {
		lost = disk_power_failure();
		if (lost)
			world_say("--- the disk has lied, and lost what it had said was stable");
		system_boot();
	} else {
		disk_release();
	}
	simulated.died(is_power, lost, is_clean);
	failures.powers += is_power != 0;
	run.wiped += (unsigned)lost;
	run.death = NOT_DEAD;
}

static void live(void)
{
	int status;

	failures.lives++;
	*run.said = 0;
	world_say("--- life %u", failures.lives);
	simulated.well();
	world_new_process();
	run.is_alive = 1;
	status = simulated.serve();
	run.is_alive = 0;
	if (status && !run.death && !loop_was_open()) {
		int is_well = !disk_faults.is_full && !disk_faults.is_very_full && !disk_faults.sync_eio &&
		              !disk_faults.write_eio && !disk_faults.read_eio && !disk_faults.lies;
		run.refused++;
		if (is_well && !run.wiped) {
			world_bad("the server does not start: %s", run.said);
			run.is_over = 2;
		}
		if (is_well) {
			world_say("--- a new disk");
			after_death(0);
			disk_end();
			disk_begin();
			simulated.forget_all();
			return;
		}
	}
	after_death(status == 0 && !run.death);
	begun();
}

/* ---- A run */

void failures_play(uint64_t seed, uint64_t weeks, int verbose, FILE *history)
{
	enum sync_mode mode;

	world_begin(seed, verbose);
	memset(&run, 0, sizeof run);
	failures = (struct failures){0};
	message_program = simulated.server;
	mode = (enum sync_mode)world_below(3);
	run.may_fail = world_chance(500);
	run.may_fill = world_chance(500);
	run.may_lie = world_chance(100);
	run.may_step = world_chance(300);
	simulated.choose(mode);
	system_begin();
	disk_begin();
	disk_before = before_change;
	disk_sync_failed = simulated.sync_failed;
	loop_begin();
	simulated.begin(run.may_step, history);
	world_at(world_below(SIM_DAY), something_happens, NULL, 0);
	world_at(SIM_HOUR, look_after, NULL, 0);
	world_at(weeks * SIM_WEEK, end_weeks, NULL, 0);
	while (run.is_over < 2) {
		live();
		if (run.is_over < 2)
			down(world_chance(500) ? world_below(10 * SIM_S) : world_below(SIM_HOUR));
	}
	simulated.end();
}

void failures_end(void)
{
	simulated.free();
	loop_end_of_run();
	disk_end();
	world_end();
}
