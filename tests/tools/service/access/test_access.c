/* Who may: right tokens get in at once whatever guessers behind the same address do, and short passwords in their turn. */
/* tier: quick */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/service/access/access.h"
#include "weekwheel/driver.h"

static const char right[] = "the-right-token-of-site";
static const char other[] = "the-right-token-of-shop";
static uint64_t clock_ns;
static struct access door;
static uint64_t wait_ns;

static uint64_t now(void *context)
{
	(void)context;
	return clock_ns;
}

static void write_line(FILE *file, const char *name, const char *token, const char *grants)
{
	unsigned char hash[TOKEN_HASH];

	ck_assert_int_eq(tokens_hash(token, strlen(token), hash), 0);
	fprintf(file, "%s sha256:", name);
	for (int i = 0; i < TOKEN_HASH; i++)
		fprintf(file, "%02x", hash[i]);
	fprintf(file, " %s\n", grants);
}

/* Two tokens, the second with these grants; NULL: only one. */
static void write_file(const char *path, const char *grants)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	(void)fchmod(fileno(file), 0600);
	write_line(file, "site", right, "read:*");
	if (grants)
		write_line(file, "shop", other, grants);
	fclose(file);
}

static char path[64];

static void open_with(const char *password)
{
	struct tokens *tokens = NULL;
	char why[TOKEN_WHY];

	clock_ns = WW_SECOND;
	door = (struct access){.now = now};
	snprintf(path, sizeof path, "/tmp/test_access.%d", (int)getpid());
	if (!password) {
		write_file(path, "read:*");
		tokens = tokens_read(path, why);
		ck_assert_ptr_nonnull(tokens);
		(void)unlink(path);
	}
	access_start(&door, password ? NULL : path, tokens, password);
}

static void enter(struct access_client *client, const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	ck_assert_int_eq(inet_pton(AF_INET, text, &address.sin_addr), 1);
	*client = (struct access_client){0};
	access_enter(&door, client, (struct sockaddr *)&address);
}

static enum access_answer say_as(struct access_client *client, const char *user, const char *secret)
{
	struct access_credentials said = {user, user ? strlen(user) : 0, secret, strlen(secret)};

	return access_login(&door, client, "a test", &said, &wait_ns);
}

static enum access_answer say(struct access_client *client, const char *secret)
{
	return say_as(client, NULL, secret);
}

static int ask(const char *field, unsigned *rest)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct access_client client = {0};
	int status = access_http(&door, &client, (struct sockaddr *)&address, field, rest);

	access_leave(&door, &client);
	return status;
}

START_TEST(a_right_token_gets_in_at_once_beside_guessers)
{
	struct access_client guesser, client;
	unsigned rest;

	open_with(NULL);
	for (int i = 0; i < 50; i++) {
		enter(&guesser, "127.0.0.1");
		ck_assert_int_ne(say(&guesser, "some-wrong-token-or-other"), ACCESS_RIGHT);
		ck_assert(!guesser.is_known && !guesser.token);
		/* It came from there never before, and the clock stands. */
		enter(&client, "127.0.0.1");
		ck_assert_int_eq(say(&client, i % 2 ? right : other), ACCESS_RIGHT);
		ck_assert_str_eq(client.token->name, i % 2 ? "site" : "shop");
		ck_assert_uint_eq(wait_ns, 0);
		access_leave(&door, &client);
		ck_assert_int_eq(ask("bearer the-right-token-of-site", &rest), 0);
	}
	ck_assert_uint_eq(door.culprits.failures, 50);
	access_stop(&door);
}
END_TEST

START_TEST(wrong_tokens_are_answered_one_after_the_other)
{
	struct access_client client;
	enum access_answer answer;
	uint64_t last = 0;
	uint64_t rest = 100 * WW_MILLISECOND;
	int count = 0;

	open_with(NULL);
	enter(&client, "192.0.2.1");
	while ((answer = say(&client, "some-wrong-token-or-other")) == ACCESS_WRONG) {
		ck_assert_uint_ge(wait_ns, last + rest);
		last = wait_ns;
		rest *= count < 6 ? 2 : 1;
		count++;
	}
	ck_assert_int_eq(answer, ACCESS_CROWD);
	ck_assert(count > 5 && count < 12);
	/* Another address waits for none of them. */
	enter(&client, "192.0.2.2");
	ck_assert_int_eq(say(&client, "x"), ACCESS_WRONG);
	ck_assert_uint_eq(wait_ns, 100 * WW_MILLISECOND);
	access_stop(&door);
}
END_TEST

START_TEST(a_token_belongs_to_its_name)
{
	struct access_client client;

	open_with(NULL);
	enter(&client, "192.0.2.1");
	ck_assert_int_eq(say_as(&client, "sit", right), ACCESS_WRONG);
	ck_assert_int_eq(say_as(&client, "site", right), ACCESS_RIGHT);
	ck_assert_int_eq(say_as(&client, "shop", right), ACCESS_WRONG);
	/* What it has said before stays. */
	ck_assert_str_eq(client.token->name, "site");
	access_leave(&door, &client);
	ck_assert(!client.is_known && !client.token);
	access_stop(&door);
}
END_TEST

START_TEST(a_short_password_is_compared_in_its_turn)
{
	struct access_client guesser, client;
	unsigned rest;

	open_with("secret");
	enter(&client, "127.0.0.1");
	ck_assert_int_eq(say(&client, "secret"), ACCESS_RIGHT);
	enter(&guesser, "127.0.0.1");
	ck_assert_int_eq(say(&guesser, "sekret"), ACCESS_WRONG);
	/* Right and wrong ones are the same now, also the one that came from there before. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(say(&guesser, i ? "secret" : "sekret"), ACCESS_LATER);
		ck_assert_uint_eq(wait_ns, (uint64_t)(i + 1) * 100 * WW_MILLISECOND);
		guesser.is_turn = 0;
	}
	ck_assert_int_eq(ask("Bearer secret", &rest), 429);
	ck_assert_uint_eq(rest, 1);
	ck_assert_uint_eq(door.culprits.failures, 1);
	ck_assert_int_eq(say(&client, "secret"), ACCESS_LATER);
	clock_ns += wait_ns;
	ck_assert_int_eq(say(&client, "secret"), ACCESS_RIGHT);
	clock_ns += WW_SECOND;
	ck_assert_int_eq(ask("Bearer secret", &rest), 0);
	ck_assert_int_eq(say_as(&client, "root", "secret"), ACCESS_WRONG);
	access_stop(&door);
}
END_TEST

START_TEST(a_long_password_is_compared_at_once)
{
	struct access_client guesser, client;
	unsigned rest;

	open_with("0123456789abcdef0123456789abcdef");
	enter(&guesser, "127.0.0.1");
	enter(&client, "127.0.0.1");
	for (int i = 0; i < 20; i++)
		(void)say(&guesser, "0123456789abcdef0123456789abcdeF");
	ck_assert(!guesser.is_known);
	ck_assert_int_eq(say(&client, "0123456789abcdef0123456789abcdef"), ACCESS_RIGHT);
	ck_assert_int_eq(ask("Bearer 0123456789abcdef0123456789abcdef", &rest), 0);
	access_stop(&door);
}
END_TEST

START_TEST(by_http)
{
	unsigned rest = 0;

	open_with(NULL);
	ck_assert_int_eq(ask(NULL, &rest), 401);
	ck_assert_int_eq(ask("Basic abc", &rest), 401);
	ck_assert_uint_eq(door.culprits.failures, 0);
	ck_assert_int_eq(ask("Bearer wrong-wrong-wrong-wrong", &rest), 401);
	for (int i = 0; i < 9; i++)
		ck_assert_int_eq(ask("Bearer wrong-wrong-wrong-wrong", &rest), 429);
	ck_assert_uint_eq(rest, 1);
	/* All of them were seen, and the rest is that of the first. */
	ck_assert_uint_eq(door.culprits.failures, 10);
	clock_ns += 100 * WW_MILLISECOND;
	ck_assert_int_eq(ask("Bearer wrong-wrong-wrong-wrong", &rest), 401);
	ck_assert_int_eq(ask("Bearer wrong-wrong-wrong-wrong", &rest), 429);
	ck_assert_uint_eq(rest, 7);
	access_stop(&door);
	door = (struct access){.now = now};
	access_start(&door, NULL, NULL, NULL);
	ck_assert_int_eq(ask(NULL, &rest), 0);
	access_stop(&door);
}
END_TEST

START_TEST(the_file_is_read_again)
{
	struct access_client site, shop;

	open_with(NULL);
	enter(&site, "192.0.2.1");
	enter(&shop, "192.0.2.1");
	ck_assert_int_eq(say(&site, right), ACCESS_RIGHT);
	ck_assert_int_eq(say(&shop, other), ACCESS_RIGHT);
	write_file(path, "read:cart");
	ck_assert_int_eq(access_reload(&door), 1);
	/* Its former line is there until it is asked. */
	ck_assert_str_eq(shop.token->text, "read:*");
	ck_assert_int_eq(access_renew(&door, &site), 1);
	ck_assert_ptr_eq(site.tokens, door.tokens);
	ck_assert_int_eq(access_renew(&door, &shop), 0);
	access_leave(&door, &shop);
	(void)unlink(path);
	ck_assert_int_eq(access_reload(&door), -1);
	ck_assert_int_eq(access_renew(&door, &site), 1);
	access_leave(&door, &site);
	access_stop(&door);
}
END_TEST

TEST_MAIN("service/access", a_right_token_gets_in_at_once_beside_guessers,
    wrong_tokens_are_answered_one_after_the_other, a_token_belongs_to_its_name,
    a_short_password_is_compared_in_its_turn, a_long_password_is_compared_at_once, by_http, the_file_is_read_again)
