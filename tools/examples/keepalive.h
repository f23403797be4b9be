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
#include <stdarg.h>
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
	EVENTS = 1024, /* at most this many sockets are served, and then this many timers, in a turn of the loop */
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

/* The values of the options that were given, by their letters; "" for one that takes none. */
static const char *given[128];

static _Noreturn void hint(void)
{
	fprintf(stderr, "Try '%s --help'.\n", program_invocation_short_name);
	exit(2);
}

static _Noreturn __attribute__((format(printf, 1, 2))) void usage(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	hint();
}

static void read_options(
    int count, char **arguments, const char *letters, const struct option *options, const char *help)
{
	int letter;

	while ((letter = getopt_long(count, arguments, letters, options, NULL)) != -1) {
		if (letter == '?')
			hint(); /* getopt_long has said what is wrong */
		if (letter == 'h') {
			puts(help);
			exit(0);
		}
		given[letter] = optarg ? optarg : "";
	}
	if (optind < count)
		usage("takes options only");
}

/* Store the value of an option, if it was given. */
static void take_whole(
    uint64_t *number, char letter, const char *name, uint64_t least, uint64_t most, const char *expected)
{
	const char *value = given[(int)letter];

	if (!value)
		return;
	*number = strtoull(value, NULL, 10);
	if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 10 || *number < least || *number > most)
		usage("--%s '%s': expected %s", name, value, expected);
}

/* The same in seconds, which are kept in ns. */
static void take_seconds(uint64_t *ns, char letter, const char *name)
{
	const char *value = given[(int)letter];
	double seconds;
	char *end;

	if (!value)
		return;
	seconds = strtod(value, &end);
	if (end == value || *end || value[strspn(value, "0123456789.")] ||
	    !(seconds >= 0.001 && seconds <= SECONDS_MAX))
		usage("--%s '%s': expected seconds, 0.001 to 1000000", name, value);
	*ns = (uint64_t)(seconds * 1e9 + 0.5);
}

/* What both programs have: how many connections, and how long one may be silent. */
static void take_common(uint64_t *connections, uint64_t *timeout)
{
	take_whole(connections, 'c', "connections", 1, CONNECTIONS_MAX, "a number from 1 to 10000000");
	take_seconds(timeout, 't', "timeout");
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
