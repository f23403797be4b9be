/* The summary as JSON. */
#include <inttypes.h>
#include <string.h>

#include "tools/common/json.h"
#include "tools/weekwheel/replay/report.h"
#include "weekwheel/version.h"
#include "weekwheel/wheel.h"

static void write_number(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, "  \"%s\": %" PRIu64 ",\n", key, value);
}

static void write_flag(FILE *out, const char *key, int value)
{
	fprintf(out, "  \"%s\": %s,\n", key, value ? "true" : "false");
}

static void write_sources(FILE *out, const struct report *report)
{
	size_t i;

	fputs("  \"files\": [", out);
	for (i = 0; i < report->source_count; i++) {
		const struct source *source = &report->sources[i];

		fputs(i ? ",\n    {\"file\": " : "\n    {\"file\": ", out);
		json_write_string(out, source->name, strlen(source->name));
		fprintf(out, ", \"format\": \"%s\", \"gzip\": %s, \"complete\": %s, ", source->format->name,
		    source->gzip ? "true" : "false", source->damaged ? "false" : "true");
		fprintf(
		    out, "\"lines\": %" PRIu64 ", \"unreadable\": %" PRIu64 ", ", source->lines, source->unreadable);
		fprintf(out,
		    "\"jobs_without_limit\": %" PRIu64 ", \"jobs_without_run_time\": %" PRIu64
		    ", \"partial_jobs_left_out\": %" PRIu64 "}",
		    source->context.jobs_without_limit, source->context.jobs_without_finish,
		    source->context.jobs_in_parts);
	}
	fputs(report->source_count ? "\n  ],\n" : "],\n", out);
}

/* The keys that the tool promises, in the order in which it promises them. */
static void write_promised(FILE *out, const struct report *report)
{
	const struct replay_result *result = report->result;
	const struct tally *tally = &result->outcome.tally;

	write_number(out, "events", report->events->count);
	write_number(out, "scheduled", tally->scheduled);
	write_number(out, "refreshed", tally->refreshed);
	write_number(out, "cancelled", tally->cancelled);
	write_number(out, "expired", tally->expired);
	write_number(out, "pending", tally->pending);
	write_number(out, "max_late_ticks", result->max_late_ticks);
	write_number(out, "max_advance_ns", result->advance.largest);
	write_number(out, "p9999_advance_ns", histogram_quantile(&result->advance, 0.9999));
	write_number(out, "peak_timers", tally->peak);
	write_number(out, "bytes_per_timer", sizeof(struct ww_timer));
	write_number(out, "operations_per_second", (uint64_t)report_rate(report));
	write_number(out, "unreadable_lines", report_unreadable(report));
}

static void write_synthetic(FILE *out, const struct report *report)
{
	int synthetic = report->source_count == 0;

	write_flag(out, "synthetic", synthetic);
	if (!synthetic)
		return;
	write_number(out, "seed", report->seed);
	write_number(out, "sessions", report->sessions);
}

void report_json(FILE *out, const struct report *report)
{
	static const char *const verified[] = {"null", "true", "false"};
	const struct replay_result *result = report->result;

	fputs("{\n", out);
	write_promised(out, report);
	write_number(out, "idle_cancels", result->outcome.tally.idle_cancels);
	write_number(out, "operations", result->operations);
	write_number(out, "advances", result->advance.count);
	write_number(out, "wheel_bytes", result->wheel_bytes);
	write_number(out, "start_tick", result->start);
	write_number(out, "end_tick", result->end);
	fprintf(out, "  \"wall_seconds\": %" PRIu64 ".%09" PRIu64 ",\n", result->wall_ns / 1000000000,
	    result->wall_ns % 1000000000);
	write_number(out, "out_of_order", report->out_of_order);
	write_synthetic(out, report);
	write_sources(out, report);
	fprintf(out, "  \"verified\": %s,\n", verified[report->verified]);
	fputs("  \"version\": ", out);
	json_write_string(out, ww_version(), strlen(ww_version()));
	fputs("\n}\n", out);
}
