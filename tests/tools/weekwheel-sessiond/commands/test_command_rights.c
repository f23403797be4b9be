/* Rights: what a client may do with its token, by the keys and channels that a command names. */
/* tier: quick */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"
#include "tools/service/access/tokens.h"

#define KEY "-NOPERM this user has no permissions to access one of the keys used as arguments"
#define ALL "-NOPERM this user has no permissions to run this command for all keys"
#define CHANNEL "-NOPERM this user has no permissions to access one of the channels used as arguments"

static char path[32];

static void write_token(FILE *file, const char *name, const char *text, const char *grants)
{
	unsigned char hash[TOKEN_HASH];

	ck_assert_int_eq(tokens_hash(text, strlen(text), hash), 0);
	(void)fprintf(file, "%s sha256:", name);
	for (size_t i = 0; i < sizeof hash; i++)
		(void)fprintf(file, "%02x", hash[i]);
	(void)fprintf(file, " %s\n", grants);
}

/* The clients' tokens grant these. */
static void begin(const char *first, const char *second)
{
	FILE *file;

	(void)snprintf(path, sizeof path, "/tmp/weekwheel-tokens-XXXXXX");
	file = fdopen(mkstemp(path), "w");
	ck_assert_ptr_nonnull(file);
	write_token(file, "first", "the-token-of-the-first", first);
	write_token(file, "second", "the-token-of-the-second", second);
	ck_assert_int_eq(fclose(file), 0);
	served_begin("--auth-file", path, NULL);
	ck_assert_str_eq(served_ask("AUTH the-token-of-the-first"), "+OK");
	ck_assert_str_eq(served_ask("1> AUTH second the-token-of-the-second"), "+OK");
}

static void end(void)
{
	served_end();
	ck_assert_int_eq(unlink(path), 0);
}

START_TEST(keys_are_granted_by_patterns)
{
	static const struct served_row rows[] = {
	    {"SET sess:1 x", "+OK"},
	    {"GET sess:1", "$1 x"},
	    {"SET cart:1 x", KEY},
	    {"GET cart:1", KEY},
	    {"MSET sess:1 x cart:1 x", KEY},
	    {"MGET sess:1 cart:1", KEY},
	    {"RENAME sess:1 cart:1", KEY},
	    {"RENAME sess:1 sess:2", "+OK"},
	    {"WATCH cart:1", KEY},
	    {"EXPIRE cart:1 1", KEY},
	    {"GET \"\"", KEY},
	    {"GET \"sess:\\x00\"", KEY},
	    {"1> GET sess:2", "$1 x"},
	    {"1> GET \"\"", "$-1"},
	    {"1> GET \"sess:\\x00\"", "$-1"},
	    {"1> SET sess:2 y", KEY},
	    {"1> GETEX sess:2", KEY},
	    {"1> GETDEL sess:2", KEY},
	    {"1> TTL sess:2", ":-1"},
	};

	begin("read,write:sess:*", "read:*");
	SERVED_CHECK(rows);
	end();
}
END_TEST

START_TEST(commands_about_all_need_their_right_for_all)
{
	static const struct served_row rows[] = {
	    {"KEYS *", ALL},
	    {"SCAN 0", ALL},
	    {"RANDOMKEY", ALL},
	    {"DBSIZE", ALL},
	    {"FLUSHALL", ALL},
	    {"SAVE", ALL},
	    {"CONFIG GET *", ALL},
	    {"CLIENT LIST", ALL},
	    {"CLIENT KILL ID 9", ALL},
	    {"CLIENT ID", ":1"},
	    {"PING", "+PONG"},
	    {"1> KEYS *", "*0"},
	    {"1> DBSIZE", ":0"},
	    {"1> CLIENT LIST ID 9", "$0"},
	    {"1> FLUSHALL", ALL},
	    {"1> CONFIG GET databases", ALL},
	    {"1> SHUTDOWN", ALL},
	    {"1> CLIENT KILL ID 9", ALL},
	    {"1> MULTI", "+OK"},
	    {"1> FLUSHALL", ALL},
	    {"1> EXEC", "-EXECABORT Transaction discarded because of previous errors."},
	};

	begin("read,write:sess:*", "read:*");
	SERVED_CHECK(rows);
	end();
}
END_TEST

START_TEST(admin_has_them_all)
{
	static const struct served_row rows[] = {
	    {"SET a x", "+OK"},
	    {"KEYS *", "*1 $1 a"},
	    {"CONFIG GET databases", "*2*"},
	    {"CLIENT KILL ID 9", ":0"},
	    {"FLUSHALL", "+OK"},
	    {"1> SET a x", "+OK"},
	    {"1> GET a", KEY},
	    {"1> FLUSHALL", "+OK"},
	    {"1> KEYS *", ALL},
	};

	begin("admin:*", "write:*");
	SERVED_CHECK(rows);
	end();
}
END_TEST

START_TEST(channels_are_granted_like_keys)
{
	static const struct served_row rows[] = {
	    {"PUBLISH sess:1 x", ":0"},
	    {"PUBLISH cart:1 x", CHANNEL},
	    {"SPUBLISH cart:1 x", CHANNEL},
	    {"PUBSUB NUMSUB sess:1", "*2 $6 sess:1 :0"},
	    {"PUBSUB NUMSUB sess:1 cart:1", CHANNEL},
	    {"PUBSUB CHANNELS", CHANNEL},
	    {"PUBSUB SHARDCHANNELS", CHANNEL},
	    {"PUBSUB NUMPAT", ":0"},
	    {"PSUBSCRIBE sess:*", CHANNEL},
	    {"SUBSCRIBE sess:1 cart:1", CHANNEL},
	    {"SSUBSCRIBE cart:1", CHANNEL},
	    {"SUBSCRIBE sess:1", "*3*"},
	    {"1> PUBLISH sess:1 x", CHANNEL},
	    {"1> PUBSUB CHANNELS", "*1 $6 sess:1"},
	    {"1> PSUBSCRIBE *", "*3*"},
	};

	begin("read,write:sess:*", "read:*");
	SERVED_CHECK(rows);
	end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/rights", keys_are_granted_by_patterns,
    commands_about_all_need_their_right_for_all, admin_has_them_all, channels_are_granted_like_keys)
