/* Options that say a field of a job become words of the protocol: see words.h. */
#include "tools/weekwheel/jobs/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/job/job.h"

static int take_word(const struct options *options, const char *name, const struct field *field)
{
	char expected[FIELD_EXPECTED];

	for (uint64_t i = 0; field->words[i]; i++)
		if (strcmp(options->value, field->words[i]) == 0)
			return 0;
	return options_bad_value(options, name, field_expected(field, 0, FIELD_REQUEST, expected));
}

int words_take(char *text, const struct options *options, int id, uint64_t least)
{
	const struct option *option = options->table;
	const struct field *field;
	const char *name;
	char value[JOBS_KEY_TEXT], expected[60];
	uint64_t number = 0;
	int wrong;

	while (option->id != id)
		option++;
	name = option->name;
	field = job_option(name, strlen(name), JOB_PUT | JOB_SCHEDULE);
	switch (field->kind) {
	case FIELD_SPAN:
		wrong =
		    jobs_duration(options, name, field->least > least ? field->least : least, DURATION_MAX, &number);
		(void)duration_seconds(value, number);
		break;
	case FIELD_COUNT:
		snprintf(expected, sizeof expected, "a number from %" PRIu64 " to %" PRIu64, least, field->most);
		wrong = jobs_whole(options, name, least, field->most, &number, expected);
		snprintf(value, sizeof value, "%" PRIu64, number);
		break;
	case FIELD_WORD:
		wrong = take_word(options, name, field);
		snprintf(value, sizeof value, "%s", options->value);
		break;
	default:
		wrong = jobs_key(options, name, value);
	}
	if (!wrong)
		jobs_add(text, WORDS_ROOM, name, value);
	return wrong;
}
