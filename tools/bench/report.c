/* Writes the results as tables and as JSON. */
#include "tools/bench/result.h"

#include <inttypes.h>

/* n with commas between the thousands. */
static const char *grouped(char *text, size_t size, uint64_t n)
{
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);
	size_t used = 0;

	for (size_t i = 0; i < length && used + 2 < size; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			text[used++] = ',';
		text[used++] = digits[i];
	}
	text[used] = 0;
	return text;
}

static void write_value(FILE *out, double value)
{
	fprintf(out, " %12.*f", value < 10 ? 3 : value < 1000 ? 1 : 0, value);
}

static void write_row(FILE *out, const struct results *results, const struct result *result)
{
	const struct result *ours =
	    results_find(results, &structure_weekwheel, result->workload, result->n, result->metric);

	fprintf(out, "  %-14s", result->structure->name);
	write_value(out, result->median);
	write_value(out, result->min);
	write_value(out, result->max);
	if (ours && ours->median > 0)
		fprintf(out, " %12.*f", result->median / ours->median < 10 ? 2 : 0, result->median / ours->median);
	else
		fprintf(out, " %12s", "-");
	fprintf(out, "%s\n", result->repetitions == 1 && result->metric != BYTES_PER_TIMER ? "  one pass" : "");
}

static void write_group(FILE *out, const struct results *results, const struct result *first)
{
	char n[32];

	fprintf(out, "\n%s  %s\n", workload_words[first->workload].name, workload_words[first->workload].summary);
	fprintf(out, "  %s timer%s: %s\n", grouped(n, sizeof n, first->n), first->n == 1 ? "" : "s",
	    metric_title(first->metric, first->workload));
	fprintf(out, "  %-14s %12s %12s %12s %12s\n", "structure", "median", "min", "max", "/ weekwheel");
	for (size_t i = 0; i < results->count; i++) {
		const struct result *result = &results->result[i];

		if (result->workload == first->workload && result->n == first->n && result->metric == first->metric)
			write_row(out, results, result);
	}
}

static int is_first_of_group(const struct results *results, size_t index)
{
	const struct result *result = &results->result[index];

	for (size_t i = 0; i < index; i++)
		if (results->result[i].workload == result->workload && results->result[i].n == result->n &&
		    results->result[i].metric == result->metric)
			return 0;
	return 1;
}

static void write_checked(FILE *out, const struct results *results)
{
	fputs("Correctness\n", out);
	for (size_t i = 0; i < results->checked_count; i++) {
		const struct checked *checked = &results->checked[i];

		if (checked->wrong)
			fprintf(out, "  %-14s WRONG, so not timed: %s\n", checked->structure->name, checked->wrong);
		else if (checked->latest)
			fprintf(out, "  %-14s never early, up to %" PRIu64 " s late\n", checked->structure->name,
			    checked->latest);
		else
			fprintf(out, "  %-14s never early, never late\n", checked->structure->name);
	}
}

static void write_left_out(FILE *out, const struct results *results)
{
	char n[32];

	if (results->left_out_count)
		fputs("\nLeft out\n", out);
	for (size_t i = 0; i < results->left_out_count; i++) {
		const struct left_out *left_out = &results->left_out[i];

		fprintf(out, "  %-14s %-6s %12s timer%s: %s\n", left_out->structure->name,
		    workload_words[left_out->workload].name, grouped(n, sizeof n, left_out->n),
		    left_out->n == 1 ? "" : "s", left_out->why);
	}
}

void bench_report_table(FILE *out, const struct results *results)
{
	fprintf(out, "%s\n%s\nseed %" PRIu64 "\n\n", results->command, results->machine, results->seed);
	write_checked(out, results);
	for (size_t i = 0; i < results->count; i++)
		if (is_first_of_group(results, i))
			write_group(out, results, &results->result[i]);
	write_left_out(out, results);
	if (results->interrupted)
		fputs("\nInterrupted: the rest has not been measured.\n", out);
	if (results_ticks_are_raw(results))
		fputs(
		    "\nWith fewer than 3 repetitions the longest ticks are also those in which the machine stalled.\n",
		    out);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

/* The description of the machine may have any byte in it. */
static void write_string(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\": \"", key);
	for (; *text; text++)
		fputc(*text < ' ' || *text > '~' || *text == '"' || *text == '\\' ? '?' : *text, out);
	fputc('"', out);
}

/* Begin an object of a list, of which `index` are before it. */
static void begin_object(FILE *out, size_t index, const struct structure *structure)
{
	fprintf(out, "%s\n  {\"structure\": \"%s\"", index ? "," : "", structure->name);
}

/* What a structure takes without timers, by its longest delay in seconds. */
static void write_structure(FILE *out, size_t index, const struct structure *structure)
{
	static const uint64_t horizons[] = {60, 3600, 86400, 604800, 2592000, 31536000};
	const char *separator = "";

	begin_object(out, index, structure);
	fputs(", ", out);
	write_string(out, "summary", structure->summary);
	fputs(", \"empty_bytes\": {", out);
	for (size_t i = 0; i < sizeof horizons / sizeof *horizons; i++) {
		size_t bytes = structure_empty_bytes(structure, horizons[i]);

		if (!bytes || (structure->longest && horizons[i] > structure->longest && !structure->any_horizon))
			continue;
		fprintf(out, "%s\"%" PRIu64 "\": %zu", separator, horizons[i], bytes);
		separator = ", ";
	}
	fputs("}}", out);
}

static void write_structures(FILE *out, const struct results *results)
{
	size_t count = 0, j;

	for (size_t i = 0; i < results->count; i++) {
		const struct structure *structure = results->result[i].structure;

		for (j = 0; results->result[j].structure != structure; j++)
			;
		if (j == i)
			write_structure(out, count++, structure);
	}
}

static void write_result(FILE *out, size_t index, const struct result *result)
{
	begin_object(out, index, result->structure);
	fprintf(out,
	    ", \"workload\": \"%s\", \"n\": %" PRIu64 ", \"metric\": \"%s\", \"unit\": \"%s\", \"median\": %.6g,"
	    " \"min\": %.6g, \"max\": %.6g, \"repetitions\": %u}",
	    workload_words[result->workload].name, result->n, metric_words[result->metric].name,
	    metric_words[result->metric].unit, result->median, result->min, result->max, result->repetitions);
}

static void write_found(FILE *out, size_t index, const struct checked *checked)
{
	begin_object(out, index, checked->structure);
	fprintf(out, ", \"late_s\": %" PRIu64 ", ", checked->latest);
	if (checked->wrong)
		write_string(out, "wrong", checked->wrong);
	else
		fputs("\"wrong\": null", out);
	fputc('}', out);
}

/* Only those with the most timers, and around the end of the first day: all would be millions of numbers. */
static void write_ticks(FILE *out, const struct results *results)
{
	enum { BEGIN = 86400 - 7200, END = 86400 + 7200 };
	uint64_t most = 0;
	size_t count = 0;

	for (size_t i = 0; i < results->ticks_count; i++)
		most = results->ticks[i].n > most ? results->ticks[i].n : most;
	for (size_t i = 0; i < results->ticks_count; i++) {
		const struct ticks *ticks = &results->ticks[i];

		if (ticks->n < most)
			continue;
		begin_object(out, count++, ticks->structure);
		fprintf(out, ", \"n\": %" PRIu64 ", \"ns\": [", ticks->n);
		for (size_t tick = BEGIN; tick < END; tick++)
			fprintf(out, "%s%" PRIu32, tick > BEGIN ? "," : "", ticks->ns[tick]);
		fputs("]}", out);
	}
}

void bench_report_json(FILE *out, const struct results *results)
{
	fputs("{\n", out);
	write_string(out, "command", results->command);
	fputs(",\n", out);
	write_string(out, "machine", results->machine);
	fprintf(out, ",\n\"seed\": %" PRIu64 ",\n\"interrupted\": %s,\n\"structures\": [", results->seed,
	    results->interrupted ? "true" : "false");
	write_structures(out, results);
	fputs("\n],\n\"results\": [", out);
	for (size_t i = 0; i < results->count; i++)
		write_result(out, i, &results->result[i]);
	fputs("\n],\n\"left_out\": [", out);
	for (size_t i = 0; i < results->left_out_count; i++) {
		const struct left_out *left_out = &results->left_out[i];

		begin_object(out, i, left_out->structure);
		fprintf(out, ", \"workload\": \"%s\", \"n\": %" PRIu64 ", \"why\": \"%s\"}",
		    workload_words[left_out->workload].name, left_out->n, left_out->why);
	}
	fputs("\n],\n\"checked\": [", out);
	for (size_t i = 0; i < results->checked_count; i++)
		write_found(out, i, &results->checked[i]);
	fputs("\n],\n\"ticks\": [", out);
	write_ticks(out, results);
	fputs("\n]\n}\n", out);
}
