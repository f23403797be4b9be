/* The summary of a replay as JSON. */
#include <inttypes.h>
#include <string.h>

#include "tools/common/json.h"
#include "tools/weekwheel/replay/report.h"
#include "weekwheel/version.h"
#include "weekwheel/wheel.h"

static const char *flag(int value)
{
	return value ? "true" : "false";
}

static void write_sources(FILE *out, const struct report *report)
{
	fputs("  \"files\": [", out);
	for (size_t i = 0; i < report->request.file_count; i++) {
		const struct source *source = &report->sources[i];

		fputs(i ? ",\n    {\"file\": " : "\n    {\"file\": ", out);
		json_write_string(out, source->name, strlen(source->name));
		fprintf(out,
		    ", \"format\": \"%s\", \"gzip\": %s, \"complete\": %s, \"lines\": %" PRIu64
		    ", \"unreadable\": %" PRIu64 ", \"jobs_without_limit\": %" PRIu64
		    ", \"jobs_without_run_time\": %" PRIu64 ", \"partial_jobs_left_out\": %" PRIu64 "}",
		    source->format->name, flag(source->gzip), flag(!source->damaged), source->lines, source->unreadable,
		    source->context.jobs_without_limit, source->context.jobs_without_finish,
		    source->context.jobs_in_parts);
	}
	fputs(report->request.file_count ? "\n  ],\n" : "],\n", out);
}

void report_json(FILE *out, const struct report *report)
{
	static const char *const verified[] = {"null", "true", "false"};
	const struct replay_result *result = &report->result;
	const struct tally *tally = &result->outcome.tally;
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
	    /* The documented keys, in the documented order. */
	    {"events", report->events.count},
	    {"scheduled", tally->scheduled},
	    {"refreshed", tally->refreshed},
	    {"cancelled", tally->cancelled},
	    {"expired", tally->expired},
	    {"pending", tally->pending},
	    {"max_late_ticks", result->max_late_ticks},
	    {"max_advance_ns", result->advance.largest},
	    {"p9999_advance_ns", histogram_quantile(&result->advance, 0.9999)},
	    {"peak_timers", tally->peak},
	    {"bytes_per_timer", sizeof(struct ww_timer)},
	    {"operations_per_second", (uint64_t)report_rate(report)},
	    {"unreadable_lines", report->unreadable},
	    /* More of them. */
	    {"idle_cancels", tally->idle_cancels},
	    {"operations", result->operations},
	    {"advances", result->advance.count},
	    {"wheel_bytes", result->wheel_bytes},
	    {"start_tick", result->start},
	    {"end_tick", result->end},
	};
	int synthetic = report->request.file_count == 0;

	fputs("{\n", out);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		fprintf(out, "  \"%s\": %" PRIu64 ",\n", numbers[i].key, numbers[i].value);
	fprintf(out, "  \"wall_seconds\": %" PRIu64 ".%09" PRIu64 ",\n  \"out_of_order\": %zu,\n",
	    result->wall_ns / 1000000000, result->wall_ns % 1000000000, report->out_of_order);
	fprintf(out, "  \"synthetic\": %s,\n", flag(synthetic));
	if (synthetic)
		fprintf(out, "  \"seed\": %" PRIu64 ",\n  \"sessions\": %" PRIu32 ",\n", report->request.seed,
		    report->request.sessions);
	write_sources(out, report);
	fprintf(out, "  \"verified\": %s,\n  \"version\": \"%s\"\n}\n", verified[report->verified], ww_version());
}
