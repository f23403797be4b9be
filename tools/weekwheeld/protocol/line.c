/* The verbs of beanstalkd, and which line is whose. */
#include "tools/weekwheeld/protocol/line.h"

#include <string.h>

#include "weekwheel/driver.h"

/*
 * How the words after a verb are read. beanstalkd finds its verbs by their beginning: what has an argument ends with a
 * space here, and "statsx" is a "stats" that is not well-formed, whereas "statx" is unknown.
 */
enum shape {
	SHAPE_PUT,
	SHAPE_NONE,
	SHAPE_ID,
	SHAPE_RELEASE,
	SHAPE_BURY,
	SHAPE_BOUND,
	SHAPE_TIMEOUT,
	SHAPE_TUBE,
	SHAPE_PAUSE,
	SHAPE_QUIT,
	SHAPE_OWN
};

/* A longer one before those that it begins with. */
static const struct {
	const char *text;
	enum verb verb;
	enum shape shape;
} verbs[] = {
    {"put ", VERB_PUT, SHAPE_PUT},
    {"reserve-with-timeout ", VERB_RESERVE_TIMEOUT, SHAPE_TIMEOUT},
    {"reserve-job ", VERB_RESERVE_JOB, SHAPE_ID},
    {"reserve", VERB_RESERVE, SHAPE_NONE},
    {"delete ", VERB_DELETE, SHAPE_ID},
    {"release ", VERB_RELEASE, SHAPE_RELEASE},
    {"bury ", VERB_BURY, SHAPE_BURY},
    {"touch ", VERB_TOUCH, SHAPE_ID},
    {"kick-job ", VERB_KICK_JOB, SHAPE_ID},
    {"kick ", VERB_KICK, SHAPE_BOUND},
    {"peek ", VERB_PEEK, SHAPE_ID},
    {"peek-ready", VERB_PEEK_READY, SHAPE_NONE},
    {"peek-delayed", VERB_PEEK_DELAYED, SHAPE_NONE},
    {"peek-buried", VERB_PEEK_BURIED, SHAPE_NONE},
    {"use ", VERB_USE, SHAPE_TUBE},
    {"watch ", VERB_WATCH, SHAPE_TUBE},
    {"ignore ", VERB_IGNORE, SHAPE_TUBE},
    {"stats-job ", VERB_STATS_JOB, SHAPE_ID},
    {"stats-tube ", VERB_STATS_TUBE, SHAPE_TUBE},
    {"stats-key ", VERB_STATS_KEY, SHAPE_OWN},
    {"stats", VERB_STATS, SHAPE_NONE},
    {"list-tubes-watched", VERB_LIST_TUBES_WATCHED, SHAPE_NONE},
    {"list-tube-used", VERB_LIST_TUBE_USED, SHAPE_NONE},
    {"list-tubes", VERB_LIST_TUBES, SHAPE_NONE},
    {"pause-tube", VERB_PAUSE_TUBE, SHAPE_PAUSE},
    {"quit", VERB_QUIT, SHAPE_QUIT},
    {"put-key ", VERB_PUT_KEY, SHAPE_OWN},
    {"put-at ", VERB_PUT_AT, SHAPE_OWN},
    {"move ", VERB_MOVE, SHAPE_OWN},
    {"move-key ", VERB_MOVE_KEY, SHAPE_OWN},
    {"delete-key ", VERB_DELETE_KEY, SHAPE_OWN},
    {"release-job ", VERB_RELEASE_JOB, SHAPE_OWN},
    {"bury-job ", VERB_BURY_JOB, SHAPE_OWN},
    {"peek-key ", VERB_PEEK_KEY, SHAPE_OWN},
    {"list-delayed", VERB_LIST_DELAYED, SHAPE_OWN},
    {"forecast ", VERB_FORECAST, SHAPE_OWN},
    {"advance ", VERB_ADVANCE, SHAPE_OWN},
};

enum { VERB_TEXTS = sizeof verbs / sizeof *verbs, WORDS_MAX = 16 };

const char *protocol_verb_name(enum verb verb)
{
	int i;

	for (i = 0; i < VERB_TEXTS; i++)
		if (verbs[i].verb == verb)
			return verbs[i].text;
	return NULL;
}

static int verb_find(struct span line)
{
	size_t room = (size_t)(line.end - line.at);
	int i;

	for (i = 0; i < VERB_TEXTS; i++) {
		size_t length = strlen(verbs[i].text);

		if (length <= room && memcmp(line.at, verbs[i].text, length) == 0)
			return i;
	}
	return -1;
}

/* A number in a line of beanstalkd's, which may have several spaces before it. */
static int next_number(struct span *line, uint64_t most, uint64_t *number)
{
	return words_number(words_next(line), most, number);
}

static int next_priority(struct span *line, uint32_t *priority)
{
	uint64_t number;

	if (next_number(line, UINT32_MAX, &number) != 0)
		return -1;
	*priority = (uint32_t)number;
	return 0;
}

/* Whole seconds up to `most`, stored in ns. */
static int next_seconds(struct span *line, uint64_t most, uint64_t *ns)
{
	if (next_number(line, most, ns) != 0)
		return -1;
	*ns *= WW_SECOND;
	return 0;
}

static int at_end(struct span line)
{
	return line.at == line.end ? 0 : -1;
}

static int read_release(struct command *command, struct span *line)
{
	if (next_number(line, UINT64_MAX, &command->id) != 0 || next_priority(line, &command->priority) != 0)
		return -1;
	return next_seconds(line, UINT32_MAX, &command->delay);
}

/* A negative timeout means none. */
static int read_timeout(struct command *command, struct span *line)
{
	uint64_t ignored;

	if (line->at == line->end || *line->at != '-')
		return next_seconds(line, INT32_MAX, &command->delay);
	line->at++;
	command->delay = UINT64_MAX;
	return next_number(line, INT32_MAX, &ignored);
}

static int read_pause(struct command *command, struct span *line)
{
	return words_tube(words_next(line), command->tube) != 0 ? -1 : next_seconds(line, UINT32_MAX, &command->delay);
}

/* A tube's name is all of the rest; not even a space may be before it. */
static int read_tube(struct command *command, struct span *line)
{
	struct span word = *line;

	line->at = line->end;
	return words_tube(word, command->tube);
}

static int read_shape(struct command *command, enum shape shape, struct span line)
{
	int bad = 0;

	switch (shape) {
	case SHAPE_ID:
		bad = next_number(&line, UINT64_MAX, &command->id);
		break;
	case SHAPE_RELEASE:
		bad = read_release(command, &line);
		break;
	case SHAPE_BURY:
		bad = next_number(&line, UINT64_MAX, &command->id);
		bad = bad != 0 ? bad : next_priority(&line, &command->priority);
		break;
	case SHAPE_BOUND:
		bad = next_number(&line, UINT64_MAX, &command->bound);
		break;
	case SHAPE_TIMEOUT:
		bad = read_timeout(command, &line);
		break;
	case SHAPE_TUBE:
		bad = read_tube(command, &line);
		break;
	case SHAPE_PAUSE:
		bad = read_pause(command, &line);
		break;
	case SHAPE_QUIT:
		return 0;
	default:
		break;
	}
	return bad != 0 ? bad : at_end(line);
}

/* The ttr that a job gets: a client's 0 means 1 s. */
static uint64_t run_at_least(uint64_t run)
{
	return run < WW_SECOND ? WW_SECOND : run;
}

static int read_put(struct command *command, struct span line, uint64_t *body)
{
	if (next_priority(&line, &command->priority) != 0 || next_seconds(&line, UINT32_MAX, &command->delay) != 0 ||
	    next_seconds(&line, UINT32_MAX, &command->run) != 0 || next_number(&line, UINT32_MAX, body) != 0)
		return -1;
	command->run = run_at_least(command->run);
	return at_end(line);
}

/* Whether one can tell how long the body is that a refused put's client sends nevertheless: the fourth word says it. */
static enum line refuse_put(struct command *command, struct span line, uint64_t *body)
{
	int i;

	command->refusal = REFUSAL_BAD_FORMAT;
	for (i = 0; i < 3; i++)
		(void)words_next(&line);
	return next_number(&line, UINT32_MAX, body) == 0 ? LINE_REFUSED_BODY : LINE_COMMAND;
}

static enum line read_own(struct command *command, struct span line, struct span rest, uint64_t *body)
{
	struct span words[WORDS_MAX];
	int has_body = command->verb == VERB_PUT_KEY || command->verb == VERB_PUT_AT;
	int count;

	memset(&command->own, 0, sizeof command->own);
	command->id = 0;
	command->delay = 0;
	command->run = 0;
	command->tube[0] = 0;
	/* The one verb that may stand alone has its space among the words. */
	if (command->verb == VERB_LIST_DELAYED && rest.at < rest.end && *rest.at == ' ')
		rest.at++;
	count = rest.at == rest.end ? 0 : words_split(rest, words, WORDS_MAX);
	if (line.end - line.at > PROTOCOL_OWN_LINE_MAX - 2 || count < 0 ||
	    protocol_own_read(command, words, count) != 0) {
		if (has_body)
			return refuse_put(command, rest, body);
		command->refusal = REFUSAL_BAD_FORMAT;
		return LINE_COMMAND;
	}
	if (!has_body)
		return LINE_COMMAND;
	command->run = run_at_least(command->run);
	*body = command->body_length;
	return LINE_BODY;
}

enum line protocol_line_read(struct command *command, struct span line, uint64_t *body)
{
	struct span rest = line;
	int found = verb_find(line);

	command->verb = VERB_UNKNOWN;
	command->refusal = REFUSAL_NONE;
	command->body = NULL;
	command->body_length = 0;
	if (memchr(line.at, 0, (size_t)(line.end - line.at)) ||
	    (line.end - line.at > PROTOCOL_LINE_MAX - 2 && (found < 0 || verbs[found].shape != SHAPE_OWN))) {
		command->refusal = REFUSAL_BAD_FORMAT;
		return LINE_COMMAND;
	}
	if (found < 0) {
		command->refusal = REFUSAL_UNKNOWN;
		return LINE_COMMAND;
	}
	command->verb = verbs[found].verb;
	rest.at += strlen(verbs[found].text);
	if (verbs[found].shape == SHAPE_OWN)
		return read_own(command, line, rest, body);
	if (verbs[found].shape != SHAPE_PUT) {
		if (read_shape(command, verbs[found].shape, rest) != 0)
			command->refusal = REFUSAL_BAD_FORMAT;
		return LINE_COMMAND;
	}
	return read_put(command, rest, body) == 0 ? LINE_BODY : refuse_put(command, rest, body);
}
