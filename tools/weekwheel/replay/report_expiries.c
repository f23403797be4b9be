/* Writes the expiries of a replay as lines for other programs. */
#include <errno.h>
#include <inttypes.h>

#include "tools/weekwheel/replay/report.h"

/* Jobs have no requests. Everything else counts as sessions. */
static int has_sessions(const struct report *report)
{
	for (size_t i = 0; i < report->request.file_count; i++)
		if (report->sources[i].format->has_sessions)
			return 1;
	return report->request.file_count == 0;
}

static void write_key(FILE *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '\t')
			fputs("\\t", out);
		else if (byte == '\\')
			fputs("\\\\", out);
		else if (byte < ' ' || byte == 0x7f)
			fprintf(out, "\\x%02x", byte);
		else
			fputc(byte, out);
	}
}

static void write_session(FILE *out, const struct events *events, const struct replay_expiry *expiry)
{
	char text[MOMENT_TEXT];
	struct moment first = event_time(&events->at[expiry->first]);
	struct moment last = event_time(&events->at[expiry->last]);

	fprintf(out, "\t%s\t%" PRIu32, moment_format(text, moment_subtract(last, first)), expiry->requests);
}

int report_expiries(FILE *out, const struct report *report)
{
	const struct expiries *expiries = &report->result.outcome.expiries;
	int sessions = has_sessions(report);

	errno = 0;
	for (size_t i = 0; i < expiries->count && !ferror(out); i++) {
		const struct replay_expiry *expiry = &expiries->at[i];
		size_t size;
		const char *key = keys_text(report->events.keys, expiry->id, &size);

		fprintf(out, "%" PRIu64 "\t", expiry->time);
		write_key(out, key, size);
		if (sessions)
			write_session(out, &report->events, expiry);
		fputc('\n', out);
	}
	return ferror(out) ? errno : 0;
}
