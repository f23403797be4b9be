/*
 * Parses a line of the protocol. The table of verbs says which words follow each verb, the table of words says what
 * each word means and where it is stored.
 */
#include "tools/weekwheeld/protocol/protocol.h"

#include <string.h>

#include "tools/job/job.h"
#include "weekwheel/driver.h"

/* A time of the wall clock. Its seconds need more than 32 bits one day. */
#define TIME_MAX UINT64_C(4611686018)

/*
 * Words with a fixed place, then options, NAME=VALUE. The options of one verb stand next to each other. What else a put may say
 * of a job is in the table of its fields.
 */
enum word {
	NOTHING,
	ANYTHING, /* the rest of the line, which is ignored */
	ID,
	PRIORITY,
	DELAY,
	DELAY_OR_AT,      /* "-": the option at= says it */
	DELAY_OR_BACKOFF, /* "-": the job's own backoff */
	TIMEOUT,
	TIME,
	RUN,
	BYTES,
	BOUND,
	TUBE,
	TUBE_ALONE, /* all of the rest: not even a space may stand before it */
	KEY,
	KEY_OR_NONE, /* "-": none */
	REASON,
	SECRET,
	SPAN,
	COUNT,
	CODE,
	OPTION_VERSION,
	OPTION_MODE,
	OPTION_DEBOUNCE,
	OPTION_UNIQUE,
	OPTION_GROUP,
	OPTION_HEADERS,
	OPTION_SPREAD,
	OPTION_THEN,
	OPTION_EACH,
	OPTION_AT,
	OPTION_TUBE,
	OPTION_PREFIX,
	OPTION_STATE,
	OPTION_FROM,
	OPTION_TO,
	OPTION_AFTER,
	OPTION_ID,
	OPTION_LIMIT,
	OPTION_BODY,
	OPTION_RUNNING,
	OPTION_STARTS,
	OPTION_PER,
	OPTION_BURST,
	OPTION_WEIGHT,
	OPTION_CRON,
	OPTION_ZONE,
	OPTION_OVERLAP,
	OPTION_START,
	OPTION_END,
	OPTION_PAUSED,
	OPTION_NAME,
	WORDS
};

/* How a word is read. Seconds are stored in ns. */
enum kind { AS_ITSELF, AS_NUMBER, AS_SECONDS };

#define MEMBER(name) offsetof(struct command, name), sizeof((struct command *)0)->name

static const struct {
	enum kind kind;
	uint64_t least;
	uint64_t most;
	size_t at; /* in struct command */
	size_t size;
	const char *option;
} meanings[WORDS] = {
    [ID] = {AS_NUMBER, 0, UINT64_MAX, MEMBER(id), NULL},
    [PRIORITY] = {AS_NUMBER, 0, UINT32_MAX, MEMBER(priority), NULL},
    [DELAY] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(delay), NULL},
    [DELAY_OR_AT] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(delay), NULL},
    [DELAY_OR_BACKOFF] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(delay), NULL},
    [TIME] = {AS_SECONDS, 0, TIME_MAX, MEMBER(delay), NULL},
    [RUN] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(run), NULL},
    [BYTES] = {AS_NUMBER, 0, UINT32_MAX, MEMBER(body_length), NULL},
    [BOUND] = {AS_NUMBER, 0, UINT64_MAX, MEMBER(bound), NULL},
    [SPAN] = {AS_SECONDS, 1, UINT32_MAX, MEMBER(own.span), NULL},
    [COUNT] = {AS_NUMBER, 1, PROTOCOL_FORECAST_MAX, MEMBER(bound), NULL},
    [CODE] = {AS_NUMBER, 0, WW_JOB_CODE_MAX, MEMBER(bound), NULL},
    [OPTION_VERSION] = {AS_NUMBER, 0, UINT64_MAX, MEMBER(own.job.version), "version"},
    [OPTION_MODE] = {AS_ITSELF, 0, 0, 0, 0, "mode"},
    [OPTION_DEBOUNCE] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(own.job.key_span), "debounce"},
    [OPTION_UNIQUE] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(own.job.key_span), "unique"},
    [OPTION_GROUP] = {AS_ITSELF, 0, 0, 0, 0, "group"},
    [OPTION_HEADERS] = {AS_NUMBER, 1, WW_JOB_HEADERS_MAX, MEMBER(own.job.headers_length), "headers"},
    [OPTION_SPREAD] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(own.spread), "spread"},
    [OPTION_THEN] = {AS_NUMBER, 1, UINT32_MAX, MEMBER(own.job.then_length), "then"},
    [OPTION_EACH] = {AS_ITSELF, 0, 0, 0, 0, "each"},
    [OPTION_AT] = {AS_SECONDS, 0, TIME_MAX, MEMBER(delay), "at"},
    [OPTION_TUBE] = {AS_ITSELF, 0, 0, 0, 0, "tube"},
    [OPTION_PREFIX] = {AS_ITSELF, 0, 0, 0, 0, "prefix"},
    [OPTION_STATE] = {AS_ITSELF, 0, 0, 0, 0, "state"},
    [OPTION_FROM] = {AS_SECONDS, 0, TIME_MAX, MEMBER(own.from), "from"},
    [OPTION_TO] = {AS_SECONDS, 0, TIME_MAX, MEMBER(own.to), "to"},
    [OPTION_AFTER] = {AS_NUMBER, 0, UINT64_MAX, MEMBER(own.after), "after"},
    [OPTION_ID] = {AS_NUMBER, 0, UINT64_MAX, MEMBER(id), "id"},
    [OPTION_LIMIT] = {AS_NUMBER, 1, PROTOCOL_LIST_MAX, MEMBER(bound), "limit"},
    [OPTION_BODY] = {AS_ITSELF, 0, 0, 0, 0, "body"},
    [OPTION_RUNNING] = {AS_NUMBER, 1, UINT64_MAX, MEMBER(own.limit.running), "running"},
    [OPTION_STARTS] = {AS_NUMBER, 1, UINT64_MAX, MEMBER(own.limit.starts), "starts"},
    [OPTION_PER] = {AS_SECONDS, 0, UINT32_MAX, MEMBER(own.limit.per), "per"},
    [OPTION_BURST] = {AS_NUMBER, 1, WW_LIMIT_BURST_MAX, MEMBER(own.limit.burst), "burst"},
    [OPTION_WEIGHT] = {AS_NUMBER, 1, WW_LIMIT_WEIGHT_MAX, MEMBER(own.limit.weight), "weight"},
    [OPTION_CRON] = {AS_ITSELF, 0, 0, 0, 0, "cron"},
    [OPTION_ZONE] = {AS_ITSELF, 0, 0, 0, 0, "zone"},
    [OPTION_OVERLAP] = {AS_ITSELF, 0, 0, 0, 0, "overlap"},
    [OPTION_START] = {AS_SECONDS, 0, TIME_MAX, MEMBER(own.start), "start"},
    [OPTION_END] = {AS_SECONDS, 0, TIME_MAX, MEMBER(own.end), "end"},
    [OPTION_PAUSED] = {AS_ITSELF, 0, 0, 0, 0, "paused"},
    [OPTION_NAME] = {AS_ITSELF, 0, 0, 0, 0, "name"},
};

enum { WORDS_MAX = 24 };

#define PUT_OPTIONS                                                                                                    \
	OPTION_VERSION, OPTION_MODE, OPTION_DEBOUNCE, OPTION_UNIQUE, OPTION_GROUP, OPTION_HEADERS, OPTION_SPREAD,      \
	    OPTION_THEN

/*
 * beanstalkd finds a verb by the beginning of the line. The text of a verb with arguments ends with a space, therefore
 * "statsx" is a badly formed "stats", whereas "statx" is unknown. A longer text stands before those it begins with.
 */
static const struct {
	const char *text;
	enum verb verb;
	enum word words[WORDS_MAX]; /* then the options, in any order; an only option may be given once */
} verbs[] = {
    {"put ", VERB_PUT, {PRIORITY, DELAY, RUN, BYTES}},
    {"reserve-with-timeout ", VERB_RESERVE_TIMEOUT, {TIMEOUT}},
    {"reserve-job ", VERB_RESERVE_JOB, {ID}},
    {"reserve", VERB_RESERVE, {NOTHING}},
    {"delete ", VERB_DELETE, {ID}},
    {"release ", VERB_RELEASE, {ID, PRIORITY, DELAY}},
    {"bury ", VERB_BURY, {ID, PRIORITY}},
    {"touch ", VERB_TOUCH, {ID}},
    {"kick-job ", VERB_KICK_JOB, {ID}},
    {"kick ", VERB_KICK, {BOUND}},
    {"peek ", VERB_PEEK, {ID}},
    {"peek-ready", VERB_PEEK_READY, {NOTHING}},
    {"peek-delayed", VERB_PEEK_DELAYED, {NOTHING}},
    {"peek-buried", VERB_PEEK_BURIED, {NOTHING}},
    {"use ", VERB_USE, {TUBE_ALONE}},
    {"watch ", VERB_WATCH, {TUBE_ALONE}},
    {"ignore ", VERB_IGNORE, {TUBE_ALONE}},
    {"stats-job ", VERB_STATS_JOB, {ID}},
    {"stats-tube ", VERB_STATS_TUBE, {TUBE_ALONE}},
    {"stats-key ", VERB_STATS_KEY, {KEY}},
    {"stats", VERB_STATS, {NOTHING}},
    {"list-tubes-watched", VERB_LIST_TUBES_WATCHED, {NOTHING}},
    {"list-tube-used", VERB_LIST_TUBE_USED, {NOTHING}},
    {"list-tubes", VERB_LIST_TUBES, {NOTHING}},
    {"pause-tube", VERB_PAUSE_TUBE, {TUBE, DELAY}},
    {"quit", VERB_QUIT, {ANYTHING}},
    {"put-key ", VERB_PUT_KEY, {PRIORITY, DELAY, RUN, BYTES, KEY_OR_NONE, PUT_OPTIONS}},
    {"put-at ", VERB_PUT_AT, {PRIORITY, TIME, RUN, BYTES, KEY_OR_NONE, PUT_OPTIONS}},
    {"move ", VERB_MOVE, {ID, DELAY_OR_AT, OPTION_VERSION, OPTION_AT}},
    {"move-key ", VERB_MOVE_KEY, {KEY, DELAY_OR_AT, OPTION_VERSION, OPTION_AT}},
    {"delete-key ", VERB_DELETE_KEY, {KEY, OPTION_VERSION}},
    {"release-job ", VERB_RELEASE_JOB, {ID, PRIORITY, DELAY_OR_BACKOFF, REASON}},
    {"bury-job ", VERB_BURY_JOB, {ID, PRIORITY, REASON}},
    {"delete-job ", VERB_DELETE_JOB, {ID, OPTION_VERSION}},
    {"peek-key ", VERB_PEEK_KEY, {KEY}},
    {"list-delayed", VERB_LIST_DELAYED,
        {OPTION_TUBE, OPTION_PREFIX, OPTION_STATE, OPTION_FROM, OPTION_TO, OPTION_AFTER, OPTION_ID, OPTION_LIMIT,
            OPTION_BODY}},
    {"forecast ", VERB_FORECAST, {SPAN, COUNT, OPTION_TUBE}},
    {"advance ", VERB_ADVANCE, {DELAY}},
    {"auth ", VERB_AUTH, {SECRET}},
    {"headers", VERB_HEADERS, {NOTHING}},
    {"code ", VERB_CODE, {CODE}},
    {"limit-tube ", VERB_LIMIT_TUBE,
        {TUBE, OPTION_RUNNING, OPTION_STARTS, OPTION_PER, OPTION_BURST, OPTION_WEIGHT, OPTION_GROUP, OPTION_EACH}},
    {"list-limits", VERB_LIST_LIMITS, {OPTION_TUBE}},
    {"put-schedule ", VERB_PUT_SCHEDULE,
        {PRIORITY, DELAY, RUN, BYTES, KEY, OPTION_CRON, OPTION_ZONE, OPTION_OVERLAP, OPTION_START, OPTION_END,
            OPTION_MODE, OPTION_PAUSED, OPTION_GROUP}},
    {"delete-schedule ", VERB_DELETE_SCHEDULE, {KEY}},
    {"pause-schedule ", VERB_PAUSE_SCHEDULE, {KEY}},
    {"resume-schedule ", VERB_RESUME_SCHEDULE, {KEY}},
    {"run-schedule ", VERB_RUN_SCHEDULE, {KEY}},
    {"list-schedules", VERB_LIST_SCHEDULES, {OPTION_TUBE, OPTION_NAME, OPTION_AFTER, OPTION_LIMIT, OPTION_BODY}},
    {"report ", VERB_REPORT, {ID, BYTES}},
    {"history", VERB_HISTORY, {OPTION_TUBE, OPTION_PREFIX, OPTION_ID, OPTION_AFTER, OPTION_LIMIT, OPTION_BODY}},
};

enum { VERB_TEXTS = sizeof verbs / sizeof *verbs };

const char *protocol_verb_name(enum verb verb)
{
	for (int i = 0; i < VERB_TEXTS; i++)
		if (verbs[i].verb == verb)
			return verbs[i].text;
	return NULL;
}

int protocol_is_look(enum verb verb)
{
	switch (verb) {
	case VERB_PEEK:
	case VERB_PEEK_READY:
	case VERB_PEEK_DELAYED:
	case VERB_PEEK_BURIED:
	case VERB_PEEK_KEY:
	case VERB_STATS:
	case VERB_LIST_TUBES:
	case VERB_LIST_TUBES_WATCHED:
	case VERB_LIST_DELAYED:
	case VERB_LIST_LIMITS:
	case VERB_LIST_SCHEDULES:
	case VERB_FORECAST:
	case VERB_HISTORY:
		return 1;
	default:
		return 0;
	}
}

static int verb_find(struct span line)
{
	size_t room = (size_t)(line.end - line.at);

	for (int i = 0; i < VERB_TEXTS; i++) {
		size_t length = strlen(verbs[i].text);

		if (length <= room && memcmp(line.at, verbs[i].text, length) == 0)
			return i;
	}
	return -1;
}

/* ---- One word */

static int read_reason(struct command *command, struct span word)
{
	size_t length;

	if (words_decode(word, command->own.reason, WW_JOB_ERROR_MAX, &length) != 0 ||
	    memchr(command->own.reason, 0, length))
		return -1;
	command->own.reason[length] = 0;
	return 0;
}

/* A put has one mode. version=0 is the mode in which the job must not be there. */
static int set_mode(struct command *command, enum ww_key_mode mode)
{
	if (command->own.job.key_mode != WW_KEY_REPLACE)
		return -1;
	command->own.job.key_mode = mode;
	return 0;
}

static int read_mode(struct command *command, struct span word)
{
	int found = words_find(word, job_modes, 4);

	return found < 0 ? -1 : set_mode(command, (enum ww_key_mode)found);
}

/* What an option means beside its number. */
static int set_option(struct command *command, enum word what, uint64_t number)
{
	int puts = command->verb == VERB_PUT_KEY || command->verb == VERB_PUT_AT;

	if (what == OPTION_AT)
		command->own.at = 1;
	if (what == OPTION_DEBOUNCE || what == OPTION_UNIQUE)
		return set_mode(command, what == OPTION_UNIQUE ? WW_KEY_UNIQUE : WW_KEY_DEBOUNCE);
	return what == OPTION_VERSION && puts && number == 0 ? set_mode(command, WW_KEY_IF_ABSENT) : 0;
}

/* An expression or a zone. */
static int read_text(struct span word, char text[PROTOCOL_CRON_MAX + 1])
{
	size_t length;

	if (words_decode(word, text, PROTOCOL_CRON_MAX, &length) != 0 || memchr(text, 0, length))
		return -1;
	text[length] = 0;
	return 0;
}

static int read_overlap(struct command *command, struct span word)
{
	command->own.overlap = words_find(word, job_overlaps, 3);
	return command->own.overlap < 0 ? -1 : 0;
}

static int read_states(struct command *command, struct span list)
{
	struct span name = list;

	for (; name.at <= list.end; name.at = name.end + 1) {
		int state;

		name.end = memchr(name.at, ',', (size_t)(list.end - name.at));
		if (!name.end)
			name.end = list.end;
		state = words_find(name, job_states, WW_JOB_ENDED + 1);
		if (state < WW_JOB_DELAYED)
			return -1;
		command->own.states |= 1u << state;
	}
	return 0;
}

static int read_itself(struct command *command, enum word what, struct span word)
{
	struct command_own *own = &command->own;

	switch (what) {
	case OPTION_TUBE:
		command->own.has_tube = 1;
		return words_tube(word, command->tube);
	case TUBE:
	case TUBE_ALONE:
		return words_tube(word, command->tube);
	case REASON:
		return read_reason(command, word);
	case SECRET:
		command->own.secret = word;
		return word.at < word.end ? 0 : -1;
	case OPTION_MODE:
		return read_mode(command, word);
	case OPTION_CRON:
		return read_text(word, command->own.cron);
	case OPTION_ZONE:
		return read_text(word, command->own.zone);
	case OPTION_OVERLAP:
		return read_overlap(command, word);
	case OPTION_PAUSED:
		command->own.is_paused = 1;
		return words_is(word, "yes") ? 0 : -1;
	case OPTION_STATE:
		return read_states(command, word);
	case OPTION_GROUP:
		return words_decode(word, own->group, sizeof own->group, &own->group_length);
	case OPTION_EACH:
		own->each = 1;
		return words_is(word, "yes") ? 0 : -1;
	case OPTION_BODY:
		command->own.with_body = 1;
		return words_is(word, "yes") ? 0 : -1;
	default:
		if (words_is(word, "-"))
			return what == KEY_OR_NONE ? 0 : -1;
		return words_decode(word, command->own.key, sizeof command->own.key, &command->own.key_length);
	}
}

static int read_word(struct command *command, enum word what, struct span word)
{
	void *to = (char *)command + meanings[what].at;
	int is_seconds = meanings[what].kind == AS_SECONDS;
	uint64_t number;
	int bad;

	if (meanings[what].kind == AS_ITSELF)
		return read_itself(command, what, word);
	if (words_is(word, "-") && (what == DELAY_OR_AT || what == DELAY_OR_BACKOFF)) {
		command->delay = what == DELAY_OR_BACKOFF ? WW_JOB_BACKOFF : 0;
		return 0;
	}
	/* The seconds of beanstalkd's verbs are whole. */
	if (is_seconds && command->verb < VERB_OWN && memchr(word.at, '.', (size_t)(word.end - word.at)))
		return -1;
	bad = (is_seconds ? words_seconds : words_number)(word, meanings[what].most, &number);
	if (bad || number < meanings[what].least)
		return -1;
	if (meanings[what].size == sizeof number)
		*(uint64_t *)to = number;
	else
		*(uint32_t *)to = (uint32_t)number;
	return set_option(command, what, number);
}

/* ---- The words of beanstalkd's verbs: any number of spaces between two, none at the end */

/* A negative timeout means none. */
static int read_timeout(struct command *command, struct span *line)
{
	uint64_t number;
	int is_negative = line->at < line->end && *line->at == '-';

	line->at += is_negative;
	if (words_number(words_next(line), INT32_MAX, &number) != 0)
		return -1;
	command->delay = is_negative ? UINT64_MAX : number * WW_SECOND;
	return 0;
}

static int read_words(struct command *command, const enum word *what, struct span line)
{
	for (; *what != NOTHING; what++) {
		struct span rest = line;
		int bad;

		if (*what == ANYTHING)
			return 0;
		if (*what == TIMEOUT) {
			bad = read_timeout(command, &line);
		} else if (*what == TUBE_ALONE) {
			line.at = line.end;
			bad = read_word(command, TUBE_ALONE, rest);
		} else {
			bad = read_word(command, *what, words_next(&line));
		}
		if (bad)
			return -1;
	}
	return line.at == line.end ? 0 : -1;
}

/* ---- The words of our own verbs: one space between two */

static int find_word(const struct field *field, struct span value, uint64_t *number)
{
	for (*number = 0; field->words[*number]; ++*number)
		if (words_is(value, field->words[*number]))
			return 0;
	return -1;
}

/* An option that is a field of the job, as the table of fields says. */
static int read_field(struct command *command, struct span name, struct span value)
{
	int puts = command->verb == VERB_PUT_KEY || command->verb == VERB_PUT_AT;
	uint32_t where = command->verb == VERB_PUT_SCHEDULE ? JOB_SCHEDULE : puts ? JOB_PUT : 0;
	const struct field *field = job_option(name.at, (size_t)(name.end - name.at), where);
	uint64_t number;
	int bad;

	if (!field || !(field->where & JOB_WORD))
		return -1;
	if (field->kind == FIELD_SPAN)
		bad = words_seconds(value, UINT32_MAX, &number);
	else if (field->kind == FIELD_COUNT)
		bad = words_number(value, field->most, &number);
	else
		bad = find_word(field, value, &number);
	return bad ? -1 : field_store(&field->in, &command->own.job, number);
}

static int read_option(struct command *command, const enum word *options, struct span word)
{
	struct span name = word;
	struct span value = word;

	name.end = memchr(word.at, '=', (size_t)(word.end - word.at));
	if (!name.end)
		return -1;
	value.at = name.end + 1;
	for (; *options != NOTHING; options++)
		if (words_is(name, meanings[*options].option))
			return read_word(command, *options, value);
	return read_field(command, name, value);
}

static int read_own(struct command *command, const enum word *what, struct span line)
{
	struct span words[WORDS_MAX];
	int count;
	int i;

	memset(&command->own, 0, sizeof command->own);
	command->id = 0;
	command->delay = 0;
	command->run = 0;
	command->tube[0] = 0;
	command->bound = 100;
	command->own.at = command->verb == VERB_PUT_AT;
	/* A verb that may stand alone has its space among the words. */
	if ((command->verb == VERB_LIST_DELAYED || command->verb == VERB_LIST_LIMITS ||
	        command->verb == VERB_LIST_SCHEDULES || command->verb == VERB_HISTORY) &&
	    line.at < line.end && *line.at == ' ')
		line.at++;
	count = line.at == line.end ? 0 : words_split(line, words, WORDS_MAX);
	for (i = 0; *what != NOTHING && *what < OPTION_VERSION; i++, what++)
		if (i >= count || read_word(command, *what, words[i]) != 0)
			return -1;
	if (count < 0 || (*what != NOTHING && what[1] == NOTHING && count > i + 1))
		return -1;
	for (; i < count; i++)
		if (read_option(command, what, words[i]) != 0)
			return -1;
	/* A move says either a delay, or "-" and at=TIME. */
	if ((command->verb == VERB_MOVE || command->verb == VERB_MOVE_KEY) &&
	    words_is(words[1], "-") != command->own.at)
		return -1;
	/* They are the first bytes of what follows the line. */
	if (command->own.job.headers_length > command->body_length ||
	    command->own.job.then_length > command->body_length - command->own.job.headers_length)
		return -1;
	return command->verb == VERB_PUT_SCHEDULE && !*command->own.cron ? -1 : 0;
}

/* ---- The line */

int protocol_has_body(enum verb verb)
{
	return verb == VERB_PUT || verb == VERB_PUT_KEY || verb == VERB_PUT_AT || verb == VERB_PUT_SCHEDULE ||
	       verb == VERB_REPORT;
}

static int is_digits(struct span word)
{
	for (const char *at = word.at; at < word.end; at++)
		if (*at < '0' || *at > '9')
			return 0;
	return word.at < word.end;
}

/*
 * Find out how long the body is that the client of a refused put sends all the same: the fourth word says it, or the second
 * of a report. A line with too many or too few words may mean another one. Nobody sends a body of more than 4 GiB. Clients ask
 * by "put-key ?", without a body, whether the server has the verb.
 */
static enum line refuse_put(struct command *command, struct span line)
{
	int has_options = command->verb != VERB_PUT && command->verb != VERB_REPORT;
	struct span bytes, more;
	uint64_t number;

	for (int i = 0; i < (command->verb == VERB_REPORT ? 1 : 3); i++)
		(void)words_next(&line);
	bytes = words_next(&line);
	more = words_next(&line);
	if (has_options && bytes.at == bytes.end)
		return LINE_COMMAND;
	if (is_digits(bytes) && (has_options || more.at == more.end)) {
		if (words_number(bytes, UINT32_MAX, &number) == 0) {
			command->body_length = (size_t)number;
			return LINE_REFUSED_BODY;
		}
		command->refusal = REFUSAL_TOO_BIG;
	}
	command->is_last = 1;
	return LINE_LAST;
}

enum verb protocol_line_verb(struct span line)
{
	int found = verb_find(line);

	return found < 0 ? VERB_UNKNOWN : verbs[found].verb;
}

enum line protocol_line_read(struct command *command, struct span line)
{
	size_t length = (size_t)(line.end - line.at);
	int found = verb_find(line);
	int is_own = found >= 0 && verbs[found].verb >= VERB_OWN;
	int is_bad = memchr(line.at, 0, length) || (length > PROTOCOL_LINE_MAX - 2 && !is_own);
	int has_body;

	command->verb = VERB_UNKNOWN;
	command->refusal = REFUSAL_BAD_FORMAT;
	command->is_last = 0;
	command->guard = 0;
	command->body = NULL;
	command->body_length = 0;
	if (found < 0) {
		command->refusal = is_bad ? REFUSAL_BAD_FORMAT : REFUSAL_UNKNOWN;
		return LINE_COMMAND;
	}
	command->verb = verbs[found].verb;
	has_body = protocol_has_body(command->verb);
	line.at += strlen(verbs[found].text);
	if (!is_bad)
		is_bad = (is_own ? read_own : read_words)(command, verbs[found].words, line) != 0;
	if (is_bad)
		return has_body ? refuse_put(command, line) : LINE_COMMAND;
	command->refusal = REFUSAL_NONE;
	/* A time to run of 0 means 1 s. */
	if (has_body && command->run < WW_SECOND)
		command->run = WW_SECOND;
	return has_body ? LINE_BODY : LINE_COMMAND;
}
