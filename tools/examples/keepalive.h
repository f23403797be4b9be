#ifndef TOOLS_EXAMPLES_KEEPALIVE_H
#define TOOLS_EXAMPLES_KEEPALIVE_H

/*
 * What the server keepalive and its load keepalive_load share: a wheel of milliseconds on the system's clock, which
 * says how long to sleep, and the command line.
 */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <weekwheel/weekwheel.h>

enum {
	MILLISECOND = 1000000, /* in ns: a tick of the wheel, and the unit of epoll_wait */
	SECONDS_MAX = 1000000, /* the longest timeout: 11 days */
	CONNECTIONS_MAX = 10000000,
	DESCRIPTORS_SPARE = 16, /* for the listening socket, standard output and the like */
	EVENTS = 1024,          /* at most so many sockets are served, and then so many timers, in a turn of the loop */
};

/* Say what failed and why, and exit. */
static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s%s: %s: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", program_invocation_short_name, what,
	    why);
	exit(1);
}

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static struct ww_wheel *wheel;
static uint64_t origin; /* the clock, in ns, when the wheel's time was 0 */

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - origin;
}

/* Milliseconds, and a fifth level: a horizon of 10 hours. A longer timeout is exact too. */
static void wheel_open(void)
{
	struct ww_wheel_config config;
	int error;

	ww_wheel_config_default(&config);
	config.tick_ns = MILLISECOND;
	config.slots[config.levels++] = 64;
	error = ww_wheel_create(&wheel, &config);
	if (error != WW_OK)
		fail("the wheel", ww_strerror(error));
	origin = clock_ns();
}

/* The tick of a time in ns, rounded up: a timer never expires early. */
static uint64_t wheel_tick(uint64_t ns)
{
	uint64_t tick;

	ww_wheel_deadline_ns(wheel, ns, &tick);
	return tick;
}

/* How long epoll_wait may sleep, `most` milliseconds if no timer is pending. */
static int wheel_sleep_ms(int most)
{
	uint64_t next, now;

	if (ww_wheel_next(wheel, &next) != 1)
		return most;
	ww_wheel_now_ns(wheel, clock_ns(), &now);
	if (next <= now)
		return 0;
	return most < 0 || next - now < (uint64_t)most ? (int)(next - now < INT_MAX ? next - now : INT_MAX) : most;
}

/* Call what is due. If more than EVENTS timers are, the next sleep is 0, and they follow after the sockets. */
static void wheel_turn(void)
{
	uint64_t now;
	int error;

	ww_wheel_now_ns(wheel, clock_ns(), &now);
	error = ww_wheel_advance(wheel, now, EVENTS, NULL);
	if (error < 0)
		fail("the wheel", ww_strerror(error));
}

/* ---- The command line ------------------------------------------------------------------------------------------- */

/* An option and its value. Without number and text it is a flag, without expected it is seconds, kept in ns. */
struct setting {
	const char *name; /* NULL ends a table */
	char letter;
	int *flag;
	const char **text;
	uint64_t *number;
	uint64_t least, most;
	const char *expected;
};

static _Noreturn void hint(void)
{
	fprintf(stderr, "Try '%s --help'.\n", program_invocation_short_name);
	exit(2);
}

static _Noreturn void usage(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	hint();
}

static _Noreturn void bad_value(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "%s: --%s '%s': expected %s\n", program_invocation_short_name, option, value, expected);
	hint();
}

static uint64_t setting_whole(const struct setting *setting, const char *value)
{
	uint64_t number = strtoull(value, NULL, 10);

	if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 10 || number < setting->least ||
	    number > setting->most)
		bad_value(setting->name, value, setting->expected);
	return number;
}

static uint64_t setting_seconds(const struct setting *setting, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end || value[strspn(value, "0123456789.")] ||
	    !(seconds >= 0.001 && seconds <= SECONDS_MAX))
		bad_value(setting->name, value, "seconds, 0.001 to 1000000");
	return (uint64_t)(seconds * 1e9 + 0.5);
}

static void setting_take(const struct setting *setting, const char *value)
{
	if (setting->number)
		*setting->number = setting->expected ? setting_whole(setting, value) : setting_seconds(setting, value);
	else if (setting->text)
		*setting->text = value;
	else
		*setting->flag = 1;
}

static void read_options(int count, char **arguments, const struct setting *settings, const char *help)
{
	struct option table[16] = {{"help", no_argument, NULL, 'h'}};
	char letters[40] = "h";
	int option, i;

	for (i = 0; settings[i].name; i++) {
		int has_value = settings[i].flag ? no_argument : required_argument;

		table[i + 1] = (struct option){settings[i].name, has_value, NULL, settings[i].letter};
		snprintf(strchr(letters, 0), 3, "%c%s", settings[i].letter, has_value ? ":" : "");
	}
	while ((option = getopt_long(count, arguments, letters, table, NULL)) != -1) {
		if (option == 'h') {
			puts(help);
			exit(0);
		}
		for (i = 0; settings[i].name && settings[i].letter != option; i++)
			continue;
		if (!settings[i].name)
			hint(); /* getopt_long has said what is wrong */
		setting_take(&settings[i], optarg);
	}
	if (optind < count)
		usage("takes options only");
}

/* Have a descriptor for each connection. Many systems allow a process 1,024 until it asks for more. */
static void need_descriptors(uint64_t connections)
{
	uint64_t needed = connections + DESCRIPTORS_SPARE;
	struct rlimit limit;
	char why[300];

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail("the limit of descriptors", strerror(errno));
	if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= needed)
		return;
	snprintf(why, sizeof why,
	    "%" PRIu64 " connections take %" PRIu64 " file descriptors, and this process may have %" PRIu64 ": %" PRIu64
	    " are missing.\nRaise the hard limit (ulimit -Hn), or ask for fewer --connections.",
	    connections, needed, (uint64_t)limit.rlim_cur, needed - (uint64_t)limit.rlim_cur);
	fail("file descriptors", why);
}

/* Write out standard output, or fail. */
static void finish_output(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		fail("standard output", strerror(errno));
}

#endif
