/* KEYS and SCAN: each key that is there all the time is listed, whatever else is, and how patterns and cursors are read. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

START_TEST(keys_match_a_pattern)
{
	static const struct served_row rows[] = {
	    {"KEYS *", "*0"},
	    {"SET one 1", "+OK"},
	    {"SELECT 1", "+OK"},
	    {"KEYS *", "*0"},
	    {"SET two 2", "+OK"},
	    {"KEYS *", "*1 $3 two"},
	    {"KEYS t?o", "*1 $3 two"},
	    {"KEYS o*", "*0"},
	    {"KEYS \"\"", "*0"},
	    {"KEYS [st]wo", "*1 $3 two"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(words_of_scan_are_read)
{
	static const struct served_row rows[] = {
	    {"SET a 1", "+OK"},
	    {"SCAN 0", "*2 $1 0 *1 $1 a"},
	    {"SCAN +0 COUNT 100 MATCH a TYPE string", "*2 $1 0 *1 $1 a"},
	    {"SCAN 0 MATCH b", "*2 $1 0 *0"},
	    {"SCAN 0 MATCH b MATCH a", "*2 $1 0 *1 $1 a"},
	    {"SCAN 0 TYPE hash", "*2 $1 0 *0"},
	    {"SCAN x", "-ERR invalid cursor"},
	    {"SCAN 18446744073709551616", "-ERR invalid cursor"},
	    {"SCAN 0 COUNT 0", "-ERR syntax error"},
	    {"SCAN 0 COUNT -1", "-ERR syntax error"},
	    {"SCAN 0 COUNT x", "-ERR value is not an integer or out of range"},
	    {"SCAN 0 COUNT", "-ERR syntax error"},
	    {"SCAN 0 NEAR a", "-ERR syntax error"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

enum { MANY = 3000 };

static void set_many(void)
{
	char line[40];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(line, sizeof line, "SET key:%d x", i);
		ck_assert_str_eq(served_ask(line), "+OK");
	}
}

/* Count the keys of this answer in `seen`. Returns how many there are. */
static int note_keys(const char *answer, int *seen)
{
	int count = 0;

	for (const char *at = strstr(answer, " key:"); at; at = strstr(at + 1, " key:")) {
		seen[atoi(at + 5)]++;
		count++;
	}
	return count;
}

/* With few keys a turn, and though a third of them is deleted meanwhile. */
START_TEST(a_scan_comes_to_each_key)
{
	static int seen[MANY];
	char line[40] = "SCAN 0";
	char cursor[24];
	int turns = 0;

	served_begin(NULL);
	set_many();
	do {
		const char *answer = served_ask(line);
		int count = note_keys(answer, seen);
		ck_assert_int_eq(sscanf(answer, "*2 $%*u %23s", cursor), 1);
		ck_assert_int_le(count, 10);
		(void)snprintf(line, sizeof line, "DEL key:%d", 3 * turns);
		if (turns < MANY / 3)
			(void)served_ask(line);
		(void)snprintf(line, sizeof line, "SCAN %s", cursor);
		turns++;
	} while (strcmp(cursor, "0") != 0);
	ck_assert_int_ge(turns, MANY / 3 * 2 / 10);
	for (int i = 0; i < MANY; i++)
		if (i % 3 != 0)
			ck_assert_msg(seen[i] > 0, "key:%d is missing", i);
	served_end();
}
END_TEST

START_TEST(keys_lists_each_once)
{
	static int seen[MANY];

	served_begin(NULL);
	set_many();
	ck_assert_int_eq(note_keys(served_ask("KEYS *"), seen), MANY);
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(seen[i], 1);
	/* What follows waits for it. */
	const char *answer = served_ask("KEYS key:1?");
	ck_assert_int_eq(note_keys(answer, seen), 10);
	ck_assert_str_eq(served_ask("GET key:7"), "$1 x");
	served_end();
}
END_TEST

/* It cannot be divided there, so it may look at so many. */
START_TEST(in_a_transaction_they_look_at_some)
{
	static const struct served_row rows[] = {
	    {"MULTI", "+OK"},
	    {"KEYS key:12", "+QUEUED"},
	    {"SCAN 0 COUNT 60000", "+QUEUED"},
	    {"SCAN 0 COUNT 60000", "+QUEUED"},
	    {"EXEC", "*3 *1 $6 key:12 *2 $1 0 *3000*"},
	};
	static const struct served_row refused[] = {
	    {"MULTI", "+OK"},
	    {"SCAN 0 COUNT 65537", "+QUEUED"},
	    {"EXEC",
	        "*1 -ERR this looks at too many keys, channels or clients for a transaction: use it outside of MULTI"},
	};

	served_begin(NULL);
	set_many();
	SERVED_CHECK(rows);
	SERVED_CHECK(refused);
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/listing", keys_match_a_pattern, words_of_scan_are_read, a_scan_comes_to_each_key,
    keys_lists_each_once, in_a_transaction_they_look_at_some)
