/* Tests the parser: what lines mean, what is refused, and that the same commands come out wherever bytes are split. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheeld/protocol/transcript.h"
#include "tools/weekwheeld/protocol/protocol.h"
#include "weekwheel/driver.h"

#define BODY_MAX 20

static struct command command;

/* Parse one command, a line or a line and a body. Return why it is refused. */
static enum refusal parse(const char *text)
{
	struct protocol protocol;
	size_t used;

	protocol_init(&protocol, BODY_MAX);
	ck_assert_int_eq(protocol_next(&protocol, &command, text, strlen(text), &used), 1);
	return command.refusal;
}

static void is(const char *text, enum verb verb)
{
	ck_assert_msg(parse(text) == REFUSAL_NONE, "%s is refused", text);
	ck_assert_int_eq(command.verb, verb);
}

START_TEST(verbs_of_beanstalkd_are_understood)
{
	is("put 1 2 3 4\r\nbody\r\n", VERB_PUT);
	ck_assert_uint_eq(command.priority, 1);
	ck_assert_uint_eq(command.delay, 2 * WW_SECOND);
	ck_assert_uint_eq(command.run, 3 * WW_SECOND);
	ck_assert_uint_eq(command.body_length, 4);
	ck_assert_mem_eq(command.body, "body", 4);
	is("put 4294967295 4294967295 0 0\r\n\r\n", VERB_PUT);
	ck_assert_uint_eq(command.run, WW_SECOND);
	is("release 18446744073709551615 2 3\r\n", VERB_RELEASE);
	ck_assert_uint_eq(command.id, UINT64_MAX);
	is("bury 1 2\r\n", VERB_BURY);
	is("reserve\r\n", VERB_RESERVE);
	is("reserve-with-timeout 2147483647\r\n", VERB_RESERVE_TIMEOUT);
	is("reserve-with-timeout -1\r\n", VERB_RESERVE_TIMEOUT);
	ck_assert_uint_eq(command.delay, UINT64_MAX);
	is("reserve-job 7\r\n", VERB_RESERVE_JOB);
	is("use a-+/;.$_()9\r\n", VERB_USE);
	ck_assert_str_eq(command.tube, "a-+/;.$_()9");
	is("pause-tube t 9\r\n", VERB_PAUSE_TUBE);
	is("list-tubes\r\n", VERB_LIST_TUBES);
	is("list-tubes-watched\r\n", VERB_LIST_TUBES_WATCHED);
	is("kick-job  3\r\n", VERB_KICK_JOB);
	is("delete-job 3 version=5\r\n", VERB_DELETE_JOB);
	ck_assert_uint_eq(command.own.job.version, 5);
	is("delete-job 3\r\n", VERB_DELETE_JOB);
	is("quit\r\n", VERB_QUIT);
}
END_TEST

START_TEST(own_verbs_are_understood)
{
	is("put-key 1 0.25 3 4 a%20%00%7e every=60 attempts=5 backoff=1.5 missed=skip skip=9 version=3\r\nbody\r\n",
	    VERB_PUT_KEY);
	ck_assert_uint_eq(command.delay, WW_SECOND / 4);
	ck_assert_uint_eq(command.own.key_length, 4);
	ck_assert_mem_eq(command.own.key, "a \0~", 4);
	ck_assert_uint_eq(command.own.job.period, 60 * WW_SECOND);
	ck_assert_uint_eq(command.own.job.backoff, 1500 * WW_MILLISECOND);
	ck_assert_int_eq(command.own.job.missed, WW_MISSED_SKIP);
	ck_assert_uint_eq(command.own.job.version, 3);
	ck_assert_int_eq(command.own.job.key_mode, WW_KEY_REPLACE);
	is("put-key 1 0 3 1 a debounce=1.5\r\nx\r\n", VERB_PUT_KEY);
	ck_assert_int_eq(command.own.job.key_mode, WW_KEY_DEBOUNCE);
	ck_assert_uint_eq(command.own.job.key_span, 1500 * WW_MILLISECOND);
	is("put-at 1 0 3 1 a unique=60\r\nx\r\n", VERB_PUT_AT);
	ck_assert_int_eq(command.own.job.key_mode, WW_KEY_UNIQUE);
	is("put-key 1 0 3 1 a version=0\r\nx\r\n", VERB_PUT_KEY);
	ck_assert_int_eq(command.own.job.key_mode, WW_KEY_IF_ABSENT);
	is("put-key 1 0 3 1 a mode=keep-later\r\nx\r\n", VERB_PUT_KEY);
	ck_assert_int_eq(command.own.job.key_mode, WW_KEY_KEEP_LATER);
	is("put-at 1 1700000000.5 0 1 -\r\nx\r\n", VERB_PUT_AT);
	ck_assert_int_eq(command.own.at, 1);
	ck_assert_uint_eq(command.own.key_length, 0);
	is("move-key k - at=5 version=2\r\n", VERB_MOVE_KEY);
	ck_assert_uint_eq(command.delay, 5 * WW_SECOND);
	is("move 9 0.000000001\r\n", VERB_MOVE);
	ck_assert_uint_eq(command.delay, 1);
	is("release-job 1 2 - broken%0A\r\n", VERB_RELEASE_JOB);
	ck_assert_uint_eq(command.delay, WW_JOB_BACKOFF);
	ck_assert_str_eq(command.own.reason, "broken\n");
	is("list-delayed\r\n", VERB_LIST_DELAYED);
	ck_assert_uint_eq(command.bound, 100);
	is("list-delayed state=buried,ready limit=1000 body=yes prefix=%2D tube=t\r\n", VERB_LIST_DELAYED);
	ck_assert_uint_eq(command.own.states, 1u << WW_JOB_BURIED | 1u << WW_JOB_READY);
	is("forecast 60 10080 tube=t\r\n", VERB_FORECAST);
	is("limit-tube t running=1 starts=100 per=0.5 burst=20\r\n", VERB_LIMIT_TUBE);
	ck_assert_str_eq(command.tube, "t");
	ck_assert_uint_eq(command.own.limit.running, 1);
	ck_assert_uint_eq(command.own.limit.starts, 100);
	ck_assert_uint_eq(command.own.limit.per, WW_SECOND / 2);
	ck_assert_uint_eq(command.own.limit.burst, 20);
	is("limit-tube t\r\n", VERB_LIMIT_TUBE);
	is("limit-tube t group=a%20b\r\n", VERB_LIMIT_TUBE);
	ck_assert_uint_eq(command.own.group_length, 3);
	is("limit-tube t each=yes\r\n", VERB_LIMIT_TUBE);
	ck_assert_int_eq(command.own.each, 1);
	is("list-limits\r\n", VERB_LIST_LIMITS);
	is("list-limits tube=t\r\n", VERB_LIST_LIMITS);
	is("put-schedule 7 30 2 1 n%20m cron=0%203%20%2A%20%2A%20%2A zone=Europe%2FBerlin overlap=wait end=9 paused=yes\r\nx\r\n",
	    VERB_PUT_SCHEDULE);
	ck_assert_str_eq(command.own.cron, "0 3 * * *");
	ck_assert_str_eq(command.own.zone, "Europe/Berlin");
	ck_assert_int_eq(command.own.overlap, 2);
	ck_assert_uint_eq(command.own.end, 9 * WW_SECOND);
	ck_assert_uint_eq(command.delay, 30 * WW_SECOND);
	ck_assert_int_eq(command.own.is_paused, 1);
	is("delete-schedule n\r\n", VERB_DELETE_SCHEDULE);
	is("run-schedule n\r\n", VERB_RUN_SCHEDULE);
	is("list-schedules\r\n", VERB_LIST_SCHEDULES);
	is("report 7 2\r\nab\r\n", VERB_REPORT);
	is("history\r\n", VERB_HISTORY);
	is("history tube=t prefix=night%40 id=7 after=9 limit=5 body=yes\r\n", VERB_HISTORY);
	is("put-key 0 0 60 1 k keep=604800\r\nx\r\n", VERB_PUT_KEY);
	is("put-key 0 0 60 1 - expire=0.5 expired=bury backoff-max=9 missed=all attempts=2\r\nx\r\n", VERB_PUT_KEY);
	is("put-key 0 0 60 6 - headers=5\r\na: b\nx\r\n", VERB_PUT_KEY);
	ck_assert_uint_eq(command.own.job.headers_length, 5);
	is("put-key 0 0 60 1 k spread=0.5\r\nx\r\n", VERB_PUT_KEY);
	ck_assert_uint_eq(command.own.spread, WW_SECOND / 2);
	is("put-at 0 0 60 5 - headers=5\r\na: b\n\r\n", VERB_PUT_AT);
	is("put-at 0 0 60 8 - headers=5 then=2\r\na: b\n{}x\r\n", VERB_PUT_AT);
	ck_assert_uint_eq(command.own.job.then_length, 2);
	is("headers\r\n", VERB_HEADERS);
	is("put-key 0 0 60 1 - code=2147483647\r\nx\r\n", VERB_PUT_KEY);
	ck_assert_uint_eq(command.own.job.code, WW_JOB_CODE_MAX);
	is("code 12\r\n", VERB_CODE);
	ck_assert_uint_eq(command.bound, 12);
	is("list-schedules tube=t name=n%20m after=7 limit=5 body=yes\r\n", VERB_LIST_SCHEDULES);
	is("advance 604800\r\n", VERB_ADVANCE);
}
END_TEST

START_TEST(what_is_not_well_formed_is_refused)
{
	static const char *const bad[] = {"use -a\r\n", "use \r\n", "use a b\r\n", "use a*\r\n", "watch\ta\r\n",
	    "delete\r\n", "delete x\r\n", "delete 1 \r\n", "delete -1\r\n", "delete 18446744073709551616\r\n",
	    "statsx\r\n", "reserve-with-timeout 2147483648\r\n", "reserve-with-timeout x\r\n", "put x\r\n", "put \r\n",
	    "put-key 0 0 0\r\n", "put-key 0 0 0 1 k run=9\r\n", "put-key 0 0 0 1 k expired=\r\n",
	    "put-key 0 0 0 1 k headers=2\r\n", "put-key 0 0 0 9 k headers=0\r\n", "put-key 0 0 0 1 k then=2\r\n",
	    "put-key 0 0 0 9 k then=0\r\n", "put-key 0 0 0 9 k headers=5 then=5\r\n",
	    "put-key 0 0 0 9 k headers=9 then=4294967295\r\n", "put-schedule 0 0 0 9 n cron=x then=1\r\n",
	    "put-key 0 0 0 9999 k headers=4097\r\n", "put-schedule 0 0 0 9 n cron=x headers=1\r\n",
	    "put-key 0 0 0 1 k expired=gone\r\n", "put-key 0 0 0 1 k backoff_max=x\r\n", "report 1 1 keep=5\r\n",
	    "code 2147483648\r\n", "put-key 0 0 0 1 k code=2147483648\r\n", "put-key 0 0 0 1 k code=-1\r\n",
	    "put-key 0 0 0 1 k every=\r\n", "put-key 0 0 0 1 k ever=1\r\n", "put-key 0 0 0 1 %2\r\n",
	    "put-key 0 0 0 1 a b\r\n", "put-key 0 0. 0 1 a\r\n", "put-key 0 0.0000000001 0 1 a\r\n",
	    "put-key 0 0 0 1 a mode=odd\r\n", "put-key 0 0 0 1 a mode=if-absent unique=5\r\n",
	    "put-key 0 0 0 1 a unique=5 debounce=5\r\n", "put-key 0 0 0 1 a debounce=5 version=0\r\n",
	    "move-key - 5\r\n", "move-key k -\r\n", "move-key k 5 at=5\r\n", "list-delayedx\r\n",
	    "list-delayed limit=1001\r\n", "list-delayed limit=0\r\n", "list-delayed state=odd\r\n",
	    "list-delayed state=\r\n", "forecast 0 5\r\n", "limit-tube t x\r\n", "limit-tube t running=0\r\n",
	    "limit-tube t each=no\r\n", "limit-tube t group=\r\n", "list-limits t\r\n", "forecast 1 10081\r\n",
	    "bury-job 1 1 a%00\r\n", "delete-key k version=x\r\n", "delete-key k v=1\r\n", "list-delayed  limit=1\r\n",
	    "pause-tube -t 1\r\n", "pause-tube t\r\n"};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(parse(bad[i]) == (i == 4 || i == 5 ? REFUSAL_UNKNOWN : REFUSAL_BAD_FORMAT), "%s", bad[i]);
	ck_assert_int_eq(parse("\r\n"), REFUSAL_UNKNOWN);
	ck_assert_int_eq(parse("Stats\r\n"), REFUSAL_UNKNOWN);
	ck_assert_int_eq(parse("put 1 1 1 2\r\nabc\r\n"), REFUSAL_CRLF);
	ck_assert_int_eq(parse("put 1 1 1 21\r\nabcdefghijklmnopqrstu\r\n"), REFUSAL_TOO_BIG);
	ck_assert_int_eq(command.verb, VERB_PUT);
	/* A follow-up counts. */
	ck_assert_int_eq(parse("put-key 1 1 1 21 k then=2\r\n{}abcdefghijklmnopqrs\r\n"), REFUSAL_TOO_BIG);
	/* Headers do not count, and those of a command before do not, either. */
	ck_assert_int_eq(parse("put-key 1 1 1 25 k headers=5\r\na: b\nabcdefghijklmnopqrst\r\n"), REFUSAL_NONE);
	ck_assert_int_eq(parse("put-key 1 1 1 26 k headers=5\r\na: b\nabcdefghijklmnopqrstu\r\n"), REFUSAL_TOO_BIG);
	ck_assert_int_eq(parse("put 1 1 1 21\r\nabcdefghijklmnopqrstu\r\n"), REFUSAL_TOO_BIG);
}
END_TEST

/* Return a line of `length` bytes, including its end. */
static const char *line_of(const char *verb, size_t length)
{
	static char line[5000];

	memset(line, 'x', sizeof line);
	memcpy(line, verb, strlen(verb));
	memcpy(line + length - 2, "\r\n", 3);
	return line;
}

START_TEST(lines_have_a_limit)
{
	ck_assert_int_eq(parse(line_of("x", PROTOCOL_LINE_MAX)), REFUSAL_UNKNOWN);
	ck_assert_int_eq(parse(line_of("x", PROTOCOL_LINE_MAX + 1)), REFUSAL_BAD_FORMAT);
	ck_assert_int_eq(parse(line_of("x", PROTOCOL_OWN_LINE_MAX + 1)), REFUSAL_BAD_FORMAT);
	ck_assert_int_eq(parse(line_of("use ", 206)), REFUSAL_NONE);
	ck_assert_uint_eq(strlen(command.tube), WW_TUBE_MAX);
	ck_assert_int_eq(parse(line_of("use ", 207)), REFUSAL_BAD_FORMAT);
	ck_assert_int_eq(parse(line_of("peek-key ", 211)), REFUSAL_NONE);
	ck_assert_uint_eq(command.own.key_length, WW_JOB_KEY_MAX);
	ck_assert_int_eq(parse(line_of("peek-key ", 212)), REFUSAL_BAD_FORMAT);
}
END_TEST

START_TEST(body_of_a_refused_put_is_no_command)
{
	static const char text[] =
	    "put 4294967296 0 0 7\r\ndelete1\r\nput 0 -1 0 6\r\nquit\r\n\r\nput 0 0 0 5 \r\nquit1\r\n"
	    "put-key 0 0 0 4 a b=c\r\nquit\r\nreport x 6\r\nquit\r\n\r\nstats\r\n";
	char *said = transcript(text, sizeof text - 1, BODY_MAX, transcript_whole, NULL);
	char expected[200];

	(void)snprintf(expected, sizeof expected,
	    "%d refused 1\n%d refused 1\n%d refused 1\n%d refused 1\n%d refused 1\n%d\n", VERB_PUT, VERB_PUT, VERB_PUT,
	    VERB_PUT_KEY, VERB_REPORT, VERB_STATS);
	ck_assert_str_eq(said, expected);
	free(said);
}
END_TEST

/* The line, and what is no command behind it. */
static void is_last(const char *line, size_t length, enum verb verb, enum refusal refusal)
{
	static const char after[] = "\r\nquit\r\nput 0 0 0 0\r\n\r\nstats\r\n";
	char text[3000];
	char expected[100];
	char *said;

	memcpy(text, line, length);
	memcpy(text + length, after, sizeof after);
	said = transcript(text, length + sizeof after - 1, BODY_MAX, transcript_whole, NULL);
	(void)snprintf(expected, sizeof expected, "%d refused %d last\n", verb, refusal);
	ck_assert_msg(strcmp(said, expected) == 0, "%.80s: %s", line, said);
	free(said);
}

START_TEST(body_of_unknown_length_is_no_command)
{
	static const char *const lengths[] = {"", "+3", "-1", "0x3", "3.0", "3x", "x", "3 3", "1e3", "\t3", "3\r"};
	static const char *const large[] = {"4294967296", "18446744073709551613", "18446744073709551615",
	    "18446744073709551616", "99999999999999999999999999"};
	static const struct {
		const char *before, *after;
		enum verb verb;
	} lines[] = {{"put 0 0 1 ", "", VERB_PUT}, {"report 7 ", "", VERB_REPORT},
	    {"put-key 0 0 1 ", " k", VERB_PUT_KEY}, {"put-at 0 0 1 ", " k", VERB_PUT_AT},
	    {"put-schedule 0 0 1 ", " k cron=%2A", VERB_PUT_SCHEDULE}};
	char text[100];

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
			int size = snprintf(text, sizeof text, "%s%s%s", lines[i].before, lengths[j], lines[i].after);
			/* Of verbs with options, "3 3" has a key. */
			if (j != 7 || *lines[i].after == 0)
				is_last(text, (size_t)size, lines[i].verb, REFUSAL_BAD_FORMAT);
		}
		for (size_t j = 0; j < sizeof large / sizeof *large; j++) {
			int size = snprintf(text, sizeof text, "%s%s%s", lines[i].before, large[j], lines[i].after);
			is_last(text, (size_t)size, lines[i].verb, REFUSAL_TOO_BIG);
		}
	}
	is_last("put 0", 5, VERB_PUT, REFUSAL_BAD_FORMAT);
	is_last("put ", 4, VERB_PUT, REFUSAL_BAD_FORMAT);
	is_last("put 0 - 1 60 1", 14, VERB_PUT, REFUSAL_BAD_FORMAT);
	is_last("put 0 0 1 6\0", 12, VERB_PUT, REFUSAL_BAD_FORMAT);
}
END_TEST

/* An outbox of 0.1 asks so whether a server has the verb. */
START_TEST(a_question_for_a_verb_has_no_body)
{
	static const char text[] = "put-key ?\r\nput-at 0 0 1\r\nput-schedule\r\nstats\r\n";
	char *said = transcript(text, sizeof text - 1, BODY_MAX, transcript_whole, NULL);
	char expected[100];

	(void)snprintf(expected, sizeof expected, "%d refused 1\n%d refused 1\n%d refused 2\n%d\n", VERB_PUT_KEY,
	    VERB_PUT_AT, VERB_UNKNOWN, VERB_STATS);
	ck_assert_str_eq(said, expected);
	free(said);
}
END_TEST

/* Spaces may stand before a number. What is longer than a line of its verb can be, or has a byte 0, is no better. */
START_TEST(body_of_a_long_line_is_no_command)
{
	static char line[PROTOCOL_OWN_LINE_MAX + 1];
	size_t size;
	char *said;

	memset(line, ' ', sizeof line);
	memcpy(line, "put 0 0 1", 9);
	is_last(line, sizeof line, VERB_PUT, REFUSAL_BAD_FORMAT);
	memcpy(line, "put-key ", 8);
	is_last(line, sizeof line, VERB_PUT_KEY, REFUSAL_BAD_FORMAT);
	memcpy(line, "stats   ", 8);
	memcpy(line + sizeof line - 9, "\r\nquit\r\n", 8);
	said = transcript(line, sizeof line - 1, BODY_MAX, transcript_whole, NULL);
	ck_assert_str_eq(said, "16 refused 1\n25\n");
	free(said);
	/* Its size is there all the same. */
	memset(line, ' ', sizeof line);
	memcpy(line, "put 0\0 0 1", 10);
	memcpy(line + 299, "4\r\nquit\r\nstats\r\n", 16);
	size = 299 + 16;
	said = transcript(line, size, BODY_MAX, transcript_whole, NULL);
	ck_assert_str_eq(said, "1 refused 1\n16\n");
	free(said);
}
END_TEST

/* Of all numbers of all verbs: what begins with a sign or a letter, or has anything behind it, is none. */
START_TEST(a_number_is_digits)
{
	static const char *const wrong[] = {"+1", "-1", "0x1", "1.0", "1x", "1e3", "", "x", "--1", "1_0", "\t1",
	    "18446744073709551616", "99999999999999999999"};
	static const char *const lines[] = {"delete %s", "touch %s", "peek %s", "kick %s", "kick-job %s",
	    "stats-job %s", "reserve-job %s", "release %s 1 1", "release 1 %s 1", "release 1 1 %s", "bury %s 1",
	    "bury 1 %s", "pause-tube t %s", "move %s 5", "move 5 0 version=%s", "move-key k 0 version=%s",
	    "delete-key k version=%s", "delete-job %s", "delete-job 1 version=%s", "release-job %s 1 1 x",
	    "release-job 1 %s 1 x", "bury-job %s 1 x", "bury-job 1 %s x", "list-delayed limit=%s",
	    "list-delayed after=%s", "list-delayed id=%s", "forecast 1 %s", "limit-tube t running=%s",
	    "limit-tube t starts=%s", "history limit=%s", "list-schedules after=%s"};
	static const char *const whole[] = {"release 1 1 %s", "pause-tube t %s"};
	char line[100], text[110];

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
			(void)snprintf(line, sizeof line, lines[i], wrong[j]);
			(void)snprintf(text, sizeof text, "%s\r\n", line);
			ck_assert_msg(parse(text) == REFUSAL_BAD_FORMAT, "%s", line);
			ck_assert_int_eq(command.is_last, 0);
			(void)snprintf(line, sizeof line, lines[i], "0007");
			(void)snprintf(text, sizeof text, "%s\r\n", line);
			ck_assert_msg(parse(text) == REFUSAL_NONE, "%s", line);
		}
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		(void)snprintf(line, sizeof line, whole[i], "4294967296");
		(void)snprintf(text, sizeof text, "%s\r\n", line);
		ck_assert_msg(parse(text) == REFUSAL_BAD_FORMAT, "%s", line);
	}
}
END_TEST

static const char session[] =
    "put 1 2 3 4\r\nbody\r\nput 0 0 0 2\r\nab\rc\n\r\nreserve\r\nput 0 0 0 30\r\n012345678901234567890123456789\r\n\r\r\n"
    "put-key 5 0 0 3 a%20b every=60\r\nx\r\n\r\nuse t\r\nput 9999999999 0 0 4\r\nquit\r\nlist-delayed limit=3\r\n\n\r\n"
    "release-job 3 4 - oh%20no\r\nput 0 0 0 0\r\n\r\nuse x\0y\r\nquit\r\n";

/* Cut the bytes at two places. */
static size_t cut_twice(size_t at, size_t size, void *context)
{
	const size_t *cuts = context;

	return at < cuts[0] ? cuts[0] - at : at < cuts[1] ? cuts[1] - at : size - at;
}

START_TEST(any_split_says_the_same)
{
	const size_t size = sizeof session - 1;
	char *whole = transcript(session, size, BODY_MAX, transcript_whole, NULL);
	char *bytes = transcript(session, size, BODY_MAX, transcript_bytes, NULL);
	size_t cuts[2];

	ck_assert_str_eq(bytes, whole);
	free(bytes);
	for (cuts[0] = 1; cuts[0] < size; cuts[0]++) {
		for (cuts[1] = cuts[0] + 1; cuts[1] <= size; cuts[1]++) {
			char *said = transcript(session, size, BODY_MAX, cut_twice, cuts);

			ck_assert_msg(strcmp(said, whole) == 0, "cut at %zu and %zu:\n%s\ninstead of\n%s", cuts[0],
			    cuts[1], said, whole);
			free(said);
		}
	}
	free(whole);
}
END_TEST

START_TEST(any_split_of_a_long_line_says_the_same)
{
	char text[3 * PROTOCOL_OWN_LINE_MAX];
	size_t size = 2 * PROTOCOL_OWN_LINE_MAX;
	size_t cuts[2];
	char *whole;

	memset(text, 'x', sizeof text);
	memcpy(text + size, "\r\nstats\r\n", 9);
	/* Halves of a line's end, where the parser begins to throw bytes away. */
	text[PROTOCOL_OWN_LINE_MAX - 1] = '\r';
	text[PROTOCOL_OWN_LINE_MAX - 3] = '\n';
	size += 9;
	whole = transcript(text, size, BODY_MAX, transcript_whole, NULL);
	for (cuts[0] = PROTOCOL_OWN_LINE_MAX - 5; cuts[0] < PROTOCOL_OWN_LINE_MAX + 5; cuts[0]++) {
		for (cuts[1] = size - 12; cuts[1] <= size; cuts[1]++) {
			char *said = transcript(text, size, BODY_MAX, cut_twice, cuts);

			ck_assert_str_eq(said, whole);
			free(said);
		}
	}
	free(whole);
}
END_TEST

START_TEST(http_and_tls_are_foreign)
{
	static const char *const foreign[] = {"GET / HTTP/1.1\r\n", "POST /", "POST http://x/", "PUT /", "HEAD /",
	    "DELETE /", "OPTIONS *", "PATCH x", "TRACE /", "CONNECT a:1", "PRI *", "Host:", "hOsT: x\r\n",
	    "\x16\x03\x01"};
	static const char *const known[] = {"PUT 0 0 0 0\r\n", "DELETE 1\r\n", "GET\r\n", "GET \r\n", "Host\r\n",
	    "host :\r\n", "post /\r\n", "GETTER /\r\n", "\x16\r\n", " POST /\r\n"};
	char expected[20];

	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		const char *text = foreign[i];
		char *said = transcript(text, strlen(text), BODY_MAX, transcript_bytes, NULL);

		ck_assert_msg(parse(text) == REFUSAL_FOREIGN, "%s is taken", text);
		(void)snprintf(expected, sizeof expected, "0 refused %d last\n", REFUSAL_FOREIGN);
		ck_assert_str_eq(said, expected);
		free(said);
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		ck_assert_msg(parse(known[i]) == REFUSAL_UNKNOWN, "%s is foreign", known[i]);
}
END_TEST

START_TEST(after_a_foreign_line_nothing_is_parsed)
{
	static const char text[] = "put 0 0 0 6\r\nPOST /\r\nstats\r\nPOST / HTTP/1.1\r\nquit\r\nHost: x\r\nquit\r\n";
	char *said = transcript(text, sizeof text - 1, BODY_MAX, transcript_bytes, NULL);
	char expected[100];

	(void)snprintf(expected, sizeof expected,
	    "%d priority=0 delay=0 run=%llu body=6:POST /\n%d\n0 refused %d last\n", VERB_PUT,
	    (unsigned long long)WW_SECOND, VERB_STATS, REFUSAL_FOREIGN);
	ck_assert_str_eq(said, expected);
	free(said);
}
END_TEST

TEST_MAIN("weekwheeld/protocol", http_and_tls_are_foreign, after_a_foreign_line_nothing_is_parsed,
    verbs_of_beanstalkd_are_understood, own_verbs_are_understood, what_is_not_well_formed_is_refused,
    lines_have_a_limit, body_of_a_refused_put_is_no_command, body_of_unknown_length_is_no_command,
    a_question_for_a_verb_has_no_body, body_of_a_long_line_is_no_command, a_number_is_digits, any_split_says_the_same,
    any_split_of_a_long_line_says_the_same)
