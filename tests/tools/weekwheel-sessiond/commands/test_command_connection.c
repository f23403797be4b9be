/* Commands about the connection: who it is, which database and protocol it has, and how it begins anew. */
/* tier: quick */
#include <stdio.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

#define HELLO(version)                                                                                                 \
	"server $5 redis $7 version $6 7.0.15 $5 proto :" version                                                      \
	" $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0"
#define NAMES "-ERR Client names cannot contain spaces, newlines or special characters."

START_TEST(it_answers)
{
	static const struct served_row rows[] = {
	    {"PING", "+PONG"},
	    {"ping x", "$1 x"},
	    {"PING x y", "-ERR wrong number of arguments for 'ping' command"},
	    {"ECHO \"a b\"", "$3 a b"},
	    {"ECHO", "-ERR wrong number of arguments for 'echo' command"},
	    {"QUIT now", "+OK"},
	    {"PING", NULL},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(it_chooses_a_database)
{
	static const struct served_row rows[] = {
	    {"SELECT 2", "+OK"},
	    {"SELECT 3", "-ERR DB index is out of range"},
	    {"SELECT -1", "-ERR DB index is out of range"},
	    {"SELECT 2147483648", "-ERR value is out of range, value must between -2147483648 and 2147483647"},
	    {"SELECT x", "-ERR value is not an integer or out of range"},
	    {"SET a 1", "+OK"},
	    {"1> GET a", "$-1"},
	    {"1> SELECT 2", "+OK"},
	    {"1> GET a", "$1 1"},
	};

	SERVED_STORY(rows, "--databases", "3", NULL);
}
END_TEST

START_TEST(it_chooses_a_protocol)
{
	static const struct served_row rows[] = {
	    {"HELLO", "*14 $6 " HELLO("2")},
	    {"HELLO 3", "%7 $6 " HELLO("3")},
	    {"GET a", "_"},
	    {"HELLO 2", "*14 $6 " HELLO("2")},
	    {"GET a", "$-1"},
	    {"HELLO 1", "-NOPROTO unsupported protocol version"},
	    {"HELLO 4", "-NOPROTO unsupported protocol version"},
	    {"HELLO x", "-ERR Protocol version is not an integer or out of range"},
	    {"HELLO 3 NONE", "-ERR Syntax error in HELLO option 'NONE'"},
	    {"HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'"},
	    {"HELLO 3 SETNAME \"a b\"", NAMES},
	    {"HELLO 2 SETNAME me", "*14*"},
	    {"CLIENT GETNAME", "$2 me"},
	    {"HELLO 2 AUTH default x", "*14*"},
	    {"HELLO 2 AUTH else x", "-WRONGPASS invalid username-password pair or user is disabled."},
	    {"AUTH x",
	        "-ERR AUTH <password> called without any password configured for the default user. Are you sure your "
	        "configuration is correct?"},
	    {"AUTH default x", "+OK"},
	    {"AUTH a b c", "-ERR syntax error"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(reset_begins_anew)
{
	static const struct served_row rows[] = {
	    {"SET a 1", "+OK"},
	    {"SELECT 1", "+OK"},
	    {"CLIENT SETNAME me", "+OK"},
	    {"HELLO 3", "%7*"},
	    {"SUBSCRIBE a", ">3*"},
	    {"MULTI", "+OK"},
	    {"RESET", "+RESET"},
	    {"EXEC", "-ERR EXEC without MULTI"},
	    {"GET a", "$1 1"},
	    {"GET none", "$-1"},
	    {"CLIENT GETNAME", "$-1"},
	    {"PUBLISH a x", ":0"},
	    {"CLIENT REPLY OFF", ""},
	    {"RESET", "+RESET"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* A long password is compared at once. */
START_TEST(a_password_lets_in)
{
	static const struct served_row rows[] = {
	    {"GET a", "-NOAUTH Authentication required."},
	    {"NONE", "-ERR unknown command*"},
	    {"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated*"},
	    {"AUTH 0123456789012345678901234567890123456789", "+OK"},
	    {"GET a", "$-1"},
	    {"RESET", "+RESET"},
	    {"GET a", "-NOAUTH Authentication required."},
	    {"AUTH default 0123456789012345678901234567890123456789", "+OK"},
	    {"GET a", "$-1"},
	    {"1> HELLO 3 AUTH default 0123456789012345678901234567890123456789", "%7*"},
	    {"1> GET a", "_"},
	};
	char path[] = "/tmp/weekwheel-password-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_eq(dprintf(fd, "0123456789012345678901234567890123456789\n"), 41);
	ck_assert_int_eq(close(fd), 0);
	SERVED_STORY(rows, "--requirepass-file", path, NULL);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/connection", it_answers, it_chooses_a_database, it_chooses_a_protocol,
    reset_begins_anew, a_password_lets_in)
