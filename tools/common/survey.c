/* Counting sessions: see survey.h. */
#include "tools/common/survey.h"

#include <string.h>

static int wheel_of(int64_t left_ms)
{
	static const uint64_t ends[] = {60000, SURVEY_HOUR_MS, 24 * SURVEY_HOUR_MS, 7 * 24 * SURVEY_HOUR_MS};
	int wheel = 0;

	if (left_ms < 0)
		return SURVEY_NEVER;
	while (wheel < SURVEY_LATER && (uint64_t)left_ms >= ends[wheel])
		wheel++;
	return wheel;
}

/* They are in order of size, the largest first; of one size, in order of arrival. */
static void note_large(struct survey *survey, const char *key, size_t length, int64_t left_ms, uint64_t size)
{
	struct survey_key *largest = survey->largest;
	size_t at = survey->largest_count;

	while (at > 0 && largest[at - 1].size < size)
		at--;
	if (at >= survey->largest_most)
		return;
	if (survey->largest_count < survey->largest_most)
		survey->largest_count++;
	memmove(&largest[at + 1], &largest[at], (survey->largest_count - at - 1) * sizeof *largest);
	largest[at] = (struct survey_key){.length = length < SURVEY_KEY ? length : SURVEY_KEY,
	    .is_cut = length > SURVEY_KEY,
	    .database = survey->database,
	    .size = size,
	    .left_ms = left_ms < 0 ? -1 : left_ms};
	memcpy(largest[at].text, key, largest[at].length);
}

void survey_add(struct survey *survey, const char *key, size_t length, int64_t left_ms, int64_t size)
{
	int wheel = wheel_of(left_ms);

	/* It has expired since it was listed. */
	if (left_ms == -2)
		return;
	survey->keys++;
	survey->by_wheel[wheel]++;
	if (wheel < SURVEY_LATER)
		survey->by_day[(uint64_t)left_ms / (24 * SURVEY_HOUR_MS)]++;
	if (size < 0) {
		survey->others++;
		return;
	}
	survey->bytes += (uint64_t)size;
	note_large(survey, key, length, left_ms, (uint64_t)size);
}
