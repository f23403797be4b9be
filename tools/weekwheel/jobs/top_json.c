/* Writes what top shows as a JSON object. */
#include <inttypes.h>
#include <string.h>

#include "tools/common/json.h"
#include "tools/weekwheel/jobs/top.h"

static void write_name(FILE *out, const char *before, const char *text)
{
	fputs(before, out);
	json_write_string(out, text, strlen(text));
}

static void write_counts(FILE *out, const struct tube_row *tube)
{
	fprintf(out,
	    ",\"delayed\":%" PRIu64 ",\"ready\":%" PRIu64 ",\"urgent\":%" PRIu64 ",\"reserved\":%" PRIu64
	    ",\"buried\":%" PRIu64,
	    tube->delayed, tube->ready, tube->urgent, tube->reserved, tube->buried);
}

static void write_wheel(FILE *out, const struct top_wheel_kind *kind, const struct top_wheel *wheel)
{
	fprintf(out, "\"%s\":{\"hand\":%zu,\"slots\":[", kind->name, wheel->hand);
	for (size_t i = 0; i < kind->slots; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", wheel->slots[i]);
	fputs("]}", out);
}

void top_json(FILE *out, const struct top_view *view)
{
	const struct top_sample *now = &view->now;

	putc('{', out);
	jobs_write_time(out, "time", view->wheels.now);
	write_name(out, ",\"version\":", now->all.name);
	fprintf(out, ",\"uptime\":%" PRIu64 ",\"workers\":%" PRIu64, now->uptime, now->workers);
	write_counts(out, &now->all);
	fprintf(out, ",\"overdue\":%" PRIu64 ",\"oldest\":%s,\"tubes\":[", view->wheels.overdue,
	    *now->oldest ? now->oldest : "null");
	for (size_t i = 0; i < now->tubes.count; i++) {
		const struct tube_row *tube = &now->tubes.at[i];

		write_name(out, i ? ",{\"name\":" : "{\"name\":", tube->name);
		write_counts(out, tube);
		fprintf(out, ",\"held\":%" PRIu64 ",\"waiting\":%" PRIu64 ",\"pause\":%" PRIu64 "}", tube->held,
		    tube->waiting, tube->pause);
	}
	fputs("],\"wheels\":", out);
	for (size_t i = 0; view->wheels.has_forecast && i < TOP_WHEELS; i++) {
		putc(i ? ',' : '{', out);
		write_wheel(out, &top_wheel_kinds[i], &view->wheels.at[i]);
	}
	fputs(view->wheels.has_forecast ? "}}\n" : "null}\n", out);
}
