/* The limits and schedules that top shows: asks the server for them, and keeps them as lines of text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/top_screen.h"

/* Limits and schedules change seldom. */
enum { PANEL_SECONDS = 5 };

/* A line of the server's answer, an object. */
struct item {
	const char *line;
	size_t size;
	uint64_t time;
};

struct items {
	struct item *at;
	size_t count, capacity;
	int has_more; /* the answer is a page, and there is a next one */
};

static uint64_t span_of(const struct item *item, const char *name)
{
	struct duration_problem problem;
	char text[DURATION_TEXT];
	uint64_t ns;

	json_text(item->line, item->size, name, text, sizeof text);
	return duration_parse(text, &ns, &problem) ? 0 : ns;
}

static const char *name_of(const struct item *item, const char *name, char shown[JOBS_KEY_TEXT])
{
	char text[JOBS_KEY_TEXT];

	json_text(item->line, item->size, name, text, sizeof text);
	return jobs_key_show(text, shown, JOBS_KEY_TEXT);
}

static void limit_row(struct text_table *rows, const struct item *item)
{
	uint64_t most = json_whole(item->line, item->size, "running"),
	         starts = json_whole(item->line, item->size, "starts");
	struct json_value each = json_member(item->line, item->size, "each");
	char text[JOBS_KEY_TEXT];

	table_cell(rows, "%s", name_of(item, "tube", text));
	name_of(item, "group", text);
	table_cell(rows, "%s", *text ? text : each.kind == JSON_OTHER && *each.text == 't' ? "each" : "-");
	table_cell(rows, "%" PRIu64, json_whole(item->line, item->size, "leases"));
	if (most)
		table_cell(rows, "%" PRIu64, most);
	else
		table_cell(rows, "-");
	if (starts)
		table_cell(rows, "%" PRIu64 " in %s", starts, duration_format(text, span_of(item, "per")));
	else
		table_cell(rows, "-");
	table_cell(rows, "%" PRIu64, json_whole(item->line, item->size, "held"));
}

static void schedule_row(struct text_table *rows, const struct item *item)
{
	int is_paused = memmem(item->line, item->size, "\"paused\":true", 13) != NULL;
	char text[JOBS_KEY_TEXT];

	table_cell(rows, "%s", name_of(item, "name", text));
	table_cell(rows, "%s",
	    item->time != UINT64_MAX ? time_format_zone(text, item->time)
	    : is_paused              ? "paused"
	                             : "ended");
	table_cell(rows, "%s", name_of(item, "tube", text));
	table_cell(rows, "%s", json_text(item->line, item->size, "cron", text, sizeof text));
	table_cell(rows, "%s", json_text(item->line, item->size, "zone", text, sizeof text));
}

static const struct table_column limit_columns[] = {
    {"LIMIT", 0}, {"GROUP", 0}, {"RUNNING", 1}, {"MOST", 1}, {"RATE", 1}, {"HELD", 1}};
static const struct table_column schedule_columns[] = {
    {"SCHEDULE", 0}, {"NEXT", 0}, {"TUBE", 0}, {"CRON", 0}, {"ZONE", 0}};

static const struct kind {
	const char *question;
	const struct table_column *columns;
	size_t count;
	void (*row)(struct text_table *rows, const struct item *item);
} kinds[TOP_PANELS] = {
    {"list-limits", limit_columns, sizeof limit_columns / sizeof *limit_columns, limit_row},
    {"list-schedules", schedule_columns, sizeof schedule_columns / sizeof *schedule_columns, schedule_row},
};

/* ---- Reading */

static int by_time(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->line < right->line ? -1 : left->line > right->line;
}

/* Those that are paused or over have no time, and come last. */
static void take_items(const struct reply *reply, struct items *items)
{
	const char *at = reply->body, *end = at + reply->body_size;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct item item = {at, (size_t)((stop ? stop : end) - at), 0};

		if (item.size > 8 && memcmp(at, "{\"next\":", 8) == 0) {
			items->has_more = 1;
		} else if (item.size) {
			item.time = span_of(&item, "next") ? span_of(&item, "next") : UINT64_MAX;
			items->at = memory_grow(items->at, &items->capacity, items->count, sizeof *items->at);
			items->at[items->count++] = item;
		}
		at += item.size + 1;
	}
	if (items->count)
		qsort(items->at, items->count, sizeof *items->at, by_time);
}

static void write_panel(const struct kind *kind, const struct items *items, struct top_panel *panel)
{
	struct text_table rows;
	size_t size = 0;
	FILE *out;

	free(panel->text);
	*panel = (struct top_panel){.rows = items->count, .has_more = items->has_more};
	out = items->count ? open_memstream(&panel->text, &size) : NULL;
	if (!out)
		return;
	table_begin(&rows, kind->columns, kind->count);
	for (size_t i = 0; i < items->count; i++)
		kind->row(&rows, &items->at[i]);
	table_write(&rows, out);
	table_free(&rows);
	fclose(out);
}

/* A server that has none, or refuses this client, is not asked again. */
static int read_panel(struct jobs *jobs, const struct kind *kind, struct top_panel *panel)
{
	struct items items = {NULL, 0, 0, 0};
	struct reply reply;

	if (panel->is_refused)
		return 0;
	if (client_ask(&jobs->client, &reply, "%s", kind->question))
		return -1;
	if (reply_is(&reply, "OK")) {
		take_items(&reply, &items);
		write_panel(kind, &items, panel);
	} else {
		panel->is_refused = 1;
	}
	free(items.at);
	return 0;
}

int top_panels_read(struct jobs *jobs, struct top_panels *panels)
{
	int64_t now = time_ms();

	if (panels->is_asked && now < panels->asked + 1000 * PANEL_SECONDS)
		return 0;
	panels->is_asked = 1;
	panels->asked = now;
	for (size_t i = 0; i < TOP_PANELS; i++)
		if (read_panel(jobs, &kinds[i], &panels->at[i]))
			return -1;
	return 0;
}

void top_panels_free(struct top_panels *panels)
{
	for (size_t i = 0; i < TOP_PANELS; i++)
		free(panels->at[i].text);
	*panels = (struct top_panels){.is_asked = 0};
}

/* ---- Drawing */

void panel_draw(struct screen *screen, const struct top_panel *panel, int lines)
{
	size_t rows = lines > 0 ? (size_t)lines - 1 : 0;
	const char *at = panel->text;
	int is_cut = panel->has_more || panel->rows > rows;
	size_t shown = is_cut && panel->rows >= rows && rows ? rows - 1 : panel->rows;

	for (size_t i = 0; at && *at && lines > 0 && i <= shown; i++) {
		size_t size = strcspn(at, "\n");

		screen_line(screen, i ? NULL : screen_bold, "%.*s", (int)size, at);
		at += size + (at[size] == '\n');
	}
	if (is_cut && lines > 0 && panel->has_more)
		screen_line(screen, NULL, "... and more");
	else if (is_cut && lines > 0)
		screen_line(screen, NULL, "... and %zu more", panel->rows - shown);
}
