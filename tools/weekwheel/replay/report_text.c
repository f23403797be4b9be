/* The summary for a person: what was replayed, what became of it, and what it cost. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "tools/weekwheel/replay/report.h"
#include "weekwheel/wheel.h"

enum { TEXT = 48 };

/* With a comma between thousands. */
static const char *format_count(char *out, uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
	int i;
	char *at = out;

	for (i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = 0;
	return out;
}

static const char *format_ns(char *out, uint64_t ns)
{
	double value = (double)ns;

	if (ns < 1000)
		snprintf(out, TEXT, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(out, TEXT, "%.1f us", value / 1e3);
	else if (ns < 1000000000)
		snprintf(out, TEXT, "%.1f ms", value / 1e6);
	else
		snprintf(out, TEXT, "%.2f s", value / 1e9);
	return out;
}

static const char *format_rate(char *out, double rate)
{
	if (rate >= 1e6)
		snprintf(out, TEXT, "%.1f million operations a second", rate / 1e6);
	else
		snprintf(out, TEXT, "%.0f operations a second", rate);
	return out;
}

/* Access logs alone tell on which date things happened. */
static void write_dates(FILE *out, const struct report *report)
{
	const struct events *events = report->events;
	char text[2][TEXT];
	size_t i;

	for (i = 0; i < report->source_count; i++)
		if (report->sources[i].format != &format_log)
			return;
	for (i = 0; i < 2; i++) {
		const struct event *event = &events->at[i == 0 ? 0 : events->count - 1];
		time_t seconds = (time_t)event->time_seconds;
		struct tm date;

		if (!gmtime_r(&seconds, &date) || !strftime(text[i], TEXT, "%Y-%m-%d %H:%M:%S", &date))
			return;
	}
	fprintf(out, ", %s to %s UTC", text[0], text[1]);
}

static void write_span(FILE *out, const struct report *report)
{
	const struct events *events = report->events;
	char text[MOMENT_TEXT];

	if (events->count == 0) {
		fputs(", no events\n", out);
		return;
	}
	fprintf(out, ", %s",
	    moment_format_span(
	        text, moment_subtract(event_time(&events->at[events->count - 1]), event_time(&events->at[0]))));
	if (report->source_count > 0)
		write_dates(out, report);
	fputc('\n', out);
}

static void write_heading(FILE *out, const struct report *report)
{
	char count[TEXT];
	size_t i;

	if (report->source_count == 0) {
		fprintf(out, "SYNTHETIC: %s made-up sessions, seed %" PRIu64, format_count(count, report->sessions),
		    report->seed);
		write_span(out, report);
		return;
	}
	for (i = 0; i < report->source_count; i++) {
		const struct source *source = &report->sources[i];

		fprintf(out, "%s: %s%s, %s lines", source_title(source), source->format->title,
		    source->gzip ? " (gzip)" : "", format_count(count, source->lines));
		if (i + 1 < report->source_count)
			fputc('\n', out);
	}
	if (report->source_count > 1)
		fprintf(out, "\n%zu files together", report->source_count);
	write_span(out, report);
}

static void write_row(FILE *out, const char *name, const char *value, const char *note)
{
	fprintf(out, "  %-20s%14s%s%s\n", name, value, *note ? "   " : "", note);
}

static void write_count(FILE *out, const char *name, uint64_t count, const char *note)
{
	char value[TEXT];

	write_row(out, name, format_count(value, count), note);
}

static const char *share(char *out, uint64_t part, uint64_t whole)
{
	*out = 0;
	if (part > 0)
		snprintf(out, TEXT, "%.1f %%", 100.0 * (double)part / (double)whole);
	return out;
}

static void write_timers(FILE *out, const struct report *report)
{
	const struct tally *tally = &report->result->outcome.tally;
	char note[TEXT + 32];
	char count[TEXT];

	write_count(out, "events", report->events->count, "");
	write_count(out, "timers set", tally->scheduled, "");
	write_count(out, "refreshed", tally->refreshed, "");
	write_count(out, "cancelled", tally->cancelled, share(note, tally->cancelled, tally->scheduled));
	write_count(out, "expired", tally->expired, share(note, tally->expired, tally->scheduled));
	write_count(out, "still pending", tally->pending,
	    report->to_end || tally->pending == 0 ? "" : "at the last event; --to-end goes on until they expire");
	snprintf(note, sizeof note, "at once; %zu bytes each", sizeof(struct ww_timer));
	write_count(out, "peak", tally->peak, note);
	snprintf(note, sizeof note, "%s bytes", format_count(count, report->result->wheel_bytes));
	write_row(out, "the wheel itself", note, "");
}

static void write_cost(FILE *out, const struct report *report)
{
	const struct replay_result *result = report->result;
	char value[TEXT];
	char note[TEXT + 80];
	char count[TEXT];

	snprintf(value, sizeof value, "%s tick%s", format_count(count, result->max_late_ticks),
	    result->max_late_ticks == 1 ? "" : "s");
	write_row(
	    out, "latest expiry", value, result->max_late_ticks ? "late" : "late: each in the tick of its deadline");
	snprintf(note, sizeof note, "of %s%s, by the clock on the wall: interruptions count",
	    format_count(count, result->advance.count), report->every_tick ? ", one a tick" : "");
	write_row(out, "longest advance", format_ns(value, result->advance.largest), note);
	write_row(out, "99.99th percentile", format_ns(value, histogram_quantile(&result->advance, 0.9999)), "");
	write_row(out, "replayed in", format_ns(value, result->wall_ns), format_rate(note, report_rate(report)));
}

static void write_remarks(FILE *out, const struct report *report)
{
	struct format_context sum = {{0, 0}, {0, 0}, 0, 0, 0};
	size_t i;

	for (i = 0; i < report->source_count; i++) {
		sum.jobs_without_limit += report->sources[i].context.jobs_without_limit;
		sum.jobs_in_parts += report->sources[i].context.jobs_in_parts;
		sum.jobs_without_finish += report->sources[i].context.jobs_without_finish;
	}
	if (sum.jobs_without_limit)
		write_count(out, "without a limit", sum.jobs_without_limit, "jobs, for which no timer was set");
	if (sum.jobs_without_finish)
		write_count(out, "without a run time", sum.jobs_without_finish, "jobs, whose timers nothing cancels");
	if (sum.jobs_in_parts)
		write_count(out, "partial jobs", sum.jobs_in_parts, "lines left out: the whole job has one of its own");
	if (report->result->outcome.tally.idle_cancels)
		write_count(
		    out, "cancels too late", report->result->outcome.tally.idle_cancels, "of timers that were idle");
	if (report->out_of_order && report->source_count == 1 && report->sources[0].format != &format_swf)
		write_count(out, "out of order", report->out_of_order, "lines, put in order of time");
	if (report_unreadable(report))
		write_count(out, "UNREADABLE LINES", report_unreadable(report), "left out; see the messages");
	for (i = 0; i < report->source_count; i++)
		if (report->sources[i].damaged)
			fprintf(
			    out, "  INCOMPLETE: %s could not be read to its end\n", source_title(&report->sources[i]));
}

static void write_verified(FILE *out, const struct report *report)
{
	const struct replay_result *result = report->result;
	char expiries[TEXT];

	if (report->verified == REPORT_DIFFERENT)
		fputs("  VERIFY: FAILED, the oracle differs; see the message\n", out);
	if (report->verified != REPORT_VERIFIED)
		return;
	fprintf(out, "  verified: the oracle agrees on all %s expiries; the wheel was checked %" PRIu64 " time%s\n",
	    format_count(expiries, result->outcome.tally.expired), result->checks, result->checks == 1 ? "" : "s");
}

static void write_wheels(FILE *out, const char *line)
{
	fputs("\n  The wheels at the end:\n", out);
	while (*line) {
		int length = (int)strcspn(line, "\n");
		fprintf(out, "  %.*s\n", length, line);
		line += length + (line[length] == '\n');
	}
}

void report_text(FILE *out, const struct report *report)
{
	write_heading(out, report);
	fputc('\n', out);
	if (report->events->count == 0) {
		fputs("  no events: there is nothing to replay\n", out);
		write_remarks(out, report);
		return;
	}
	write_timers(out, report);
	fputc('\n', out);
	write_cost(out, report);
	write_remarks(out, report);
	write_verified(out, report);
	if (report->result->outcome.tally.pending)
		write_wheels(out, report->result->wheels);
}
