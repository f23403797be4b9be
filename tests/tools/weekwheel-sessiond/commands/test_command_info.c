/* INFO, CONFIG and the commands that look at the server or end it. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

static void check_has(const char *line, const char *part, int has)
{
	const char *answer = served_ask(line);

	ck_assert_msg(
	    (strstr(answer, part) != NULL) == has, "%s has%s '%s': %s", line, has ? " not" : "", part, answer);
}

/* Sections are named in any case, one or several, and an unknown one is empty. */
START_TEST(sections_are_chosen)
{
	static const char *const names[] = {
	    "Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "Cluster", "Keyspace"};
	char line[40];
	char head[20];

	served_begin(NULL);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		(void)snprintf(head, sizeof head, "# %s ", names[i]);
		for (size_t other = 0; other < sizeof names / sizeof *names; other++) {
			(void)snprintf(line, sizeof line, "INFO %s none", names[other]);
			check_has(line, names[i] == names[0] || i < 7 ? head : "# Keyspace", i == other);
		}
		check_has("INFO", "# Server", 1);
		check_has("INFO all", i < 7 ? head : "# Keyspace", 1);
		check_has("INFO everything", i < 7 ? head : "# Keyspace", 1);
	}
	ck_assert_str_eq(served_ask("INFO none"), "$0");
	served_end();
}
END_TEST

START_TEST(numbers_are_those_of_the_server)
{
	served_begin(
	    "--maxmemory", "2M", "--maxmemory-policy", "volatile-lru", "--maxclients", "77", "--databases", "2", NULL);
	ck_assert_str_eq(served_ask("MSET a 1 b 2"), "+OK");
	ck_assert_str_eq(served_ask("SETEX b 10 2"), "+OK");
	ck_assert_str_eq(served_ask("1> SELECT 1"), "+OK");
	ck_assert_str_eq(served_ask("1> SETEX c 1 3"), "+OK");
	ck_assert_str_eq(served_ask("GET a"), "$1 1");
	ck_assert_str_eq(served_ask("GET none"), "$-1");
	check_has("INFO keyspace", "db0:keys=2,expires=1,avg_ttl=10000 db1:keys=1,expires=1,avg_ttl=1000", 1);
	ck_assert_str_eq(served_ask("ADVANCE 1000"), "+OK");
	check_has("INFO keyspace", "db0:keys=2,expires=1,avg_ttl=9000", 1);
	check_has("INFO keyspace", "db1:", 0);
	check_has("INFO clients", "connected_clients:2 maxclients:77 ", 1);
	check_has("INFO memory", "maxmemory:2097152 maxmemory_policy:volatile-lru", 1);
	check_has("INFO stats", "expired_keys:1 evicted_keys:0 keyspace_hits:1 ", 1);
	check_has("INFO server", "uptime_in_seconds:1 ", 1);
	check_has("INFO server", "redis_version:7.0.15 ", 1);
	ck_assert_str_eq(served_ask("CONFIG RESETSTAT"), "+OK");
	check_has("INFO stats", "expired_keys:0 evicted_keys:0 keyspace_hits:0 keyspace_misses:0", 1);
	served_end();
}
END_TEST

START_TEST(parameters_are_shown_and_set)
{
	static const struct served_row rows[] = {
	    {"CONFIG GET databases", "*2 $9 databases $2 16"},
	    {"CONFIG GET DataBases none", "*2 $9 DataBases $2 16"},
	    {"CONFIG GET max*", "*6 $10 maxclients $5 10000 $9 maxmemory $1 0 $16 maxmemory-policy $10 noeviction"},
	    {"CONFIG GET none", "*0"},
	    {"CONFIG GET save", "*2 $4 save $0"},
	    {"CONFIG GET appendonly timeout", "*4 $10 appendonly $2 no $7 timeout $1 0"},
	    {"CONFIG GET proto*", "*2 $18 proto-max-bulk-len $9 536870912"},
	    {"CONFIG SET notify-keyspace-events KEA", "+OK"},
	    {"CONFIG GET notify-keyspace-events", "*2 $22 notify-keyspace-events $3 AKE"},
	    {"CONFIG SET notify-keyspace-events q",
	        "-ERR CONFIG SET failed (possibly related to argument "
	        "'notify-keyspace-events') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'."},
	    {"CONFIG SET notify-keyspace-events Kx databases 1",
	        "-ERR CONFIG SET failed (possibly related to argument 'databases')*"},
	    {"CONFIG GET notify-keyspace-events", "*2 $22 notify-keyspace-events $3 AKE"},
	    {"CONFIG SET none 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'none'"},
	    {"CONFIG SET databases", "-ERR wrong number of arguments for 'config|set' command"},
	    {"CONFIG SET a b c", "-ERR syntax error"},
	    {"CONFIG REWRITE", "-ERR The server is running without a config file"},
	    {"CONFIG HELP", "*5*"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(time_goes_by_the_clock)
{
	long long before;
	long long after;

	served_begin(NULL);
	ck_assert_int_eq(sscanf(served_ask("TIME"), "*2 $%*u %lld", &before), 1);
	ck_assert_str_eq(served_ask("ADVANCE 5000"), "+OK");
	ck_assert_int_eq(sscanf(served_ask("TIME"), "*2 $%*u %lld", &after), 1);
	ck_assert_int_eq(after, before + 5);
	ck_assert_str_eq(
	    served_ask("ADVANCE -1"), "-ERR ADVANCE needs --clock virtual and milliseconds that it can go");
	ck_assert_str_eq(served_ask("ADVANCE x"), "-ERR value is not an integer or out of range");
	served_end();
}
END_TEST

START_TEST(it_is_saved_and_ended)
{
	static const struct served_row rows[] = {
	    {"SAVE", "-ERR there is no folder to save to: start the server with --data DIR"},
	    {"BGSAVE", "-ERR there is no folder to save to: start the server with --data DIR"},
	    {"BGSAVE SCHEDULE", "-ERR there is no folder to save to: start the server with --data DIR"},
	    {"BGSAVE x", "-ERR syntax error"},
	    {"LASTSAVE", ":*"},
	    {"SHUTDOWN ABORT", "-ERR No shutdown in progress."},
	    {"SHUTDOWN ABORT NOW", "-ERR syntax error"},
	    {"SHUTDOWN SAVE NOSAVE", "-ERR syntax error"},
	    {"SHUTDOWN x", "-ERR syntax error"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/info", sections_are_chosen, numbers_are_those_of_the_server,
    parameters_are_shown_and_set, time_goes_by_the_clock, it_is_saved_and_ended)
