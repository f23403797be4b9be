/* The command top: a frame each second, until q. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/top.h"

enum { ONCE = 1 };

static const struct option table[] = {
    {ONCE, '1', "once", NULL, "write one frame, and end"},
    {JOBS_SERVER, 's', "server", "ADDRESS", "HOST:PORT or unix:PATH (default $WEEKWHEEL_SERVER,\nor 127.0.0.1:11300)"},
    {JOBS_TIMEOUT, 0, "timeout", "TIME", "how long to wait for an answer (default 10s)"},
    {JOBS_HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static int is_dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !*term || strcmp(term, "dumb") == 0;
}

static int wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return !is_dumb() && !(no && *no) && isatty(STDOUT_FILENO);
}

static int is_utf8(void)
{
	return !is_dumb() && setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int screen_rows(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : TOP_ROWS;
}

/* Single keys, which are not shown. Returns 0 if standard input is no terminal. */
static int keys_begin(struct termios *before)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, before))
		return 0;
	raw = *before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

/*
 * Wait for the next second of the clock, so that a hand moves when it does; but, for the rates, not for the blink of an
 * eye. Or for the end. Without a keyboard no key is waited for.
 */
static void pause_second(int keyboard)
{
	struct pollfd keys = {keyboard ? STDIN_FILENO : -1, POLLIN, 0};
	int past = (int)(time_now() % DURATION_SECOND / (DURATION_SECOND / 1000));
	char key;

	if (poll(&keys, 1, past > 800 ? 2000 - past : 1000 - past) <= 0)
		return;
	if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q' || key == 3)
		ended = 1;
}

static int once(struct jobs *jobs)
{
	struct top_look look = {.rows = TOP_ROWS, .colour = wants_colour(), .utf8 = is_utf8()};
	struct top_wheels wheels = {.now = 0};
	struct top_sample sample;
	int failed = top_sample(jobs, &sample, &wheels);

	if (!failed)
		top_frame(stdout, jobs, &sample, NULL, &wheels, &look);
	top_sample_free(&sample);
	return failed ? STATUS_FAILED : STATUS_OK;
}

static int watch(struct jobs *jobs, int keyboard)
{
	struct top_look look = {.colour = wants_colour(), .cursor = !is_dumb(), .utf8 = is_utf8()};
	struct top_sample before = {.taken = 0}, now;
	struct top_wheels wheels = {.now = 0};
	int has_before = 0;
	int failed = 0;

	while (!ended) {
		failed = top_sample(jobs, &now, &wheels);
		look.rows = screen_rows();
		if (!failed)
			top_frame(stdout, jobs, &now, has_before ? &before : NULL, &wheels, &look);
		top_sample_free(&before);
		before = now;
		has_before = 1;
		if (failed || ferror(stdout))
			break;
		pause_second(keyboard);
	}
	top_sample_free(&before);
	return failed ? STATUS_FAILED : STATUS_OK;
}

/* The screen as it was, and the terminal as it was, whichever way this ends. */
static int on_terminal(struct jobs *jobs)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct termios terminal;
	int keyboard = keys_begin(&terminal);
	int cursor = !is_dumb();
	int status;

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	/* The second screen, without a cursor: what was there before comes back. */
	if (cursor)
		fputs("\033[?1049h\033[?25l\033[2J", stdout);
	status = watch(jobs, keyboard);
	if (cursor)
		fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (keyboard)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
	/* What was said of it has gone with the second screen. */
	if (status)
		message_error("top: %s answers no more; is the server still running?", jobs->server);
	return status;
}

int command_top(char **arguments)
{
	struct options options = {"weekwheel top", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	int single = !isatty(STDOUT_FILENO);
	struct jobs jobs;
	int status;
	int id;

	jobs_init(&jobs);
	while ((id = jobs_next(&jobs, &options)) != OPTIONS_END) {
		if (id == JOBS_HELP) {
			command_top_help(stdout);
			return STATUS_OK;
		}
		if (id == OPTIONS_OPERAND)
			id = jobs_complain(&options, "'%s': no operand is expected", options.value);
		if (id == OPTIONS_ERROR)
			return STATUS_USAGE;
		single = 1;
	}
	if (client_open(&jobs.client, jobs.server, jobs.timeout_ms))
		return STATUS_FAILED;
	status = single ? once(&jobs) : on_terminal(&jobs);
	jobs_close(&jobs);
	return status;
}

void command_top_help(FILE *out)
{
	fputs("Usage: weekwheel top [OPTION]...\n"
	      "\n"
	      "Watch the tubes and the four wheels of what becomes due, redrawn each second on\n"
	      "a terminal of 80 x 24 or larger; 'q' ends. Into a file or a pipe goes one frame.\n"
	      "A wheel has a slot for each second, minute, hour or day, as a clock has, and ^\n"
	      "is now: a job stays in its slot while the hand comes nearer. The fuller a slot,\n"
	      "the higher, from . : - = + * # % to @, or blocks where the locale is UTF-8; max\n"
	      "is the fullest. Colour is left out where NO_COLOR is set or TERM is dumb.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Example:\n"
	      "  weekwheel top --server queue.example:11300\n",
	    out);
}
