/* Events of keys: which commands publish which, by their classes, and how the setting is read and shown. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"
#include "tools/weekwheel-sessiond/commands/events.h"

START_TEST(the_setting_is_read_and_shown)
{
	static const struct {
		const char *text;
		const char *shown; /* NULL: it is refused */
	} cases[] = {{"", ""}, {"K", "K"}, {"Ex", "xE"}, {"KEA", "AKE"}, {"AKE", "AKE"}, {"g$lshzxetd", "A"},
	    {"$gK", "g$K"}, {"AA", "A"}, {"q", NULL}, {"Ke ", NULL}, {"kx", NULL}};
	char text[EVENTS_TEXT];
	unsigned events;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int error = events_read(cases[i].text, strlen(cases[i].text), &events);
		ck_assert_msg((error != 0) == (cases[i].shown == NULL), "'%s'", cases[i].text);
		if (error)
			continue;
		events_show(events, text);
		ck_assert_str_eq(text, cases[i].shown);
	}
	ck_assert_int_eq(events_read("K\0", 2, &events), -1);
}
END_TEST

/* What each command publishes, as "event key" in their order. */
static const struct {
	const char *before; /* or NULL */
	const char *line;
	const char *events;
} told[] = {
    {NULL, "SET a 1", "set a"},
    {NULL, "SET a 1 EX 9", "set a, expire a"},
    {"SETEX a 9 1", "SET a 1 KEEPTTL", "set a"},
    {NULL, "SETEX a 9 1", "set a, expire a"},
    {NULL, "SETNX a 1", "set a"},
    {"SET a 1", "SETNX a 1", ""},
    {"SET a 1", "SET a 1 NX", ""},
    {"SET a 1", "GETSET a 2", "set a"},
    {NULL, "MSET a 1 b 2", "set a, set b"},
    {NULL, "MSETNX a 1 b 2", "set a, set b"},
    {NULL, "APPEND a 1", "append a"},
    {NULL, "INCR a", "incrby a"},
    {NULL, "DECRBY a 5", "incrby a"},
    {"SET a x", "INCR a", ""},
    {"SET a 1", "DEL a none", "del a"},
    {"SET a 1", "GETDEL a", "del a"},
    {"SET a 1", "GETEX a EX 5", "expire a"},
    {"SETEX a 9 1", "GETEX a PERSIST", "persist a"},
    {"SET a 1", "GETEX a EXAT 1", "del a"},
    {"SET a 1", "EXPIRE a 5", "expire a"},
    {"SET a 1", "EXPIRE a -5", "del a"},
    {"SET a 1", "EXPIRE a 5 XX", ""},
    {"SETEX a 9 1", "PERSIST a", "persist a"},
    {"SET a 1", "PERSIST a", ""},
    {"SET a 1", "RENAME a b", "rename_from a, rename_to b"},
    {"SET a 1", "RENAME a a", ""},
    {"SETEX a 9 1", "ADVANCE 9000", "expired a"},
    {"SET a 1", "GET a", ""},
    {"SET a 1", "FLUSHALL", ""},
};

/* Collect the events of what a listener heard; its pattern stands before each channel. */
static void collect(const char *heard, char *to)
{
	static const char head[] = "__keyevent@0__:";
	size_t size = 0;

	*to = 0;
	for (const char *at = strstr(heard, head); at; at = strstr(at, head)) {
		char event[32];
		char key[32];
		int length = 0;
		at += sizeof head - 1;
		if (*at == '*')
			continue;
		ck_assert_int_eq(sscanf(at, "%31s $%*u %31s%n", event, key, &length), 2);
		size += (size_t)sprintf(to + size, "%s%s %s", size ? ", " : "", event, key);
		at += length;
	}
}

START_TEST(each_change_is_told)
{
	char line[40];
	char events[200];

	for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
		served_begin("--notify-keyspace-events", "EA", NULL);
		if (told[i].before)
			ck_assert_str_eq(served_ask(told[i].before), "+OK");
		ck_assert_ptr_nonnull(served_ask("1> PSUBSCRIBE __keyevent@0__:*"));
		ck_assert_ptr_nonnull(served_ask(told[i].line));
		(void)snprintf(line, sizeof line, "1> ");
		collect(served_ask(line), events);
		ck_assert_msg(strcmp(events, told[i].events) == 0, "%s tells '%s', not '%s'", told[i].line, events,
		    told[i].events);
		served_end();
	}
}
END_TEST

START_TEST(classes_choose_them)
{
	static const struct served_row rows[] = {
	    {"1> SUBSCRIBE __keyspace@3__:a __keyevent@3__:del __keyevent@3__:set __expired@3__:a", "*"},
	    {"SELECT 3", "+OK"},
	    {"SET a 1", "+OK"},
	    {"1> ", ""},
	    {"CONFIG SET notify-keyspace-events Kg", "+OK"},
	    {"SETEX a 9 1", "+OK"},
	    {"DEL a", ":1"},
	    {"1> ", "*3 $7 message $16 __keyspace@3__:a $6 expire *3 $7 message $16 __keyspace@3__:a $3 del"},
	    {"CONFIG SET notify-keyspace-events E$", "+OK"},
	    {"SET a 1", "+OK"},
	    {"DEL a", ":1"},
	    {"1> ", "*3 $7 message $18 __keyevent@3__:set $1 a"},
	    /* Whoever listens to this channel hears it whatever the setting is, with the value. */
	    {"CONFIG SET notify-keyspace-events \"\"", "+OK"},
	    {"SETEX a 1 value", "+OK"},
	    {"ADVANCE 1000", "+OK"},
	    {"1> ", "*3 $7 message $15 __expired@3__:a $5 value"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(a_database_of_two_digits_has_its_channel)
{
	static const struct served_row rows[] = {
	    {"1> SUBSCRIBE __keyevent@63__:set", "*"},
	    {"SELECT 63", "+OK"},
	    {"SET a 1", "+OK"},
	    {"1> ", "*3 $7 message $19 __keyevent@63__:set $1 a"},
	};

	SERVED_STORY(rows, "--databases", "64", "--notify-keyspace-events", "KEA", NULL);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/events", the_setting_is_read_and_shown, each_change_is_told, classes_choose_them,
    a_database_of_two_digits_has_its_channel)
