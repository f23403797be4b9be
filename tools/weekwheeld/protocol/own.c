/* The words of our own verbs, one space between two. */
#include "tools/weekwheeld/protocol/line.h"

#include <string.h>

#include "weekwheel/driver.h"

#define SECONDS_MAX UINT64_C(4294967295)
/* Of a time of the wall clock, whose seconds are beyond 32 bits one day. */
#define TIME_MAX UINT64_C(4611686018)

/* NAME=VALUE; the name alone, and what the value is, from the word. */
static int option_is(struct span word, const char *name, struct span *value)
{
	size_t length = strlen(name);

	if ((size_t)(word.end - word.at) <= length || word.at[length] != '=' || memcmp(word.at, name, length) != 0)
		return 0;
	value->at = word.at + length + 1;
	value->end = word.end;
	return 1;
}

static int read_key(struct command *command, struct span word, int may_be_none)
{
	if (words_is(word, "-"))
		return may_be_none ? 0 : -1;
	return words_decode(word, command->own.key, sizeof command->own.key, &command->own.key_length);
}

static int read_priority(struct command *command, struct span word)
{
	uint64_t number;

	if (words_number(word, UINT32_MAX, &number) != 0)
		return -1;
	command->priority = (uint32_t)number;
	return 0;
}

static int read_version(struct command *command, struct span word)
{
	struct span value;

	return option_is(word, "version", &value) ? words_number(value, UINT64_MAX, &command->own.version) : -1;
}

static int read_missed(struct command_own *own, struct span value)
{
	if (words_is(value, "once"))
		own->missed = WW_MISSED_ONCE;
	else if (words_is(value, "all"))
		own->missed = WW_MISSED_ALL;
	else if (words_is(value, "skip"))
		own->missed = WW_MISSED_SKIP;
	else
		return -1;
	return 0;
}

static int read_put_option(struct command *command, struct span word)
{
	struct command_own *own = &command->own;
	struct span value;
	uint64_t number;

	if (option_is(word, "every", &value))
		return words_seconds(value, SECONDS_MAX, &own->every);
	if (option_is(word, "skip", &value))
		return words_seconds(value, SECONDS_MAX, &own->skip);
	if (option_is(word, "backoff", &value))
		return words_seconds(value, SECONDS_MAX, &own->backoff);
	if (option_is(word, "backoff-max", &value))
		return words_seconds(value, SECONDS_MAX, &own->backoff_max);
	if (option_is(word, "missed", &value))
		return read_missed(own, value);
	if (!option_is(word, "attempts", &value))
		return read_version(command, word);
	if (words_number(value, UINT32_MAX, &number) != 0)
		return -1;
	own->attempts = (uint32_t)number;
	return 0;
}

/* PRI DELAY|TIME TTR BYTES KEY [OPTION...] */
static int read_put_own(struct command *command, struct span *words, int count)
{
	uint64_t bytes;
	int i;

	command->own.at = command->verb == VERB_PUT_AT;
	if (count < 5 || read_priority(command, words[0]) != 0 ||
	    words_seconds(words[1], command->own.at ? TIME_MAX : SECONDS_MAX, &command->delay) != 0 ||
	    words_seconds(words[2], SECONDS_MAX, &command->run) != 0 ||
	    words_number(words[3], UINT32_MAX, &bytes) != 0 || read_key(command, words[4], 1) != 0)
		return -1;
	for (i = 5; i < count; i++)
		if (read_put_option(command, words[i]) != 0)
			return -1;
	command->body_length = (size_t)bytes;
	return 0;
}

/* DELAY [version=N], or - at=TIME [version=N] */
static int read_move(struct command *command, struct span *words, int count)
{
	struct span value;
	int i;

	if (count < 1)
		return -1;
	if (!words_is(words[0], "-") && words_seconds(words[0], SECONDS_MAX, &command->delay) != 0)
		return -1;
	for (i = 1; i < count; i++) {
		if (!option_is(words[i], "at", &value)) {
			if (read_version(command, words[i]) != 0)
				return -1;
			continue;
		}
		command->own.at = 1;
		if (words_seconds(value, TIME_MAX, &command->delay) != 0)
			return -1;
	}
	return words_is(words[0], "-") == command->own.at ? 0 : -1;
}

static int read_reason(struct command *command, struct span word)
{
	size_t length;

	if (words_decode(word, command->own.reason, WW_JOB_ERROR_MAX, &length) != 0 ||
	    memchr(command->own.reason, 0, length))
		return -1;
	command->own.reason[length] = 0;
	return 0;
}

/* ID PRI DELAY ERROR */
static int read_release_own(struct command *command, struct span *words, int count)
{
	if (count != 4 || words_number(words[0], UINT64_MAX, &command->id) != 0 ||
	    read_priority(command, words[1]) != 0)
		return -1;
	command->delay = WW_JOB_BACKOFF;
	if (!words_is(words[2], "-") && words_seconds(words[2], SECONDS_MAX, &command->delay) != 0)
		return -1;
	return read_reason(command, words[3]);
}

/* ID PRI ERROR */
static int read_bury_own(struct command *command, struct span *words, int count)
{
	if (count != 3 || words_number(words[0], UINT64_MAX, &command->id) != 0 ||
	    read_priority(command, words[1]) != 0)
		return -1;
	return read_reason(command, words[2]);
}

static int read_states(struct command_own *own, struct span list)
{
	static const char *const names[] = {"delayed", "ready", "reserved", "buried"};
	struct span name = list;

	for (; name.at <= list.end; name.at = name.end + 1) {
		unsigned i;

		name.end = memchr(name.at, ',', (size_t)(list.end - name.at));
		if (!name.end)
			name.end = list.end;
		for (i = 0; i < 4 && !words_is(name, names[i]); i++)
			;
		if (i == 4)
			return -1;
		own->states |= 1u << (WW_JOB_DELAYED + i);
	}
	return 0;
}

static int read_list_option(struct command *command, struct span word)
{
	struct command_own *own = &command->own;
	struct span value;

	if (option_is(word, "tube", &value)) {
		own->has_tube = 1;
		return words_tube(value, command->tube);
	}
	if (option_is(word, "prefix", &value))
		return read_key(command, value, 0);
	if (option_is(word, "state", &value))
		return read_states(own, value);
	if (option_is(word, "from", &value))
		return words_seconds(value, TIME_MAX, &own->from);
	if (option_is(word, "to", &value))
		return words_seconds(value, TIME_MAX, &own->to);
	if (option_is(word, "after", &value))
		return words_number(value, UINT64_MAX, &own->after);
	if (option_is(word, "id", &value))
		return words_number(value, UINT64_MAX, &command->id);
	if (option_is(word, "limit", &value))
		return words_number(value, PROTOCOL_LIST_MAX, &command->bound) != 0 || command->bound == 0 ? -1 : 0;
	if (!option_is(word, "body", &value) || !words_is(value, "yes"))
		return -1;
	own->with_body = 1;
	return 0;
}

static int read_list(struct command *command, struct span *words, int count)
{
	int i;

	command->bound = 100;
	for (i = 0; i < count; i++)
		if (read_list_option(command, words[i]) != 0)
			return -1;
	return 0;
}

/* SPAN COUNT [tube=NAME] */
static int read_forecast(struct command *command, struct span *words, int count)
{
	struct span value;

	if (count < 2 || count > 3 || words_seconds(words[0], SECONDS_MAX, &command->own.span) != 0 ||
	    command->own.span == 0 || words_number(words[1], PROTOCOL_FORECAST_MAX, &command->bound) != 0 ||
	    command->bound == 0)
		return -1;
	if (count == 2)
		return 0;
	command->own.has_tube = 1;
	return option_is(words[2], "tube", &value) ? words_tube(value, command->tube) : -1;
}

int protocol_own_read(struct command *command, struct span *words, int count)
{
	if (command->verb == VERB_LIST_DELAYED)
		return read_list(command, words, count);
	if (count < 1)
		return -1;
	switch (command->verb) {
	case VERB_PUT_KEY:
	case VERB_PUT_AT:
		return read_put_own(command, words, count);
	case VERB_MOVE:
		return words_number(words[0], UINT64_MAX, &command->id) != 0 ? -1
		                                                             : read_move(command, words + 1, count - 1);
	case VERB_MOVE_KEY:
		return read_key(command, words[0], 0) != 0 ? -1 : read_move(command, words + 1, count - 1);
	case VERB_DELETE_KEY:
		if (count == 2 && read_version(command, words[1]) != 0)
			return -1;
		return count > 2 ? -1 : read_key(command, words[0], 0);
	case VERB_RELEASE_JOB:
		return read_release_own(command, words, count);
	case VERB_BURY_JOB:
		return read_bury_own(command, words, count);
	case VERB_PEEK_KEY:
	case VERB_STATS_KEY:
		return count != 1 ? -1 : read_key(command, words[0], 0);
	case VERB_FORECAST:
		return read_forecast(command, words, count);
	case VERB_ADVANCE:
		return count != 1 ? -1 : words_seconds(words[0], SECONDS_MAX, &command->delay);
	default:
		return -1;
	}
}
