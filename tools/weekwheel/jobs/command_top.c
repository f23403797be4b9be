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
    {JOBS_FLAG(struct jobs, json), 'j', "json", NULL, "write one frame's numbers as a JSON object"},
    JOBS_HELP_OPTION,
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	ended |= number != SIGWINCH;
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

/* The size may change at any time. A terminal that does not know its own has 0 of both. */
static void measure(struct top_look *look)
{
	struct winsize size;
	int is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;

	look->rows = is_known && size.ws_row ? size.ws_row : TOP_ROWS;
	look->columns = is_known && size.ws_col ? size.ws_col : TOP_COLUMNS;
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
 * Wait for a key or for the next full second, when a hand may move. If that is less than 200 ms away wait a second more,
 * as rates need some time. Return the key, 0 for another size of the terminal, or -1 when the second is over.
 */
static int wait_key(int keyboard)
{
	struct pollfd keys = {keyboard ? STDIN_FILENO : -1, POLLIN, 0};
	int past = (int)(wall_now() % DURATION_SECOND / (DURATION_SECOND / 1000));
	int ready = poll(&keys, 1, past > 800 ? 2000 - past : 1000 - past);
	char typed[64]; /* a key such as an arrow is several bytes */

	if (ready <= 0)
		return ready < 0 ? 0 : -1;
	if (read(STDIN_FILENO, typed, sizeof typed) <= 0 || *typed == 'q' || *typed == 'Q' || *typed == 3)
		ended = 1;
	return (unsigned char)*typed;
}

static int sample(struct top_view *view)
{
	return top_sample(view->jobs, &view->now, &view->wheels) || top_panels_read(view->jobs, &view->panels);
}

static int once(struct jobs *jobs)
{
	struct top_look look = {.colour = wants_colour(), .utf8 = is_utf8()};
	struct top_view view = {.jobs = jobs};
	int failed = jobs->json ? top_sample(jobs, &view.now, &view.wheels) : sample(&view);

	measure(&look);
	look.rows = TOP_ROWS;
	if (!failed && jobs->json)
		top_json(stdout, &view);
	else if (!failed)
		top_frame(stdout, &view, &look);
	top_sample_free(&view.now);
	top_panels_free(&view.panels);
	return failed;
}

/* Draw a frame or, if *page is not 0, a page of the help. What a terminal makes of lines when it is resized is cleared. */
static void draw(const struct top_view *view, struct top_look *look, int *page)
{
	struct top_look former = *look;

	measure(look);
	if (look->cursor && (look->rows != former.rows || look->columns != former.columns))
		fputs("\033[2J", stdout);
	if (!*page || !top_help(stdout, *page, look)) {
		*page = 0;
		top_frame(stdout, view, look);
	}
}

/* Draw again with each key and size, until the second is over. */
static void show_second(const struct top_view *view, struct top_look *look, int *page, int keyboard)
{
	int key;

	do {
		draw(view, look, page);
		key = ferror(stdout) ? -1 : wait_key(keyboard);
		if (key > 0 && *page)
			++*page;
		else if (key == '?' || key == 'h' || key == 'H')
			*page = 1;
	} while (key >= 0 && !ended);
}

static int watch(struct jobs *jobs, int keyboard)
{
	struct top_look look = {.colour = wants_colour(), .cursor = !is_dumb(), .utf8 = is_utf8()};
	struct top_view view = {.jobs = jobs};
	int failed = 0, page = 0;

	while (!ended && !failed && !ferror(stdout)) {
		failed = sample(&view);
		if (!failed)
			show_second(&view, &look, &page, keyboard);
		top_sample_free(&view.previous);
		view.previous = view.now;
		view.has_previous = 1;
	}
	top_sample_free(&view.previous);
	top_panels_free(&view.panels);
	return failed;
}

/* Show frames, and restore the screen and the terminal whichever way this ends. */
static int on_terminal(struct jobs *jobs)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	struct sigaction action = {.sa_handler = on_signal};
	struct termios terminal;
	int keyboard = keys_begin(&terminal);
	int cursor = !is_dumb();
	int failed;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	/*
	 * Switch to the second screen, hide the cursor, and cut long lines instead of wrapping them, which counts between a
	 * change of size and the next frame. What was on the first screen comes back at the end.
	 */
	if (cursor)
		fputs("\033[?1049h\033[?25l\033[?7l\033[2J", stdout);
	failed = watch(jobs, keyboard);
	if (cursor)
		fputs("\033[?7h\033[?25h\033[?1049l", stdout);
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

	return top->once || top->jobs.json || !isatty(STDOUT_FILENO) ? once(&top->jobs) : on_terminal(&top->jobs);
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
             "Watch the tubes, limits and schedules, and four wheels of the jobs that become\n"
             "due, redrawn each second on a terminal of any size; '?' helps, 'q' ends. What has\n"
             "no room is left out. A file or a pipe gets one frame of 80 x 24.\n"
             "A wheel has a slot for each second, minute, hour or day, like a clock, and ^ is\n"
             "now: a job stays in its slot while the hand comes nearer. The fuller a slot, the\n"
             "higher its character, from . : - = + * # % to @, or blocks where the locale is\n"
             "UTF-8; max is the fullest. NO_COLOR or TERM=dumb switches colour off.\n",
    .examples = "Examples:\n"
                "  weekwheel top --server queue.example:11300\n"
                "  weekwheel top --json | jq '.tubes[] | select(.buried > 0)'\n",
};
