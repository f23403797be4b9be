/* The page. */
#include "tools/bench/page.h"

#include <locale.h>
#include <string.h>

#include "tools/bench/page_figure.h"
#include "tools/bench/page_style.h"
#include "tools/bench/page_table.h"
#include "tools/bench/plot_style.h"

enum { NARROW = 600, WIDE = 1216 };

#define CLOCK_NOTE "A tick's time includes one reading of the clock, which is tens of nanoseconds."

/*
 * The figures in their order; a section begins where one is named. The captions say what the workload is and what holds
 * of any results; what these results say is computed.
 */
static const struct page_figure {
	const char *section;
	struct figure figure;
	const char *title, *caption;
} figures[] = {
    {"Heartbeats and churn", {FIGURE_COST, WORKLOAD_C30, NS_PER_OP, "time of a heartbeat"},
        "Heartbeat, timeout of 30 seconds",
        "Each touch sets one of n timers to expire 30 s from now, in random order, while time moves on. It is "
        "ten touches a timer in 50 ticks. A structure that puts the move off until the old time comes, as "
        "weekwheel does, makes it once in them; if this went on, it would in nearly one touch of five."},
    {NULL, {FIGURE_COST, WORKLOAD_C1800, NS_PER_OP, "time of a heartbeat"}, "Heartbeat, timeout of 30 minutes",
        "The same with the timeout of a session. A move that is put off until the old time comes is not in "
        "these 50 ticks; weekwheel's would be made in one touch of some 350."},
    {NULL, {FIGURE_COST, WORKLOAD_CWEEK, NS_PER_OP, "time of a heartbeat"}, "Heartbeat, timeout of a week",
        "The same with the longest timeout. A move that is put off is not in these 50 ticks; weekwheel's "
        "would be made in one touch of some 120,000."},
    {NULL, {FIGURE_COST, WORKLOAD_F, NS_PER_OP, "time of a life"}, "Churn",
        "n timers are kept pending: 70 % of 30 s, 20 % of 30 minutes, 10 % of up to a week; four of five "
        "are cancelled before they expire. A life is a schedule, 0.8 of a cancel, 0.2 of an expiry, and its "
        "share of the ticks. There are some 70 ticks: what is scheduled in them for longer never comes due."},
    {"Schedule and cancel", {FIGURE_COST, WORKLOAD_A, NS_PER_OP, "time to schedule"}, "Schedule",
        "n timers are filed one after the other, each with a delay of up to a week."},
    {NULL, {FIGURE_COST, WORKLOAD_B, NS_PER_OP, "time to cancel"}, "Cancel", "All n are cancelled in random order."},
    {"A whole life", {FIGURE_COST, WORKLOAD_D, NS_PER_TIMER, "time of a timer, all told"}, "Whole life, tick by tick",
        "n timers with delays of up to a week are filed, and every second of the week is stepped until all "
        "have expired. With few timers this shows what an empty tick costs: there are 604,800 ticks to "
        "share."},
    {NULL, {FIGURE_COST, WORKLOAD_R, NS_PER_TIMER, "time of a timer, all told"}, "Whole life, unrelated to memory",
        "The same, filed in an order unrelated to where the timers lie, as in a process that has run for "
        "long."},
    {NULL, {FIGURE_METRIC, WORKLOAD_D, MAX_TICK_US, "longest tick"}, "Longest tick of the week",
        "How long a service stands still at worst. " CLOCK_NOTE},
    {NULL, {FIGURE_SHARE, WORKLOAD_D, NS_PER_TICK, "share of ticks that take longer"}, "How rare the long ticks are",
        "Of the ticks within two hours of the end of the first day, the share that takes longer than what "
        "the foot says. The farther right a line ends, the worse its worst tick. " CLOCK_NOTE},
    {"At the boundary of a day", {FIGURE_TICKS, WORKLOAD_D, NS_PER_TICK, NULL}, "Ticks around the end of the first day",
        "The end of a day is where a wheel of days hands timers down, if a structure has one; those of hours and "
        "minutes do at the end of theirs. " CLOCK_NOTE},
    {"Idle time", {FIGURE_METRIC, WORKLOAD_E, NS_PER_TICK, "time of a tick"}, "An idle tick",
        "One timer, 6.9 days away, reached in steps of a second. What it costs to find that there is "
        "nothing to do."},
    {NULL, {FIGURE_METRIC, WORKLOAD_E, JUMP_NS, "time of both"}, "A schedule and a jump of 6.9 days",
        "The same timer scheduled, and reached in one step. The schedule is in the time."},
    {"Memory", {FIGURE_METRIC, WORKLOAD_G, BYTES_PER_TIMER, "bytes a timer"}, "Memory a timer",
        "What a pending timer takes, in the object and outside it, and its share of the empty structure; not what "
        "arrays keep in reserve. It is added up, not measured."},
    {NULL, {FIGURE_FIXED, WORKLOAD_G, BYTES_PER_TIMER, "memory besides"}, "Memory of the empty structure",
        "What it takes before there is a timer, by the longest delay that it has to hold. A line ends where the "
        "structure holds no longer ones. Not shown is less than 256 bytes, and what is not known."},
};

static void page_write_head(FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>weekwheel bench</title>\n<style>\n",
	    out);
	page_style_write(out);
	style_write_rules(out, 0);
	fputs("</style>\n</head>\n<body>\n", out);
	fputs("<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\">", out);
	style_write_markers(out);
	fputs("</svg>\n", out);
}

static void page_write_intro(FILE *out, const struct results *results)
{
	fputs("<header>\n<h1><i>weekwheel</i> bench</h1>\n<p class=\"lead\">What it costs to keep timers: weekwheel "
	      "beside other structures, each given the same objects and the same operations.</p>\n"
	      "<div class=\"card\"><dl>\n<dt>measured with</dt><dd><code>",
	    out);
	style_write_text(out, results->command);
	fputs("</code></dd>\n<dt>on</dt><dd>", out);
	style_write_text(out, results->machine);
	fputs(
	    "</dd>\n<dt>to be read</dt><dd>Points are medians of the repetitions, whiskers go from the least to the "
	    "most. Values are on logarithmic axes, and less is better everywhere. Point at a line or a name to see it "
	    "alone, at a marker to see its values.</dd>\n</dl></div>\n",
	    out);
	table_write_structures(out, results);
	fputs("</header>\n", out);
}

static int is_of_ticks(const struct figure *figure)
{
	return figure->kind == FIGURE_TICKS || figure->kind == FIGURE_SHARE || figure->metric == MAX_TICK_US;
}

static void page_write_figure(FILE *out, const struct page_figure *page, const struct results *results)
{
	int wide = page->figure.kind == FIGURE_TICKS;
	double width = wide ? WIDE : NARROW;

	fprintf(out, "<figure%s>\n<h3>%s</h3>\n", wide ? " class=\"wide\"" : "", page->title);
	plot_open(out, width, figure_height(&page->figure, results), page->title);
	figure_draw(out, &page->figure, results, width, 0);
	plot_close(out);
	fprintf(out, "<figcaption>%s", page->caption);
	if (is_of_ticks(&page->figure) && results_ticks_are_raw(results))
		fputs(" With fewer than 3 repetitions the longest are also those in which the machine stalled.", out);
	figure_write_verdict(out, &page->figure, results);
	fputs("</figcaption>\n</figure>\n", out);
}

static void page_write_figures(FILE *out, const struct results *results)
{
	const char *section = NULL;
	int open = 0;
	size_t i;

	for (i = 0; i < sizeof figures / sizeof *figures; i++) {
		section = figures[i].section ? figures[i].section : section;
		if (figure_height(&figures[i].figure, results) <= 0)
			continue;
		if (section) {
			fprintf(out, "%s<h2>%s</h2>\n<div class=\"two\">\n", open ? "</div>\n" : "", section);
			section = NULL;
			open = 1;
		}
		page_write_figure(out, &figures[i], results);
	}
	if (open)
		fputs("</div>\n", out);
}

int page_write(FILE *out, const struct results *results)
{
	/* Numbers have a point in SVG, whatever language the program speaks. */
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);

	page_write_head(out);
	page_write_intro(out, results);
	table_write_ratios(out, results);
	page_write_figures(out, results);
	table_write_results(out, results);
	table_write_left_out(out, results);
	table_write_checked(out, results);
	fputs("</body>\n</html>\n", out);
	uselocale(before);
	if (plain)
		freelocale(plain);
	return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
