/* Plots as files of their own. */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/bench/page.h"
#include "tools/bench/page_figure.h"
#include "tools/bench/plot_ticks.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"

enum { WIDTH = 760, MARGIN = 24, PARTS = 2, GAP = 10 };

/* What a file shows: one figure or two, one below the other. */
struct picture {
	const char *file, *title, *subtitle;
	struct figure parts[PARTS];
	size_t part_count;
};

static const struct picture session_heartbeat = {"heartbeat.svg", "A heartbeat of a 30-minute timeout",
    "n timers, each set to expire 30 minutes from now, in random order; lower is better",
    {{FIGURE_COST, WORKLOAD_C1800, NS_PER_OP, "time of a heartbeat"}}, 1};

static const struct picture short_heartbeat = {"heartbeat.svg", "A heartbeat of a 30-second timeout",
    "n timers, each set to expire 30 seconds from now, in random order; lower is better",
    {{FIGURE_COST, WORKLOAD_C30, NS_PER_OP, "time of a heartbeat"}}, 1};

static const struct picture life = {"life.svg", "The whole life of a timer",
    "n timers of up to a week: scheduled, and every second stepped until all have expired; lower is better",
    {{FIGURE_COST, WORKLOAD_D, NS_PER_TIMER, "time of a timer, all told"}}, 1};

static const struct picture boundary = {
    "day-boundary.svg", "The end of a day", NULL, {{FIGURE_TICKS, WORKLOAD_D, NS_PER_TICK, NULL}}, 1};

static const struct picture memory = {"memory.svg", "Memory",
    "what a pending timer takes, and what the structure takes besides",
    {{FIGURE_METRIC, WORKLOAD_G, BYTES_PER_TIMER, "bytes a timer"},
        {FIGURE_FIXED, WORKLOAD_G, BYTES_PER_TIMER, "memory of the empty structure"}},
    2};

static double picture_height(const struct picture *picture, const struct results *results)
{
	double height = 0;
	size_t i;

	for (i = 0; i < picture->part_count; i++) {
		double part = figure_height(&picture->parts[i], results);

		if (part > 0)
			height += part + (height > 0 ? GAP : 0);
	}
	return height;
}

static void picture_draw(FILE *out, const struct picture *picture, const struct results *results)
{
	const char *const foot[2] = {results->command, results->machine};
	char subtitle[120], timers[AXIS_TEXT];
	double top;
	size_t i;

	snprintf(subtitle, sizeof subtitle,
	    "time of each tick around it, with %s timers of up to a week; lower is better",
	    axis_text(timers, AXIS_COUNT, (double)ticks_timers(results)));
	top = plot_open_file(out, WIDTH, picture_height(picture, results), picture->title,
	    picture->subtitle ? picture->subtitle : subtitle, foot);
	for (i = 0; i < picture->part_count; i++) {
		figure_draw(out, &picture->parts[i], results, WIDTH - MARGIN, top);
		top += figure_height(&picture->parts[i], results) + GAP;
	}
	plot_close_file(out);
}

/* Return how many files were written, or -1 after saying why. */
static int picture_write(const char *folder, const struct picture *picture, const struct results *results)
{
	size_t size = strlen(folder) + strlen(picture->file) + 2;
	char *path;
	FILE *out;
	int failed;

	if (picture_height(picture, results) <= 0)
		return 0;
	path = memory_zeroed(size, 1);
	snprintf(path, size, "%s/%s", folder, picture->file);
	out = fopen(path, "w");
	failed = !out;
	if (out) {
		picture_draw(out, picture, results);
		failed = fflush(out) != 0 || ferror(out);
		failed = fclose(out) != 0 || failed;
	}
	if (failed)
		message_error("cannot write %s: %s", path, strerror(errno));
	free(path);
	return failed ? -1 : 1;
}

int page_plots_possible(const char *folder)
{
	struct stat found;

	if (stat(folder, &found))
		return -1;
	if (!S_ISDIR(found.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return access(folder, W_OK | X_OK);
}

int page_plots(const char *folder, const struct results *results)
{
	/* As for the page: numbers have a point. */
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
	const struct picture *heartbeat =
	    picture_height(&session_heartbeat, results) > 0 ? &session_heartbeat : &short_heartbeat;
	const struct picture *const pictures[] = {heartbeat, &life, &boundary, &memory};
	int count = 0, written = 0;
	size_t i;

	for (i = 0; written >= 0 && i < sizeof pictures / sizeof *pictures; i++) {
		written = picture_write(folder, pictures[i], results);
		count += written;
	}
	uselocale(before);
	if (plain)
		freelocale(plain);
	return written < 0 ? -1 : count;
}
