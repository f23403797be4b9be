/* The summary of a replay for people: what was replayed, what became of it, and what it cost. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "tools/weekwheel/replay/report.h"
#include "weekwheel/wheel.h"

enum { TEXT = 48 };

/* Write a number with commas between thousands. */
static const char *format_count(char *out, uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
	char *at = out;

	for (int i = 0; i < length; i++) {
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

/* Only access logs contain the date. */
static void write_dates(FILE *out, const struct report *report)
{
	char text[2][TEXT];

	for (size_t i = 0; i < report->request.file_count; i++)
		if (report->sources[i].format != &format_log)
			return;
	for (size_t i = 0; i < 2; i++) {
		time_t seconds = (time_t)report->events.at[i ? report->events.count - 1 : 0].time_seconds;
		struct tm date;

		if (!gmtime_r(&seconds, &date) || !strftime(text[i], TEXT, "%Y-%m-%d %H:%M:%S", &date))
			return;
	}
	fprintf(out, ", %s to %s UTC", text[0], text[1]);
}

static void write_span(FILE *out, const struct report *report)
{
	const struct events *events = &report->events;
	char text[MOMENT_TEXT];

	if (events->count == 0) {
		fputs(", no events\n", out);
		return;
	}
	fprintf(out, ", %s",
	    moment_format_span(
	        text, moment_subtract(event_time(&events->at[events->count - 1]), event_time(&events->at[0]))));
	if (report->request.file_count > 0)
		write_dates(out, report);
	fputc('\n', out);
}

static void write_heading(FILE *out, const struct report *report)
{
	const size_t files = report->request.file_count;
	char count[TEXT];

	if (files == 0)
		fprintf(out, "SYNTHETIC: %s made-up sessions, seed %" PRIu64,
		    format_count(count, report->request.sessions), report->request.seed);
	for (size_t i = 0; i < files; i++) {
		const struct source *source = &report->sources[i];

		fprintf(out, "%s%s: %s%s, %s lines", i ? "\n" : "", source_title(source), source->format->title,
		    source->gzip ? " (gzip)" : "", format_count(count, source->lines));
	}
	if (files > 1)
		fprintf(out, "\n%zu files together", files);
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
	const struct tally *tally = &report->result.outcome.tally;
	char note[TEXT + 32];
	char count[TEXT];

	write_count(out, "events", report->events.count, "");
	write_count(out, "timers set", tally->scheduled, "");
	write_count(out, "refreshed", tally->refreshed, "");
	write_count(out, "cancelled", tally->cancelled, share(note, tally->cancelled, tally->scheduled));
	write_count(out, "expired", tally->expired, share(note, tally->expired, tally->scheduled));
	write_count(out, "still pending", tally->pending,
	    report->request.replay.to_end || tally->pending == 0
	        ? ""
	        : "at the last event; --to-end goes on until they expire");
	snprintf(note, sizeof note, "at once; %zu bytes each", sizeof(struct ww_timer));
	write_count(out, "peak", tally->peak, note);
	snprintf(note, sizeof note, "%s bytes", format_count(count, report->result.wheel_bytes));
	write_row(out, "the wheel itself", note, "");
}

static void write_cost(FILE *out, const struct report *report)
{
	const struct replay_result *result = &report->result;
	double rate = report_rate(report);
	char value[TEXT];
	char note[TEXT + 80];
	char count[TEXT];

	snprintf(value, sizeof value, "%s tick%s", format_count(count, result->max_late_ticks),
	    result->max_late_ticks == 1 ? "" : "s");
	write_row(
	    out, "latest expiry", value, result->max_late_ticks ? "late" : "late: each in the tick of its deadline");
	snprintf(note, sizeof note, "of %s%s, by the clock on the wall: interruptions count",
	    format_count(count, result->advance.count), report->request.replay.every_tick ? ", one a tick" : "");
	write_row(out, "longest advance", format_ns(value, result->advance.largest), note);
	write_row(out, "99.99th percentile", format_ns(value, histogram_quantile(&result->advance, 0.9999)), "");
	if (rate >= 1e6)
		snprintf(note, sizeof note, "%.1f million operations a second", rate / 1e6);
	else
		snprintf(note, sizeof note, "%.0f operations a second", rate);
	write_row(out, "replayed in", format_ns(value, result->wall_ns), note);
}

static void write_remarks(FILE *out, const struct report *report)
{
	const size_t files = report->request.file_count;
	int is_out_of_order = files == 1 && report->sources[0].format != &format_swf;
	struct format_context sum = {.jobs_in_parts = 0};

	for (size_t i = 0; i < files; i++) {
		sum.jobs_without_limit += report->sources[i].context.jobs_without_limit;
		sum.jobs_in_parts += report->sources[i].context.jobs_in_parts;
		sum.jobs_without_finish += report->sources[i].context.jobs_without_finish;
	}
	const struct {
		const char *name;
		uint64_t count;
		const char *note;
	} remarks[] = {
	    {"without a limit", sum.jobs_without_limit, "jobs, for which no timer was set"},
	    {"without a run time", sum.jobs_without_finish, "jobs, whose timers nothing cancels"},
	    {"partial jobs", sum.jobs_in_parts, "lines left out: the whole job has one of its own"},
	    {"cancels too late", report->result.outcome.tally.idle_cancels, "of timers that were idle"},
	    {"out of order", is_out_of_order ? report->out_of_order : 0, "lines, put in order of time"},
	    {"UNREADABLE LINES", report->unreadable, "left out; see the messages"},
	};
	for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
		if (remarks[i].count)
			write_count(out, remarks[i].name, remarks[i].count, remarks[i].note);
	for (size_t i = 0; i < files; i++)
		if (report->sources[i].damaged)
			fprintf(
			    out, "  INCOMPLETE: %s could not be read to its end\n", source_title(&report->sources[i]));
}

static void write_verified(FILE *out, const struct report *report)
{
	const struct replay_result *result = &report->result;
	char expiries[TEXT];

	if (report->verified == REPORT_DIFFERENT)
		fputs("  VERIFY: FAILED, the oracle differs; see the message\n", out);
	if (report->verified == REPORT_VERIFIED)
		fprintf(out,
		    "  verified: the oracle agrees on all %s expiries; the wheel was checked %" PRIu64 " time%s\n",
		    format_count(expiries, result->outcome.tally.expired), result->checks,
		    result->checks == 1 ? "" : "s");
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
	if (report->events.count == 0) {
		fputs("  no events: there is nothing to replay\n", out);
		write_remarks(out, report);
		return;
	}
	write_timers(out, report);
	fputc('\n', out);
	write_cost(out, report);
	write_remarks(out, report);
	write_verified(out, report);
	if (report->result.outcome.tally.pending)
		write_wheels(out, report->result.wheels);
}
