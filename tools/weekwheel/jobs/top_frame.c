/* Draws a frame of the command top: what fits into the terminal, the most important first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/top_screen.h"

/* Each part of a frame gets this many lines. */
struct top_plan {
	int head, title, tubes, panels[TOP_PANELS], dials;
	int gap; /* between parts */
};

enum { HEAD = 3 };

/* Return how many of a part's lines are drawn: those left over, or its share where others need more. */
static int share(const struct top_panel *panel, int all, int needed, int gap)
{
	int wanted = panel->text ? gap + 1 + (int)(panel->rows < 1000 ? panel->rows : 1000) + panel->has_more : 0;
	int given = all > needed ? all - needed : 0;

	if (given < all / 4 && all >= 12)
		given = all / 4;
	given = given < wanted ? given : wanted;
	return given < gap + 2 ? 0 : given;
}

static int dial_lines(const struct top_view *view, const struct screen *screen)
{
	if (!view->wheels.has_forecast || screen->width < DIALS_WIDTH)
		return screen->left >= 8;
	return screen->left >= HEAD + 5 + DIALS_FULL   ? DIALS_FULL
	       : screen->left >= HEAD + 3 + DIALS_FLAT ? DIALS_FLAT
	                                               : 0;
}

static struct top_plan plan_frame(const struct top_view *view, const struct screen *screen)
{
	int lines = screen->left;
	struct top_plan plan = {.head = lines < 7 ? 2 : HEAD, .title = lines >= 5, .dials = dial_lines(view, screen)};
	int needed = view->now.tubes.count < 1000 ? (int)view->now.tubes.count : 1000;

	plan.gap = lines >= 15;
	plan.tubes = lines - plan.head - plan.title - plan.dials - 2 * plan.gap;
	for (size_t i = 0; i < TOP_PANELS; i++) {
		plan.panels[i] = share(&view->panels.at[i], plan.tubes, needed, plan.gap);
		plan.tubes -= plan.panels[i];
	}
	return plan;
}

/* ---- The head */

static void server_line(struct screen *screen, const struct top_view *view)
{
	const struct top_sample *now = &view->now;
	char date[DURATION_TEXT], up[DURATION_TEXT] = "?", text[4][200];
	const char *server = view->jobs->server;

	if (now->uptime < DURATION_MAX / DURATION_SECOND)
		duration_format(up, now->uptime * DURATION_SECOND);
	time_format(date, view->wheels.now);
	snprintf(text[0], sizeof *text, "%s  %.30s  version %.12s  up %s", date, server, now->all.name, up);
	snprintf(text[1], sizeof *text, "%s  %.30s  up %s", date, server, up);
	snprintf(text[2], sizeof *text, "%s  up %s", date, up);
	snprintf(text[3], sizeof *text, "%s", date);
	screen_first(screen, screen_bold, (const char *const[]){text[0], text[1], text[2], text[3]}, 4);
}

static void jobs_line(struct screen *screen, const struct top_sample *now)
{
	const struct tube_row *all = &now->all;
	char text[4][200], ready[12], buried[12];

	snprintf(text[1], sizeof *text,
	    "%" PRIu64 " ready, %" PRIu64 " delayed, %" PRIu64 " reserved, %" PRIu64 " buried", all->ready,
	    all->delayed, all->reserved, all->buried);
	snprintf(text[0], sizeof *text, "jobs: %.160s; %" PRIu64 " workers", text[1], now->workers);
	screen_count(ready, all->ready);
	screen_count(buried, all->buried);
	snprintf(text[2], sizeof *text, "%s ready, %s buried", ready, buried);
	snprintf(text[3], sizeof *text, "%s rdy %s bur", ready, buried);
	screen_first(screen, NULL, (const char *const[]){text[0], text[1], text[2], text[3]}, 4);
}

static void oldest_line(struct screen *screen, const struct top_sample *now)
{
	char oldest[DURATION_TEXT], text[2][100];
	struct duration_problem problem;
	uint64_t ns = 0;
	int known = duration_parse(now->oldest, &ns, &problem) == 0;

	duration_format(oldest, ns);
	snprintf(text[0], sizeof *text, "oldest overdue: %s", known ? oldest : "not known of this server");
	snprintf(text[1], sizeof *text, "overdue: %s", known ? oldest : "?");
	if (known && !ns)
		screen_line(screen, NULL, "nothing is overdue");
	else
		screen_first(
		    screen, ns >= DURATION_SECOND ? screen_warning : NULL, (const char *const[]){text[0], text[1]}, 2);
}

/* ---- Tubes */

enum { NAME_LEAST = 10, NAME_USUAL = 24 };
enum { READY, HELD, DELAYED, RESERVED, BURIED, PUTS, DONE, COLUMNS };

static const struct {
	const char *title;
	int width; /* with a blank before it */
} columns[COLUMNS] = {
    {"READY", 8}, {"HELD", 8}, {"DELAYED", 9}, {"RESERVED", 9}, {"BURIED", 8}, {"PUTS/S", 9}, {"DONE/S", 9}};

/* The columns of a frame, and the room for names. */
struct columns {
	int is_shown[COLUMNS], name;
};

/* Leave columns out until names have room. While no limit holds a job, no column says so. */
static struct columns choose_columns(const struct top_sample *sample, int width)
{
	static const int dispensable[] = {PUTS, RESERVED, DONE, DELAYED, BURIED, HELD};
	struct columns chosen = {.name = width};
	int longest = NAME_USUAL;
	uint64_t held = 0;

	for (size_t i = 0; i < sample->tubes.count; i++) {
		int length = (int)strlen(sample->tubes.at[i].name);

		longest = length > longest ? length : longest;
		held += sample->tubes.at[i].held;
	}
	for (int i = 0; i < COLUMNS; i++) {
		chosen.is_shown[i] = i != HELD || held;
		chosen.name -= chosen.is_shown[i] ? columns[i].width : 0;
	}
	for (size_t i = 0; chosen.name < NAME_LEAST && i < sizeof dispensable / sizeof *dispensable; i++) {
		chosen.name += chosen.is_shown[dispensable[i]] ? columns[dispensable[i]].width : 0;
		chosen.is_shown[dispensable[i]] = 0;
	}
	chosen.name = chosen.name < 1 ? 1 : chosen.name > longest ? longest : chosen.name;
	return chosen;
}

/* Write what a counter gained each second, or "-" if the server was restarted, which counts from 0. */
static const char *rate(char text[12], uint64_t now, uint64_t previous, int64_t ms)
{
	if (ms <= 0 || now < previous)
		strcpy(text, "-");
	else if (now - previous < 100)
		snprintf(text, 12, "%.1f", (double)(now - previous) * 1000 / (double)ms);
	else
		screen_count(text, (uint64_t)((double)(now - previous) * 1000 / (double)ms));
	return text;
}

static void row(struct screen *screen, const struct columns *chosen, const char *colour, const char *name,
    const char *const cells[COLUMNS])
{
	char text[TOP_LINE_MAX];
	int at = snprintf(text, sizeof text, "%-*.*s", chosen->name, chosen->name, name);

	for (int i = 0; i < COLUMNS; i++)
		if (chosen->is_shown[i])
			at += snprintf(text + at, sizeof text - (size_t)at, "%*s", columns[i].width, cells[i]);
	screen_line(screen, colour, "%s", text);
}

static const struct tube_row *find(const struct top_view *view, const char *name)
{
	for (size_t i = 0; view->has_previous && i < view->previous.tubes.count; i++)
		if (strcmp(view->previous.tubes.at[i].name, name) == 0)
			return &view->previous.tubes.at[i];
	return NULL;
}

static void tube_line(struct screen *screen, const struct columns *chosen, const struct top_view *view, size_t i)
{
	const struct tube_row *tube = &view->now.tubes.at[i], *former = find(view, tube->name);
	int64_t ms = former ? view->now.taken - view->previous.taken : 0;
	char text[COLUMNS][12];
	const char *const cells[COLUMNS] = {screen_count(text[READY], tube->ready),
	    screen_count(text[HELD], tube->held), screen_count(text[DELAYED], tube->delayed),
	    screen_count(text[RESERVED], tube->reserved), screen_count(text[BURIED], tube->buried),
	    rate(text[PUTS], tube->total, former ? former->total : 0, ms),
	    rate(text[DONE], tube->deleted, former ? former->deleted : 0, ms)};

	row(screen, chosen, tube->buried ? screen_warning : NULL, tube->name, cells);
}

static void tube_lines(struct screen *screen, const struct top_view *view, const struct top_plan *plan)
{
	struct columns chosen = choose_columns(&view->now, screen->width);
	size_t rows = plan->tubes > 0 ? (size_t)plan->tubes : 0;
	size_t shown = view->now.tubes.count;
	const char *titles[COLUMNS];

	for (int i = 0; i < COLUMNS; i++)
		titles[i] = columns[i].title;
	if (plan->title)
		row(screen, &chosen, screen_bold, "TUBE", titles);
	if (shown > rows)
		shown = rows > 1 ? rows - 1 : rows;
	for (size_t i = 0; i < shown; i++)
		tube_line(screen, &chosen, view, i);
	if (shown < view->now.tubes.count && shown < rows)
		screen_line(screen, NULL, "... and %zu more", view->now.tubes.count - shown);
}

/* ---- The frame */

void top_frame(FILE *out, const struct top_view *view, const struct top_look *look)
{
	struct screen screen = screen_begin(out, look);
	struct top_plan plan = plan_frame(view, &screen);

	server_line(&screen, view);
	jobs_line(&screen, &view->now);
	if (plan.head == HEAD)
		oldest_line(&screen, &view->now);
	screen_blank(&screen, plan.gap);
	tube_lines(&screen, view, &plan);
	for (size_t i = 0; i < TOP_PANELS; i++)
		if (plan.panels[i]) {
			screen_blank(&screen, plan.gap);
			panel_draw(&screen, &view->panels.at[i], plan.panels[i] - plan.gap);
		}
	screen_blank(&screen, screen.left - plan.dials);
	dials_draw(&screen, &view->wheels, plan.dials);
	screen_end(&screen, "? helps, q ends");
}
