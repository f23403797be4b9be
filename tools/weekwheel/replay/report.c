/* What both kinds of summary need. */
#include "tools/weekwheel/replay/report.h"

uint64_t report_unreadable(const struct report *report)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < report->source_count; i++)
		sum += report->sources[i].unreadable;
	return sum;
}

double report_rate(const struct report *report)
{
	if (report->result->wall_ns == 0)
		return 0;
	return (double)report->result->operations * 1e9 / (double)report->result->wall_ns;
}
