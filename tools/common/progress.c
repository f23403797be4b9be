/* Draws the progress bar, at most ten times a second. It costs next to nothing. */
#include "tools/common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/time.h"

enum { BAR_WIDTH = 40 };

static const char *progress_label = "";
static int64_t progress_drawn; /* ms */
static int progress_on_screen;

static int is_visible(void)
{
	static int terminal = -1;

	if (terminal < 0)
		terminal = isatty(STDERR_FILENO) == 1;
	return terminal;
}

void progress_begin(const char *label)
{
	progress_clear();
	progress_label = label;
}

static int progress_is_too_soon(void)
{
	int64_t now = time_ms();

	if (progress_on_screen && now - progress_drawn < 100)
		return 1;
	progress_drawn = now;
	return 0;
}

void progress_show(uint64_t done, uint64_t total)
{
	char bar[BAR_WIDTH + 1];
	double share;
	int i;

	if (!is_visible() || progress_is_too_soon())
		return;
	progress_on_screen = 1;
	if (total == 0) {
		fprintf(stderr, "\r\033[K%s %" PRIu64, progress_label, done);
		return;
	}
	share = done < total ? (double)done / (double)total : 1.0;
	for (i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < (int)(share * BAR_WIDTH) ? '#' : '.';
	bar[BAR_WIDTH] = 0;
	fprintf(stderr, "\r\033[K%s [%s] %3d %%", progress_label, bar, (int)(share * 100));
}

void progress_clear(void)
{
	if (!progress_on_screen)
		return;
	fputs("\r\033[K", stderr);
	progress_on_screen = 0;
}
