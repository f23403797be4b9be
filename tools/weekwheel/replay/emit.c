/* Expiries as lines for other programs. */
#include "tools/weekwheel/replay/emit.h"

#include <errno.h>
#include <inttypes.h>

static void emit_key(FILE *out, const char *text, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++) {
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

static void emit_session(FILE *out, const struct events *events, const struct expiry *expiry)
{
	char text[MOMENT_TEXT];
	struct moment first = event_time(&events->at[expiry->first]);
	struct moment last = event_time(&events->at[expiry->last]);

	fprintf(out, "\t%s\t%" PRIu32, moment_format(text, moment_subtract(last, first)), expiry->requests);
}

int emit_expiries(FILE *out, const struct events *events, const struct expiries *expiries, int sessions)
{
	size_t i;

	errno = 0;
	for (i = 0; i < expiries->count && !ferror(out); i++) {
		const struct expiry *expiry = &expiries->at[i];
		size_t size;
		const char *key = keys_text(events->keys, expiry->id, &size);

		fprintf(out, "%" PRIu64 "\t", expiry->time);
		emit_key(out, key, size);
		if (sessions)
			emit_session(out, events, expiry);
		fputc('\n', out);
	}
	return ferror(out) ? errno : 0;
}
