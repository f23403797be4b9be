/* The command top: prepares the terminal and shows a frame each second, until q. */
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
#include "tools/weekwheel/jobs/top.h"

struct top {
	struct jobs jobs;
	int once;
};

static const struct option table[] = {
    {JOBS_FLAG(struct top, once), '1', "once", NULL, "write one frame, and end"},
    JOBS_SERVER_OPTIONS,
    JOBS_HELP_OPTION,
};

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

/* Read single keys without echo. Returns 0 if standard input is no terminal. */
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
 * Wait for a key that ends the program or for the next full second, when a hand may move. If that is less than 200 ms
 * away wait a second more, as rates need some time.
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
	return failed;
}

static int watch(struct jobs *jobs, int keyboard)
{
	struct top_look look = {.colour = wants_colour(), .cursor = !is_dumb(), .utf8 = is_utf8()};
	struct top_sample previous = {.taken = 0}, now;
	struct top_wheels wheels = {.now = 0};
	int has_previous = 0;
	int failed = 0;

	while (!ended) {
		failed = top_sample(jobs, &now, &wheels);
		look.rows = screen_rows();
		if (!failed)
			top_frame(stdout, jobs, &now, has_previous ? &previous : NULL, &wheels, &look);
		top_sample_free(&previous);
		previous = now;
		has_previous = 1;
		if (failed || ferror(stdout))
			break;
		pause_second(keyboard);
	}
	top_sample_free(&previous);
	return failed;
}

/* Show frames, and restore the screen and the terminal whichever way this ends. */
static int on_terminal(struct jobs *jobs)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct termios terminal;
	int keyboard = keys_begin(&terminal);
	int cursor = !is_dumb();
	int failed;

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	/* Switch to the second screen and hide the cursor. What was on the first comes back at the end. */
	if (cursor)
		fputs("\033[?1049h\033[?25l\033[2J", stdout);
	failed = watch(jobs, keyboard);
	if (cursor)
		fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (keyboard)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
	/* The message on the second screen is gone. */
	if (failed)
		message_error("top: %s answers no more; is the server still running?", jobs->server);
	return failed;
}

static int run(void *context)
{
	struct top *top = context;

	return top->once || !isatty(STDOUT_FILENO) ? once(&top->jobs) : on_terminal(&top->jobs);
}

const struct jobs_command command_top = {
    .name = "weekwheel top",
    JOBS_TABLE(table),
    .context = &(struct top){.once = 0},
    .server = JOBS_CONNECTED,
    .needs = {"read", "all tubes"},
    .no_operand = "",
    .run = run,
    .usage = "Usage: weekwheel top [OPTION]...\n"
             "\n"
             "Watch the tubes and four wheels of the jobs that become due, redrawn each second\n"
             "on a terminal of 80 x 24 or larger; 'q' ends. A file or a pipe gets one frame.\n"
             "A wheel has a slot for each second, minute, hour or day, like a clock, and ^ is\n"
             "now: a job stays in its slot while the hand comes nearer. The fuller a slot, the\n"
             "higher its character, from . : - = + * # % to @, or blocks where the locale is\n"
             "UTF-8; max is the fullest. NO_COLOR or TERM=dumb switches colour off.\n",
    .examples = "Example:\n"
                "  weekwheel top --server queue.example:11300\n",
};
