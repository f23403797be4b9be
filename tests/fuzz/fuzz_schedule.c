/* Any bytes as the job that keeps a schedule: first the length of its key, then the key and the body. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "lib/schedule/schedule_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t write_all(const struct schedule_record *record, char *text, size_t room)
{
	size_t length = ww_schedule_write(record, text);

	if (length > WW_SCHEDULE_RECORD_MAX || length + record->spec.body_length > room)
		abort();
	if (record->spec.body_length)
		memcpy(text + length, record->spec.body, record->spec.body_length);
	return length + record->spec.body_length;
}

/* What was read is written and read again as it was. */
static void write_again(const struct schedule_record *record, const uint8_t *key, size_t key_length)
{
	size_t room = WW_SCHEDULE_RECORD_MAX + record->spec.body_length;
	char *first = malloc(room), *second = malloc(room);
	struct schedule_record again;

	if (first && second) {
		size_t length = write_all(record, first, room);

		if (ww_schedule_read(first, length, key, key_length, &again) != WW_OK ||
		    write_all(&again, second, room) != length || memcmp(first, second, length) != 0)
			abort();
		if (ww_schedule_delay(&record->spec) != ww_schedule_delay(&again.spec) ||
		    (record->spec.spread && ww_schedule_delay(&record->spec) >= record->spec.spread))
			abort();
	}
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t key_length = size ? data[0] : 0;
	struct schedule_record record;
	struct schedule_key key;
	char *body;

	if (size == 0 || key_length > size - 1)
		return 0;
	/* In memory of its own: reading beyond its end shows. */
	size -= 1 + key_length;
	body = malloc(size ? size : 1);
	if (!body)
		return 0;
	memcpy(body, data + 1 + key_length, size);
	if (ww_schedule_read(body, size, data + 1, key_length, &record) == WW_OK) {
		/* Names with control characters are in no store, but harmless. */
		(void)ww_schedule_key(record.tube, record.name, &key);
		write_again(&record, data + 1, key_length);
	}
	free(body);
	return 0;
}
