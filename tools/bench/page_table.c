/* The tables of the page. */
#include "tools/bench/page_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/bench/page_figure.h"
#include "tools/bench/plot_style.h"
#include "tools/common/memory.h"

/* The structures that occur in the results, in their order. */
struct structures_seen {
	const struct structure **at;
	size_t count, capacity;
};

static void seen_collect(struct structures_seen *seen, const struct results *results)
{
	size_t i, j;

	seen->at = NULL;
	seen->count = seen->capacity = 0;
	for (i = 0; i < results->count; i++) {
		for (j = 0; j < seen->count && seen->at[j] != results->result[i].structure; j++)
			;
		if (j < seen->count)
			continue;
		seen->at = memory_grow(seen->at, &seen->capacity, seen->count, sizeof *seen->at);
		seen->at[seen->count++] = results->result[i].structure;
	}
}

static const struct structure *table_ours(const struct results *results)
{
	size_t i;

	for (i = 0; i < results->count; i++)
		if (style_is_ours(results->result[i].structure->name))
			return results->result[i].structure;
	return NULL;
}

void table_write_structures(FILE *out, const struct results *results)
{
	struct structures_seen seen;
	size_t i;

	seen_collect(&seen, results);
	fputs("<ul class=\"key\">\n", out);
	for (i = 0; i < seen.count; i++) {
		fputs("<li><svg class=\"plot\" width=\"34\" height=\"14\" aria-hidden=\"true\">", out);
		style_write_group(out, seen.at[i]->name);
		fprintf(out, "<path class=\"line\" d=\"M1 7H33\"/><use href=\"#m%u\" x=\"17\" y=\"7\"/></g></svg> <b>",
		    style_of(seen.at[i]->name));
		style_write_text(out, seen.at[i]->name);
		fputs("</b> ", out);
		style_write_text(out, seen.at[i]->summary);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	free(seen.at);
}

/* The columns of the table of ratios. */
static const struct column {
	enum workload workload;
	enum metric metric;
	const char *title;
} columns[] = {
    {WORKLOAD_A, NS_PER_OP, "schedule"},
    {WORKLOAD_B, NS_PER_OP, "cancel"},
    {WORKLOAD_C30, NS_PER_OP, "heartbeat, 30 s"},
    {WORKLOAD_C1800, NS_PER_OP, "heartbeat, 30 min"},
    {WORKLOAD_CWEEK, NS_PER_OP, "heartbeat, a week"},
    {WORKLOAD_D, NS_PER_TIMER, "whole life"},
    {WORKLOAD_D, MAX_TICK_US, "longest tick"},
    {WORKLOAD_R, NS_PER_TIMER, "life, in disorder"},
    {WORKLOAD_F, NS_PER_OP, "churn"},
    {WORKLOAD_G, BYTES_PER_TIMER, "memory a timer"},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* Return the structure's result in the column, in whichever of the two ways its cost was told. */
static const struct result *table_cell(
    const struct results *results, const struct structure *structure, const struct column *column, uint64_t n)
{
	const struct result *result = results_find(results, structure, column->workload, n, column->metric);

	if (!result && (column->metric == NS_PER_OP || column->metric == NS_PER_TIMER))
		result = results_find(
		    results, structure, column->workload, n, column->metric == NS_PER_OP ? NS_PER_TIMER : NS_PER_OP);
	return result && result->median > 0 ? result : NULL;
}

static uint64_t table_largest(const struct results *results, const struct structure *ours)
{
	uint64_t largest = 0;
	size_t i;

	for (i = 0; i < results->count; i++) {
		const struct result *result = &results->result[i];

		if (result->structure == ours && result->workload != WORKLOAD_G && result->n > largest)
			largest = result->n;
	}
	return largest;
}

/* Return the class of a ratio's shade: "w" where weekwheel is better, "o" where the other is, by powers of two. */
static const char *table_shade(double ratio)
{
	static const char *const worse[] = {"o3", "o2", "o1", "", "w1", "w2", "w3", "w4"};
	static const double limits[] = {0.25, 0.5, 0.87, 1.15, 2, 4, 16};
	size_t i = 0;

	while (i < sizeof limits / sizeof *limits && ratio >= limits[i])
		i++;
	return worse[i];
}

static void table_write_ratio(FILE *out, const struct result *result, const struct result *ours)
{
	double ratio = result->median / ours->median;
	char text[AXIS_TEXT];

	fprintf(out, "<td class=\"%s\">%s</td>", table_shade(ratio), axis_text_ratio(text, ratio));
}

/* The structure's own row has the values themselves. */
static void table_write_value(FILE *out, const struct result *result)
{
	char text[AXIS_TEXT];

	fprintf(out, "<td><b>%s</b></td>",
	    axis_text(text, figure_unit(result->metric), figure_scaled(result, result->median)));
}

/* Whether there is anything to compare. */
static int table_has_row(
    const struct results *results, const struct structure *structure, const struct structure *ours, uint64_t n)
{
	size_t i;

	for (i = 0; i < COLUMNS; i++)
		if (table_cell(results, ours, &columns[i], n) && table_cell(results, structure, &columns[i], n))
			return 1;
	return 0;
}

static void table_write_ratio_row(FILE *out, const struct results *results, const struct structure *structure,
    const struct structure *ours, uint64_t n)
{
	size_t i;

	fputs("<tr><th>", out);
	style_write_text(out, structure->name);
	fputs("</th>", out);
	for (i = 0; i < COLUMNS; i++) {
		const struct result *base = table_cell(results, ours, &columns[i], n);
		const struct result *result = table_cell(results, structure, &columns[i], n);

		if (!base)
			continue;
		if (!result)
			fputs("<td class=\"none\">–</td>", out);
		else if (structure == ours)
			table_write_value(out, result);
		else
			table_write_ratio(out, result, base);
	}
	fputs("</tr>\n", out);
}

static void table_write_ratio_head(FILE *out, const struct results *results, const struct structure *ours, uint64_t n)
{
	char text[AXIS_TEXT];
	size_t i;

	fprintf(out, "<h2>At a glance: %s timers</h2>\n", axis_text(text, AXIS_COUNT, (double)n));
	fputs("<p>How many times what weekwheel takes each other structure takes: above 1 weekwheel is better, "
	      "below 1 the other is.</p>\n<div class=\"scroll card\"><table class=\"ratios\">\n<thead><tr><th></th>",
	    out);
	for (i = 0; i < COLUMNS; i++)
		if (table_cell(results, ours, &columns[i], n))
			fprintf(out, "<th>%s</th>", columns[i].title);
	fputs("</tr></thead><tbody>\n", out);
}

void table_write_ratios(FILE *out, const struct results *results)
{
	const struct structure *ours = table_ours(results);
	struct structures_seen seen;
	uint64_t n;
	size_t i;

	if (!ours || (n = table_largest(results, ours)) <= 1)
		return;
	seen_collect(&seen, results);
	table_write_ratio_head(out, results, ours, n);
	for (i = 0; i < seen.count; i++)
		if (table_has_row(results, seen.at[i], ours, n))
			table_write_ratio_row(out, results, seen.at[i], ours, n);
	fputs("</tbody></table></div>\n", out);
	free(seen.at);
}

static void table_write_number(FILE *out, double value)
{
	fprintf(out, "<td>%.*f</td>", value < 1 ? 3 : value < 10 ? 2 : value < 1000 ? 1 : 0, value);
}

static void table_write_result(
    FILE *out, const struct results *results, const struct result *result, const struct structure *ours)
{
	const struct result *base =
	    ours ? results_find(results, ours, result->workload, result->n, result->metric) : NULL;
	char text[AXIS_TEXT];

	fputs("<tr><th>", out);
	style_write_text(out, result->structure->name);
	fprintf(out, "</th><td>%s</td><td>%s</td><td>%s</td><td>%s</td>", workload_name(result->workload),
	    axis_text_count(text, (double)result->n), metric_name(result->metric), metric_unit(result->metric));
	table_write_number(out, result->median);
	table_write_number(out, result->min);
	table_write_number(out, result->max);
	fprintf(out, "<td>%u</td>", result->repetitions);
	if (base && base->median > 0)
		table_write_number(out, result->median / base->median);
	else
		fputs("<td></td>", out);
	fputs("</tr>\n", out);
}

void table_write_results(FILE *out, const struct results *results)
{
	const struct structure *ours = table_ours(results);
	size_t i;

	if (results->count == 0)
		return;
	fputs("<h2>All results</h2>\n<div class=\"scroll card\"><table class=\"all\">\n<thead><tr>"
	      "<th>structure</th><th>workload</th><th>timers</th><th>metric</th><th>unit</th>"
	      "<th>median</th><th>min</th><th>max</th>"
	      "<th>repetitions</th><th>ratio to weekwheel</th></tr></thead><tbody>\n",
	    out);
	for (i = 0; i < results->count; i++)
		table_write_result(out, results, &results->result[i], ours);
	fputs("</tbody></table></div>\n", out);
}

void table_write_left_out(FILE *out, const struct results *results)
{
	char text[AXIS_TEXT];
	size_t i;

	if (results->interrupted)
		fputs("<p>The run was interrupted: what else was asked for has not been measured.</p>\n", out);
	if (results->left_out_count == 0)
		return;
	fputs("<h2>Left out</h2>\n<ul>\n", out);
	for (i = 0; i < results->left_out_count; i++) {
		const struct left_out *left = &results->left_out[i];

		fputs("<li><b>", out);
		style_write_text(out, left->structure->name);
		fprintf(out, "</b>, %s, %s timer%s: ", workload_name(left->workload),
		    axis_text_count(text, (double)left->n), left->n == 1 ? "" : "s");
		style_write_text(out, left->why);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

void table_write_checked(FILE *out, const struct results *results)
{
	size_t i;

	if (results->checked_count == 0)
		return;
	fputs(
	    "<h2>Correctness</h2>\n<p>Each structure was first driven beside an array of deadlines.</p>\n<ul>\n", out);
	for (i = 0; i < results->checked_count; i++) {
		const struct checked *checked = &results->checked[i];

		fputs("<li><b>", out);
		style_write_text(out, checked->structure->name);
		fputs("</b>: ", out);
		if (checked->wrong) {
			fputs("<b>WRONG</b>, so not timed: ", out);
			style_write_text(out, checked->wrong);
		} else if (checked->latest)
			fprintf(out, "never early, up to %" PRIu64 " s late", checked->latest);
		else
			fputs("never early, never late", out);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}
