/* What is not carried out, and why. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

START_TEST(unknown_ones_are_named)
{
	static const struct served_row rows[] = {
	    {"NONE", "-ERR unknown command 'NONE', with args beginning with:"},
	    {"NONE a \"b c\"", "-ERR unknown command 'NONE', with args beginning with: 'a' 'b c'"},
	    {"NONE \"a\\r\\nb\"", "-ERR unknown command 'NONE', with args beginning with: 'a  b'"},
	    {"HSET a b c",
	        "-ERR unknown command 'HSET': weekwheel-sessiond keeps strings with deadlines and has not all of Redis; "
	        "see DIFFERENCES in its manual"},
	    {"eval x 0", "-ERR unknown command 'eval': weekwheel-sessiond*"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* What a browser sends runs nothing of its body. */
START_TEST(a_request_of_http_ends_its_client)
{
	static const char *const requests[] = {"POST / HTTP/1.1\r\nSET a 1", "Host: x\r\nSET a 1"};

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		served_begin(NULL);
		ck_assert_ptr_null(served_ask(requests[i]));
		ck_assert_str_eq(served_ask("1> GET a"), "$-1");
		served_end();
	}
}
END_TEST

/* However long what they quote is. */
START_TEST(no_answer_is_longer_than_its_reader_expects)
{
	static const char *const lines[] = {"%s", "GET a %s", "NONE %s", "CLIENT %s", "CLIENT SETINFO %s x",
	    "CLIENT KILL USER %s", "CLIENT LIST TYPE %s", "CONFIG SET %s x", "EXPIRE a 1 %s", "HELLO 3 %s",
	    "COMMAND %s", "PUBSUB CHANNELS x %s"};
	static char word[30001];
	static char line[40000];

	memset(word, 'w', sizeof word - 1);
	served_begin(NULL);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		const char *answer;
		(void)snprintf(line, sizeof line, lines[i], word);
		answer = served_ask(line);
		ck_assert_int_eq(*answer, '-');
		ck_assert_msg(strlen(answer) <= 8192, "%s: %zu", lines[i], strlen(answer));
	}
	served_end();
}
END_TEST

START_TEST(words_are_bounded)
{
	char line[4000] = "INFO";

	for (int i = 0; i < 1024; i++)
		strcat(line, " a");
	served_begin(NULL);
	ck_assert_str_eq(served_ask(line), "-ERR too many arguments");
	memcpy(line, "MGET", 4);
	ck_assert_ptr_nonnull(strstr(served_ask(line), "*1024 $-1"));
	served_end();
}
END_TEST

/* In RESP2 a subscriber may only change what it hears. */
START_TEST(subscribers_are_refused_most)
{
	static const struct served_row rows[] = {
	    {"SUBSCRIBE a", "*3*"},
	    {"GET a",
	        "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"},
	    {"CLIENT ID", "-ERR Can't execute 'client|id': only*"},
	    {"MULTI", "-ERR Can't execute 'multi': only*"},
	    {"EXEC", "-EXECABORT Transaction discarded because of: Can't execute 'exec': only*"},
	    {"PING", "*2 $4 pong $0"},
	    {"PSUBSCRIBE b", "*3*"},
	    {"UNSUBSCRIBE", "*3*"},
	    {"PUNSUBSCRIBE", "*3*"},
	    {"GET a", "$-1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/refuse", unknown_ones_are_named, a_request_of_http_ends_its_client,
    no_answer_is_longer_than_its_reader_expects, words_are_bounded, subscribers_are_refused_most)
